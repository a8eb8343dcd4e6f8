// SPDX-License-Identifier: Apache-2.0
#include "runtime/extent.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace treadle {
namespace {

constexpr int kMaxNesting = 64;
constexpr size_t kMaxStack =
    3 * kMaxNesting;  // per level of nesting at most: a sum, a product and an operand are pending

int64_t floor_quotient(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

}  // namespace

class ExtentParser {
 public:
  ExtentParser(std::string_view text, std::span<const std::string> symbols) : text_(text), symbols_(symbols) {}

  Extent parse() {
    sum(0);
    skip_space();
    if (position_ != text_.size()) error("unexpected text");
    return std::move(extent_);
  }

 private:
  using Op = Extent::Op;

  [[noreturn]] void error(const char* what) {
    fail(ErrorCode::Parse, "{} at column {} of the extent \"{}\"", what, position_ + 1, text_);
  }

  void emit(Op op, int64_t value = 0) {
    extent_.steps_.push_back({op, value});
    if (op == Op::Number || op == Op::Symbol)
      ++depth_;
    else
      --depth_;
    if (depth_ > kMaxStack) fail(ErrorCode::Limit, "an extent is nested deeper than {}", kMaxNesting);
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

  void sum(int nesting) {
    if (nesting > kMaxNesting) fail(ErrorCode::Limit, "an extent is nested deeper than {}", kMaxNesting);
    product(nesting);
    for (;;) {
      if (accept('+'))
        product(nesting), emit(Op::Add);
      else if (accept('-'))
        product(nesting), emit(Op::Sub);
      else
        return;
    }
  }

  void product(int nesting) {
    factor(nesting);
    for (;;) {
      if (accept('*'))
        factor(nesting), emit(Op::Mul);
      else if (accept('/'))
        factor(nesting), emit(Op::FloorDiv);
      else if (accept('%'))
        factor(nesting), emit(Op::Mod);
      else
        return;
    }
  }

  void factor(int nesting) {
    if (nesting > kMaxNesting) fail(ErrorCode::Limit, "an extent is nested deeper than {}", kMaxNesting);
    if (accept('-')) {
      emit(Op::Number, -1);
      factor(nesting + 1);
      emit(Op::Mul);
      return;
    }
    if (accept('(')) {
      sum(nesting + 1);
      expect(')');
      return;
    }
    skip_space();
    if (position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_])))
      number();
    else
      name(nesting);
  }

  void number() {
    int64_t value = 0;
    for (; position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_])); ++position_) {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[position_] - '0', &value)) {
        fail(ErrorCode::Limit, "the extent \"{}\" leaves the range of 64-bit integers", text_);
      }
    }
    emit(Op::Number, value);
  }

  // A symbol's name may hold what no expression does (an ONNX dim_param such as "batch-size"): the longest symbol that
  // the text goes on with is taken first.
  bool known_symbol() {
    const std::string* longest = nullptr;
    const std::string_view rest = text_.substr(position_);
    for (const std::string& symbol : symbols_) {
      if (!symbol.empty() && rest.starts_with(symbol) && (!longest || symbol.size() > longest->size()))
        longest = &symbol;
    }
    if (!longest) return false;
    // "Height" is not the symbol "H" followed by something.
    if (longest->size() < rest.size() && is_name(longest->back()) && is_name(rest[longest->size()])) return false;
    position_ += longest->size();
    emit(Op::Symbol, longest - symbols_.data());
    return true;
  }

  static bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '?' || c == '.';
  }

  void name(int nesting) {
    const size_t start = position_;
    size_t end = start;
    while (end < text_.size() && is_name(text_[end])) ++end;
    const std::string_view name = text_.substr(start, end - start);
    const bool call = !name.empty() && end < text_.size() && text_[end] == '(';
    if (!call && known_symbol()) return;
    position_ = end;
    if (name.empty()) error("a number or a name is missing");
    if (!accept('(')) error("unknown symbol");
    sum(nesting + 1);
    expect(',');
    sum(nesting + 1);
    expect(')');
    if (name == "floordiv")
      emit(Op::FloorDiv);
    else if (name == "mod")
      emit(Op::Mod);
    else if (name == "min")
      emit(Op::Min);
    else if (name == "max")
      emit(Op::Max);
    else
      error("unknown function");
  }

  std::string_view text_;
  std::span<const std::string> symbols_;
  size_t position_ = 0;
  size_t depth_ = 0;  // of the stack after the steps so far
  Extent extent_;
};

Extent Extent::parse(std::string_view text, std::span<const std::string> symbols) {
  return ExtentParser(text, symbols).parse();
}

int64_t Extent::evaluate(std::span<const int64_t> values) const {
  if (steps_.empty()) return 0;
  int64_t stack[kMaxStack];
  size_t top = 0;  // first free place
  for (const Step& step : steps_) {
    if (step.op == Op::Number || step.op == Op::Symbol) {
      stack[top++] = step.op == Op::Number ? step.value : values[step.value];
      continue;
    }
    const int64_t b = stack[--top];
    int64_t& a = stack[top - 1];
    bool overflow = false;
    switch (step.op) {
      case Op::Add:
        overflow = __builtin_add_overflow(a, b, &a);
        break;
      case Op::Sub:
        overflow = __builtin_sub_overflow(a, b, &a);
        break;
      case Op::Mul:
        overflow = __builtin_mul_overflow(a, b, &a);
        break;
      case Op::Min:
        a = std::min(a, b);
        break;
      case Op::Max:
        a = std::max(a, b);
        break;
      default:  // FloorDiv, Mod
        if (b == 0) fail(ErrorCode::InvalidArgument, "an extent divides by zero");
        if (step.op == Op::Mod)
          a = b == -1 ? 0 : a - b * floor_quotient(a, b);
        else if (b == -1)
          overflow = __builtin_sub_overflow(0, a, &a);  // INT64_MIN / -1 is no int64
        else
          a = floor_quotient(a, b);
    }
    if (overflow) fail(ErrorCode::Limit, "an extent leaves the range of 64-bit integers");
  }
  return stack[0];
}

std::optional<int64_t> Extent::constant() const {
  if (!symbols().empty()) return std::nullopt;
  return evaluate({});
}

std::optional<size_t> Extent::symbol() const {
  if (steps_.size() != 1 || steps_[0].op != Op::Symbol) return std::nullopt;
  return static_cast<size_t>(steps_[0].value);
}

std::vector<size_t> Extent::symbols() const {
  std::vector<size_t> places;
  for (const Step& step : steps_) {
    if (step.op != Op::Symbol) continue;
    if (std::find(places.begin(), places.end(), step.value) == places.end()) places.push_back(step.value);
  }
  return places;
}

}  // namespace treadle
