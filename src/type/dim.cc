// SPDX-License-Identifier: Apache-2.0
#include "type/dim.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"

namespace treadle {
namespace {

using AtomPtr = std::shared_ptr<const DimAtom>;

constexpr size_t kMaxTerms = 128;
constexpr size_t kMaxFactors = 1024;      // of all terms together
constexpr size_t kMaxText = 8192;         // bytes
constexpr int64_t kMaxAlive = 256 << 20;  // bytes

// Bytes of all expressions that are alive.
std::atomic<int64_t> alive{0};

int64_t bytes_of(const DimPoly& poly) {
  size_t bytes = sizeof(DimPoly) + poly.key.capacity() + poly.terms.capacity() * sizeof(DimTerm);
  for (const DimTerm& term : poly.terms) bytes += term.factors.capacity() * sizeof(term.factors[0]);
  return static_cast<int64_t>(bytes);
}

[[noreturn]] void too_large(const char* what, size_t limit) {
  fail(ErrorCode::Limit, "an extent's expression has more than {} {}", limit, what);
}

[[noreturn]] void overflow() { fail(ErrorCode::Limit, "an extent leaves the range of 64-bit integers"); }

int64_t checked_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) overflow();
  return result;
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) overflow();
  return result;
}

int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) fail(ErrorCode::InvalidArgument, "an extent is divided by zero");
  if (b == -1) return checked_mul(a, -1);
  int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

std::string factors_key(const DimTerm& term) {
  std::string key;
  for (const AtomPtr& atom : term.factors) {
    if (!key.empty()) key += "*";
    key += atom->key;
  }
  return key;
}

// Order of terms: higher degree first, then by text, which is also a monomial order good enough for exact division of
// the products that occur (the leading term of a product of two polynomials is the product of their leading terms when
// the order is graded lexicographic over the atoms' keys).
bool term_before(const DimTerm& a, const DimTerm& b) {
  if (a.factors.size() != b.factors.size()) return a.factors.size() > b.factors.size();
  for (size_t i = 0; i < a.factors.size(); ++i) {
    if (a.factors[i]->key != b.factors[i]->key) return a.factors[i]->key < b.factors[i]->key;
  }
  return false;
}

bool same_factors(const DimTerm& a, const DimTerm& b) { return !term_before(a, b) && !term_before(b, a); }

DimPoly to_poly(const Dim& dim) {
  if (!dim.is_const()) return *dim.poly();
  DimPoly poly;
  poly.constant = dim.value();
  return poly;
}

// Sorts, merges equal terms and drops zeros.
void canonicalise(DimPoly& poly) {
  std::sort(poly.terms.begin(), poly.terms.end(), term_before);
  std::vector<DimTerm> merged;
  for (DimTerm& term : poly.terms) {
    if (!merged.empty() && same_factors(merged.back(), term)) {
      merged.back().coefficient = checked_add(merged.back().coefficient, term.coefficient);
    } else {
      merged.push_back(std::move(term));
    }
  }
  std::erase_if(merged, [](const DimTerm& term) { return term.coefficient == 0; });
  if (merged.size() > kMaxTerms) too_large("terms", kMaxTerms);
  size_t factors = 0;
  for (const DimTerm& term : merged) factors += term.factors.size();
  if (factors > kMaxFactors) too_large("factors", kMaxFactors);
  poly.terms = std::move(merged);
}

std::string poly_text(const DimPoly& poly) {
  std::string text;
  for (const DimTerm& term : poly.terms) {
    const int64_t c = term.coefficient;
    if (text.empty()) {
      if (c < 0) text += "-";
    } else {
      text += c < 0 ? " - " : " + ";
    }
    const uint64_t magnitude = c < 0 ? 0 - static_cast<uint64_t>(c) : static_cast<uint64_t>(c);
    if (magnitude != 1) text += fmt::format("{}*", magnitude);
    text += factors_key(term);
  }
  if (poly.constant != 0 || text.empty()) {
    if (text.empty()) return fmt::format("{}", poly.constant);
    text += poly.constant < 0 ? fmt::format(" - {}", 0 - static_cast<uint64_t>(poly.constant))
                              : fmt::format(" + {}", poly.constant);
  }
  return text;
}

AtomPtr make_atom(DimAtom::Kind kind, const Dim& a, const Dim& b) {
  auto atom = std::make_shared<DimAtom>();
  atom->kind = kind;
  atom->a = a;
  atom->b = b;
  const char* name = kind == DimAtom::Kind::FloorDiv ? "floordiv" : kind == DimAtom::Kind::Min ? "min" : "max";
  atom->key = fmt::format("{}({}, {})", name, to_string(a), to_string(b));
  if (atom->key.size() > kMaxText) too_large("characters", kMaxText);
  return atom;
}

Dim from_atom(AtomPtr atom) {
  DimPoly poly;
  poly.terms.push_back({{std::move(atom)}, 1});
  return Dim::from_poly(std::move(poly));
}

struct Interval {
  std::optional<int64_t> low, high;
};

std::optional<int64_t> safe_mul(std::optional<int64_t> a, int64_t b) {
  int64_t result;
  if (!a || __builtin_mul_overflow(*a, b, &result)) return std::nullopt;
  return result;
}

std::optional<int64_t> safe_add(std::optional<int64_t> a, std::optional<int64_t> b) {
  int64_t result;
  if (!a || !b || __builtin_add_overflow(*a, *b, &result)) return std::nullopt;
  return result;
}

Interval bounds(const Dim& dim);

Interval atom_bounds(const DimAtom& atom) {
  if (atom.kind == DimAtom::Kind::Symbol) return {0, std::nullopt};
  Interval a = bounds(atom.a), b = bounds(atom.b);
  switch (atom.kind) {
    case DimAtom::Kind::Min: {
      Interval result;
      if (a.low && b.low) result.low = std::min(*a.low, *b.low);
      if (a.high && b.high)
        result.high = std::min(*a.high, *b.high);
      else
        result.high = a.high ? a.high : b.high;
      return result;
    }
    case DimAtom::Kind::Max: {
      Interval result;
      if (a.low && b.low)
        result.low = std::max(*a.low, *b.low);
      else
        result.low = a.low ? a.low : b.low;
      if (a.high && b.high) result.high = std::max(*a.high, *b.high);
      return result;
    }
    default:
      break;
  }
  // Floor division by a positive number keeps the order.
  if (atom.b.is_const() && atom.b.value() > 0) {
    Interval result;
    if (a.low) result.low = floor_quotient(*a.low, atom.b.value());
    if (a.high) result.high = floor_quotient(*a.high, atom.b.value());
    return result;
  }
  if (a.low && *a.low >= 0 && b.low && *b.low >= 0) return {0, a.high};
  return {};
}

Interval bounds(const Dim& dim) {
  if (dim.is_const()) return {dim.value(), dim.value()};
  Interval sum{dim.poly()->constant, dim.poly()->constant};
  for (const DimTerm& term : dim.poly()->terms) {
    Interval product{1, 1};
    for (const AtomPtr& atom : term.factors) {
      Interval factor = atom_bounds(*atom);
      if (!factor.low || *factor.low < 0 || !product.low) {
        product = {};  // a product of signs that are not known: no bound
        break;
      }
      product.low = safe_mul(product.low, *factor.low);
      product.high = factor.high && product.high ? safe_mul(product.high, *factor.high) : std::nullopt;
    }
    if (term.coefficient >= 0) {
      sum.low = safe_add(sum.low, safe_mul(product.low, term.coefficient));
      sum.high = safe_add(sum.high, safe_mul(product.high, term.coefficient));
    } else {
      Interval old = sum;
      sum.low = safe_add(old.low, safe_mul(product.high, term.coefficient));
      sum.high = safe_add(old.high, safe_mul(product.low, term.coefficient));
    }
  }
  return sum;
}

// Quotient of two terms when the divisor's factors are all in the dividend.
std::optional<DimTerm> divide_terms(const DimTerm& a, const DimTerm& b) {
  if (a.coefficient % b.coefficient != 0) return std::nullopt;
  DimTerm quotient{a.factors, a.coefficient / b.coefficient};
  for (const AtomPtr& atom : b.factors) {
    auto found = std::find_if(quotient.factors.begin(), quotient.factors.end(),
                              [&](const AtomPtr& f) { return f->key == atom->key; });
    if (found == quotient.factors.end()) return std::nullopt;
    quotient.factors.erase(found);
  }
  return quotient;
}

Dim from_term(DimTerm term) {
  if (term.factors.empty()) return Dim(term.coefficient);
  DimPoly poly;
  poly.terms.push_back(std::move(term));
  return Dim::from_poly(std::move(poly));
}

DimTerm leading_term(const Dim& dim) {
  if (dim.is_const()) return {{}, dim.value()};
  return dim.poly()->terms.front();
}

// floor(a / c) for a constant c > 0: whole multiples leave the division, a common divisor is cancelled.
Dim floordiv_by_constant(const Dim& a, int64_t c) {
  DimPoly outside, rest = to_poly(a);
  std::erase_if(rest.terms, [&](const DimTerm& term) {
    if (term.coefficient % c != 0) return false;
    outside.terms.push_back({term.factors, term.coefficient / c});
    return true;
  });
  outside.constant = floor_quotient(rest.constant, c);
  rest.constant -= outside.constant * c;
  if (rest.terms.empty()) return Dim::from_poly(std::move(outside));
  int64_t divisor = c;
  for (const DimTerm& term : rest.terms) divisor = std::gcd(divisor, term.coefficient);
  if (divisor > 1) {
    for (DimTerm& term : rest.terms) term.coefficient /= divisor;
    rest.constant = floor_quotient(rest.constant, divisor);
    c /= divisor;
  }
  Dim inner = Dim::from_poly(std::move(rest));
  Dim quotient;
  Interval range = bounds(inner);
  const DimPoly* poly = inner.poly().get();
  const bool nested = poly->terms.size() == 1 && poly->terms[0].coefficient == 1 &&
                      poly->terms[0].factors.size() == 1 &&
                      poly->terms[0].factors[0]->kind == DimAtom::Kind::FloorDiv &&
                      poly->terms[0].factors[0]->b.is_const() && poly->terms[0].factors[0]->b.value() > 0;
  if (range.low && range.high && floor_quotient(*range.low, c) == floor_quotient(*range.high, c)) {
    quotient = floor_quotient(*range.low, c);
  } else if (nested) {  // floor((floor(x / b) + k) / c) = floor((x + k*b) / (b*c))
    const DimAtom& atom = *poly->terms[0].factors[0];
    quotient = floordiv(atom.a + Dim(poly->constant) * atom.b, checked_mul(atom.b.value(), c));
  } else {
    quotient = from_atom(make_atom(DimAtom::Kind::FloorDiv, inner, Dim(c)));
  }
  return Dim::from_poly(std::move(outside)) + quotient;
}

// The minimum or maximum that the expression is, when it is nothing else.
const DimAtom* sole_extremum(const Dim& dim) {
  const DimPoly* poly = dim.poly().get();
  if (!poly || poly->constant != 0 || poly->terms.size() != 1 || poly->terms[0].coefficient != 1) return nullptr;
  if (poly->terms[0].factors.size() != 1) return nullptr;
  const DimAtom* atom = poly->terms[0].factors[0].get();
  return atom->kind == DimAtom::Kind::Min || atom->kind == DimAtom::Kind::Max ? atom : nullptr;
}

Dim extremum(DimAtom::Kind kind, const Dim& a, const Dim& b) {
  const bool is_min = kind == DimAtom::Kind::Min;
  if (a == b) return a;
  Interval difference = bounds(a - b);
  if (difference.low && *difference.low >= 0) return is_min ? b : a;
  if (difference.high && *difference.high <= 0) return is_min ? a : b;
  // max(a, min(a, x)) = a, and max(a, max(a, x)) = max(a, x); the same with both exchanged.
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const DimAtom* atom = sole_extremum(*other);
    if (atom && (atom->a == *one || atom->b == *one)) return atom->kind == kind ? *other : *one;
  }
  // Commutative: one order of the operands.
  return to_string(a) < to_string(b) ? from_atom(make_atom(kind, a, b)) : from_atom(make_atom(kind, b, a));
}

}  // namespace

Dim Dim::symbol(const std::string& name) {
  TREADLE_CHECK(!name.empty());
  auto atom = std::make_shared<DimAtom>();
  atom->kind = DimAtom::Kind::Symbol;
  atom->name = name;
  atom->key = name;
  return from_atom(std::move(atom));
}

namespace {

thread_local AnonymousScope* innermost_scope = nullptr;

}  // namespace

AnonymousScope::AnonymousScope(int64_t first) : next_(first), outer_(innermost_scope) { innermost_scope = this; }

AnonymousScope::~AnonymousScope() { innermost_scope = outer_; }

Dim Dim::any() {
  static std::atomic<int64_t> counter{0};
  return symbol(fmt::format("?{}", innermost_scope ? innermost_scope->next_++ : counter++));
}

std::optional<int64_t> anonymous_number(std::string_view name) {
  if (!name.starts_with('?')) return std::nullopt;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(number) : std::nullopt;
}

bool is_anonymous(const Dim& dim) {
  if (dim.is_const()) return false;
  const std::set<std::string> names = dim.symbols();
  return std::any_of(names.begin(), names.end(), [](const std::string& name) { return name.starts_with('?'); });
}

Dim Dim::from_poly(DimPoly poly) {
  canonicalise(poly);
  Dim dim;
  if (poly.terms.empty()) {
    dim.value_ = poly.constant;
    return dim;
  }
  poly.key = poly_text(poly);
  if (poly.key.size() > kMaxText) too_large("characters", kMaxText);
  const int64_t bytes = bytes_of(poly);
  if (alive.fetch_add(bytes) > kMaxAlive) {
    alive -= bytes;
    fail(ErrorCode::Limit, "the expressions of extents take more than {} MB", kMaxAlive >> 20);
  }
  dim.poly_ = std::shared_ptr<const DimPoly>(new DimPoly(std::move(poly)), [bytes](const DimPoly* p) {
    alive -= bytes;
    delete p;
  });
  return dim;
}

int64_t Dim::value() const {
  TREADLE_CHECK(is_const(), "extent {} is symbolic", to_string(*this));
  return value_;
}

std::optional<std::string> Dim::as_symbol() const {
  if (is_const() || poly_->constant != 0 || poly_->terms.size() != 1) return std::nullopt;
  const DimTerm& term = poly_->terms[0];
  if (term.coefficient != 1 || term.factors.size() != 1 || term.factors[0]->kind != DimAtom::Kind::Symbol)
    return std::nullopt;
  return term.factors[0]->name;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return checked_add(a.value_, b.value_);
  DimPoly sum = to_poly(a), other = to_poly(b);
  sum.constant = checked_add(sum.constant, other.constant);
  sum.terms.insert(sum.terms.end(), other.terms.begin(), other.terms.end());
  return Dim::from_poly(std::move(sum));
}

Dim operator-(const Dim& a, const Dim& b) { return a + Dim(-1) * b; }

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return checked_mul(a.value_, b.value_);
  const DimPoly p = to_poly(a), q = to_poly(b);
  DimPoly product;
  auto times = [&](const std::vector<AtomPtr>& f, int64_t cf, const std::vector<AtomPtr>& g, int64_t cg) {
    DimTerm term{f, checked_mul(cf, cg)};
    if (term.coefficient == 0) return;
    term.factors.insert(term.factors.end(), g.begin(), g.end());
    std::sort(term.factors.begin(), term.factors.end(),
              [](const AtomPtr& x, const AtomPtr& y) { return x->key < y->key; });
    if (term.factors.empty())
      product.constant = checked_add(product.constant, term.coefficient);
    else
      product.terms.push_back(std::move(term));
  };
  if (p.terms.size() * q.terms.size() > kMaxTerms * 8) too_large("terms", kMaxTerms);
  for (const DimTerm& s : p.terms) {
    for (const DimTerm& t : q.terms) times(s.factors, s.coefficient, t.factors, t.coefficient);
    times(s.factors, s.coefficient, {}, q.constant);
  }
  for (const DimTerm& t : q.terms) times(t.factors, t.coefficient, {}, p.constant);
  times({}, p.constant, {}, q.constant);
  return Dim::from_poly(std::move(product));
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.is_const() || b.is_const()) return a.is_const() && b.is_const() && a.value_ == b.value_;
  return a.poly_ == b.poly_ || a.poly_->key == b.poly_->key;
}

std::optional<Dim> exact_divide(const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  const DimTerm lead = leading_term(b);
  Dim rest = a, quotient = 0;
  for (size_t steps = 0; !rest.is(0); ++steps) {
    if (steps > kMaxTerms) return std::nullopt;
    std::optional<DimTerm> term = divide_terms(leading_term(rest), lead);
    if (!term) return std::nullopt;
    Dim step = from_term(std::move(*term));
    quotient = quotient + step;
    rest = rest - step * b;
  }
  return quotient;
}

Dim floordiv(const Dim& a, const Dim& b) {
  if (b.is(0)) fail(ErrorCode::InvalidArgument, "extent {} is divided by zero", to_string(a));
  if (a.is_const() && b.is_const()) return floor_quotient(a.value(), b.value());
  if (std::optional<Dim> quotient = exact_divide(a, b)) return *quotient;
  if (b.is_const() && b.value() > 0) return floordiv_by_constant(a, b.value());
  return from_atom(make_atom(DimAtom::Kind::FloorDiv, a, b));
}

Dim ceildiv(const Dim& a, const Dim& b) { return floordiv(a + b - 1, b); }
Dim mod(const Dim& a, const Dim& b) { return a - b * floordiv(a, b); }
Dim min(const Dim& a, const Dim& b) { return extremum(DimAtom::Kind::Min, a, b); }
Dim max(const Dim& a, const Dim& b) { return extremum(DimAtom::Kind::Max, a, b); }

std::optional<int64_t> Dim::lower_bound() const { return bounds(*this).low; }
std::optional<int64_t> Dim::upper_bound() const { return bounds(*this).high; }

namespace {

void collect_symbols(const Dim& dim, std::set<std::string>& names) {
  if (dim.is_const()) return;
  for (const DimTerm& term : dim.poly()->terms) {
    for (const AtomPtr& atom : term.factors) {
      if (atom->kind == DimAtom::Kind::Symbol) {
        names.insert(atom->name);
      } else {
        collect_symbols(atom->a, names);
        collect_symbols(atom->b, names);
      }
    }
  }
}

}  // namespace

std::set<std::string> Dim::symbols() const {
  std::set<std::string> names;
  collect_symbols(*this, names);
  return names;
}

Dim Dim::substitute(const std::map<std::string, Dim>& values) const {
  DimArithmetic<Dim> arithmetic;
  arithmetic.constant = [](int64_t value) { return Dim(value); };
  arithmetic.symbol = [&](const std::string& name) {
    auto found = values.find(name);
    return found == values.end() ? Dim::symbol(name) : found->second;
  };
  arithmetic.add = [](const Dim& a, const Dim& b) { return a + b; };
  arithmetic.mul = [](const Dim& a, const Dim& b) { return a * b; };
  arithmetic.floordiv = [](const Dim& a, const Dim& b) { return treadle::floordiv(a, b); };
  arithmetic.min = [](const Dim& a, const Dim& b) { return treadle::min(a, b); };
  arithmetic.max = [](const Dim& a, const Dim& b) { return treadle::max(a, b); };
  return fold_dim(*this, arithmetic);
}

int64_t Dim::evaluate(const std::map<std::string, int64_t>& values) const {
  std::map<std::string, Dim> dims;
  for (const auto& [name, value] : values) dims[name] = value;
  Dim result = substitute(dims);
  if (!result.is_const())
    fail(ErrorCode::InvalidArgument, "extent {} has no value for {}", to_string(*this), *result.symbols().begin());
  return result.value();
}

uint64_t Dim::hash() const {
  return is_const() ? hash_combine(1, static_cast<uint64_t>(value_)) : hash_string(poly_->key, 2);
}

std::string to_string(const Dim& dim) { return dim.is_const() ? fmt::format("{}", dim.value()) : dim.poly()->key; }

bool is_static(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_const(); });
}

std::vector<int64_t> static_extents(const Shape& shape) {
  std::vector<int64_t> extents;
  for (const Dim& dim : shape) extents.push_back(dim.value());
  return extents;
}

Shape to_shape(const std::vector<int64_t>& extents) { return Shape(extents.begin(), extents.end()); }

Dim product(const Shape& shape) {
  Dim result = 1;
  for (const Dim& dim : shape) result = result * dim;
  return result;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + to_string(shape[i]);
  return text + ")";
}

}  // namespace treadle
