// SPDX-License-Identifier: Apache-2.0
// The grammar of an extent's text, for all who read one:
//
//   sum      product (("+" | "-") product)*
//   product  factor (("*" | "/" | "%") factor)*        "/" and "%" round toward minus infinity
//   factor   "-" factor | "(" sum ")" | number | symbol | function "(" sum "," sum ")"
//   function floordiv, mod, min, max
#pragma once

#include <cctype>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace treadle {

enum class ExtentOp : uint8_t { Number, Symbol, Add, Sub, Mul, FloorDiv, Mod, Min, Max };

inline bool is_extent_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '?' || c == '.';
}

// Reads a text and calls the builder, operands before their operator, from left to right:
//   Value number(int64_t)     Value binary(ExtentOp, Value, Value)     Value symbol(std::string_view name)
//   size_t symbol_length(std::string_view rest)   how much of the text is a symbol; 0: none, an error
template <typename Value, typename Builder>
class ExtentGrammar {
 public:
  static constexpr int kMaxNesting = 64;

  ExtentGrammar(std::string_view text, Builder& builder) : text_(text), builder_(builder) {}

  // Errors: Parse; Limit for nesting deeper than kMaxNesting or a number beyond int64; the builder's.
  Value parse() {
    Value value = sum(0);
    skip_space();
    if (position_ != text_.size()) error("unexpected text");
    return value;
  }

 private:
  [[noreturn]] void error(const char* what) {
    fail(ErrorCode::Parse, "{} at column {} of the extent \"{}\"", what, position_ + 1, text_);
  }

  void skip_space() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) ++position_;
  }

  bool digit() const { return position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_])); }

  bool accept(char c) {
    skip_space();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) error("an operand or a bracket is missing");
  }

  void check(int nesting) {
    if (nesting > kMaxNesting) fail(ErrorCode::Limit, "an extent is nested deeper than {}", kMaxNesting);
  }

  Value sum(int nesting) {
    check(nesting);
    Value left = product(nesting);
    for (;;) {
      if (accept('+'))
        left = builder_.binary(ExtentOp::Add, left, product(nesting));
      else if (accept('-'))
        left = builder_.binary(ExtentOp::Sub, left, product(nesting));
      else
        return left;
    }
  }

  Value product(int nesting) {
    Value left = factor(nesting);
    for (;;) {
      if (accept('*'))
        left = builder_.binary(ExtentOp::Mul, left, factor(nesting));
      else if (accept('/'))
        left = builder_.binary(ExtentOp::FloorDiv, left, factor(nesting));
      else if (accept('%'))
        left = builder_.binary(ExtentOp::Mod, left, factor(nesting));
      else
        return left;
    }
  }

  Value factor(int nesting) {
    check(nesting);
    if (accept('-')) {
      const Value minus_one = builder_.number(-1);
      return builder_.binary(ExtentOp::Mul, minus_one, factor(nesting + 1));
    }
    if (accept('(')) {
      Value inner = sum(nesting + 1);
      expect(')');
      return inner;
    }
    skip_space();
    return digit() ? number() : name(nesting);
  }

  Value number() {
    int64_t value = 0;
    for (; digit(); ++position_) {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[position_] - '0', &value))
        fail(ErrorCode::Limit, "the extent \"{}\" leaves the range of 64-bit integers", text_);
    }
    return builder_.number(value);
  }

  Value name(int nesting) {
    const std::string_view rest = text_.substr(position_);
    size_t length = 0;
    while (length < rest.size() && is_extent_name(rest[length])) ++length;
    if (length > 0 && length < rest.size() && rest[length] == '(') return function(rest.substr(0, length), nesting);
    const size_t symbol = builder_.symbol_length(rest);
    if (symbol == 0) {
      position_ += length;
      error(length == 0 ? "a number or a name is missing" : "unknown symbol");
    }
    position_ += symbol;
    return builder_.symbol(rest.substr(0, symbol));
  }

  Value function(std::string_view name, int nesting) {
    const std::optional<ExtentOp> op = name == "floordiv" ? std::optional(ExtentOp::FloorDiv)
                                       : name == "mod"    ? std::optional(ExtentOp::Mod)
                                       : name == "min"    ? std::optional(ExtentOp::Min)
                                       : name == "max"    ? std::optional(ExtentOp::Max)
                                                          : std::nullopt;
    if (!op) error("unknown function");
    position_ += name.size() + 1;
    const Value a = sum(nesting + 1);
    expect(',');
    const Value b = sum(nesting + 1);
    expect(')');
    return builder_.binary(*op, a, b);
  }

  std::string_view text_;
  Builder& builder_;
  size_t position_ = 0;
};

}  // namespace treadle
