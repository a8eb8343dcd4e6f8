// SPDX-License-Identifier: Apache-2.0
// What the printer and the parser of the loop IR agree on.
#pragma once

#include <string_view>
#include <vector>

#include "loop/expr.h"

namespace treadle::loop {

// Written between its operands; the other operators are written as functions.
bool is_infix(BinaryOp op);
// Of infix operators; a larger number binds tighter. All are left-associative.
int precedence(BinaryOp op);

bool is_identifier_char(char c);
bool is_identifier(std::string_view text);
// Words that no variable may be called.
bool is_reserved(std::string_view text);

// The direct operands of an expression, in order.
std::vector<Expr> operands(const Expr& expr);

}  // namespace treadle::loop
