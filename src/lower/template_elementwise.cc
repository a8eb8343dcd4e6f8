// SPDX-License-Identifier: Apache-2.0
// Elementwise, broadcast and injective definitions:
//
//   adjacent axes that every access walks through in one go are fused; the innermost loop is vectorised; a transpose is
//   tiled so that both sides touch whole cache lines; outer loops, or chunks of a single loop, run in parallel when
//   there is enough to do.
#include <algorithm>

#include "lower/template.h"

namespace treadle::lower {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it
using schedule::Analyzer;
using schedule::Stage;

namespace {

// Whether the variable occurs outside of the indices of loads, for example in a condition.
bool used_openly(const Expr& value, const Var& var) {
  struct Finder : ExprVisitor {
    void visit_expr(const Expr& e) override {
      found |= e.get() == var;
      if (e.kind() != ExprKind::Load) visit_children(e);
    }
    const ExprNode* var = nullptr;
    bool found = false;
  } finder;
  finder.var = var.get();
  finder.visit(value);
  return finder.found;
}

// One loop over one or several fused axes.
struct Group {
  Var loop;
  Expr extent;
  std::vector<std::optional<Expr>> strides;  // per access
  bool open;                                 // used_openly
};

std::vector<Group> fuse_axes(TemplateContext& context, Stage& stage, const std::vector<Access>& accesses) {
  Analyzer& analyzer = context.analyzer;
  std::vector<Group> groups;
  for (size_t i = 0; i < stage.axes().size(); ++i) {
    const int64_t* one = as_int(stage.extent(i));
    if (one && *one == 1) continue;
    Group group{stage.axis(i), stage.extent(i), {}, used_openly(stage.value(), stage.axes()[i])};
    for (const Access& access : accesses) group.strides.push_back(stride_of(access, stage.axes()[i], analyzer));
    groups.push_back(std::move(group));
  }
  // Loops of one iteration must not lie between loops that are fused.
  std::vector<Var> order, ones;
  for (size_t i = 0; i < stage.axes().size(); ++i) {
    const bool kept =
        std::any_of(groups.begin(), groups.end(), [&](const Group& g) { return g.loop.same_as(stage.axis(i)); });
    (kept ? order : ones).push_back(stage.axis(i));
  }
  ones.insert(ones.end(), order.begin(), order.end());
  if (!ones.empty()) stage.reorder(ones);
  for (size_t i = groups.size(); i-- > 1;) {
    Group &outer = groups[i - 1], &inner = groups[i];
    bool whole = !outer.open && !inner.open;
    for (size_t a = 0; a < accesses.size() && whole; ++a) {
      whole = outer.strides[a] && inner.strides[a] &&
              analyzer.proves(*outer.strides[a] == *inner.strides[a] * inner.extent);
    }
    if (!whole) continue;
    inner.loop = stage.fuse(outer.loop, inner.loop);
    inner.extent = analyzer.simplify(outer.extent * inner.extent);
    groups.erase(groups.begin() + static_cast<ptrdiff_t>(i) - 1);
  }
  return groups;
}

}  // namespace

void schedule_elementwise(TemplateContext& context, Stage& stage, bool parallel) {
  if (stage.axes().empty()) return;
  const std::vector<Access> accesses = accesses_of(stage, context.analyzer);
  std::vector<Group> groups = fuse_axes(context, stage, accesses);
  if (groups.empty()) return;
  const int64_t cost = cost_of(stage.value()) + 1;
  const int64_t work = size_of(stage.buffer()->shape) * cost;
  Group& inner = groups.back();
  int64_t lanes = lanes_of(stage, context.target);
  const int64_t* inner_size = as_int(inner.extent);
  if (inner_size) lanes = std::min(lanes, power_of_two_below(*inner_size));

  // The loop along which a load with strided innermost access is contiguous.
  std::optional<Var> contiguous;
  for (size_t a = 0; a < accesses.size() && !contiguous; ++a) {
    const int64_t* stride = inner.strides[a] ? as_int(*inner.strides[a]) : nullptr;
    if (stride && *stride <= 1) continue;
    for (size_t g = 0; g + 1 < groups.size(); ++g) {
      const int64_t* other = groups[g].strides[a] ? as_int(*groups[g].strides[a]) : nullptr;
      if (other && *other == 1) contiguous = groups[g].loop;
    }
  }

  std::vector<Var> outer;
  std::vector<Expr> outer_extents;
  for (size_t g = 0; g + 1 < groups.size(); ++g) {
    outer.push_back(groups[g].loop);
    outer_extents.push_back(groups[g].extent);
  }
  const int64_t outer_size = size_of(outer_extents);
  Var last = inner.loop;
  constexpr int64_t kChunk = 16384;  // operations of one parallel task, at least
  if (parallel && outer_size < 8 && work > 2 * kChunk && !contiguous) {
    const int64_t elements = inner_size ? std::max(kChunk / cost, *inner_size / 64) : kChunk / cost;
    const auto [chunk, rest] = stage.split(last, std::max<int64_t>((elements + lanes - 1) / lanes, 1) * lanes);
    outer.push_back(chunk);
    last = rest;
  }
  if (lanes > 1) {
    const auto [vectors, lane] = stage.split(last, lanes);
    stage.vectorize(lane);
    if (contiguous) {
      const auto [to, ti] = stage.split(*contiguous, lanes);
      std::vector<Var> order;
      for (Var& loop : outer) {
        if (loop.same_as(*contiguous)) loop = to;
        order.push_back(loop);
      }
      order.insert(order.end(), {vectors, ti, lane});
      stage.reorder(order);
    }
  }
  if (!parallel || outer.empty()) return;
  // Loops of one iteration stand first; they join the parallel loop for nothing.
  size_t count = outer.size();
  for (const Var& loop : stage.loops()) {
    if (std::any_of(outer.begin(), outer.end(), [&](const Var& o) { return o.same_as(loop); })) break;
    ++count;
  }
  parallelize(stage, count, work, has_conditions(stage));
}

}  // namespace treadle::lower
