// SPDX-License-Identifier: Apache-2.0
// Values of attributes in Relay's text format.
#include <charconv>
#include <cmath>
#include <limits>

#include "ir/parser.h"

namespace treadle::ir {

// inf, inff, inff64, nan, …: what C++ streams write for the values without digits, with the dtype's suffix.
std::optional<double> Parser::special_float(const Token& token) const {
  if (token.kind != TokenKind::Identifier) return std::nullopt;
  std::string_view text = token.text;
  std::optional<double> value;
  if (text.starts_with("inf"))
    value = std::numeric_limits<double>::infinity();
  else if (text.starts_with("nan"))
    value = std::numeric_limits<double>::quiet_NaN();
  else
    return std::nullopt;
  text.remove_prefix(3);
  for (std::string_view suffix : {"", "f", "f16", "f32", "f64", "bf16"}) {
    if (text == suffix) return value;
  }
  return std::nullopt;
}

AttrValue Parser::attr_value() {
  const Nest nest(*this);
  const Token& token = next();
  if (token.is("[")) return attr_list("]");
  if (token.is("(")) return attr_list(")");
  if (token.kind == TokenKind::String) return std::string(token.text);
  const bool negative = token.is("-");
  const Token& value = negative ? next() : token;
  if (value.kind == TokenKind::Int) {
    int64_t number = 0;
    // The sign is read with the digits: the smallest integer has no positive counterpart.
    const std::string text = (negative ? "-" : "") + std::string(value.text);
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc()) error("an integer of 64 bits is expected", value);
    return number;
  }
  if (value.kind == TokenKind::Float) {
    double number = 0;
    const auto [end, problem] = std::from_chars(value.text.data(), value.text.data() + value.text.size(), number);
    if (problem == std::errc::result_out_of_range) error("a number within the range of float64 is expected", value);
    return negative ? -number : number;
  }
  if (const std::optional<double> number = special_float(value)) return negative ? -*number : *number;
  if (value.is_word("True")) return true;
  if (value.is_word("False")) return false;
  if (value.is_word("None") || value.is_word("nullptr")) return AttrValue();
  error("the value of an attribute is expected", value);
}

AttrValue Parser::attr_list(std::string_view close) {
  const Token& start = peek();
  std::vector<AttrValue> items;
  bool comma = false;
  while (!accept(close)) {
    items.push_back(attr_value());
    comma = peek().is(",");
    if (!peek().is(close)) expect(",");
  }
  if (close == ")" && items.size() == 1 && !comma) return items[0];  // parentheses only
  return located(start, [&] { return list_value(items); });
}

// Name(…) with anything inside that is balanced; strings may stand in single quotes.
void Parser::skip_balanced() {
  const Token& start = peek();
  int depth = 0;
  do {
    const Token& token = next();
    if (token.kind == TokenKind::End) error("a closing bracket is expected", start);
    depth += token.is("(") || token.is("{") || token.is("[");
    depth -= token.is(")") || token.is("}") || token.is("]");
  } while (depth > 0);
}

bool Parser::named_value(AttrMap& values) {
  const Token& name = expect_kind(TokenKind::Identifier, "the name of an attribute");
  expect("=");
  if (peek().is_word("VirtualDevice")) {  // where TVM's device planner put a value; planning is done anew
    next();
    skip_balanced();
    return false;
  }
  if (!values.emplace(std::string(name.text), attr_value()).second) error("an attribute is given twice", name);
  return true;
}

// meta[KEY][INDEX]; `meta` is the next token.
std::pair<std::string, size_t> Parser::meta_reference() {
  next();
  expect("[");
  const std::string key(expect_kind(TokenKind::Identifier, "a key of the metadata").text);
  expect("]");
  expect("[");
  const Token& index = expect_kind(TokenKind::Int, "an index");
  size_t value = 0;
  const auto [end, problem] = std::from_chars(index.text.data(), index.text.data() + index.text.size(), value);
  if (problem != std::errc()) error("an index is expected", index);
  expect("]");
  return {key, value};
}

}  // namespace treadle::ir
