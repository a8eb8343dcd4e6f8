// SPDX-License-Identifier: Apache-2.0
// Reductions that are no contraction:
//
//   windows and reductions over outer axes: the innermost kept axis is vectorised, the partial result of one vector
//   stays in a register; reductions over the innermost axis: several vectors of partial results, combined in a fixed
//   order at the end; a pointwise reader (a division by the count, an activation) is computed from the register.
#include <algorithm>

#include "lower/template.h"

namespace treadle::lower {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it
using schedule::Analyzer;
using schedule::Stage;

namespace {

bool contiguous_along(const std::vector<Access>& accesses, const Var& axis, Analyzer& analyzer) {
  for (const Access& access : accesses) {
    const auto stride = stride_of(access, axis, analyzer);
    const int64_t* n = stride ? as_int(*stride) : nullptr;
    if (!n || (*n != 0 && *n != 1)) return false;
  }
  return !accesses.empty();
}

// Fuses the innermost loops of the reduction that all accesses walk through in one go; gives the innermost loop.
Var fuse_reduction(Stage& stage, const std::vector<Access>& accesses, Analyzer& analyzer) {
  const Reduction& r = *stage.reduction();
  Var loop = stage.reduce_axis(r.axes.size() - 1);
  Expr extent = r.extents.back();
  for (size_t i = r.axes.size() - 1; i-- > 0;) {
    for (const Access& access : accesses) {
      const auto outer = stride_of(access, r.axes[i], analyzer), inner = stride_of(access, r.axes.back(), analyzer);
      if (!outer || !inner || !analyzer.proves(*outer == *inner * extent)) return loop;
    }
    loop = stage.fuse(stage.reduce_axis(i), loop);
    extent = extent * r.extents[i];
  }
  return loop;
}

}  // namespace

void schedule_reduction(TemplateContext& context, Stage& stage, bool parallel) {
  Analyzer& analyzer = context.analyzer;
  const std::vector<Access> accesses = accesses_of(stage, analyzer);
  const size_t rank = stage.axes().size();
  const int64_t count = size_of(stage.reduction()->extents);
  const int64_t work = size_of(stage.buffer()->shape) * count * (cost_of(stage.value()) + 1);
  int64_t lanes = lanes_of(stage, context.target);

  const int64_t* last = rank ? as_int(stage.extent(rank - 1)) : nullptr;
  const bool keep_inner =
      rank > 0 && (!last || *last >= 4) && contiguous_along(accesses, stage.axes()[rank - 1], analyzer);
  const bool reduce_inner =
      !stage.reduction()->axes.empty() && contiguous_along(accesses, stage.reduction()->axes.back(), analyzer);
  const bool by_column = keep_inner && !(reduce_inner && last && *last < lanes && count > 4 * lanes);

  Stage* reader = parallel && rank > 0 ? pointwise_reader(context, stage) : nullptr;
  Stage* acc = &stage;
  Stage* out = &stage;
  if (parallel && (reader || (by_column && rank > 0))) {
    if (reader) {
      out = reader;
    } else {
      acc = &context.schedule.cache_write(stage);
    }
  }
  if (by_column) {
    if (last) lanes = std::min(lanes, power_of_two_below(*last));
    const auto [column, lane] = out->split(out->axis(rank - 1), lanes);
    out->vectorize(lane);
    if (out == acc) {  // inside a row: the results lie in memory
      std::vector<Var> order = {column};
      for (size_t i = 0; i < acc->reduction()->axes.size(); ++i) order.push_back(acc->reduce_axis(i));
      order.push_back(lane);
      acc->reorder(order);
      return;
    }
    acc->compute_at(*out, column, Scope::Local);
    std::vector<Var> order;
    for (size_t i = 0; i < acc->reduction()->axes.size(); ++i) order.push_back(acc->reduce_axis(i));
    for (size_t i = 0; i < rank; ++i) order.push_back(acc->axis(i));
    acc->reorder(order);
    acc->vectorize(acc->axis(rank - 1));
    int64_t repeated = 1;
    for (size_t i = acc->reduction()->axes.size(); i-- > 0;) {
      const int64_t* extent = as_int(acc->reduction()->extents[i]);
      if (!extent || repeated * *extent > 16) break;
      acc->unroll(acc->reduce_axis(i));
      repeated *= *extent;
    }
    parallelize(*out, rank, work, has_conditions(*acc));
    return;
  }
  if (out != acc) acc->compute_at(*out, out->axis(rank - 1), Scope::Local);
  if (reduce_inner) {
    const Var loop = fuse_reduction(*acc, accesses, analyzer);
    const int64_t* whole = as_int(acc->reduction()->extents.back());
    const int64_t inner = acc->reduction()->axes.size() > 1 ? count : (whole ? *whole : count);
    if (inner >= lanes) acc->vectorize_reduction(loop, static_cast<int>(lanes), inner >= 4 * lanes ? 4 : 1);
  }
  if (parallel && rank > 0) parallelize(*out, rank, work, has_conditions(*acc));
}

// Stages that share the outer axes of the one output: softmax, layer normalisation.
bool schedule_rows(TemplateContext& context) {
  const std::vector<Stage*> stages = context.schedule.stages();
  size_t outputs = 0;
  for (Stage* stage : stages) outputs += context.schedule.is_output(*stage) ? 1 : 0;
  if (outputs != 1 || stages.size() < 2) return false;
  Stage& out = *stages.back();
  if (!context.schedule.is_output(out) || out.reduction()) return false;
  // A single reduction with a pointwise reader has better templates.
  if (stages.size() == 2 && pointwise_reader(context, *stages[0]) == &out) return false;
  if (out.axes().empty()) return false;
  size_t shared = out.axes().size();
  int64_t largest = 0;
  for (Stage* reader : stages) {
    for (const Access& access : accesses_of(*reader, context.analyzer)) {
      if (!context.schedule.find(access.buffer)) continue;
      size_t same = 0;
      while (same < std::min({shared, access.indices.size(), reader->axes().size()})) {
        const Expr index = context.analyzer.simplify(access.indices[same]);
        const int64_t* one = as_int(access.buffer->shape[same]);
        const bool single = one && *one == 1 && context.analyzer.proves(reader->extent(same) == int_imm(1));
        if (!index.same_as(reader->axes()[same]) && !single) break;
        ++same;
      }
      shared = same;
    }
  }
  if (shared == out.axes().size()) --shared;  // a row is at least one axis, else nothing is left for vectors
  if (shared == 0) return false;
  const std::vector<Expr> outer(out.buffer()->shape.begin(),
                                out.buffer()->shape.begin() + static_cast<ptrdiff_t>(shared));
  int64_t work = 0;
  for (Stage* stage : stages) {
    int64_t size = size_of(stage->buffer()->shape);
    if (stage->reduction()) size *= size_of(stage->reduction()->extents);
    work += size * (cost_of(stage->value()) + 1);
    largest = std::max(largest, size_of({stage->buffer()->shape.begin() + static_cast<ptrdiff_t>(shared),
                                         stage->buffer()->shape.end()}));
  }
  // Few long rows: each stage on its own has more to do in parallel.
  if (size_of(outer) < 4 && largest > (64 << 10)) return false;
  const Var row = out.axis(shared - 1);
  for (Stage* stage : stages) {
    if (stage == &out) continue;
    stage->compute_at(out, row);
    if (stage->reduction()) {
      schedule_reduction(context, *stage, false);
    } else {
      schedule_elementwise(context, *stage, false);
    }
  }
  if (shared < out.axes().size()) {
    const int64_t lanes = lanes_of(out, context.target);
    const auto [vectors, lane] = out.split(out.axis(out.axes().size() - 1), lanes);
    (void)vectors;
    out.vectorize(lane);
  }
  parallelize(out, shared, work, false);
  return true;
}

}  // namespace treadle::lower
