// SPDX-License-Identifier: Apache-2.0
// Type inference of whole modules.
#pragma once

#include "ir/expr.h"

namespace treadle::ir {

// Gives every expression a type. Works both ways: a variable without type is solved from its uses (a weight's shape
// from the data's and the attributes'), so are let-bound recursive functions and polymorphic calls. Errors:
// TypeMismatch, TypeAttribute at the first ill-typed call; TypeUnresolved naming a variable that nothing determines.
Module infer_types(const Module& module);
// The same for one expression in the context of a module.
Expr infer_types(const Expr& expr, const Module& module = {});

// Checks the invariants that head verify.cc. Errors: VerifyFailed naming the function, the node and the rule.
void verify(const Module& module);

}  // namespace treadle::ir
