// SPDX-License-Identifier: Apache-2.0
// einsum: products of tensors summed over named axes, NumPy's notation.
//
//   "bij,bjk->bik"  axes with one name run together, those not behind "->" are summed; without "->" the result has the
//                   names that occur once, in alphabetical order; a name twice in one operand takes its diagonal; "..."
//                   stands for axes that broadcast
// 16-bit floats are multiplied and added in float32. Source: Relay 0.16; NumPy einsum.
#pragma once

#include <string>

#include "ir/expr.h"

namespace treadle::op {

struct EinsumAttrs : ir::AttrsOf<EinsumAttrs> {
  std::string equation;

  template <typename F>
  static void fields(F& field) {
    field(&EinsumAttrs::equation, "equation", ir::Required{},
          "names of the operands' axes and, behind ->, of the result's");
  }
};

ir::Expr einsum(std::vector<ir::Expr> operands, const std::string& equation);

}  // namespace treadle::op
