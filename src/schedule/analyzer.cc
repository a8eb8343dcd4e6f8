// SPDX-License-Identifier: Apache-2.0
// The polynomial normal form and the proofs of bounds. A lower bound is found by eliminating atoms, innermost variable
// first: a variable is replaced by its smallest or largest value according to the sign of its cofactor, so symbolic
// ranges cancel exactly.
#include "schedule/analyzer.h"

#include <algorithm>
#include <numeric>

#include "loop/stmt.h"

namespace treadle::schedule {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it

namespace {

constexpr int kFuel = 24;            // eliminations along one path of a proof
constexpr int64_t kSteps = 1 << 14;  // factors looked at in one proof; what needs more counts as not proven

bool is_index(const Expr& expr) { return expr.dtype() == dtype::int64_ && expr.lanes() == 1; }

// The sorted merge of a + sign*b.
Poly merge(const Poly& a, const Poly& b, int64_t sign) {
  Poly result;
  result.constant = a.constant + sign * b.constant;
  result.terms.reserve(a.terms.size() + b.terms.size());
  auto i = a.terms.begin();
  auto j = b.terms.begin();
  while (i != a.terms.end() || j != b.terms.end()) {
    if (j == b.terms.end() || (i != a.terms.end() && i->factors < j->factors)) {
      result.terms.push_back(*i++);
    } else if (i == a.terms.end() || j->factors < i->factors) {
      result.terms.push_back({j->factors, sign * j->coefficient});
      ++j;
    } else {
      const int64_t coefficient = i->coefficient + sign * j->coefficient;
      if (coefficient != 0) result.terms.push_back({i->factors, coefficient});
      ++i, ++j;
    }
  }
  return result;
}

}  // namespace

Poly operator+(const Poly& a, const Poly& b) { return merge(a, b, 1); }
Poly operator-(const Poly& a, const Poly& b) { return merge(a, b, -1); }

Poly scale(const Poly& a, int64_t factor) {
  if (factor == 0) return {};
  Poly result = a;
  result.constant *= factor;
  for (Poly::Term& term : result.terms) term.coefficient *= factor;
  return result;
}

Poly operator*(const Poly& a, const Poly& b) {
  if (a.is_const()) return scale(b, a.constant);
  if (b.is_const()) return scale(a, b.constant);
  Poly result = scale(a, b.constant);
  for (const Poly::Term& y : b.terms) {
    Poly part;
    for (const Poly::Term& x : a.terms) {
      Poly::Term term{{}, x.coefficient * y.coefficient};
      term.factors.resize(x.factors.size() + y.factors.size());
      std::merge(x.factors.begin(), x.factors.end(), y.factors.begin(), y.factors.end(), term.factors.begin());
      part.terms.push_back(std::move(term));
    }
    if (a.constant != 0) part.terms.push_back({y.factors, a.constant * y.coefficient});
    std::sort(part.terms.begin(), part.terms.end(), [](const auto& s, const auto& t) { return s.factors < t.factors; });
    result = result + part;
  }
  return result;
}

void Analyzer::bind(const Var& var, const Expr& min, const Expr& extent) {
  const Poly low = poly(min);
  Poly high = low + poly(extent);
  high.constant -= 1;
  const int id = intern(var);
  if (ranges_.count(id)) {
    memo_.clear();
    poly_memo_.clear();
  } else {
    atoms_[static_cast<size_t>(id)].depth = next_depth_++;
  }
  ranges_[id] = {low, high};
}

int Analyzer::depth_of(const Expr& expr) {
  if (expr.as<VarNode>()) {
    const auto found = var_ids_.find(expr.get());
    return found == var_ids_.end() ? 0 : atoms_[static_cast<size_t>(found->second)].depth;
  }
  struct Deepest : ExprVisitor {
    explicit Deepest(Analyzer& a) : analyzer(a) {}
    void visit_expr(const Expr& e) override {
      if (e.as<VarNode>()) depth = std::max(depth, analyzer.depth_of(e));
      visit_children(e);
    }
    Analyzer& analyzer;
    int depth = 0;
  } deepest(*this);
  deepest.visit(expr);
  return deepest.depth;
}

int Analyzer::intern(const Expr& expr) {
  if (expr.as<VarNode>()) {
    const auto [place, fresh] = var_ids_.emplace(expr.get(), static_cast<int>(atoms_.size()));
    if (fresh) atoms_.push_back({expr, 0});
    return place->second;
  }
  const uint64_t hash = structure_hash(expr);
  const auto [first, last] = index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (same_structure(atom(it->second), expr)) return it->second;
  }
  const int id = static_cast<int>(atoms_.size());
  const int depth = depth_of(expr);
  atoms_.push_back({expr, depth});
  index_.emplace(hash, id);
  return id;
}

Poly Analyzer::atom_poly(const Expr& expr) {
  if (const auto* imm = expr.as<IntImm>()) return Poly{{}, imm->value};
  Poly result;
  result.terms.push_back({{intern(expr)}, 1});
  return result;
}

Poly Analyzer::poly(const Expr& expr) {
  if (const auto* imm = expr.as<IntImm>()) return Poly{{}, imm->value};
  const auto found = poly_memo_.find(expr.get());
  if (found != poly_memo_.end()) return found->second.second;
  Poly result = make_poly(expr);
  poly_memo_.emplace(expr.get(), std::make_pair(expr, result));
  return result;
}

Expr Analyzer::expr(const Poly& poly) {
  // Outer variables first, so that what a loop does not change is a common head; negative terms after positive ones.
  std::vector<const Poly::Term*> order;
  for (const Poly::Term& term : poly.terms) order.push_back(&term);
  const auto depth = [&](const Poly::Term& term) {
    int deepest = 0;
    for (int factor : term.factors) deepest = std::max(deepest, atoms_[static_cast<size_t>(factor)].depth);
    return deepest;
  };
  std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
    const int x = depth(*a), y = depth(*b);
    return x != y ? x < y : a->coefficient > 0 && b->coefficient < 0;
  });
  Expr sum;
  int64_t constant = poly.constant;
  if (!order.empty() && order[0]->coefficient < 0) {
    const auto positive = std::find_if(order.begin(), order.end(), [](const auto* t) { return t->coefficient > 0; });
    if (positive != order.end()) {
      std::rotate(order.begin(), positive, positive + 1);
    } else {
      sum = int_imm(constant);
      constant = 0;
    }
  }
  for (const Poly::Term* term : order) {
    Expr product;
    for (int factor : term->factors) product = product.defined() ? product * atom(factor) : atom(factor);
    const int64_t magnitude = term->coefficient < 0 && sum.defined() ? -term->coefficient : term->coefficient;
    if (magnitude != 1) product = product * int_imm(magnitude);
    if (!sum.defined()) {
      sum = product;
    } else {
      sum = term->coefficient < 0 ? sum - product : sum + product;
    }
  }
  if (!sum.defined()) return int_imm(constant);
  if (constant > 0) return sum + int_imm(constant);
  return constant < 0 ? sum - int_imm(-constant) : sum;
}

// The atom to eliminate next: the deepest one, composite atoms before variables of the same depth; -1 when none is
// left.
int Analyzer::pick(const Poly& poly) const {
  int best = -1;
  std::pair<int, int> best_rank{-1, 0};
  for (const Poly::Term& term : poly.terms) {
    for (int factor : term.factors) {
      const Atom& a = atoms_[static_cast<size_t>(factor)];
      const std::pair<int, int> rank{a.depth, a.expr.kind() == ExprKind::Var ? 0 : 1 + factor};
      if (rank > best_rank) best = factor, best_rank = rank;
    }
  }
  return best;
}

std::optional<int64_t> Analyzer::lower(const Poly& poly, int fuel) {
  if (poly.is_const()) return poly.constant;
  if (fuel == 0) return std::nullopt;
  // Each level asks for the sign of a factor, so that depth alone does not bound the work.
  struct Count {
    int& count;
    explicit Count(int& c) : count(c) { ++count; }
    ~Count() { --count; }
  } const count(eliminating_);
  if (eliminating_ == 1) steps_ = kSteps;
  for (const Poly::Term& term : poly.terms) steps_ -= static_cast<int64_t>(term.factors.size());
  if (steps_ < 0) return std::nullopt;
  const int target = pick(poly);
  Poly factor, rest;
  rest.constant = poly.constant;
  for (const Poly::Term& term : poly.terms) {
    const auto count = std::count(term.factors.begin(), term.factors.end(), target);
    if (count > 1) return std::nullopt;
    if (count == 0) {
      rest.terms.push_back(term);
    } else if (term.factors.size() == 1) {
      factor.constant += term.coefficient;
    } else {
      Poly::Term cofactor{{}, term.coefficient};
      for (int f : term.factors) {
        if (f != target) cofactor.factors.push_back(f);
      }
      factor.terms.push_back(std::move(cofactor));
    }
  }
  std::sort(factor.terms.begin(), factor.terms.end(),
            [](const auto& s, const auto& t) { return s.factors < t.factors; });
  return lower_through(factor, rest, target, fuel - 1);
}

// A lower bound of factor*atom + rest.
std::optional<int64_t> Analyzer::lower_through(const Poly& factor, const Poly& rest, int id, int fuel) {
  bool positive = factor.is_const() ? factor.constant > 0 : false;
  if (!factor.is_const()) {
    const auto low = lower(factor, fuel);
    positive = low && *low >= 0;
    if (!positive) {
      const auto high = lower(scale(factor, -1), fuel);
      if (!high || *high < 0) return std::nullopt;
    }
  }
  const Expr target = atom(id);
  const auto range = ranges_.find(id);
  if (range != ranges_.end()) return lower(factor * (positive ? range->second.min : range->second.max) + rest, fuel);
  if (target.as<VarNode>()) return positive ? lower(rest, fuel) : std::nullopt;
  if (const auto* s = target.as<Select>()) {
    const auto a = lower(factor * poly(s->a) + rest, fuel);
    const auto b = a ? lower(factor * poly(s->b) + rest, fuel) : std::nullopt;
    return b ? std::optional(std::min(*a, *b)) : std::nullopt;
  }
  const auto* e = target.as<Binary>();
  if (!e) return std::nullopt;
  if (e->op == BinaryOp::Min || e->op == BinaryOp::Max) {
    const auto a = lower(factor * poly(e->a) + rest, fuel);
    const bool both = positive == (e->op == BinaryOp::Min);  // the smaller of the two counts, and it may be either
    if (both && !a) return std::nullopt;
    const auto b = lower(factor * poly(e->b) + rest, fuel);
    if (both) return b ? std::optional(std::min(*a, *b)) : std::nullopt;
    return a && b ? std::optional(std::max(*a, *b)) : (a ? a : b);
  }
  if (e->op == BinaryOp::FloorMod) {
    const Poly divisor = poly(e->b);
    const auto least = lower(divisor, fuel);
    if (!least || *least < 1) return std::nullopt;
    if (positive) return lower(rest, fuel);
    Poly top = divisor;
    top.constant -= 1;
    return lower(factor * top + rest, fuel);
  }
  if (e->op == BinaryOp::FloorDiv) {
    const int64_t* divisor = as_int(e->b);
    const Poly x = poly(e->a);
    if (!divisor || *divisor <= 0) {  // by an extent: the quotient lies between 0 and x
      const auto low = lower(x, fuel);
      if (!low || *low < 0) return std::nullopt;
      return positive ? lower(rest, fuel) : lower(factor * x + rest, fuel);
    }
    // (x - d + 1)/d <= floordiv(x, d) <= x/d; the whole is an integer, so the quotient of its bound may be rounded up.
    Poly numerator = x;
    if (positive) numerator.constant -= *divisor - 1;
    const auto low = lower(factor * numerator + scale(rest, *divisor), fuel);
    return low ? std::optional(-((-*low - ((-*low % *divisor + *divisor) % *divisor)) / *divisor)) : std::nullopt;
  }
  return std::nullopt;
}

bool Analyzer::nonnegative(const Poly& poly) {
  // A proof may simplify atoms, which asks for further proofs; facts about the same atoms would lead round in a circle.
  if (proofs_ >= 3) return false;
  struct Nesting {
    explicit Nesting(int& n) : count(n) { ++count; }
    ~Nesting() { --count; }
    int& count;
  } nesting(proofs_);
  const auto low = lower(poly, kFuel);
  if (low && *low >= 0) return true;
  for (const auto& frame : facts_) {
    for (const Poly& fact : frame) {
      const auto rest = lower(poly - fact, kFuel);
      if (rest && *rest >= 0) return true;
    }
  }
  return false;
}

std::optional<int64_t> Analyzer::lower_bound(const Expr& expr) { return lower(poly(expr), kFuel); }

std::optional<int64_t> Analyzer::upper_bound(const Expr& expr) {
  const auto low = lower(scale(poly(expr), -1), kFuel);
  return low ? std::optional(-*low) : std::nullopt;
}

void Analyzer::assume(const Expr& condition) {
  std::vector<Poly> frame;
  const auto add = [&](auto&& self, const Expr& c, bool holds) -> void {
    if (const auto* n = c.as<Not>()) return self(self, n->a, !holds);
    const auto* e = c.as<Binary>();
    if (!e) return;
    if (e->op == (holds ? BinaryOp::And : BinaryOp::Or)) {
      self(self, e->a, holds);
      self(self, e->b, holds);
      return;
    }
    if (!is_index(e->a)) return;
    const Poly difference = poly(e->b) - poly(e->a);
    const Poly one{{}, 1};
    const auto less = [&] { frame.push_back(difference - one); };                // a < b
    const auto less_equal = [&] { frame.push_back(difference); };                // a <= b
    const auto greater = [&] { frame.push_back(scale(difference, -1) - one); };  // a > b
    const auto greater_equal = [&] { frame.push_back(scale(difference, -1)); };  // a >= b
    switch (e->op) {
      case BinaryOp::Lt:
        holds ? less() : greater_equal();
        break;
      case BinaryOp::Le:
        holds ? less_equal() : greater();
        break;
      case BinaryOp::Gt:
        holds ? greater() : less_equal();
        break;
      case BinaryOp::Ge:
        holds ? greater_equal() : less();
        break;
      case BinaryOp::Eq:
        if (holds) less_equal(), greater_equal();
        break;
      case BinaryOp::Ne:
        if (!holds) less_equal(), greater_equal();
        break;
      default:
        break;
    }
  };
  add(add, condition, true);
  memo_.clear();
  poly_memo_.clear();
  facts_.push_back(std::move(frame));
}

void Analyzer::forget() {
  facts_.pop_back();
  memo_.clear();
  poly_memo_.clear();
}

std::optional<std::pair<Expr, Expr>> Analyzer::split_linear(const Expr& e, const Var& var) {
  const Poly whole = poly(e);
  const int id = intern(var);
  Poly factor, rest;
  rest.constant = whole.constant;
  struct Uses : ExprVisitor {
    void visit_expr(const Expr& x) override {
      found |= x.get() == var;
      visit_children(x);
    }
    const ExprNode* var = nullptr;
    bool found = false;
  };
  for (const Poly::Term& term : whole.terms) {
    Poly::Term other{{}, term.coefficient};
    int count = 0;
    for (int f : term.factors) {
      if (f == id) {
        ++count;
        continue;
      }
      Uses uses;
      uses.var = var.get();
      uses.visit(atom(f));
      if (uses.found) return std::nullopt;
      other.factors.push_back(f);
    }
    if (count > 1) return std::nullopt;
    if (count == 0) {
      rest.terms.push_back(std::move(other));
    } else if (other.factors.empty()) {
      factor.constant += other.coefficient;
    } else {
      factor.terms.push_back(std::move(other));
    }
  }
  return std::make_pair(expr(factor), expr(rest));
}

}  // namespace treadle::schedule
