// SPDX-License-Identifier: Apache-2.0
// The parser of Relay's text format: tokens, scopes, definitions.
#include "ir/parser.h"

#include <algorithm>

#include "ir/infer.h"
#include "ir/text.h"

namespace treadle::ir {

Parser::Parser(std::string_view text, const std::string& source) : source_(text, source), tokens_(tokenize(source_)) {
  if (!tokens_.metadata.empty()) {
    try {
      metadata_ = Metadata(tokens_.metadata);
    } catch (Error& error) {
      error.at(fmt::format("{}:{}: #[metadata]", source_.name(), source_.place(tokens_.metadata_offset).first));
      throw;
    }
  }
}

const Token& Parser::peek(size_t ahead) const {
  return tokens_.tokens[std::min(at_ + ahead, tokens_.tokens.size() - 1)];
}

const Token& Parser::next() {
  const Token& token = peek();
  if (at_ + 1 < tokens_.tokens.size()) ++at_;
  return token;
}

bool Parser::accept(std::string_view punctuation) {
  if (!peek().is(punctuation)) return false;
  next();
  return true;
}

bool Parser::accept_word(std::string_view word) {
  if (!peek().is_word(word)) return false;
  next();
  return true;
}

const Token& Parser::expect(std::string_view punctuation) {
  if (!peek().is(punctuation)) error(fmt::format("'{}' is expected", punctuation), peek());
  return next();
}

const Token& Parser::expect_kind(TokenKind kind, const char* what) {
  if (peek().kind != kind) error(fmt::format("{} is expected", what), peek());
  return next();
}

void Parser::error(std::string message, const Token& token) const {
  constexpr size_t kMostShown = 40;
  std::string found = token.kind == TokenKind::End
                          ? "the end of the text"
                          : quote(source_.text().substr(token.offset, std::min(kMostShown, token.end - token.offset)));
  throw source_.error(ErrorCode::Parse, fmt::format("{}, but found {}", message, found), token.offset);
}

void Parser::unsupported(const char* what, const Token& token) const {
  throw source_.error(ErrorCode::ImportUnsupported, fmt::format("{} are not supported", what), token.offset);
}

Span Parser::span(const Token& token) const {
  auto info = std::make_shared<SpanInfo>();
  info->source = source_.name();
  std::tie(info->line, info->column) = source_.place(token.offset);
  return info;
}

void Parser::push_scope() { scopes_.emplace_back(); }
void Parser::pop_scope() { scopes_.pop_back(); }
void Parser::bind(const std::string& name, Expr var) { scopes_.back()[name] = std::move(var); }

Expr Parser::lookup(const Token& token) const {
  const std::string name = "%" + std::string(token.text);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->find(name); found != scope->end()) return found->second;
  }
  throw source_.error(ErrorCode::Parse, fmt::format("{} is not defined here", name), token.offset);
}

// `#[version = "0.0.5"]`, which TVM requires of modules; here it may be missing.
void Parser::version() {
  if (!accept("#[")) return;
  const Token& word = expect_kind(TokenKind::Identifier, "version");
  if (word.text != "version") error("'version' is expected", word);
  expect("=");
  const Token& value = expect_kind(TokenKind::String, "a version in quotes");
  if (value.text != "0.0.5" && value.text != "0.0.4") {
    throw source_.error(ErrorCode::ImportUnsupported, fmt::format("the text has version {}; 0.0.5 is read", value.text),
                        value.offset);
  }
  expect("]");
}

void Parser::definition(Module& module) {
  const Token& start = peek();
  if (start.is_word("type") || start.is_word("extern")) unsupported("algebraic data types", start);
  if (!accept_word("def")) error("a definition (def @name) is expected", start);
  const Token& name = expect_kind(TokenKind::Global, "the name of a function, @name");
  const auto [place, added] = module.functions.emplace(std::string(name.text), Expr());
  if (!added) throw source_.error(ErrorCode::Parse, fmt::format("@{} is defined twice", name.text), name.offset);
  place->second = function_rest(name);
}

Module Parser::module() {
  Module result;
  result.source = source_.name();
  version();
  while (peek().kind != TokenKind::End) {
    if (peek().is_word("def") || peek().is_word("type") || peek().is_word("extern")) {
      definition(result);
    } else if (result.functions.empty()) {
      // An expression alone is the body of main; its parameters are declared with free_var.
      const Token& start = peek();
      push_scope();
      const Expr body = sequence("");
      std::vector<Expr> params;
      for (const Expr& param : free_order_) params.push_back(param);
      result.functions["main"] = function(std::move(params), body, nullptr, {}, {}, span(start));
      pop_scope();
    } else {
      error("a definition (def @name) is expected", peek());
    }
  }
  if (result.functions.empty()) error("a definition (def @name) is expected", peek());
  for (const auto& [name, token] : used_globals_) {
    if (!result.functions.count(name)) {
      throw source_.error(ErrorCode::Parse, fmt::format("@{} is not defined", name), token.offset);
    }
  }
  return result;
}

Module parse(std::string_view text, const std::string& source) {
  try {
    return infer_types(Parser(text, source).module());
  } catch (Error& error) {
    SourceText(text, source).show_line(error);
    throw;
  }
}

}  // namespace treadle::ir
