// SPDX-License-Identifier: Apache-2.0
// Relay's text format, version 0.0.5, both ways; and structural comparison.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/expr.h"

namespace treadle::ir {

struct PrintOptions {
  bool types = true;      // /* ty=… */ behind values
  bool spans = false;     // span=… inside that comment
  bool constants = true;  // the data of large constants in the metadata section; off: only their types, not parsable
};

// Lossless with the default options: structural_equal(parse(print(m)), m). Small constants stand inline, large ones as
// meta[relay.Constant][i] with their bytes in the #[metadata] section (base64 of Relay's array format).
std::string print(const Module& module, const PrintOptions& options = {});
std::string print(const Expr& expr, const PrintOptions& options = {});

// Reads what print and TVM 0.8…0.19 write (not algebraic data types), infers types. `source`: the name shown in errors.
// Errors: Parse with line, column, the line itself and a caret; ImportUnsupported for `type`, `match`; those of
// inference.
Module parse(std::string_view text, const std::string& source = "text");

// Equal up to names of bound variables and anonymous symbols; types, attributes and constants' bytes count, spans do
// not.
bool structural_equal(const Module& a, const Module& b);
bool structural_equal(const Expr& a, const Expr& b);
// Null when equal, else where the first difference is and what it is: "@main, argument 1 of nn.conv2d: …".
std::optional<std::string> structural_difference(const Module& a, const Module& b);
std::optional<std::string> structural_difference(const Expr& a, const Expr& b);
uint64_t structural_hash(const Expr& expr);
uint64_t structural_hash(const Module& module);

}  // namespace treadle::ir
