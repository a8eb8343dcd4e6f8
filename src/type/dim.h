// SPDX-License-Identifier: Apache-2.0
// The extent of an axis: an integer expression over named symbols, kept in a canonical form in which equal expressions
// look alike.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace treadle {

struct DimPoly;
struct DimAtom;

// A polynomial with int64 coefficients over atoms; an atom is a symbol (an extent, so >= 0), a floor division, a
// minimum or a maximum of polynomials. `mod` is rewritten with floor division. Immutable; copies share. A constant
// holds no memory. Errors: Limit when a coefficient leaves int64, when an expression grows beyond 128 terms, 1024
// factors or 8 kB of text, and when all expressions that are alive together take more than 256 MB.
class Dim {
 public:
  Dim(int64_t value = 0) : value_(value) {}  // NOLINT(google-explicit-constructor): an extent is first of all a number
  // The symbol of this name; the same name is the same extent everywhere in a module.
  static Dim symbol(const std::string& name);
  // A fresh symbol, for an extent that nothing is known of (Relay's `?`): "?0", "?1", …, see AnonymousScope.
  static Dim any();

  bool is_const() const { return poly_ == nullptr; }
  // The number; is_const() must hold.
  int64_t value() const;
  std::optional<int64_t> as_const() const { return is_const() ? std::optional(value_) : std::nullopt; }
  bool is(int64_t value) const { return is_const() && value_ == value; }
  // The name when this is exactly one symbol.
  std::optional<std::string> as_symbol() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  // True when the two are equal for all values of the symbols as far as the canonical form can tell; false means "not
  // proven".
  friend bool operator==(const Dim& a, const Dim& b);

  // Largest and smallest value over all symbols >= 0; nullopt: not bounded (or not known).
  std::optional<int64_t> lower_bound() const;
  std::optional<int64_t> upper_bound() const;

  std::set<std::string> symbols() const;
  // Replaces symbols; a symbol that is not in the map stays.
  Dim substitute(const std::map<std::string, Dim>& values) const;
  // The number under these values. Errors: InvalidArgument for a symbol without value, or a division by zero.
  int64_t evaluate(const std::map<std::string, int64_t>& values) const;
  uint64_t hash() const;

  // Implementation access for the files of type/ and for fold_dim.
  const std::shared_ptr<const DimPoly>& poly() const { return poly_; }
  static Dim from_poly(DimPoly poly);

 private:
  int64_t value_ = 0;
  std::shared_ptr<const DimPoly> poly_;  // null: the constant value_
};

// While one lives, Dim::any() of this thread counts from `first`, so that names do not depend on what else the process
// has built. `first` must be above the numbers of the anonymous symbols that the new ones may meet. Scopes nest;
// outside of all the whole process counts.
class AnonymousScope {
 public:
  explicit AnonymousScope(int64_t first);
  ~AnonymousScope();
  AnonymousScope(const AnonymousScope&) = delete;
  AnonymousScope& operator=(const AnonymousScope&) = delete;

 private:
  friend class Dim;
  int64_t next_;
  AnonymousScope* outer_;
};

// The number of an anonymous symbol's name, 3 for "?3"; nullopt for other names.
std::optional<int64_t> anonymous_number(std::string_view name);
// True when an anonymous symbol occurs in the extent.
bool is_anonymous(const Dim& dim);

// Quotient rounded toward minus infinity. Errors: InvalidArgument for the constant divisor 0.
Dim floordiv(const Dim& a, const Dim& b);
Dim ceildiv(const Dim& a, const Dim& b);
// a - b * floordiv(a, b)
Dim mod(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
// The quotient when b divides a for all values of the symbols (b nonzero).
std::optional<Dim> exact_divide(const Dim& a, const Dim& b);

// One factor of a product.
struct DimAtom {
  enum class Kind { Symbol, FloorDiv, Min, Max };
  Kind kind;
  std::string name;  // Symbol
  Dim a, b;          // the others
  std::string key;   // canonical text: equal keys, equal atoms; the order of atoms
};

struct DimTerm {
  std::vector<std::shared_ptr<const DimAtom>> factors;  // sorted by key; repeated for powers
  int64_t coefficient;
};

// Sum of terms and a constant; terms sorted, coefficients nonzero, at least one term.
struct DimPoly {
  std::vector<DimTerm> terms;
  int64_t constant = 0;
  std::string key;
};

// Text as the IR prints it: "N", "2*H - 1", "floordiv(H + 1, 2)", "min(A, B)", "?3".
std::string to_string(const Dim& dim);
// Reads what to_string writes (also '/' for floordiv and '%' for mod). Errors: Parse.
Dim parse_dim(std::string_view text);

// Evaluates `dim` in another arithmetic: T needs the five callbacks.
template <typename T>
struct DimArithmetic {
  std::function<T(int64_t)> constant;
  std::function<T(const std::string&)> symbol;
  std::function<T(T, T)> add, mul, floordiv, min, max;
};

template <typename T>
T fold_dim(const Dim& dim, const DimArithmetic<T>& arithmetic) {
  if (dim.is_const()) return arithmetic.constant(dim.value());
  std::optional<T> sum;
  for (const DimTerm& term : dim.poly()->terms) {
    std::optional<T> product;
    if (term.coefficient != 1) product = arithmetic.constant(term.coefficient);
    for (const auto& atom : term.factors) {
      T factor = [&] {
        if (atom->kind == DimAtom::Kind::Symbol) return arithmetic.symbol(atom->name);
        T a = fold_dim(atom->a, arithmetic);
        T b = fold_dim(atom->b, arithmetic);
        if (atom->kind == DimAtom::Kind::FloorDiv) return arithmetic.floordiv(a, b);
        return atom->kind == DimAtom::Kind::Min ? arithmetic.min(a, b) : arithmetic.max(a, b);
      }();
      product = product ? arithmetic.mul(*product, factor) : factor;
    }
    sum = sum ? arithmetic.add(*sum, *product) : *product;
  }
  if (dim.poly()->constant != 0) sum = arithmetic.add(*sum, arithmetic.constant(dim.poly()->constant));
  return *sum;
}

using Shape = std::vector<Dim>;

bool is_static(const Shape& shape);
// The extents as numbers; all must be constant.
std::vector<int64_t> static_extents(const Shape& shape);
Shape to_shape(const std::vector<int64_t>& extents);
Dim product(const Shape& shape);
// "(1, 3, H, W)"; "(5,)" is written "(5)" as Relay does.
std::string to_string(const Shape& shape);

}  // namespace treadle
