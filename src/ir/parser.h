// SPDX-License-Identifier: Apache-2.0
// Recursive descent over the tokens of Relay's text format. Nesting is bounded; sequences (lets, graph bindings,
// operands of infix operators) are loops, so that long programs need no stack.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"
#include "ir/lexer.h"
#include "ir/metadata.h"

namespace treadle::ir {

class Parser {
 public:
  Parser(std::string_view text, const std::string& source);
  // A whole module, before inference.
  Module module();

 private:
  // parser.cc: tokens, names, module
  const Token& peek(size_t ahead = 0) const;
  const Token& next();
  bool accept(std::string_view punctuation);
  bool accept_word(std::string_view word);
  const Token& expect(std::string_view punctuation);
  const Token& expect_kind(TokenKind kind, const char* what);
  [[noreturn]] void error(std::string message, const Token& token) const;
  [[noreturn]] void unsupported(const char* what, const Token& token) const;
  Span span(const Token& token) const;
  void version();
  void definition(Module& module);
  void push_scope();
  void pop_scope();
  void bind(const std::string& name, Expr var);
  Expr lookup(const Token& token) const;
  // Runs f; an error without place gets the token's.
  template <typename F>
  auto located(const Token& token, F f);

  // parse_type.cc
  Type type();
  Type function_type();
  Dim dim();
  std::vector<std::string> type_params();

  // parse_attrs.cc
  AttrValue attr_value();
  AttrValue attr_list(std::string_view close);
  // `name = value`; false when the value is one that is skipped (VirtualDevice).
  bool named_value(AttrMap& values);
  void skip_balanced();
  std::pair<std::string, size_t> meta_reference();
  std::optional<double> special_float(const Token& token) const;

  // parse_expr.cc
  Expr block();
  Expr sequence(std::string_view close);
  bool statement(std::vector<std::pair<Expr, Expr>>& lets);
  Expr expression();
  Expr binary(int min_precedence);
  Expr postfix();
  Expr atom();
  Expr identifier();
  Expr on_device();
  Expr parenthesised();
  Expr if_expression();
  Expr number(bool negative);
  Expr function_rest(const Token& start);
  Expr loop_expression(const Token& start);
  Expr call_rest(const Expr& callee, const Token& start);
  Expr meta_constant();
  const Op* operator_named(const Token& token) const;

  class Nest;  // counts the depth of recursion

  SourceText source_;
  TokenList tokens_;
  Metadata metadata_;
  size_t at_ = 0;
  int depth_ = 0;
  // One entry per open block: variables and graph bindings (by their text, with its sigil).
  std::vector<std::unordered_map<std::string, Expr>> scopes_;
  std::vector<std::string> type_params_;  // in scope
  std::map<std::string, Expr> globals_;   // one GlobalVar per name
  std::map<std::string, Token> used_globals_;
  std::map<std::string, Dim> anonymous_;  // "?3" of the text
  std::vector<Expr> free_order_;          // variables of free_var
};

// Deeper nesting of expressions, types or lists is refused. Each level takes at most about 2 KiB of stack.
inline constexpr int kMaxNesting = 128;

class Parser::Nest {
 public:
  explicit Nest(Parser& parser) : parser_(parser) {
    if (parser.depth_ >= kMaxNesting) {
      throw parser.source_.error(ErrorCode::Limit, fmt::format("the text is nested deeper than {}", kMaxNesting),
                                 parser.peek().offset);
    }
    ++parser.depth_;
  }
  ~Nest() { --parser_.depth_; }

 private:
  Parser& parser_;
};

template <typename F>
auto Parser::located(const Token& token, F f) {
  try {
    return f();
  } catch (Error& error) {
    if (error.code() != ErrorCode::Parse) {
      const auto [line, column] = source_.place(token.offset);
      const std::string place = fmt::format("{}:{}:{}", source_.name(), line, column);
      const bool known = std::any_of(error.context().begin(), error.context().end(), [&](const std::string& context) {
        return context.starts_with(source_.name() + ":");
      });
      if (!known) error.at(place);
    }
    throw;
  }
}

}  // namespace treadle::ir
