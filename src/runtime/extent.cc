// SPDX-License-Identifier: Apache-2.0
#include "runtime/extent.h"

#include <algorithm>

#include "base/error.h"

namespace treadle {
namespace {

// Values that wait for their operator: per level of nesting at most a sum, a product and an operand.
constexpr size_t kMaxStack = 192;

int64_t floor_quotient(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

}  // namespace

// Writes the steps of an extent in the order in which the grammar meets them; the values are on the stack.
class ExtentBuilder {
 public:
  struct OnStack {};

  explicit ExtentBuilder(std::span<const std::string> symbols) : symbols_(symbols) {}

  OnStack number(int64_t value) { return push(ExtentOp::Number, value); }
  OnStack symbol(std::string_view name) {
    return push(ExtentOp::Symbol, std::find(symbols_.begin(), symbols_.end(), name) - symbols_.begin());
  }
  OnStack binary(ExtentOp op, OnStack, OnStack) {
    extent_.steps_.push_back({op, 0});
    --depth_;
    return {};
  }

  // A symbol's name may hold what no expression does (an ONNX dim_param such as "batch-size"): the longest symbol that
  // the text goes on with. "Height" is not the symbol "H" followed by something.
  size_t symbol_length(std::string_view rest) const {
    size_t longest = 0;
    for (const std::string& symbol : symbols_) {
      if (rest.starts_with(symbol)) longest = std::max(longest, symbol.size());
    }
    const bool inside_name =
        longest > 0 && longest < rest.size() && is_extent_name(rest[longest - 1]) && is_extent_name(rest[longest]);
    return inside_name ? 0 : longest;
  }

  Extent finish() { return std::move(extent_); }

 private:
  OnStack push(ExtentOp op, int64_t value) {
    extent_.steps_.push_back({op, value});
    if (++depth_ > kMaxStack) fail(ErrorCode::Limit, "an extent is nested too deep");
    return {};
  }

  std::span<const std::string> symbols_;
  size_t depth_ = 0;  // of the stack after the steps so far
  Extent extent_;
};

Extent Extent::parse(std::string_view text, std::span<const std::string> symbols) {
  ExtentBuilder builder(symbols);
  ExtentGrammar<ExtentBuilder::OnStack, ExtentBuilder>(text, builder).parse();
  return builder.finish();
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
