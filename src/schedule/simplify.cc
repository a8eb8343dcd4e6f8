// SPDX-License-Identifier: Apache-2.0
// Simplification of statements, fresh copies, unrolling, and the order of the finishing passes.
#include "schedule/simplify.h"

#include <set>

#include "base/error.h"

namespace treadle::schedule {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it

namespace {

bool is_empty(const Stmt& stmt) { return stmt.as<Block>() && stmt.as<Block>()->stmts.empty(); }

// Whether an expression can be repeated for nothing: what index Lets bind.
bool is_index(const Expr& e) { return e.dtype() == dtype::int64_ && e.lanes() == 1; }

bool has_load(const Expr& e) {
  struct Finder : ExprVisitor {
    void visit_expr(const Expr& x) override {
      found |= x.kind() == ExprKind::Load || x.kind() == ExprKind::Extern;
      visit_children(x);
    }
    bool found = false;
  } finder;
  finder.visit(e);
  return finder.found;
}

class Simplifier {
 public:
  explicit Simplifier(Analyzer& analyzer) : analyzer_(analyzer) {}

  Stmt run(const Stmt& stmt) {
    switch (stmt.kind()) {
      case StmtKind::Store:
        return run(stmt.as<Store>());
      case StmtKind::For:
        return run(stmt.as<For>());
      case StmtKind::While: {
        const auto* s = stmt.as<While>();
        return while_loop(expr(s->condition), run(s->body));
      }
      case StmtKind::If:
        return run(stmt.as<If>());
      case StmtKind::Let:
        return run(stmt.as<Let>());
      case StmtKind::Allocate:
        return run(stmt.as<Allocate>());
      case StmtKind::Block: {
        std::vector<Stmt> stmts;
        for (const Stmt& s : stmt.as<Block>()->stmts) {
          Stmt r = run(s);
          if (!is_empty(r)) stmts.push_back(std::move(r));
        }
        return block(std::move(stmts));
      }
      case StmtKind::Evaluate:
        return evaluate(expr(stmt.as<Evaluate>()->value));
    }
    return stmt;
  }

 private:
  Expr expr(const Expr& e) {
    if (values_.empty()) return analyzer_.simplify(e);
    return analyzer_.simplify(substitute(e, values_));
  }

  Stmt run(const Store* s) {
    std::vector<Expr> indices;
    for (const Expr& index : s->indices) indices.push_back(expr(index));
    return store(s->buffer, std::move(indices), expr(s->value));
  }

  Stmt run(const For* s) {
    const Expr min = expr(s->min), extent = expr(s->extent);
    const auto most = analyzer_.upper_bound(extent);
    if (most && *most <= 0) return block({});
    const int64_t* constant = as_int(extent);
    if (constant && *constant == 1 && !axis_of(s->for_kind)) {  // without its axis every thread would run the body
      values_[s->var.var()] = min;
      Stmt body = run(s->body);
      values_.erase(s->var.var());
      return body;
    }
    analyzer_.bind(s->var, min, extent);
    Stmt body = run(s->body);
    return is_empty(body) ? body : for_loop(s->var, min, extent, std::move(body), s->for_kind);
  }

  Stmt run(const If* s) {
    const Expr condition = expr(s->condition);
    if (const int64_t* known = as_int(condition)) {
      if (*known) return run(s->then_body);
      return s->else_body.defined() ? run(s->else_body) : block({});
    }
    analyzer_.assume(condition);
    Stmt then_body = run(s->then_body);
    analyzer_.forget();
    Stmt else_body;
    if (s->else_body.defined()) {
      analyzer_.assume(!condition);
      else_body = run(s->else_body);
      analyzer_.forget();
      if (is_empty(else_body)) else_body = Stmt();
    }
    if (is_empty(then_body)) return else_body.defined() ? if_then(!condition, else_body) : then_body;
    return if_then(condition, then_body, else_body);
  }

  Stmt run(const Let* s) {
    const Expr value = expr(s->value);
    const bool simple =
        value.kind() == ExprKind::Var || value.kind() == ExprKind::IntImm || value.kind() == ExprKind::FloatImm;
    if (simple || (is_index(value) && !has_load(value))) {
      values_[s->var.var()] = value;
      Stmt body = run(s->body);
      values_.erase(s->var.var());
      return body;
    }
    Stmt body = run(s->body);
    return is_empty(body) ? body : let(s->var, value, std::move(body));
  }

  Stmt run(const Allocate* s) {
    Stmt body = run(s->body);
    bool read = false;
    for_each(
        body, [](const Stmt&) {},
        [&](const Expr& e) {
          if (const auto* l = e.as<Load>()) read |= l->buffer == s->buffer;
          if (const auto* a = e.as<Address>()) read |= a->buffer == s->buffer;
        });
    if (is_empty(body)) return body;
    if (!read) return without_stores(body, s->buffer);
    bool changed = false;
    std::vector<Expr> shape;
    for (const Expr& extent : s->buffer->shape) {
      shape.push_back(expr(extent));
      changed |= !shape.back().same_as(extent);
    }
    if (!changed) return allocate(s->buffer, std::move(body));
    auto copy = std::make_shared<BufferNode>(*s->buffer);
    copy->shape = shape;
    return allocate(copy, with_buffer(body, s->buffer, copy));
  }

  static Stmt without_stores(const Stmt& stmt, const Buffer& buffer) {
    struct Drop : Mutator {
      explicit Drop(const Buffer& b) : buffer(b) {}
      Stmt mutate_stmt(const Stmt& s) override {
        if (s.as<Store>() && s.as<Store>()->buffer == buffer) return block({});
        return mutate_children(s);
      }
      const Buffer& buffer;
    } drop(buffer);
    return drop.mutate(stmt);
  }

  static Stmt with_buffer(const Stmt& stmt, const Buffer& from, const Buffer& to) {
    struct Swap : Mutator {
      Swap(const Buffer& a, const Buffer& b) : from(a), to(b) {}
      Buffer mutate_buffer(const Buffer& b) override { return b == from ? to : b; }
      const Buffer &from, &to;
    } swap(from, to);
    return swap.mutate(stmt);
  }

  Analyzer& analyzer_;
  std::map<const VarNode*, Expr> values_;
};

class FreshCopy : public Mutator {
 protected:
  Expr mutate_expr(const Expr& e) override {
    if (const auto* v = e.as<VarNode>()) {
      const auto found = vars_.find(v);
      return found == vars_.end() ? e : Expr(found->second);
    }
    return mutate_children(e);
  }
  Stmt mutate_stmt(const Stmt& stmt) override {
    if (const auto* s = stmt.as<For>()) {
      const Expr min = mutate(s->min), extent = mutate(s->extent);
      const Var var = rename(s->var);
      return for_loop(var, min, extent, mutate(s->body), s->for_kind);
    }
    if (const auto* s = stmt.as<Let>()) {
      const Expr value = mutate(s->value);
      const Var var = rename(s->var);
      return let(var, value, mutate(s->body));
    }
    if (const auto* s = stmt.as<Allocate>()) {
      auto copy = std::make_shared<BufferNode>(*s->buffer);
      for (Expr& extent : copy->shape) extent = mutate(extent);
      for (Expr& stride : copy->strides) stride = mutate(stride);
      buffers_[s->buffer.get()] = copy;
      clear_memo();
      return allocate(copy, mutate(s->body));
    }
    return mutate_children(stmt);
  }
  Buffer mutate_buffer(const Buffer& b) override {
    const auto found = buffers_.find(b.get());
    return found == buffers_.end() ? b : found->second;
  }

 private:
  Var rename(const Var& var) {
    const Var fresh(std::make_shared<VarNode>(var.name(), var.dtype(), var.lanes()));
    vars_[var.var()] = fresh;
    clear_memo();
    return fresh;
  }
  std::map<const VarNode*, Var> vars_;
  std::map<const BufferNode*, Buffer> buffers_;
};

// Whether a vector loop inside has an extent that is constant only for each iteration.
bool is_ragged(const Stmt& stmt) {
  bool ragged = false;
  for_each(
      stmt,
      [&](const Stmt& s) {
        const auto* loop = s.as<For>();
        ragged |= loop && loop->for_kind == ForKind::Vectorized && !as_int(loop->extent);
      },
      nullptr);
  return ragged;
}

class Unroller : public Mutator {
 public:
  explicit Unroller(bool only_ragged) : only_ragged_(only_ragged) {}

 protected:
  Stmt mutate_stmt(const Stmt& stmt) override {
    const auto* s = stmt.as<For>();
    if (!s || s->for_kind != ForKind::Unrolled) return mutate_children(stmt);
    const Stmt body = mutate(s->body);
    const int64_t* extent = as_int(s->extent);
    if (only_ragged_ && (!extent || !is_ragged(body))) return for_loop(s->var, s->min, s->extent, body, s->for_kind);
    if (!extent) return for_loop(s->var, s->min, s->extent, body);
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < *extent; ++i) {
      copies.push_back(substitute(i == 0 ? body : fresh_copy(body), {{s->var.var(), s->min + int_imm(i)}}));
    }
    return block(std::move(copies));
  }

 private:
  bool only_ragged_;
};

}  // namespace

Stmt simplify(const Stmt& stmt, Analyzer& analyzer) { return Simplifier(analyzer).run(stmt); }

Function simplify(const Function& function) {
  Function result = function;
  Analyzer analyzer;
  result.body = simplify(function.body, analyzer);
  return result;
}

Stmt fresh_copy(const Stmt& stmt) { return FreshCopy().mutate(stmt); }

Function unroll(const Function& function) {
  Function result = function;
  result.body = Unroller(false).mutate(function.body);
  return result;
}

Function finish(const Function& function) {
  Function cut = partition(simplify(function));
  cut.body = Unroller(true).mutate(cut.body);
  return simplify(unroll(vectorize(simplify(flatten(simplify(cut))))));
}

}  // namespace treadle::schedule
