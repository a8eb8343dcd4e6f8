// SPDX-License-Identifier: Apache-2.0
// What can be proven about index arithmetic: a polynomial normal form over variables with (symbolic) ranges.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "loop/expr.h"

namespace treadle::schedule {

// A sum of products of atoms. An atom is a variable or an expression that is not a sum or product (floordiv, min, load
// …), interned by its structure in an Analyzer and named by its number there.
struct Poly {
  struct Term {
    std::vector<int> factors;  // sorted; repeated for powers
    int64_t coefficient;       // not 0
  };
  std::vector<Term> terms;  // sorted by factors, each once
  int64_t constant = 0;

  bool is_const() const { return terms.empty(); }
};

// A polynomial as divisor * quotient + rest.
struct PolySplit {
  Poly quotient, rest;
};

// Simplifies and proves facts of int64 index expressions. Variables have the ranges given by `bind`; a variable that
// was never bound is an extent and so >= 0. Arithmetic is taken to be exact (indices do not overflow). Not thread safe.
class Analyzer {
 public:
  // min <= var < min + extent. Binding again replaces the range.
  void bind(const loop::Var& var, const loop::Expr& min, const loop::Expr& extent);
  // The canonical form of an expression; of non-index expressions the index arithmetic inside.
  loop::Expr simplify(const loop::Expr& expr);
  // True when the condition holds for all values of the variables, as far as can be seen.
  bool proves(const loop::Expr& condition);
  // Bounds that hold for all values of all variables; nullopt: none is known.
  std::optional<int64_t> lower_bound(const loop::Expr& expr);
  std::optional<int64_t> upper_bound(const loop::Expr& expr);

  // The condition is taken to hold until `forget` is called as often.
  void assume(const loop::Expr& condition);
  void forget();

  // expr == result.first * var + result.second, neither of which has var in it; nullopt when it is not linear in var.
  std::optional<std::pair<loop::Expr, loop::Expr>> split_linear(const loop::Expr& expr, const loop::Var& var);

  // Access to the normal form, for passes that take expressions apart.
  Poly poly(const loop::Expr& expr);
  loop::Expr expr(const Poly& poly);
  const loop::Expr& atom(int id) const { return atoms_[static_cast<size_t>(id)].expr; }

 private:
  struct Atom {
    loop::Expr expr;
    int depth;  // largest position in the order of binding of the variables inside; 0: only extents
  };
  struct Range {
    Poly min, max;
  };

  int intern(const loop::Expr& expr);
  Poly atom_poly(const loop::Expr& expr);
  std::optional<std::pair<int64_t, PolySplit>> inner_split(const Poly& x, int64_t d);
  Poly divide(const Poly& x, const loop::Expr& divisor);
  Poly modulo(const Poly& x, const loop::Expr& divisor);
  Poly min_max(loop::BinaryOp op, const loop::Expr& a, const loop::Expr& b);
  Poly recombine(Poly sum);
  Poly make_poly(const loop::Expr& expr);
  loop::Expr rewrite(const loop::Expr& expr);
  loop::Expr compare(loop::BinaryOp op, const loop::Expr& a, const loop::Expr& b);
  std::optional<int64_t> lower(const Poly& poly, int fuel);
  std::optional<int64_t> lower_through(const Poly& factor, const Poly& rest, int atom, int fuel);
  bool nonnegative(const Poly& poly);
  int pick(const Poly& poly) const;
  int depth_of(const loop::Expr& expr);

  std::vector<Atom> atoms_;
  std::unordered_multimap<uint64_t, int> index_;
  std::unordered_map<const loop::ExprNode*, int> var_ids_;
  std::unordered_map<int, Range> ranges_;
  std::vector<std::vector<Poly>> facts_;  // each >= 0
  std::unordered_map<const loop::ExprNode*, std::pair<loop::Expr, Poly>> poly_memo_;
  std::unordered_map<const loop::ExprNode*, std::pair<loop::Expr, loop::Expr>> memo_;
  int next_depth_ = 1;
  int proofs_ = 0;       // that are under way
  int eliminating_ = 0;  // calls of `lower` that are under way
  int64_t steps_ = 0;    // factors that the outermost of them may still look at
};

// Arithmetic on normal forms.
Poly operator+(const Poly& a, const Poly& b);
Poly operator-(const Poly& a, const Poly& b);
Poly operator*(const Poly& a, const Poly& b);
Poly scale(const Poly& a, int64_t factor);

// Equal structure; variables and buffers by pointer.
bool same_structure(const loop::Expr& a, const loop::Expr& b);
uint64_t structure_hash(const loop::Expr& expr);

}  // namespace treadle::schedule
