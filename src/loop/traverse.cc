// SPDX-License-Identifier: Apache-2.0
// Visitor, mutator and substitution over the loop IR.
#include <unordered_set>

#include "base/error.h"
#include "loop/stmt.h"
#include "loop/text.h"

namespace treadle::loop {
namespace {

// Calls f on each operand, in order.
template <typename F>
void each_child(const Expr& expr, F&& f) {
  switch (expr.kind()) {
    case ExprKind::IntImm:
    case ExprKind::FloatImm:
    case ExprKind::Var:
      return;
    case ExprKind::Binary: {
      const auto* e = expr.as<Binary>();
      f(e->a);
      f(e->b);
      return;
    }
    case ExprKind::Not:
      return f(expr.as<Not>()->a);
    case ExprKind::Select: {
      const auto* e = expr.as<Select>();
      f(e->condition);
      f(e->a);
      f(e->b);
      return;
    }
    case ExprKind::Cast:
      return f(expr.as<Cast>()->a);
    case ExprKind::Reinterpret:
      return f(expr.as<Reinterpret>()->a);
    case ExprKind::Intrinsic:
      for (const Expr& arg : expr.as<IntrinsicCall>()->args) f(arg);
      return;
    case ExprKind::Load:
      for (const Expr& index : expr.as<Load>()->indices) f(index);
      return;
    case ExprKind::Ramp: {
      const auto* e = expr.as<Ramp>();
      f(e->base);
      f(e->stride);
      return;
    }
    case ExprKind::Broadcast:
      return f(expr.as<Broadcast>()->a);
    case ExprKind::VectorReduce:
      return f(expr.as<VectorReduce>()->a);
    case ExprKind::Address:
      for (const Expr& index : expr.as<Address>()->indices) f(index);
      return;
    case ExprKind::Extern:
      for (const Expr& arg : expr.as<Extern>()->args) f(arg);
      return;
  }
}

class Substitute : public Mutator {
 public:
  explicit Substitute(const std::map<const VarNode*, Expr>& values) : values_(values) {}

 protected:
  Expr mutate_expr(const Expr& expr) override {
    if (const auto* var = expr.as<VarNode>()) {
      auto it = values_.find(var);
      return it == values_.end() ? expr : it->second;
    }
    return mutate_children(expr);
  }

  // A buffer that is allocated here gets new extents; those of callers keep their identity.
  Stmt mutate_stmt(const Stmt& stmt) override {
    if (const auto* s = stmt.as<Allocate>()) {
      auto copy = std::make_shared<BufferNode>(*s->buffer);
      bool changed = false;
      for (std::vector<Expr>* list : {&copy->shape, &copy->strides}) {
        for (Expr& expr : *list) {
          Expr result = mutate(expr);
          changed |= !result.same_as(expr);
          expr = result;
        }
      }
      if (changed) buffers_[s->buffer.get()] = copy;
    }
    return mutate_children(stmt);
  }

  Buffer mutate_buffer(const Buffer& buffer) override {
    auto it = buffers_.find(buffer.get());
    return it == buffers_.end() ? buffer : it->second;
  }

 private:
  const std::map<const VarNode*, Expr>& values_;
  std::map<const BufferNode*, Buffer> buffers_;
};

class CallEach : public ExprVisitor {
 public:
  explicit CallEach(const std::function<void(const Expr&)>& g) : g_(g) {}

 protected:
  void visit_expr(const Expr& expr) override {
    g_(expr);
    visit_children(expr);
  }

 private:
  const std::function<void(const Expr&)>& g_;
};

}  // namespace

std::vector<Expr> operands(const Expr& expr) {
  std::vector<Expr> result;
  each_child(expr, [&](const Expr& child) { result.push_back(child); });
  return result;
}

void ExprVisitor::visit(const Expr& expr) {
  if (seen_.emplace(expr.get(), true).second) visit_expr(expr);
}

void ExprVisitor::visit_expr(const Expr& expr) { visit_children(expr); }

void ExprVisitor::visit_children(const Expr& expr) {
  each_child(expr, [&](const Expr& child) { visit(child); });
}

Expr Mutator::mutate(const Expr& expr) {
  auto it = memo_.find(expr.get());
  if (it != memo_.end()) return it->second.second;
  Expr result = mutate_expr(expr);
  memo_.emplace(expr.get(), std::pair(expr, result));
  return result;
}

Stmt Mutator::mutate(const Stmt& stmt) { return stmt.defined() ? mutate_stmt(stmt) : stmt; }
Expr Mutator::mutate_expr(const Expr& expr) { return mutate_children(expr); }
Stmt Mutator::mutate_stmt(const Stmt& stmt) { return mutate_children(stmt); }

Expr Mutator::mutate_children(const Expr& expr) {
  std::vector<Expr> c;
  bool changed = false;
  each_child(expr, [&](const Expr& child) {
    c.push_back(mutate(child));
    changed |= !c.back().same_as(child);
  });
  Buffer buffer;
  if (const auto* l = expr.as<Load>()) {
    buffer = mutate_buffer(l->buffer);
    changed |= buffer != l->buffer;
  } else if (const auto* a = expr.as<Address>()) {
    buffer = mutate_buffer(a->buffer);
    changed |= buffer != a->buffer;
  }
  if (!changed) return expr;
  switch (expr.kind()) {
    case ExprKind::IntImm:
    case ExprKind::FloatImm:
    case ExprKind::Var:
      return expr;
    case ExprKind::Binary:
      return binary(expr.as<Binary>()->op, c[0], c[1]);
    case ExprKind::Not:
      return !c[0];
    case ExprKind::Select:
      return select(c[0], c[1], c[2]);
    case ExprKind::Cast:
      return cast(c[0], expr.dtype());
    case ExprKind::Reinterpret:
      return reinterpret(c[0], expr.dtype());
    case ExprKind::Intrinsic:
      return intrinsic(expr.as<IntrinsicCall>()->function, std::move(c));
    case ExprKind::Load:
      return load(buffer, std::move(c));
    case ExprKind::Ramp:
      return ramp(c[0], c[1], expr.lanes());
    case ExprKind::Broadcast:
      return broadcast(c[0], expr.lanes());
    case ExprKind::VectorReduce:
      return vector_reduce(expr.as<VectorReduce>()->op, c[0]);
    case ExprKind::Address:
      return address(buffer, std::move(c));
    case ExprKind::Extern:
      return extern_call(expr.as<Extern>()->name, std::move(c), expr.dtype());
  }
  return expr;
}

Stmt Mutator::mutate_children(const Stmt& stmt) {
  switch (stmt.kind()) {
    case StmtKind::Store: {
      const auto* s = stmt.as<Store>();
      Buffer buffer = mutate_buffer(s->buffer);
      bool changed = buffer != s->buffer;
      std::vector<Expr> indices;
      for (const Expr& index : s->indices) {
        indices.push_back(mutate(index));
        changed |= !indices.back().same_as(index);
      }
      Expr value = mutate(s->value);
      return changed || !value.same_as(s->value) ? store(buffer, std::move(indices), value) : stmt;
    }
    case StmtKind::For: {
      const auto* s = stmt.as<For>();
      Expr min = mutate(s->min), extent = mutate(s->extent);
      Stmt body = mutate(s->body);
      if (min.same_as(s->min) && extent.same_as(s->extent) && body.same_as(s->body)) return stmt;
      return for_loop(s->var, min, extent, body, s->for_kind);
    }
    case StmtKind::While: {
      const auto* s = stmt.as<While>();
      Expr condition = mutate(s->condition);
      Stmt body = mutate(s->body);
      return condition.same_as(s->condition) && body.same_as(s->body) ? stmt : while_loop(condition, body);
    }
    case StmtKind::If: {
      const auto* s = stmt.as<If>();
      Expr condition = mutate(s->condition);
      Stmt then_body = mutate(s->then_body), else_body = mutate(s->else_body);
      if (condition.same_as(s->condition) && then_body.same_as(s->then_body) && else_body.same_as(s->else_body))
        return stmt;
      return if_then(condition, then_body, else_body);
    }
    case StmtKind::Let: {
      const auto* s = stmt.as<Let>();
      Expr value = mutate(s->value);
      Stmt body = mutate(s->body);
      return value.same_as(s->value) && body.same_as(s->body) ? stmt : let(s->var, value, body);
    }
    case StmtKind::Allocate: {
      const auto* s = stmt.as<Allocate>();
      Buffer buffer = mutate_buffer(s->buffer);
      Stmt body = mutate(s->body);
      return buffer == s->buffer && body.same_as(s->body) ? stmt : allocate(buffer, body);
    }
    case StmtKind::Block: {
      const auto* s = stmt.as<Block>();
      std::vector<Stmt> stmts;
      bool changed = false;
      for (const Stmt& inner : s->stmts) {
        stmts.push_back(mutate(inner));
        changed |= !stmts.back().same_as(inner);
      }
      return changed ? block(std::move(stmts)) : stmt;
    }
    case StmtKind::Evaluate: {
      const auto* s = stmt.as<Evaluate>();
      Expr value = mutate(s->value);
      return value.same_as(s->value) ? stmt : evaluate(value);
    }
  }
  return stmt;
}

void for_each(const Stmt& stmt, const std::function<void(const Stmt&)>& f, const std::function<void(const Expr&)>& g) {
  if (!stmt.defined()) return;
  if (f) f(stmt);
  CallEach call(g);
  auto on = [&](const Expr& expr) {
    if (g) call.visit(expr);
  };
  switch (stmt.kind()) {
    case StmtKind::Store:
      for (const Expr& index : stmt.as<Store>()->indices) on(index);
      return on(stmt.as<Store>()->value);
    case StmtKind::For:
      on(stmt.as<For>()->min);
      on(stmt.as<For>()->extent);
      return for_each(stmt.as<For>()->body, f, g);
    case StmtKind::While:
      on(stmt.as<While>()->condition);
      return for_each(stmt.as<While>()->body, f, g);
    case StmtKind::If:
      on(stmt.as<If>()->condition);
      for_each(stmt.as<If>()->then_body, f, g);
      return for_each(stmt.as<If>()->else_body, f, g);
    case StmtKind::Let:
      on(stmt.as<Let>()->value);
      return for_each(stmt.as<Let>()->body, f, g);
    case StmtKind::Allocate:
      for (const Expr& extent : stmt.as<Allocate>()->buffer->shape) on(extent);
      for (const Expr& stride : stmt.as<Allocate>()->buffer->strides) on(stride);
      return for_each(stmt.as<Allocate>()->body, f, g);
    case StmtKind::Block:
      for (const Stmt& inner : stmt.as<Block>()->stmts) for_each(inner, f, g);
      return;
    case StmtKind::Evaluate:
      return on(stmt.as<Evaluate>()->value);
  }
}

Expr substitute(const Expr& expr, const std::map<const VarNode*, Expr>& values) {
  return Substitute(values).mutate(expr);
}
Stmt substitute(const Stmt& stmt, const std::map<const VarNode*, Expr>& values) {
  return Substitute(values).mutate(stmt);
}

std::vector<Var> free_symbols(const Function& function) {
  struct Collector : ExprVisitor {
    void visit_expr(const Expr& e) override {
      if (const auto* v = e.as<VarNode>()) {
        if (symbol_var(v->name).get() == v) found.emplace(v->name, symbol_var(v->name));
      }
      visit_children(e);
    }
    std::map<std::string, Var> found;
  } collector;
  for (const Buffer& buffer : function.buffers) {
    for (const Expr& extent : buffer->shape) collector.visit(extent);
  }
  for_each(function.body, nullptr, [&](const Expr& e) { collector.visit(e); });
  std::vector<Var> result;
  for (const auto& [name, var] : collector.found) result.push_back(var);
  return result;
}

}  // namespace treadle::loop
