// SPDX-License-Identifier: Apache-2.0
// Rewriting of expressions through the normal form: floor division and remainder split off what is divisible,
// comparisons and min/max are decided where the ranges allow.
#include <algorithm>
#include <numeric>

#include "schedule/analyzer.h"

namespace treadle::schedule {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it

namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

bool is_index(const Expr& expr) { return expr.dtype() == dtype::int64_ && expr.lanes() == 1; }

bool is_compare(BinaryOp op) { return op >= BinaryOp::Eq; }

// x == divisor * quotient + rest, where `divisor` is one term.
PolySplit split_by(const Poly& x, const Poly::Term& divisor) {
  PolySplit result;
  if (divisor.factors.empty()) {
    result.quotient.constant = floor_div(x.constant, divisor.coefficient);
    result.rest.constant = x.constant - result.quotient.constant * divisor.coefficient;
  } else {
    result.rest.constant = x.constant;
  }
  for (const Poly::Term& term : x.terms) {
    const bool divides =
        term.coefficient % divisor.coefficient == 0 &&
        std::includes(term.factors.begin(), term.factors.end(), divisor.factors.begin(), divisor.factors.end());
    if (!divides) {
      result.rest.terms.push_back(term);
      continue;
    }
    Poly::Term quotient{{}, term.coefficient / divisor.coefficient};
    std::set_difference(term.factors.begin(), term.factors.end(), divisor.factors.begin(), divisor.factors.end(),
                        std::back_inserter(quotient.factors));
    if (quotient.factors.empty()) {
      result.quotient.constant += quotient.coefficient;
    } else {
      result.quotient.terms.push_back(std::move(quotient));
    }
  }
  std::sort(result.quotient.terms.begin(), result.quotient.terms.end(),
            [](const auto& s, const auto& t) { return s.factors < t.factors; });
  return result;
}

// The divisor as one term; nullopt when it is a sum or not known to be positive.
std::optional<Poly::Term> one_term(const Poly& divisor) {
  if (divisor.is_const()) return divisor.constant > 0 ? std::optional(Poly::Term{{}, divisor.constant}) : std::nullopt;
  if (divisor.terms.size() != 1 || divisor.constant != 0 || divisor.terms[0].coefficient < 0) return std::nullopt;
  return divisor.terms[0];
}

int64_t common_divisor(const Poly& x, int64_t with) {
  for (const Poly::Term& term : x.terms) with = std::gcd(with, term.coefficient);
  return with;
}

Poly reduce(const Poly& x, int64_t divisor) {  // floordiv(x, divisor), where it divides all coefficients
  Poly result = x;
  result.constant = floor_div(x.constant, divisor);
  for (Poly::Term& term : result.terms) term.coefficient /= divisor;
  return result;
}

}  // namespace

// x == g * quotient + rest with g > 1 a divisor of d, the larger the better, where 0 <= rest < g by the ranges: then
// floordiv(x, d) == floordiv(quotient, d/g) and floormod(x, d) == g * floormod(quotient, d/g) + rest.
std::optional<std::pair<int64_t, PolySplit>> Analyzer::inner_split(const Poly& x, int64_t d) {
  std::vector<int64_t> candidates;
  for (const Poly::Term& term : x.terms) {
    const int64_t g = std::gcd(term.coefficient, d);
    if (g > 1) candidates.push_back(g);
  }
  std::sort(candidates.rbegin(), candidates.rend());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  for (int64_t g : candidates) {
    const PolySplit s = split_by(x, Poly::Term{{}, g});
    const auto low = lower(s.rest, 12), high = lower(scale(s.rest, -1), 12);
    if (low && high && *low >= 0 && -*high < g) return std::make_pair(g, s);
  }
  return std::nullopt;
}

Poly Analyzer::divide(const Poly& x, const Expr& by) {
  const Poly divisor = poly(by);
  const auto term = one_term(divisor);
  if (!term) return atom_poly(floordiv(expr(x), by));
  const PolySplit s = split_by(x, *term);
  if (!divisor.is_const()) {
    if (nonnegative(s.rest) && nonnegative(divisor - s.rest - Poly{{}, 1})) return s.quotient;
    return s.quotient + atom_poly(floordiv(expr(s.rest), expr(divisor)));
  }
  const int64_t d = divisor.constant;
  if (d == 1) return x;
  const auto low = lower(s.rest, 24);
  if (low) {
    const auto high = lower(scale(s.rest, -1), 24);
    if (high && floor_div(*low, d) == floor_div(-*high, d)) return s.quotient + Poly{{}, floor_div(*low, d)};
  }
  const int64_t g = common_divisor(s.rest, d);
  if (g > 1) return s.quotient + divide(reduce(s.rest, g), int_imm(d / g));
  if (const auto inner = inner_split(s.rest, d))
    return s.quotient + divide(inner->second.quotient, int_imm(d / inner->first));
  if (s.rest.terms.size() == 1 && s.rest.constant == 0 && s.rest.terms[0].coefficient == 1 &&
      s.rest.terms[0].factors.size() == 1) {
    const auto* inner = atom(s.rest.terms[0].factors[0]).as<Binary>();
    const int64_t* c = inner && inner->op == BinaryOp::FloorDiv ? as_int(inner->b) : nullptr;
    if (c && *c > 0) return s.quotient + divide(poly(inner->a), int_imm(*c * d));
  }
  return s.quotient + atom_poly(floordiv(expr(s.rest), int_imm(d)));
}

Poly Analyzer::modulo(const Poly& x, const Expr& by) {
  const Poly divisor = poly(by);
  const auto term = one_term(divisor);
  if (!term) return atom_poly(floormod(expr(x), by));
  const PolySplit s = split_by(x, *term);
  if (!divisor.is_const()) {
    if (nonnegative(s.rest) && nonnegative(divisor - s.rest - Poly{{}, 1})) return s.rest;
    return atom_poly(floormod(expr(s.rest), expr(divisor)));
  }
  const int64_t d = divisor.constant;
  if (d == 1) return {};
  const auto low = lower(s.rest, 24);
  if (low) {
    const auto high = lower(scale(s.rest, -1), 24);
    if (high && floor_div(*low, d) == floor_div(-*high, d)) return s.rest - Poly{{}, floor_div(*low, d) * d};
  }
  const int64_t g = common_divisor(s.rest, d);
  if (g > 1) {
    const Poly inner = modulo(reduce(s.rest, g), int_imm(d / g));
    return scale(inner, g) + Poly{{}, s.rest.constant - floor_div(s.rest.constant, g) * g};
  }
  if (const auto inner = inner_split(s.rest, d)) {
    return scale(modulo(inner->second.quotient, int_imm(d / inner->first)), inner->first) + inner->second.rest;
  }
  if (s.rest.terms.size() == 1 && s.rest.constant == 0 && s.rest.terms[0].coefficient == 1 &&
      s.rest.terms[0].factors.size() == 1) {
    const auto* inner = atom(s.rest.terms[0].factors[0]).as<Binary>();
    const int64_t* c = inner && inner->op == BinaryOp::FloorMod ? as_int(inner->b) : nullptr;
    if (c && *c > 0 && *c % d == 0) return modulo(poly(inner->a), by);
  }
  return atom_poly(floormod(expr(s.rest), int_imm(d)));
}

// k*d*floordiv(x, d) + k*floormod(x, d) == k*x, for any cofactor k.
Poly Analyzer::recombine(Poly sum) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Poly::Term& term : sum.terms) {
      for (size_t at = 0; at < term.factors.size() && !changed; ++at) {
        const auto* rest = atom(term.factors[at]).as<Binary>();
        if (!rest || rest->op != BinaryOp::FloorMod) continue;
        const Poly x = poly(rest->a);
        const Poly quotient = divide(x, rest->b);
        if (quotient.terms.size() != 1 || quotient.constant != 0) continue;
        Poly::Term cofactor{{}, term.coefficient};
        for (size_t i = 0; i < term.factors.size(); ++i) {
          if (i != at) cofactor.factors.push_back(term.factors[i]);
        }
        Poly k;
        if (cofactor.factors.empty()) {
          k.constant = cofactor.coefficient;
        } else {
          k.terms.push_back(cofactor);
        }
        const Poly partner = k * poly(rest->b) * quotient;
        if (partner.terms.size() != 1) continue;
        const auto& wanted = partner.terms[0];
        const bool present = std::any_of(sum.terms.begin(), sum.terms.end(), [&](const Poly::Term& t) {
          return t.factors == wanted.factors && t.coefficient == wanted.coefficient;
        });
        if (!present) continue;
        Poly old;
        old.terms.push_back(term);
        sum = sum - old - partner + k * x;
        changed = true;
      }
      if (changed) break;
    }
  }
  return sum;
}

Poly Analyzer::min_max(BinaryOp op, const Expr& a, const Expr& b) {
  const Poly x = poly(a), y = poly(b);
  if (nonnegative(y - x)) return op == BinaryOp::Min ? x : y;
  if (nonnegative(x - y)) return op == BinaryOp::Min ? y : x;
  // Common parts go outside: min(x + c, x + d).
  return atom_poly(op == BinaryOp::Min ? min(expr(x), expr(y)) : max(expr(x), expr(y)));
}

Poly Analyzer::make_poly(const Expr& e) {
  if (e.as<VarNode>()) return atom_poly(e);
  if (const auto* b = e.as<Binary>()) {
    switch (b->op) {
      case BinaryOp::Add:
        return recombine(poly(b->a) + poly(b->b));
      case BinaryOp::Sub:
        return recombine(poly(b->a) - poly(b->b));
      case BinaryOp::Mul:
        return recombine(poly(b->a) * poly(b->b));
      case BinaryOp::FloorDiv:
        return divide(poly(b->a), b->b);
      case BinaryOp::FloorMod:
        return modulo(poly(b->a), b->b);
      case BinaryOp::Min:
      case BinaryOp::Max:
        return min_max(b->op, b->a, b->b);
      default:
        break;
    }
  }
  if (const auto* s = e.as<Select>()) {
    const Expr condition = simplify(s->condition);
    const int64_t* known = as_int(condition);
    if (known) return poly(*known ? s->a : s->b);
    const Poly a = poly(s->a), b = poly(s->b);
    const Poly difference = a - b;
    if (difference.is_const() && difference.constant == 0) return a;
    return atom_poly(select(condition, expr(a), expr(b)));
  }
  return atom_poly(rewrite(e));
}

Expr Analyzer::compare(BinaryOp op, const Expr& a, const Expr& b) {
  const Poly x = poly(a), y = poly(b);
  const Poly one{{}, 1};
  const auto less = [&](const Poly& p, const Poly& q) { return nonnegative(q - p - one); };
  const auto less_equal = [&](const Poly& p, const Poly& q) { return nonnegative(q - p); };
  switch (op) {
    case BinaryOp::Lt:
      if (less(x, y)) return bool_imm(true);
      if (less_equal(y, x)) return bool_imm(false);
      break;
    case BinaryOp::Le:
      if (less_equal(x, y)) return bool_imm(true);
      if (less(y, x)) return bool_imm(false);
      break;
    case BinaryOp::Gt:
      return compare(BinaryOp::Lt, b, a);
    case BinaryOp::Ge:
      return compare(BinaryOp::Le, b, a);
    case BinaryOp::Eq:
    case BinaryOp::Ne:
      if (less(x, y) || less(y, x)) return bool_imm(op == BinaryOp::Ne);
      if (less_equal(x, y) && less_equal(y, x)) return bool_imm(op == BinaryOp::Eq);
      break;
    default:
      break;
  }
  return binary(op, expr(x), expr(y));
}

Expr Analyzer::rewrite(const Expr& e) {
  switch (e.kind()) {
    case ExprKind::Binary: {
      const auto* b = e.as<Binary>();
      if (is_compare(b->op) && is_index(b->a)) return compare(b->op, b->a, b->b);
      const Expr x = simplify(b->a);
      if (e.dtype().is_bool() && (b->op == BinaryOp::And || b->op == BinaryOp::Or)) {
        const int64_t* known = as_int(x);
        if (known && x.lanes() == 1) return (*known != 0) == (b->op == BinaryOp::And) ? simplify(b->b) : x;
      }
      return binary(b->op, x, simplify(b->b));
    }
    case ExprKind::Not:
      return !simplify(e.as<Not>()->a);
    case ExprKind::Select: {
      const auto* s = e.as<Select>();
      const Expr condition = simplify(s->condition);
      const int64_t* known = as_int(condition);
      if (known) return simplify(*known ? s->a : s->b);
      return select(condition, simplify(s->a), simplify(s->b));
    }
    case ExprKind::Cast:
      return cast(simplify(e.as<Cast>()->a), e.dtype());
    case ExprKind::Reinterpret:
      return reinterpret(simplify(e.as<Reinterpret>()->a), e.dtype());
    case ExprKind::Intrinsic: {
      std::vector<Expr> args;
      for (const Expr& arg : e.as<IntrinsicCall>()->args) args.push_back(simplify(arg));
      return intrinsic(e.as<IntrinsicCall>()->function, std::move(args));
    }
    case ExprKind::Load: {
      std::vector<Expr> indices;
      for (const Expr& index : e.as<Load>()->indices) indices.push_back(simplify(index));
      return load(e.as<Load>()->buffer, std::move(indices));
    }
    case ExprKind::Ramp:
      return ramp(simplify(e.as<Ramp>()->base), simplify(e.as<Ramp>()->stride), e.lanes());
    case ExprKind::Broadcast:
      return broadcast(simplify(e.as<Broadcast>()->a), e.lanes());
    case ExprKind::VectorReduce:
      return vector_reduce(e.as<VectorReduce>()->op, simplify(e.as<VectorReduce>()->a));
    default:
      return e;
  }
}

Expr Analyzer::simplify(const Expr& e) {
  if (e.as<IntImm>() || e.as<FloatImm>() || e.as<VarNode>()) return e;
  const auto found = memo_.find(e.get());
  if (found != memo_.end()) return found->second.second;
  const Expr result =
      is_index(e) && (e.kind() == ExprKind::Binary || e.kind() == ExprKind::Select) ? expr(poly(e)) : rewrite(e);
  memo_.emplace(e.get(), std::make_pair(e, result));
  return result;
}

bool Analyzer::proves(const Expr& condition) {
  const Expr result = simplify(condition);
  const int64_t* known = as_int(result);
  return known && *known != 0;
}

}  // namespace treadle::schedule
