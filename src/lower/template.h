// SPDX-License-Identifier: Apache-2.0
// Schedule templates and the analysis that they share. Internal to lower/.
#pragma once

#include <optional>
#include <vector>

#include "lower/schedule.h"
#include "schedule/analyzer.h"
#include "schedule/schedule.h"

namespace treadle::lower {

// What a template works on.
struct TemplateContext {
  schedule::Schedule& schedule;
  const Target& target;
  const Knobs& knobs;
  schedule::Analyzer analyzer;
  std::pair<schedule::Stage*, loop::Var>
      attach{};  // a stage to be computed inside a loop that a template has just made
};

// One load of a stage's definition.
struct Access {
  loop::Buffer buffer;
  std::vector<loop::Expr> indices;
  loop::Expr offset;  // in elements, row-major
};

std::vector<Access> accesses_of(schedule::Stage& stage, schedule::Analyzer& analyzer);
// Elements by which the load moves when `axis` grows by one; nullopt: not linear in it.
std::optional<loop::Expr> stride_of(const Access& access, const loop::Var& axis, schedule::Analyzer& analyzer);
bool uses_var(const loop::Expr& expr, const loop::Var& var);
// Work of evaluating a definition once, in simple operations; an intrinsic such as exp counts as 10.
int64_t cost_of(const loop::Expr& value);
// Lanes of one vector for the widest element that the stage computes with.
int lanes_of(const schedule::Stage& stage, const Target& target);
// The product of extents where they are constant; a symbolic extent counts as `unknown`.
int64_t size_of(const std::vector<loop::Expr>& extents, int64_t unknown = 64);
// The largest power of two that is at most n; 1 for smaller n.
int64_t power_of_two_below(int64_t n);
// The reader of a stage when it is the only one, has the stage's shape, and reads it only at its own axes.
schedule::Stage* pointwise_reader(TemplateContext& context, schedule::Stage& stage);

// Whether the definition chooses between values, so that loops will be cut where the choice changes.
bool has_conditions(const schedule::Stage& stage);
// Makes the outermost loop parallel when `work` (simple operations) is enough. `conditions`: one of the first `count`
// loops is taken and put first; else so many of them are fused that there are tasks enough.
void parallelize(schedule::Stage& stage, size_t count, int64_t work, bool conditions);

// Templates; each may assume that stages which should be inlined are. `parallel`: false inside of another stage's loop.
void schedule_elementwise(TemplateContext& context, schedule::Stage& stage, bool parallel);
void schedule_reduction(TemplateContext& context, schedule::Stage& stage, bool parallel);
// Sum of a product of two loads; false: the stage has another form and is untouched.
bool is_contraction(TemplateContext& context, schedule::Stage& stage);
bool schedule_contraction(TemplateContext& context, schedule::Stage& stage);
// Several stages that share outer axes, computed row by row; false: they share none.
bool schedule_rows(TemplateContext& context);

}  // namespace treadle::lower
