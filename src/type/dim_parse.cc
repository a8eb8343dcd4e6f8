// SPDX-License-Identifier: Apache-2.0
#include "runtime/extent_grammar.h"
#include "type/dim.h"

namespace treadle {
namespace {

struct DimBuilder {
  Dim number(int64_t value) { return value; }

  // A symbol need not be known: its name is what can be one.
  size_t symbol_length(std::string_view rest) {
    size_t length = 0;
    while (length < rest.size() && is_extent_name(rest[length])) ++length;
    return length;
  }

  Dim symbol(std::string_view name) { return name == "?" ? Dim::any() : Dim::symbol(std::string(name)); }

  Dim binary(ExtentOp op, const Dim& a, const Dim& b) {
    switch (op) {
      case ExtentOp::Add:
        return a + b;
      case ExtentOp::Sub:
        return a - b;
      case ExtentOp::Mul:
        return a * b;
      case ExtentOp::FloorDiv:
        return floordiv(a, b);
      case ExtentOp::Mod:
        return mod(a, b);
      case ExtentOp::Min:
        return min(a, b);
      default:
        return max(a, b);
    }
  }
};

}  // namespace

Dim parse_dim(std::string_view text) {
  DimBuilder builder;
  return ExtentGrammar<Dim, DimBuilder>(text, builder).parse();
}

}  // namespace treadle
