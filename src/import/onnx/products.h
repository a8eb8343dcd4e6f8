// SPDX-License-Identifier: Apache-2.0
// Matrix products with NumPy's meaning, for the rules that need them.
#pragma once

#include "import/onnx/rules.h"

namespace treadle::onnx {

// numpy.matmul: the last two axes are matrices, the others a batch that broadcasts; a vector gets an axis, which the
// result loses. Errors: ImportFormat for a scalar; TypeMismatch.
ir::Expr matrix_product(const Node& node, const ir::Expr& a, const ir::Expr& b);

// False when two constant extents differ.
bool compatible_shape(const Shape& a, const Shape& b);

}  // namespace treadle::onnx
