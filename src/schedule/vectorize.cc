// SPDX-License-Identifier: Apache-2.0
// for lane in 0…15 (vectorized): Y[i*16 + lane] = X[i*16 + lane] * s   =>   Y[ramp(i*16, 1, 16)] = X[ramp(i*16, 1, 16)]
// * broadcast(s, 16)
//
// What does not depend on the lane stays scalar. A store whose place does not depend on the lane must be a reduction:
// the lanes are combined first. Loops inside stay, on vectors.
#include <optional>

#include "schedule/simplify.h"

namespace treadle::schedule {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it

namespace {

// Thrown where lanes would have to do different things; the loop stays serial.
struct NotUniform {};

Expr widen(const Expr& e, int lanes) { return e.lanes() == 1 ? broadcast(e, lanes) : e; }

bool has_load(const Expr& e) {
  struct Finder : ExprVisitor {
    void visit_expr(const Expr& x) override {
      found |= x.kind() == ExprKind::Load;
      visit_children(x);
    }
    bool found = false;
  } finder;
  finder.visit(e);
  return finder.found;
}

std::optional<ReduceOp> reduce_op(const Binary* e) {
  switch (e->op) {
    case BinaryOp::Add:
      return ReduceOp::Sum;
    case BinaryOp::Mul:
      return ReduceOp::Prod;
    case BinaryOp::Max:
      return ReduceOp::Max;
    case BinaryOp::Min:
      return ReduceOp::Min;
    case BinaryOp::Or:
      return e->dtype.is_bool() ? std::optional(ReduceOp::Any) : std::nullopt;
    case BinaryOp::And:
      return e->dtype.is_bool() ? std::optional(ReduceOp::All) : std::nullopt;
    default:
      return std::nullopt;
  }
}

class Widener {
 public:
  Widener(const For* loop, int lanes) : var_(loop->var), min_(loop->min), lanes_(lanes) {
    analyzer_.bind(loop->var, loop->min, loop->extent);
  }

  Stmt run(const Stmt& stmt) {
    switch (stmt.kind()) {
      case StmtKind::Store:
        return run(stmt.as<Store>());
      case StmtKind::Block: {
        std::vector<Stmt> stmts;
        for (const Stmt& s : stmt.as<Block>()->stmts) stmts.push_back(run(s));
        return block(std::move(stmts));
      }
      case StmtKind::For: {
        const auto* s = stmt.as<For>();
        const Expr min = expr(s->min), extent = expr(s->extent);
        if (min.lanes() > 1 || extent.lanes() > 1 || s->for_kind == ForKind::Vectorized) throw NotUniform();
        return for_loop(s->var, min, extent, run(s->body), s->for_kind);
      }
      case StmtKind::If: {
        const auto* s = stmt.as<If>();
        const Expr condition = expr(s->condition);
        if (condition.lanes() > 1) throw NotUniform();
        return if_then(condition, run(s->then_body), s->else_body.defined() ? run(s->else_body) : Stmt());
      }
      case StmtKind::Let: {
        const auto* s = stmt.as<Let>();
        const Expr value = expr(s->value);
        if (value.lanes() == 1) return let(s->var, value, run(s->body));
        const Var wide(std::make_shared<VarNode>(s->var.name(), value.dtype(), lanes_));
        lets_[s->var.var()] = wide;
        return let(wide, value, run(s->body));
      }
      default:
        throw NotUniform();
    }
  }

 private:
  Stmt run(const Store* s) {
    const Expr index = offset(s->indices[0]);
    if (index.lanes() > 1) return store(s->buffer, {index}, widen(expr(s->value), lanes_));
    const auto* e = s->value.as<Binary>();
    const auto op = e ? reduce_op(e) : std::nullopt;
    const auto* old = e ? e->a.as<Load>() : nullptr;
    if (op && old && old->buffer == s->buffer && same_structure(old->indices[0], s->indices[0])) {
      const Expr value = expr(e->b);
      if (value.lanes() > 1)
        return store(s->buffer, {index}, combine(*op, load(s->buffer, {index}), vector_reduce(*op, value)));
      throw NotUniform();  // the same value, lanes times
    }
    const Expr value = expr(s->value);
    if (value.lanes() > 1) throw NotUniform();
    return store(s->buffer, {index}, value);
  }

  Expr offset(const Expr& index) {
    const auto linear = analyzer_.split_linear(index, var_);
    if (linear && lets_.empty()) {
      const int64_t* stride = as_int(linear->first);
      if (stride && *stride == 0) return linear->second;
      return ramp(linear->second + min_ * linear->first, linear->first, lanes_);
    }
    return expr(index);
  }

  Expr expr(const Expr& e) {
    const auto found = memo_.find(e.get());
    if (found != memo_.end()) return found->second.second;
    const Expr result = make(e);
    memo_.emplace(e.get(), std::make_pair(e, result));
    return result;
  }

  // All of them, as vectors if any of them is.
  bool together(std::vector<Expr>& list) const {
    bool wide = false;
    for (const Expr& e : list) wide |= e.lanes() > 1;
    if (wide) {
      for (Expr& e : list) e = widen(e, lanes_);
    }
    return wide;
  }

  Expr make(const Expr& e) {
    if (e.get() == var_.get()) return ramp(min_, int_imm(1), lanes_);
    if (e.lanes() > 1) throw NotUniform();
    switch (e.kind()) {
      case ExprKind::IntImm:
      case ExprKind::FloatImm:
        return e;
      case ExprKind::Var: {
        const auto found = lets_.find(static_cast<const VarNode*>(e.get()));
        return found == lets_.end() ? e : Expr(found->second);
      }
      case ExprKind::Binary: {
        const auto* b = e.as<Binary>();
        if (e.dtype() == dtype::int64_ && !has_load(e) && lets_.empty()) {
          const auto linear = analyzer_.split_linear(e, var_);
          if (linear) {
            const int64_t* stride = as_int(linear->first);
            if (stride && *stride == 0) return e;
            return ramp(linear->second + min_ * linear->first, linear->first, lanes_);
          }
        }
        std::vector<Expr> args{expr(b->a), expr(b->b)};
        together(args);
        return binary(b->op, args[0], args[1]);
      }
      case ExprKind::Not:
        return !expr(e.as<Not>()->a);
      case ExprKind::Select: {
        const auto* s = e.as<Select>();
        const Expr condition = expr(s->condition);
        std::vector<Expr> sides{expr(s->a), expr(s->b)};
        if (condition.lanes() > 1) {
          for (Expr& side : sides) side = widen(side, lanes_);
        }
        together(sides);
        return select(condition, sides[0], sides[1]);
      }
      case ExprKind::Cast:
        return cast(expr(e.as<Cast>()->a), e.dtype());
      case ExprKind::Reinterpret:
        return reinterpret(expr(e.as<Reinterpret>()->a), e.dtype());
      case ExprKind::Intrinsic: {
        std::vector<Expr> args;
        for (const Expr& arg : e.as<IntrinsicCall>()->args) args.push_back(expr(arg));
        together(args);
        return intrinsic(e.as<IntrinsicCall>()->function, std::move(args));
      }
      case ExprKind::Load:
        return load(e.as<Load>()->buffer, {offset(e.as<Load>()->indices[0])});
      default:
        throw NotUniform();
    }
  }

  Var var_;
  Expr min_;
  int lanes_;
  Analyzer analyzer_;
  std::map<const VarNode*, Var> lets_;
  std::map<const ExprNode*, std::pair<Expr, Expr>> memo_;
};

class Vectorizer : public Mutator {
 protected:
  Stmt mutate_stmt(const Stmt& stmt) override {
    const auto* s = stmt.as<For>();
    if (!s || s->for_kind != ForKind::Vectorized) return mutate_children(stmt);
    const int64_t* extent = as_int(s->extent);
    if (extent && *extent > 1 && *extent <= 256) {
      try {
        return Widener(s, static_cast<int>(*extent)).run(s->body);
      } catch (const NotUniform&) {  // falls through to the serial loop
      }
    }
    return for_loop(s->var, s->min, s->extent, mutate(s->body));
  }
};

}  // namespace

Function vectorize(const Function& function) {
  Function result = function;
  result.body = Vectorizer().mutate(function.body);
  return result;
}

}  // namespace treadle::schedule
