// SPDX-License-Identifier: Apache-2.0
// Reads the text of an extent: sums, products, '/' and '%' (floor), the functions floordiv, mod, min, max, and symbols.
#include <cctype>

#include "base/error.h"
#include "type/dim.h"

namespace treadle {
namespace {

constexpr int kMaxNesting = 64;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Dim parse() {
    Dim dim = sum(0);
    skip_space();
    if (position_ != text_.size()) error("unexpected text");
    return dim;
  }

 private:
  [[noreturn]] void error(const char* what) {
    fail(ErrorCode::Parse, "{} at column {} of the extent \"{}\"", what, position_ + 1, text_);
  }

  void skip_space() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) ++position_;
  }

  bool accept(char c) {
    skip_space();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) error("an operand or a bracket is missing");
  }

  Dim sum(int depth) {
    if (depth > kMaxNesting) fail(ErrorCode::Limit, "an extent is nested deeper than {}", kMaxNesting);
    Dim left = term(depth);
    for (;;) {
      if (accept('+'))
        left = left + term(depth);
      else if (accept('-'))
        left = left - term(depth);
      else
        return left;
    }
  }

  Dim term(int depth) {
    Dim left = factor(depth);
    for (;;) {
      if (accept('*'))
        left = left * factor(depth);
      else if (accept('/'))
        left = floordiv(left, factor(depth));
      else if (accept('%'))
        left = mod(left, factor(depth));
      else
        return left;
    }
  }

  Dim factor(int depth) {
    if (depth > kMaxNesting) fail(ErrorCode::Limit, "an extent is nested deeper than {}", kMaxNesting);
    if (accept('-')) return Dim(-1) * factor(depth + 1);
    if (accept('(')) {
      Dim inner = sum(depth + 1);
      expect(')');
      return inner;
    }
    skip_space();
    if (position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_]))) return number();
    return name(depth);
  }

  Dim number() {
    int64_t value = 0;
    for (; position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_])); ++position_) {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[position_] - '0', &value)) {
        fail(ErrorCode::Limit, "the extent \"{}\" leaves the range of 64-bit integers", text_);
      }
    }
    return value;
  }

  Dim name(int depth) {
    const size_t start = position_;
    auto is_name = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '?' || c == '.';
    };
    while (position_ < text_.size() && is_name(text_[position_])) ++position_;
    std::string name(text_.substr(start, position_ - start));
    if (name.empty()) error("a number or a name is missing");
    if (name == "?") return Dim::any();
    if (!accept('(')) return Dim::symbol(name);
    Dim a = sum(depth + 1);
    expect(',');
    Dim b = sum(depth + 1);
    expect(')');
    if (name == "floordiv") return floordiv(a, b);
    if (name == "mod") return mod(a, b);
    if (name == "min") return min(a, b);
    if (name == "max") return max(a, b);
    error("unknown function");
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

Dim parse_dim(std::string_view text) { return Parser(text).parse(); }

}  // namespace treadle
