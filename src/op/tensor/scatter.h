// SPDX-License-Identifier: Apache-2.0
// Operators that write a tensor at indices which are data; kernels of the runtime.
//
//   scatter_elements(x, i, u)  y = x, then y[i[a, b], b] is set to (or combined with) u[a, b], for axis 0
//   scatter_nd(x, i, u)        y = x, then y[i[0, Y…], …, i[M-1, Y…], …] likewise with u[Y…, …]
//   argwhere(x)                (number of non-zeros, rank of x) int32: their index tuples in row-major order
// Updates are applied in row-major order of the indices. Negative indices count from the end; out of range is an error
// when it runs.
// Source: Relay 0.16.
#pragma once

#include <string>

#include "ir/expr.h"

namespace treadle::op {

struct ScatterElementsAttrs : ir::AttrsOf<ScatterElementsAttrs> {
  int64_t axis;
  std::string reduction;

  template <typename F>
  static void fields(F& field) {
    field(&ScatterElementsAttrs::axis, "axis", 0, "the axis that the indices speak of");
    field(&ScatterElementsAttrs::reduction, "reduction", "update", "what an element and its updates become")
        .one_of({"update", "add", "mul", "mean", "min", "max"});
  }
};

struct ScatterNdAttrs : ir::AttrsOf<ScatterNdAttrs> {
  std::string mode;

  template <typename F>
  static void fields(F& field) {
    field(&ScatterNdAttrs::mode, "mode", "update", "what an element and its updates become")
        .one_of({"update", "add", "mul", "min", "max"});
  }
};

ir::Expr scatter_elements(ir::Expr x, ir::Expr indices, ir::Expr updates, int64_t axis,
                          const std::string& reduction = "update");
ir::Expr scatter_nd(ir::Expr x, ir::Expr indices, ir::Expr updates, const std::string& mode = "update");

}  // namespace treadle::op
