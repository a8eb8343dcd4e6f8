// SPDX-License-Identifier: Apache-2.0
// From a Schedule to a loop nest. Internal to schedule/.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "schedule/analyzer.h"
#include "schedule/schedule.h"

namespace treadle::schedule {

// lowest … highest value, both inclusive, over all values of the inner variables.
struct Interval {
  loop::Expr low, high;
};

// Bounds of `expr` where the variables in `inner` take their intervals and all others are fixed; low undefined: no
// bound is known.
Interval interval_of(const loop::Expr& expr, const std::map<const loop::VarNode*, Interval>& inner, Analyzer& analyzer);

// Whether a variable of this kind occurs in the expression.
bool uses_any(const loop::Expr& expr, const std::function<bool(const loop::VarNode*)>& of_kind);

class Emitter {
 public:
  explicit Emitter(Schedule& schedule) : schedule_(schedule) {}
  loop::Function run();

 private:
  struct Region {
    std::vector<loop::Expr> min, extent;
  };
  // Where the values of a stage lie at this point of the nest: element i is target[i - origin].
  struct Target {
    loop::Buffer buffer;
    std::vector<loop::Expr> origin;  // empty: zero
  };
  // The loops of one stage with their extents and what they stand for.
  struct Nest {
    Stage* stage;
    std::vector<loop::Expr> extents;                    // of stage->loops_
    std::map<const loop::VarNode*, loop::Expr> values;  // of the stage's axes and reduction axes
    std::vector<loop::Expr> guards;                     // must hold for an iteration to count
  };

  static std::vector<loop::Var> leaves(const Stage& stage, const loop::Var& loop);
  static bool is_outside(const Stage& stage, const loop::Var& outer, const loop::Var& inner);
  static bool is_bound(const Stage& stage, const loop::Var& loop);
  static bool may_shorten(const Stage& stage, const loop::Var& outer, const loop::Var& inner);
  loop::Expr plan_split(const Stage& stage, const Stage::Relation& relation,
                        std::map<const loop::VarNode*, loop::Expr>& extent, Nest& nest);
  Nest plan(Stage& stage, const Region& region);
  loop::Stmt emit(Nest& nest, size_t level);
  loop::Stmt emit_attached(Nest& nest, size_t level, loop::Stmt body);
  loop::Stmt emit_stage(Stage& stage, const Region& region, const Target& target);
  loop::Stmt update(Nest& nest);
  loop::Stmt initial(Nest& nest, size_t level);
  loop::Stmt vector_reduction(Nest& nest);
  std::vector<loop::Expr> place(const Nest& nest);
  loop::Expr value_of(const Nest& nest, const loop::Expr& value);
  std::map<const loop::VarNode*, Interval> inner_loops(const Nest& nest, size_t level);
  Region required(const Stage& stage, const Nest& nest, size_t level);
  std::map<const loop::VarNode*, Interval> axes_of(const Stage& stage, const Nest& nest, size_t level);
  bool inside(const Stage& stage, const Nest& nest, size_t level) const;

  Schedule& schedule_;
  Analyzer analyzer_;
  std::map<const loop::BufferNode*, Target> targets_;
  std::vector<loop::Binder> around_;  // the loops around what is emitted
};

}  // namespace treadle::schedule
