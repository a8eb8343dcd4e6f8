// SPDX-License-Identifier: Apache-2.0
// Indices as expressions, for the rules that read or write at places.
#pragma once

#include "import/onnx/rules.h"

namespace treadle::onnx {

// The extent as a 0-d integer of `dtype`.
ir::Expr extent_value(const Dim& extent, DType dtype);
// indices where they are not negative, else indices + extent. Constants are changed at once; out of range ones stay so.
// Errors: ImportFormat for a constant that is out of range.
ir::Expr wrap_indices(const Node& node, const ir::Expr& indices, const Dim& extent);
// The last axis moved to the front: index tuples as Treadle's gather_nd and scatter_nd have them.
ir::Expr tuples_first(const ir::Expr& indices);
// (n): the positions of the vector's elements that are true, int64; n is known when it runs.
ir::Expr true_positions(const Node& node, const ir::Expr& vector);

// x, whose first extent is `rows`, which its type need not say: the number of iterations of a loop.
ir::Expr with_rows(const ir::Expr& x, const Dim& rows);

}  // namespace treadle::onnx
