// SPDX-License-Identifier: Apache-2.0
// An extent of a manifest: the text of an integer expression over the model's symbols, read into a program that costs
// nothing to evaluate. The compiler writes what Dim prints (type/dim.h), which the runtime ships without.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/extent_grammar.h"

namespace treadle {

class Extent {
 public:
  Extent() = default;  // the number 0
  // Reads "7", "N", "2*H - 1", "floordiv(H + 1, 2)", "min(A, B)"; a symbol stands for values[i] of evaluate, i its
  // place in `symbols`. Errors: Parse, also for an unknown symbol; Limit for nesting deeper than 64 or a number beyond
  // int64.
  static Extent parse(std::string_view text, std::span<const std::string> symbols);

  // The value; division rounds toward minus infinity. Errors: InvalidArgument for a division by zero; Limit beyond
  // int64.
  int64_t evaluate(std::span<const int64_t> values) const;
  // The number when no symbol occurs; the symbol's place when the extent is exactly one symbol.
  std::optional<int64_t> constant() const;
  std::optional<size_t> symbol() const;
  // Places of the symbols that occur, each once.
  std::vector<size_t> symbols() const;

 private:
  friend class ExtentBuilder;
  using Op = ExtentOp;
  struct Step {  // postfix: operators take their operands from the stack
    Op op;
    int64_t value;  // of Number; place of Symbol
  };
  std::vector<Step> steps_;
};

}  // namespace treadle
