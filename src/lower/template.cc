// SPDX-License-Identifier: Apache-2.0
// Analysis of definitions that the schedule templates share.
#include "lower/template.h"

#include <algorithm>

namespace treadle::lower {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it
using schedule::Analyzer;
using schedule::Stage;

std::vector<Access> accesses_of(Stage& stage, Analyzer& analyzer) {
  for (size_t i = 0; i < stage.axes().size(); ++i) analyzer.bind(stage.axes()[i], 0, stage.extent(i));
  if (stage.reduction()) {
    for (size_t i = 0; i < stage.reduction()->axes.size(); ++i) {
      analyzer.bind(stage.reduction()->axes[i], 0, stage.reduction()->extents[i]);
    }
  }
  struct Finder : ExprVisitor {
    void visit_expr(const Expr& e) override {
      if (const auto* l = e.as<Load>()) found.push_back({l->buffer, l->indices, Expr()});
      visit_children(e);
    }
    std::vector<Access> found;
  } finder;
  finder.visit(stage.value());
  if (stage.reduction() && stage.reduction()->init.defined()) finder.visit(stage.reduction()->init);
  for (Access& access : finder.found) {
    Expr offset = int_imm(0), stride = int_imm(1);
    for (size_t i = access.indices.size(); i-- > 0;) {
      offset = offset + access.indices[i] * stride;
      stride = stride * access.buffer->shape[i];
    }
    access.offset = analyzer.simplify(offset);
  }
  return finder.found;
}

std::optional<Expr> stride_of(const Access& access, const Var& axis, Analyzer& analyzer) {
  const auto linear = analyzer.split_linear(access.offset, axis);
  return linear ? std::optional(linear->first) : std::nullopt;
}

bool uses_var(const Expr& expr, const Var& var) {
  struct Finder : ExprVisitor {
    void visit_expr(const Expr& e) override {
      found |= e.get() == var;
      visit_children(e);
    }
    const ExprNode* var = nullptr;
    bool found = false;
  } finder;
  finder.var = var.get();
  finder.visit(expr);
  return finder.found;
}

int64_t cost_of(const Expr& value) {
  struct Counter : ExprVisitor {
    void visit_expr(const Expr& e) override {
      if (e.kind() == ExprKind::Load) {
        cost += 1;
        return;  // index arithmetic is hoisted or folded into addresses
      }
      if (const auto* call = e.as<IntrinsicCall>())
        cost += call->function == Intrinsic::Abs || call->function == Intrinsic::Fma ? 1 : 10;
      if (const auto* b = e.as<Binary>()) cost += b->op == BinaryOp::Div || b->op == BinaryOp::FloorDiv ? 4 : 1;
      cost += e.kind() == ExprKind::Select || e.kind() == ExprKind::Cast || e.kind() == ExprKind::Not ? 1 : 0;
      visit_children(e);
    }
    int64_t cost = 0;
  } counter;
  counter.visit(value);
  return counter.cost;
}

int lanes_of(const Stage& stage, const Target& target) {
  struct Widest : ExprVisitor {
    void visit_expr(const Expr& e) override {
      bytes = std::max(bytes, static_cast<int>(e.dtype().bytes()));
      if (e.kind() != ExprKind::Load) visit_children(e);
    }
    int bytes = 1;
  } widest;
  // A comparison of indices does not make the vector short.
  widest.bytes = static_cast<int>(stage.buffer()->dtype.bytes());
  struct Loads : ExprVisitor {
    explicit Loads(int& b) : bytes(b) {}
    void visit_expr(const Expr& e) override {
      if (e.dtype() != dtype::int64_ && !e.dtype().is_bool())
        bytes = std::max(bytes, static_cast<int>(e.dtype().bytes()));
      if (e.kind() == ExprKind::Load) {
        bytes = std::max(bytes, static_cast<int>(e.dtype().bytes()));
        return;
      }
      visit_children(e);
    }
    int& bytes;
  } loads(widest.bytes);
  loads.visit(stage.value());
  return std::max(target.lanes(widest.bytes), 1);
}

int64_t power_of_two_below(int64_t n) {
  int64_t p = 1;
  while (p * 2 <= n) p *= 2;
  return p;
}

int64_t size_of(const std::vector<Expr>& extents, int64_t unknown) {
  constexpr int64_t kMost = 1 << 26;  // more changes no choice, and products of two and a cost do not overflow
  int64_t size = 1;
  for (const Expr& extent : extents) {
    const int64_t* n = as_int(extent);
    if (__builtin_mul_overflow(size, n ? *n : unknown, &size) || size > kMost) return kMost;
  }
  return size;
}

Stage* pointwise_reader(TemplateContext& context, Stage& stage) {
  if (context.schedule.is_output(stage)) return nullptr;
  const std::vector<Stage*> readers = context.schedule.readers(stage.buffer());
  if (readers.size() != 1 || readers[0]->reduction() || readers[0]->axes().size() != stage.axes().size())
    return nullptr;
  Stage& reader = *readers[0];
  for (size_t i = 0; i < stage.axes().size(); ++i) {
    if (!context.analyzer.proves(reader.extent(i) == stage.extent(i))) return nullptr;
  }
  for (const Access& access : accesses_of(reader, context.analyzer)) {
    if (access.buffer != stage.buffer()) continue;
    for (size_t i = 0; i < access.indices.size(); ++i) {
      const Expr index = context.analyzer.simplify(access.indices[i]);
      const int64_t* one = as_int(stage.extent(i));
      if (!index.same_as(reader.axes()[i]) && !(one && *one == 1)) return nullptr;
    }
  }
  return &reader;
}

bool has_conditions(const Stage& stage) {
  struct Finder : ExprVisitor {
    void visit_expr(const Expr& e) override {
      found |= e.kind() == ExprKind::Select;
      visit_children(e);
    }
    bool found = false;
  } finder;
  finder.visit(stage.value());
  return finder.found;
}

void parallelize(Stage& stage, size_t count, int64_t work, bool conditions) {
  constexpr int64_t kEnough = 32768;  // simple operations below which one core is faster
  constexpr int64_t kTasks = 16;      // so that two to eight threads end together
  if (work < kEnough || count == 0) return;
  const std::vector<Var> loops(stage.loops().begin(), stage.loops().begin() + static_cast<ptrdiff_t>(count));
  const auto extent_of = [&](const Var& loop) {
    for (size_t axis = 0; axis < stage.axes().size(); ++axis) {
      if (stage.axis(axis).same_as(loop)) return size_of({stage.extent(axis)});
    }
    return int64_t{64};
  };
  if (conditions) {
    // One loop as it is: the others can be cut where conditions change, which a fused loop cannot.
    size_t best = 0;
    for (size_t i = 1; i < count; ++i) {
      if (extent_of(loops[best]) < 8 && extent_of(loops[i]) > extent_of(loops[best])) best = i;
    }
    std::vector<Var> order = loops;
    std::rotate(order.begin(), order.begin() + static_cast<ptrdiff_t>(best),
                order.begin() + static_cast<ptrdiff_t>(best) + 1);
    stage.reorder(order);
    stage.parallel(loops[best]);
    return;
  }
  Var outer = loops[0];
  int64_t tasks = extent_of(outer);
  for (size_t i = 1; i < count && tasks < kTasks; ++i) {
    tasks *= extent_of(loops[i]);
    outer = stage.fuse(outer, loops[i]);
  }
  stage.parallel(outer);
}

}  // namespace treadle::lower
