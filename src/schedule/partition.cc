// SPDX-License-Identifier: Apache-2.0
// for i in 0…n: body(min(8, N - i*8))   =>   for i in 0…N/8: body(8);  for i in N/8…n: body(N - i*8)
//
// Conditions that the ranges leave open are taken from branches, selects, comparisons, minima and maxima of index
// arithmetic. A serial loop is cut where such a condition, linear in its variable, starts to hold or to fail for all
// values of the loops inside. Elsewhere (parallel loops; conditions not linear in the variable) the body branches once
// on the condition at its top.
#include <algorithm>

#include "schedule/emit.h"
#include "schedule/simplify.h"

namespace treadle::schedule {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it

namespace {

constexpr int kCuts = 3;       // of one loop
constexpr int kGrowth = 4000;  // nodes that a function may grow to by repetition

using Inner = std::map<const VarNode*, Interval>;

bool is_index(const Expr& e) { return e.dtype() == dtype::int64_ && e.lanes() == 1; }

struct Uses : ExprVisitor {
  void visit_expr(const Expr& e) override {
    found |= e.get() == var;
    loads |= e.kind() == ExprKind::Load || e.kind() == ExprKind::Extern;
    visit_children(e);
  }
  const ExprNode* var = nullptr;
  bool found = false, loads = false;
};

// An open question of a loop body: difference >= 0?
struct Question {
  Expr difference;
  Inner inner;  // loops between the cut loop and the question
};

class Questions {
 public:
  Questions(const Var& var, Analyzer& analyzer) : var_(var), analyzer_(analyzer) {}
  std::vector<Question> found;
  int nodes = 0;

  void run(const Stmt& stmt) {
    collect(stmt);
    found.insert(found.end(), last_.begin(), last_.end());
  }

 private:
  void collect(const Stmt& stmt) {
    switch (stmt.kind()) {
      case StmtKind::Store:
        for (const Expr& index : stmt.as<Store>()->indices) collect(index);
        return collect(stmt.as<Store>()->value);
      case StmtKind::For: {
        const auto* s = stmt.as<For>();
        // How often a serial loop runs does not change its code; marked loops want constant extents.
        if (s->for_kind == ForKind::Vectorized || s->for_kind == ForKind::Unrolled) {
          collect(s->min);
          collect(s->extent);
        }
        analyzer_.bind(s->var, s->min, s->extent);
        inner_[s->var.var()] = {s->min, analyzer_.simplify(s->min + s->extent - int_imm(1))};
        collect(s->body);
        inner_.erase(s->var.var());
        return;
      }
      case StmtKind::While:
        return;
      case StmtKind::If:
        collect(stmt.as<If>()->condition);
        collect(stmt.as<If>()->then_body);
        if (stmt.as<If>()->else_body.defined()) collect(stmt.as<If>()->else_body);
        return;
      case StmtKind::Let:
        collect(stmt.as<Let>()->value);
        return collect(stmt.as<Let>()->body);
      case StmtKind::Allocate:
        return collect(stmt.as<Allocate>()->body);
      case StmtKind::Block:
        for (const Stmt& s : stmt.as<Block>()->stmts) collect(s);
        return;
      case StmtKind::Evaluate:
        return;
    }
  }

  void collect(const Expr& expr) {
    struct Walk : ExprVisitor {
      explicit Walk(Questions& q) : questions(q) {}
      void visit_expr(const Expr& e) override {
        ++questions.nodes;
        const auto* b = e.as<Binary>();
        if (b && is_index(b->a)) {
          switch (b->op) {
            case BinaryOp::Min:
            case BinaryOp::Max:
              questions.ask(b->b - b->a, true);
              break;
            case BinaryOp::Le:
              questions.ask(b->b - b->a);
              break;
            case BinaryOp::Ge:
              questions.ask(b->a - b->b);
              break;
            case BinaryOp::Lt:
              questions.ask(b->b - b->a - int_imm(1));
              break;
            case BinaryOp::Gt:
              questions.ask(b->a - b->b - int_imm(1));
              break;
            default:
              break;
          }
        }
        visit_children(e);
      }
      Questions& questions;
    } walk(*this);
    walk.visit(expr);
  }

  // A minimum is decided on both sides of where its arguments are equal, a comparison on one: comparisons go first.
  void ask(const Expr& difference, bool later = false) {
    Uses uses;
    uses.var = var_.get();
    uses.visit(difference);
    if (!uses.found || uses.loads) return;
    (later ? last_ : found).push_back({analyzer_.simplify(difference), inner_});
  }

  const Var& var_;
  Analyzer& analyzer_;
  Inner inner_;
  std::vector<Question> last_;
};

bool has_marks(const Stmt& stmt) {
  bool marks = false;
  for_each(
      stmt,
      [&](const Stmt& s) {
        const auto* loop = s.as<For>();
        marks |= loop && (loop->for_kind == ForKind::Vectorized || loop->for_kind == ForKind::Unrolled);
      },
      nullptr);
  return marks;
}

class Partitioner {
 public:
  Stmt run(const Stmt& stmt) {
    switch (stmt.kind()) {
      case StmtKind::For:
        return loop(stmt, 0);
      case StmtKind::Block: {
        std::vector<Stmt> stmts;
        for (const Stmt& s : stmt.as<Block>()->stmts) stmts.push_back(run(s));
        return block(std::move(stmts));
      }
      case StmtKind::If: {
        const auto* s = stmt.as<If>();
        analyzer_.assume(s->condition);
        const Stmt then_body = run(s->then_body);
        analyzer_.forget();
        if (!s->else_body.defined()) return if_then(s->condition, then_body);
        analyzer_.assume(!s->condition);
        const Stmt else_body = run(s->else_body);
        analyzer_.forget();
        return if_then(s->condition, then_body, else_body);
      }
      case StmtKind::Let:
        return let(stmt.as<Let>()->var, stmt.as<Let>()->value, run(stmt.as<Let>()->body));
      case StmtKind::Allocate:
        return allocate(stmt.as<Allocate>()->buffer, run(stmt.as<Allocate>()->body));
      default:
        return stmt;
    }
  }

 private:
  Stmt loop(const Stmt& stmt, int cuts) {
    const auto* s = stmt.as<For>();
    analyzer_.bind(s->var, s->min, s->extent);
    if (s->for_kind == ForKind::Vectorized || s->for_kind == ForKind::Unrolled) return stmt;
    if (cuts < kCuts) {
      Questions questions(s->var, analyzer_);
      questions.run(s->body);
      if (budget_ > 0 && !questions.found.empty()) {
        if (s->for_kind == ForKind::Serial) {
          if (const auto at = cut(s, questions.found)) {
            budget_ -= questions.nodes;
            return split(s, *at, cuts);
          }
        }
        return for_loop(s->var, s->min, s->extent, branches(s->body, s, cuts), s->for_kind);
      }
    }
    return for_loop(s->var, s->min, s->extent, run(s->body), s->for_kind);
  }

  // The body of a loop that is not cut: each of its parts branches on the questions that it asks itself.
  Stmt branches(const Stmt& body, const For* s, int cuts) {
    if (const auto* b = body.as<Block>()) {
      std::vector<Stmt> stmts;
      for (const Stmt& part : b->stmts) stmts.push_back(branches(part, s, cuts));
      return block(std::move(stmts));
    }
    if (const auto* a = body.as<Allocate>()) return allocate(a->buffer, branches(a->body, s, cuts));
    if (has_marks(body)) {
      Questions questions(s->var, analyzer_);
      questions.run(body);
      if (const auto condition = branch(s, questions.found)) {
        budget_ -= questions.nodes;
        return branched(body, *condition, s, cuts);
      }
    }
    return run(body);
  }

  // Where the loop is cut first; nullopt: nowhere strictly inside its range.
  std::optional<Expr> cut(const For* s, const std::vector<Question>& questions) {
    const Expr end = analyzer_.simplify(s->min + s->extent);
    for (const Question& q : questions) {
      const auto linear = analyzer_.split_linear(q.difference, s->var);
      const int64_t* slope = linear ? as_int(linear->first) : nullptr;
      if (!slope || *slope == 0) continue;
      const Interval rest = interval_of(linear->second, q.inner, analyzer_);
      if (!rest.low.defined()) continue;
      // slope*v + rest >= 0 holds from / up to some v for all values of the inner loops, and for none of them beyond
      // the other point
      for (const Expr& r : {rest.low, rest.high}) {
        Uses uses;
        uses.var = s->var.get();
        uses.visit(r);
        if (uses.found) continue;
        const Expr at = *slope > 0 ? floordiv(int_imm(*slope - 1) - r, int_imm(*slope))
                                   : floordiv(r, int_imm(-*slope)) + int_imm(1);
        const Expr place = analyzer_.simplify(at);
        if (analyzer_.proves(place <= s->min) || analyzer_.proves(place >= end)) continue;
        return place;
      }
    }
    return std::nullopt;
  }

  Stmt split(const For* s, const Expr& at, int cuts) {
    const Expr end = s->min + s->extent;
    const Expr start = analyzer_.simplify(max(at, s->min));
    const Stmt first = for_loop(s->var, s->min, analyzer_.simplify(min(at, end) - s->min), s->body, s->for_kind);
    const Stmt second = fresh_copy(for_loop(s->var, start, analyzer_.simplify(end - start), s->body, s->for_kind));
    std::vector<Stmt> parts;
    for (const Stmt& part : {first, second}) {
      const Stmt simple = simplify(part, analyzer_);
      parts.push_back(simple.as<For>() ? loop(simple, cuts + 1) : run(simple));
    }
    return block(std::move(parts));
  }

  // A condition on outer variables and the loop's own that decides a question for all inner loops.
  std::optional<Expr> branch(const For* s, const std::vector<Question>& questions) {
    for (const Question& q : questions) {
      const Interval range = interval_of(q.difference, q.inner, analyzer_);
      if (!range.low.defined()) continue;
      const Expr condition = analyzer_.simplify(range.low >= int_imm(0));
      Uses uses;
      uses.var = s->var.get();
      uses.visit(condition);
      if (!as_int(condition) && uses.found) return condition;
    }
    return std::nullopt;
  }

  Stmt branched(const Stmt& body, const Expr& condition, const For* s, int cuts) {
    const auto side = [&](const Stmt& b, const Expr& c) {
      analyzer_.assume(c);
      const Stmt simple = simplify(b, analyzer_);
      // The side is partitioned like the body of a loop that has one cut more.
      Questions questions(s->var, analyzer_);
      questions.run(simple);
      std::optional<Expr> next;
      if (cuts + 1 < kCuts && budget_ > 0) next = branch(s, questions.found);
      const Stmt result = next ? branched(simple, *next, s, cuts + 1) : run(simple);
      analyzer_.forget();
      return result;
    };
    const Stmt then_body = side(body, condition);
    return if_then(condition, then_body, side(fresh_copy(body), !condition));
  }

  Analyzer analyzer_;
  int budget_ = kGrowth * 16;
};

}  // namespace

Function partition(const Function& function) {
  Function result = function;
  result.body = Partitioner().run(function.body);
  return result;
}

}  // namespace treadle::schedule
