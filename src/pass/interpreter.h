// SPDX-License-Identifier: Apache-2.0
// Evaluates graph expressions with the interpreter of the loop IR: the reference, and the evaluator of last resort.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"

namespace treadle::pass {

// Values of the free variables of what is interpreted, tuples flattened.
using Bindings = std::unordered_map<const ir::ExprNode*, std::vector<Tensor>>;

// The outputs of `expr` (tuples flattened): operators, tuples, projections, let, if; operators with a runtime kernel
// run it. Symbols are bound by the extents of the bindings. Errors: CodegenUnsupported for loops, calls of functions
// and unbound variables; RuntimeKernel when a kernel fails.
std::vector<Tensor> interpret(const ir::Expr& expr, const Bindings& bindings = {});

}  // namespace treadle::pass
