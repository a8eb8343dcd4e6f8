// SPDX-License-Identifier: Apache-2.0
// The plan of a printed function: which nodes get a name of their own (%0 = …;), and in which block each stands.
//
// The text is Relay's, with these additions, all of which the parser reads:
//   loop(trip=%n, cond=fn (…) {…}, body=fn (…) {…}, scanned=1)(%a, %b)   the structured loop; trip or cond may be
//   missing Tensor[(N, 2*H - 1), float32]   extents with symbols; `?1` is one anonymous symbol that occurs more than
//   once, `?` occurs once
//   %"layer 1/x"   a name that is no identifier
//   1i8, 1u8, 1bf16   scalars of every dtype
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/expr.h"

namespace treadle::ir {

// A block of the text. A let opens one for its body, which shares the braces of the block around it.
struct PrintScope {
  const PrintScope* parent = nullptr;
  int depth = 0;
  Expr tail;                   // what the block gives
  std::vector<Expr> bindings;  // nodes named in the block, operands first
};

class PrintPlan {
 public:
  explicit PrintPlan(const Expr& function);
  // True when the node is written where it is used.
  bool is_inline(const Expr& expr) const;
  // The block of a function's body, of a let's body, and of the two branches of an if.
  const PrintScope& body(const Expr& owner) const { return *scopes_.at(owner.get())[0]; }
  const PrintScope& else_branch(const Expr& owner) const { return *scopes_.at(owner.get())[1]; }

 private:
  struct Use {
    PrintScope* scope = nullptr;  // innermost block around all uses
    int count = 0;
    bool in_place = false;  // the only use is where any expression may stand: a block's end, a let's value
  };
  void use(const Expr& operand, PrintScope* scope, bool in_place);
  PrintScope* open(const Expr& owner, PrintScope* parent, const Expr& tail);
  void place_operands(const Expr& expr);

  std::unordered_map<const ExprNode*, Use> uses_;
  std::unordered_map<const ExprNode*, std::vector<std::unique_ptr<PrintScope>>> scopes_;
};

}  // namespace treadle::ir
