// SPDX-License-Identifier: Apache-2.0
// What a stage computed inside a loop must provide: the hull of what its readers inside the loop read, by interval
// arithmetic on the normal form of the indices, cut to the stage's shape.
#include <algorithm>

#include "base/error.h"
#include "schedule/emit.h"

namespace treadle::schedule {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it

bool uses_any(const Expr& expr, const std::function<bool(const VarNode*)>& of_kind) {
  struct Finder : ExprVisitor {
    explicit Finder(const std::function<bool(const VarNode*)>& f) : of_kind(f) {}
    void visit_expr(const Expr& e) override {
      if (const auto* var = e.as<VarNode>()) found |= of_kind(var);
      visit_children(e);
    }
    const std::function<bool(const VarNode*)>& of_kind;
    bool found = false;
  } finder(of_kind);
  finder.visit(expr);
  return finder.found;
}

namespace {

using Inner = std::map<const VarNode*, Interval>;

bool uses(const Expr& expr, const Inner& inner) {
  return uses_any(expr, [&](const VarNode* var) { return inner.count(var) > 0; });
}

// All loads of a buffer in an expression.
std::vector<std::vector<Expr>> loads_of(const Expr& expr, const BufferNode* buffer) {
  struct Finder : ExprVisitor {
    void visit_expr(const Expr& e) override {
      if (const auto* l = e.as<Load>()) {
        if (l->buffer.get() == buffer) found.push_back(l->indices);
      }
      visit_children(e);
    }
    const BufferNode* buffer = nullptr;
    std::vector<std::vector<Expr>> found;
  } finder;
  finder.buffer = buffer;
  finder.visit(expr);
  return finder.found;
}

Interval interval_of_atom(const Expr& e, const Inner& inner, Analyzer& analyzer) {
  if (!uses(e, inner)) return {e, e};
  if (const auto* v = e.as<VarNode>()) {
    const Interval& range = inner.at(v);
    if (!range.low.defined()) return {};
    // The range of an inner loop may depend on other inner loops.
    const Interval low = interval_of(range.low, inner, analyzer), high = interval_of(range.high, inner, analyzer);
    return low.low.defined() && high.high.defined() ? Interval{low.low, high.high} : Interval{};
  }
  if (const auto* s = e.as<Select>()) {
    const Interval a = interval_of(s->a, inner, analyzer), b = interval_of(s->b, inner, analyzer);
    if (!a.low.defined() || !b.low.defined()) return {};
    return {min(a.low, b.low), max(a.high, b.high)};
  }
  const auto* b = e.as<Binary>();
  if (!b) return {};
  const Interval x = interval_of(b->a, inner, analyzer), y = interval_of(b->b, inner, analyzer);
  if (!x.low.defined() || !y.low.defined()) return {};
  if (b->op == BinaryOp::Min) return {min(x.low, y.low), min(x.high, y.high)};
  if (b->op == BinaryOp::Max) return {max(x.low, y.low), max(x.high, y.high)};
  const auto least = uses(b->b, inner) ? std::nullopt : analyzer.lower_bound(b->b);
  const bool divisor = least && *least >= 0;  // an extent of 0 makes loops that do not run
  if (b->op == BinaryOp::FloorDiv && divisor) return {floordiv(x.low, b->b), floordiv(x.high, b->b)};
  if (b->op == BinaryOp::FloorMod && divisor) {
    if (analyzer.proves(floordiv(x.low, b->b) == floordiv(x.high, b->b)))
      return {floormod(x.low, b->b), floormod(x.high, b->b)};
    return {int_imm(0), b->b - int_imm(1)};
  }
  return {};
}

}  // namespace

Interval interval_of(const Expr& expr, const Inner& inner, Analyzer& analyzer) {
  if (!uses(expr, inner)) return {expr, expr};
  const Poly poly = analyzer.poly(expr);
  Expr low = int_imm(poly.constant), high = low;
  for (const Poly::Term& term : poly.terms) {
    Expr fixed = int_imm(term.coefficient), varying;
    for (int factor : term.factors) {
      const Expr& atom = analyzer.atom(factor);
      if (!uses(atom, inner)) {
        fixed = fixed * atom;
      } else if (varying.defined()) {
        return {};
      } else {
        varying = atom;
      }
    }
    if (!varying.defined()) {
      low = low + fixed;
      high = high + fixed;
      continue;
    }
    const Interval range = interval_of_atom(varying, inner, analyzer);
    if (!range.low.defined()) return {};
    if (analyzer.proves(fixed >= int_imm(0))) {
      low = low + fixed * range.low;
      high = high + fixed * range.high;
    } else if (analyzer.proves(fixed <= int_imm(0))) {
      low = low + fixed * range.high;
      high = high + fixed * range.low;
    } else {
      return {};
    }
  }
  return {analyzer.simplify(low), analyzer.simplify(high)};
}

Inner Emitter::inner_loops(const Nest& nest, size_t level) {
  Inner inner;
  for (size_t i = level + 1; i < nest.stage->loops_.size(); ++i) {
    inner[nest.stage->loops_[i].var()] = {int_imm(0), analyzer_.simplify(nest.extents[i] - int_imm(1))};
  }
  return inner;
}

bool Emitter::inside(const Stage& stage, const Nest& nest, size_t level) const {
  const Stage* s = &stage;
  while (s->place_ == Stage::Place::At && s->consumer_ != nest.stage) s = s->consumer_;
  return s->place_ == Stage::Place::At && s->consumer_->position(s->at_) >= level;
}

// Intervals of the axes and reduction axes of a reader inside the loop.
Inner Emitter::axes_of(const Stage& stage, const Nest& nest, size_t level) {
  Inner result;
  const Region region = required(stage, nest, level);
  for (size_t i = 0; i < stage.axes_.size(); ++i) {
    result[stage.axes_[i].var()] = {region.min[i], analyzer_.simplify(region.min[i] + region.extent[i] - int_imm(1))};
  }
  for (size_t i = 0; i < stage.reduce_loops_.size(); ++i) {
    result[stage.reduction_->axes[i].var()] = {int_imm(0), stage.reduction_->extents[i] - int_imm(1)};
  }
  return result;
}

Emitter::Region Emitter::required(const Stage& stage, const Nest& nest, size_t level) {
  const size_t rank = stage.axes_.size();
  std::vector<Interval> hull(rank);
  std::vector<bool> unknown(rank, false);
  for (Stage* reader : schedule_.readers(stage.buffer_)) {
    Inner inner;
    if (reader == nest.stage) {
      inner = inner_loops(nest, level);
    } else if (inside(*reader, nest, level)) {
      inner = axes_of(*reader, nest, level);
    } else {
      fail(ErrorCode::ScheduleInvalid, "stage {} is computed inside loop {} of {} but {} reads it outside",
           stage.buffer_->name, nest.stage->loops_[level].name(), nest.stage->buffer_->name, reader->buffer_->name);
    }
    std::vector<std::vector<Expr>> loads = loads_of(reader->value_, stage.buffer_.get());
    if (reader->reduction_ && reader->reduction_->init.defined()) {
      for (auto& more : loads_of(reader->reduction_->init, stage.buffer_.get())) loads.push_back(more);
    }
    for (const auto& indices : loads) {
      for (size_t i = 0; i < rank; ++i) {
        Expr index = indices[i];
        if (reader == nest.stage) index = substitute(index, nest.values);
        const Interval range = interval_of(analyzer_.simplify(index), inner, analyzer_);
        if (!range.low.defined()) {
          unknown[i] = true;
        } else if (!hull[i].low.defined()) {
          hull[i] = range;
        } else {
          hull[i].low = analyzer_.simplify(min(hull[i].low, range.low));
          hull[i].high = analyzer_.simplify(max(hull[i].high, range.high));
        }
      }
    }
  }
  Region region;
  for (size_t i = 0; i < rank; ++i) {
    const Expr last = stage.buffer_->shape[i] - int_imm(1);
    if (unknown[i] || !hull[i].low.defined()) hull[i] = {int_imm(0), last};
    const Expr low = analyzer_.simplify(max(hull[i].low, int_imm(0)));
    const Expr high = analyzer_.simplify(min(hull[i].high, last));
    region.min.push_back(low);
    region.extent.push_back(analyzer_.simplify(high - low + int_imm(1)));
    const auto multiple = stage.round_up_.find(i);
    if (multiple != stage.round_up_.end()) {
      // Exact where the hull before the cut to the shape is whole: then it is simply that.
      const Expr uncut = analyzer_.simplify(hull[i].high - low + int_imm(1));
      const Expr m = int_imm(multiple->second);
      region.extent.back() =
          analyzer_.simplify(floordiv((as_int(uncut) ? uncut : region.extent.back()) + m - int_imm(1), m) * m);
    }
  }
  return region;
}

}  // namespace treadle::schedule
