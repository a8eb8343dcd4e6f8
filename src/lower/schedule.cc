// SPDX-License-Identifier: Apache-2.0
// From the tensor expressions of a fused function to a schedule: cheap definitions are inlined, then the heaviest
// template that fits takes the stages that remain.
#include "lower/schedule.h"

#include <algorithm>

#include "lower/template.h"
#include "schedule/simplify.h"

namespace treadle::lower {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it
using schedule::Schedule;
using schedule::Stage;

namespace {

constexpr int64_t kRepeat = 8;     // operations that may be computed again rather than stored and loaded
constexpr int64_t kLargest = 400;  // operations of a definition after inlining

// How often the elements of `buffer` are evaluated per element when its definition is inlined into `reader`.
int64_t repetition(const Stage& stage, Stage& reader, TemplateContext& context) {
  int64_t loads = 0;
  for (const Access& access : accesses_of(reader, context.analyzer)) loads += access.buffer == stage.buffer() ? 1 : 0;
  const int64_t own = std::max<int64_t>(size_of(stage.buffer()->shape), 1);
  int64_t domain = size_of(reader.buffer()->shape);
  if (reader.reduction()) domain *= size_of(reader.reduction()->extents);
  return std::max<int64_t>(1, loads * std::max<int64_t>(1, domain / own));
}

void inline_cheap(TemplateContext& context) {
  const std::vector<Stage*> stages = context.schedule.stages();
  for (Stage* stage : stages) {
    if (stage->reduction() || context.schedule.is_output(*stage)) continue;
    const int64_t cost = cost_of(stage->value());
    int64_t times = 0, largest = 0;
    bool window = false, bordered = false;
    for (Stage* reader : context.schedule.readers(stage->buffer())) {
      const int64_t again = repetition(*stage, *reader, context);
      times += again;
      largest = std::max(largest, cost_of(reader->value()));
      // A contraction reads padding from a copy: its tile has no room for branches. Other windows are cut at the border
      // instead.
      const bool contraction =
          reader->reduction() && reader->reduction()->op == ReduceOp::Sum && reader->value().as<Binary>();
      window |= contraction && again > 2 && cost > 1;
      if (reader->reduction() && !contraction && has_conditions(*stage) && cost <= 4 * kRepeat) bordered = true;
    }
    if (times == 1 || (!window && (bordered || cost * (times - 1) <= kRepeat))) {
      if (largest + times * cost <= kLargest) stage->compute_inline();
    }
  }
}

// Nothing is computed, or nothing summed up: there is no tile to choose.
bool has_empty_axis(const Stage& stage) {
  const auto empty = [](const Expr& extent) {
    const int64_t* count = as_int(extent);
    return count && *count == 0;
  };
  for (size_t i = 0; i < stage.axes().size(); ++i) {
    if (empty(stage.extent(i))) return true;
  }
  if (!stage.reduction()) return false;
  const auto& extents = stage.reduction()->extents;
  return std::any_of(extents.begin(), extents.end(), empty);
}

}  // namespace

Function schedule_function(const std::string& name, const std::vector<loop::Tensor>& inputs,
                           const std::vector<loop::Tensor>& outputs, const Target& target, const Knobs& knobs) {
  Schedule schedule(name, inputs, outputs);
  TemplateContext context{schedule, target, knobs, {}};
  inline_cheap(context);
  const std::vector<Stage*> all = schedule.stages();
  if (std::any_of(all.begin(), all.end(), [](Stage* stage) { return has_empty_axis(*stage); }))
    return schedule::finish(schedule.lower());
  const bool heavy = std::any_of(all.begin(), all.end(), [&](Stage* stage) { return is_contraction(context, *stage); });
  if (heavy || !schedule_rows(context)) {
    // Reductions first: they take their pointwise readers, and may compute what they read inside their own loops.
    std::vector<Stage*> done;
    for (Stage* stage : all) {
      if (!stage->reduction()) continue;
      Stage* reader = pointwise_reader(context, *stage);
      if (!schedule_contraction(context, *stage)) schedule_reduction(context, *stage, true);
      done.push_back(stage);
      if (reader) done.push_back(reader);
    }
    for (Stage* stage : all) {
      const bool taken = std::find(done.begin(), done.end(), stage) != done.end() || !stage->at_root();
      if (!taken) schedule_elementwise(context, *stage, true);
    }
  }
  Function result = schedule::finish(schedule.lower());
  return result;
}

}  // namespace treadle::lower
