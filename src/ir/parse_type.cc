// SPDX-License-Identifier: Apache-2.0
// Types in Relay's text format.
#include <algorithm>

#include "ir/parser.h"

namespace treadle::ir {

Type Parser::type() {
  const Nest nest(*this);
  const Token& token = peek();
  if (accept("(")) {
    std::vector<Type> fields;
    while (!accept(")")) {
      fields.push_back(type());
      if (!peek().is(")")) expect(",");
    }
    return tuple_type(std::move(fields));
  }
  const Token& word = expect_kind(TokenKind::Identifier, "a type");
  if (word.text == "_") return nullptr;
  if (word.text == "fn") return function_type();
  if (word.text == "Tensor") {
    expect("[");
    expect("(");
    Shape shape;
    while (!accept(")")) {
      shape.push_back(dim());
      if (!peek().is(")")) expect(",");
    }
    expect(",");
    const Token& name = expect_kind(TokenKind::Identifier, "a dtype");
    const std::optional<DType> dtype = parse_dtype(name.text);
    if (!dtype) error("a dtype is expected", name);
    expect("]");
    return tensor_type(std::move(shape), *dtype);
  }
  if (const std::optional<DType> dtype = parse_dtype(word.text)) return tensor_type({}, *dtype);
  if (std::find(type_params_.begin(), type_params_.end(), word.text) != type_params_.end()) {
    return std::make_shared<TypeVar>(std::string(word.text));
  }
  if (peek().is("[")) unsupported("algebraic data types and references", token);
  error("a type is expected", token);
}

// Behind `fn`.
Type Parser::function_type() {
  const size_t outer = type_params_.size();
  std::vector<std::string> names = type_params();
  expect("(");
  std::vector<Type> params;
  while (!accept(")")) {
    params.push_back(type());
    if (!peek().is(")")) expect(",");
  }
  expect("->");
  Type result = type();
  type_params_.resize(outer);
  return func_type(std::move(params), std::move(result), std::move(names));
}

// `[A, B]` or nothing; the names are in scope from here on.
std::vector<std::string> Parser::type_params() {
  std::vector<std::string> names;
  if (!accept("[")) return names;
  while (!accept("]")) {
    names.emplace_back(expect_kind(TokenKind::Identifier, "the name of a type parameter").text);
    if (!peek().is("]")) expect(",");
  }
  type_params_.insert(type_params_.end(), names.begin(), names.end());
  return names;
}

// An extent: everything up to the comma or bracket that ends it. `?` is one that nothing is known of; `?3` is the same
// wherever it occurs in the text.
Dim Parser::dim() {
  const Token& start = peek();
  int depth = 0;
  size_t end = start.offset;
  while (peek().kind != TokenKind::End) {
    if (depth == 0 && (peek().is(",") || peek().is(")"))) break;
    depth += peek().is("(");
    depth -= peek().is(")");
    end = next().end;
  }
  const std::string_view text = source_.text().substr(start.offset, end - start.offset);
  if (text.empty()) error("an extent is expected", start);
  const Token& token = start;
  return located(token, [&] {
    Dim result;
    try {
      result = parse_dim(text);
    } catch (const Error& problem) {
      throw source_.error(problem.code(), problem.message(), token.offset);
    }
    // Names of the text, as opposed to those that parse_dim made for a plain '?'.
    std::map<std::string, Dim> renamed;
    for (size_t i = text.find('?'); i != std::string_view::npos; i = text.find('?', i + 1)) {
      size_t stop = i + 1;
      while (stop < text.size() && (std::isalnum(static_cast<unsigned char>(text[stop])) || text[stop] == '_')) ++stop;
      if (stop == i + 1) continue;
      const std::string name(text.substr(i, stop - i));
      renamed[name] = anonymous_.try_emplace(name, Dim::any()).first->second;
    }
    return renamed.empty() ? result : result.substitute(renamed);
  });
}

}  // namespace treadle::ir
