// SPDX-License-Identifier: Apache-2.0
// Expressions of Relay's text format.
#include <charconv>
#include <cmath>

#include "ir/op.h"
#include "ir/parser.h"

namespace treadle::ir {
namespace {

struct Infix {
  std::string_view text;
  int precedence;
  const char* op;
};

constexpr Infix kInfix[] = {{"*", 12, "multiply"}, {"/", 12, "divide"},        {"+", 10, "add"},
                            {"-", 10, "subtract"}, {"<", 8, "less"},           {"<=", 8, "less_equal"},
                            {">", 8, "greater"},   {">=", 8, "greater_equal"}, {"==", 7, "equal"},
                            {"!=", 7, "not_equal"}};

const Infix* infix(const Token& token) {
  if (token.kind != TokenKind::Punctuation) return nullptr;
  for (const Infix& candidate : kInfix) {
    if (candidate.text == token.text) return &candidate;
  }
  return nullptr;
}

// The dtype that the suffix of a number names; nullopt for an unknown one.
std::optional<DType> suffix_dtype(std::string_view suffix, bool is_float) {
  if (suffix.empty()) return is_float ? std::nullopt : std::optional(dtype::int32_);
  if (suffix == "f") return dtype::float32_;
  if (suffix == "bf16") return dtype::bfloat16_;
  const std::string prefix = suffix[0] == 'f' ? "float" : suffix[0] == 'i' ? "int" : suffix[0] == 'u' ? "uint" : "?";
  return parse_dtype(prefix + std::string(suffix.substr(1)));
}

template <typename T>
Tensor scalar_of(DType dtype, T value) {
  Tensor tensor(dtype, {});
  visit(dtype, [&]<typename E>() {
    if constexpr (std::is_same_v<E, Float16> || std::is_same_v<E, BFloat16>)
      *static_cast<E*>(tensor.data()) = E(static_cast<float>(value));
    else
      *static_cast<E*>(tensor.data()) = static_cast<E>(value);
  });
  return tensor;
}

}  // namespace

Expr Parser::block() {
  expect("{");
  push_scope();
  Expr result = sequence("}");
  pop_scope();
  expect("}");
  return result;
}

// Statements and the value, up to `close` (not consumed); "": up to the end of the text or the next definition.
Expr Parser::sequence(std::string_view close) {
  const Nest nest(*this);
  std::vector<std::pair<Expr, Expr>> lets;
  while (statement(lets)) {
  }
  Expr result = expression();
  while (accept(";")) {  // a value that is discarded: let %_ = value
    if (close.empty() ? peek().kind == TokenKind::End : peek().is(close)) break;
    lets.emplace_back(var("_"), result);
    while (statement(lets)) {
    }
    result = expression();
  }
  for (auto let_pair = lets.rbegin(); let_pair != lets.rend(); ++let_pair) {
    result = let(let_pair->first, let_pair->second, result, let_pair->first->span);
  }
  return result;
}

// One of `let %x: T = e;`, `%0 = e;`, `free_var %x: T;`; false when the next is none of them.
bool Parser::statement(std::vector<std::pair<Expr, Expr>>& lets) {
  const Token& start = peek();
  if (accept_word("free_var")) {
    const Token& name = expect_kind(TokenKind::Local, "a variable");
    expect(":");
    Expr variable = var(std::string(name.text), type(), span(name));
    expect(";");
    free_order_.push_back(variable);
    bind("%" + std::string(name.text), std::move(variable));
    return true;
  }
  if (start.kind == TokenKind::Graph && peek(1).is("=")) {
    next();
    next();
    Expr value = expression();
    expect(";");
    bind("%" + std::string(start.text), std::move(value));
    return true;
  }
  if (!accept_word("let")) return false;
  const Token& name = next();
  if (name.kind != TokenKind::Local && name.kind != TokenKind::Graph) error("a variable is expected", name);
  if (peek().is("{")) skip_balanced();
  Type declared = accept(":") ? type() : nullptr;
  expect("=");
  const std::string key = "%" + std::string(name.text);
  Expr variable, value;
  if (declared || peek().is_word("fn")) {
    variable = var(std::string(name.text), std::move(declared), span(name));
    const Expr recursive = variable;
    if (peek().is_word("fn")) {  // a function may call itself
      bind(key, recursive);
    }
    value = expression();
  } else {
    value = expression();
    // The type of the value, so that what follows is inferred as it is read.
    const Type& known = value.type();
    variable =
        var(std::string(name.text), is_complete(known) && known->kind != TypeKind::Func ? known : nullptr, span(name));
  }
  expect(";");
  bind(key, variable);
  lets.emplace_back(std::move(variable), std::move(value));
  return true;
}

Expr Parser::expression() {
  const Nest nest(*this);
  if (peek().is_word("let") || peek().is_word("free_var") || (peek().kind == TokenKind::Graph && peek(1).is("="))) {
    push_scope();
    Expr result = sequence(")");
    pop_scope();
    return result;
  }
  return binary(0);
}

Expr Parser::binary(int min_precedence) {
  const Nest nest(*this);
  Expr left = postfix();
  for (;;) {
    const Token& token = peek();
    const Infix* found = infix(token);
    if (!found || found->precedence < min_precedence) return left;
    next();
    Expr right = binary(found->precedence + 1);
    left = located(token, [&] {
      const Op* op = OpRegistry::instance().find(found->op);
      if (!op)
        throw source_.error(ErrorCode::Parse, fmt::format("no operator is called \"{}\"", found->op), token.offset);
      return call(op, {left, right}, nullptr, span(token));
    });
  }
}

Expr Parser::postfix() {
  const Token& start = peek();
  Expr result = atom();
  for (;;) {
    if (peek().is("(")) {
      result = call_rest(result, start);
    } else if (peek().is(".")) {
      next();
      const Token& index = expect_kind(TokenKind::Int, "the index of a field");
      int value = 0;
      const auto [end, problem] = std::from_chars(index.text.data(), index.text.data() + index.text.size(), value);
      if (problem != std::errc() || end != index.text.data() + index.text.size())
        error("the index of a field is expected", index);
      result = located(index, [&] { return tuple_get(result, value, span(start)); });
    } else {
      return result;
    }
  }
}

Expr Parser::atom() {
  const Nest nest(*this);
  const Token& token = peek();
  switch (token.kind) {
    case TokenKind::Local:
    case TokenKind::Graph:
      next();
      return lookup(token);
    case TokenKind::Global: {
      next();
      const std::string name(token.text);
      used_globals_.try_emplace(name, token);
      return globals_.try_emplace(name, global_var(name, nullptr, span(token))).first->second;
    }
    case TokenKind::Int:
    case TokenKind::Float:
      return number(false);
    case TokenKind::Identifier:
      return identifier();
    case TokenKind::Punctuation:
      break;
    case TokenKind::String:
    case TokenKind::End:
      error("an expression is expected", token);
  }
  if (token.is("(")) return parenthesised();
  if (token.is("{")) return block();
  if (token.is("-")) {
    next();
    if (peek().kind == TokenKind::Int || peek().kind == TokenKind::Float || special_float(peek())) return number(true);
  }
  error("an expression is expected", token);
}

Expr Parser::identifier() {
  const Token& token = peek();
  if (token.is_word("if")) return if_expression();
  if (token.is_word("fn")) return function_rest(next());
  if (token.is_word("loop") && peek(1).is("(")) return loop_expression(next());
  if (token.is_word("meta") && peek(1).is("[")) return meta_constant();
  if (token.is_word("match")) unsupported("algebraic data types (match)", token);
  if (token.is_word("ref") || token.is_word("ref_read") || token.is_word("ref_write")) unsupported("references", token);
  if (special_float(token)) return number(false);
  next();
  if (token.is_word("True") || token.is_word("False"))
    return constant(scalar_of(dtype::bool_, token.is_word("True")), span(token));
  if (token.is_word("on_device") && peek().is("(")) return on_device();
  return op_expr(operator_named(token));
}

// on_device(x, virtual_device=…, constrain_result=True) is x: where a value lives is decided anew.
Expr Parser::on_device() {
  expect("(");
  Expr result = expression();
  AttrMap ignored;
  while (accept(",")) named_value(ignored);
  expect(")");
  return result;
}

const Op* Parser::operator_named(const Token& token) const {
  const OpRegistry& registry = OpRegistry::instance();
  if (const Op* op = registry.find(token.text)) return op;
  Error problem =
      source_.error(ErrorCode::Parse, fmt::format("no operator is called \"{}\"", token.text), token.offset);
  std::string names;
  for (const std::string& near : registry.nearest(token.text)) names += (names.empty() ? "" : ", ") + near;
  if (!names.empty()) problem.help("nearest names: " + names);
  throw problem;
}

// (), (a), (a,), (a, b)
Expr Parser::parenthesised() {
  const Token& start = next();
  std::vector<Expr> fields;
  bool comma = false;
  while (!accept(")")) {
    fields.push_back(expression());
    comma = peek().is(",");
    if (!peek().is(")")) expect(",");
  }
  return fields.size() == 1 && !comma ? fields[0] : tuple(std::move(fields), span(start));
}

Expr Parser::if_expression() {
  const Nest nest(*this);
  const Token& start = next();
  expect("(");
  Expr condition = expression();
  expect(")");
  Expr then_branch = block();
  if (!accept_word("else")) error("'else' is expected", peek());
  Expr else_branch = peek().is_word("if") ? if_expression() : block();
  return located(start, [&] { return if_expr(condition, then_branch, else_branch, span(start)); });
}

Expr Parser::number(bool negative) {
  const Token& token = next();
  if (const std::optional<double> value = special_float(token)) {
    const std::optional<DType> dtype = suffix_dtype(token.text.substr(3), true);
    return constant(scalar_of(dtype.value_or(dtype::float32_), negative ? -*value : *value), span(token));
  }
  const bool is_float = token.kind == TokenKind::Float;
  const size_t digits = std::min(token.text.find_first_of(is_float ? "fb" : "iu"), token.text.size());
  const std::string text = (negative ? "-" : "") + std::string(token.text.substr(0, digits));
  const std::string_view suffix = token.text.substr(digits);
  std::optional<DType> dtype = suffix_dtype(suffix, is_float);
  if (!dtype) {
    error(suffix.empty() ? "a dtype behind the number (1f, 1f64) is expected"
                         : "a number with the suffix of a dtype is expected",
          token);
  }
  const char* end = text.data() + text.size();
  if (dtype->is_float()) {
    double value = 0;
    if (std::from_chars(text.data(), end, value).ec != std::errc())
      error("a number within the range of float64 is expected", token);
    // One rounding only: a float32 must not go through a double's rounding twice.
    float single = 0;
    if (*dtype == dtype::float32_ && std::from_chars(text.data(), end, single).ec == std::errc()) {
      return constant(scalar_of(*dtype, single), span(token));
    }
    return constant(scalar_of(*dtype, value), span(token));
  }
  if (dtype->is_uint()) {
    uint64_t value = 0;
    if (std::from_chars(text.data(), end, value).ec != std::errc() || (dtype->bits < 64 && value >> dtype->bits)) {
      error(fmt::format("a value of {} is expected", to_string(*dtype)), token);
    }
    return constant(scalar_of(*dtype, value), span(token));
  }
  int64_t value = 0;
  const bool parsed = std::from_chars(text.data(), end, value).ec == std::errc();
  const auto fits = [&](int bits) { return value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << (bits - 1); };
  if (parsed && suffix.empty() && !fits(32)) dtype = dtype::int64_;
  if (!parsed || (dtype->bits < 64 && !fits(dtype->bits)))
    error(fmt::format("a value of {} is expected", to_string(*dtype)), token);
  return constant(scalar_of(*dtype, value), span(token));
}

// Behind `fn` or `def @name`: [A](%x: T, attr=value) -> R { body }
Expr Parser::function_rest(const Token& start) {
  const Nest nest(*this);
  const size_t outer = type_params_.size();
  std::vector<std::string> names = type_params();
  push_scope();
  expect("(");
  std::vector<Expr> params;
  AttrMap attrs;
  while (!accept(")")) {
    if (peek().kind == TokenKind::Local) {
      const Token& name = next();
      if (peek().is("{")) skip_balanced();  // {virtual_device=…}
      Type declared = accept(":") ? type() : nullptr;
      params.push_back(var(std::string(name.text), std::move(declared), span(name)));
      const std::string key = "%" + std::string(name.text);
      if (scopes_.back().count(key))
        throw source_.error(ErrorCode::Parse, fmt::format("the parameter {} occurs twice", key), name.offset);
      bind(key, params.back());
    } else {
      named_value(attrs);
    }
    if (!peek().is(")")) expect(",");
  }
  Type result = accept("->") ? type() : nullptr;
  Expr body = block();
  pop_scope();
  type_params_.resize(outer);
  return function(std::move(params), std::move(body), std::move(result), std::move(attrs), std::move(names),
                  span(start));
}

// loop(trip=e, cond=fn (…) {…}, body=fn (…) {…}, scanned=N)(initial…); see print.h
Expr Parser::loop_expression(const Token& start) {
  const Nest nest(*this);
  Expr trip_count, condition, body;
  int scanned = 0;
  expect("(");
  while (!accept(")")) {
    const Token& name = expect_kind(TokenKind::Identifier, "trip, cond, body or scanned");
    expect("=");
    if (name.text == "scanned") {
      const Token& count = expect_kind(TokenKind::Int, "a number");
      const auto [end, problem] = std::from_chars(count.text.data(), count.text.data() + count.text.size(), scanned);
      if (problem != std::errc()) error("a number is expected", count);
    } else if (name.text == "trip" || name.text == "cond" || name.text == "body") {
      (name.text == "trip" ? trip_count : name.text == "cond" ? condition : body) = expression();
    } else {
      error("trip, cond, body or scanned is expected", name);
    }
    if (!peek().is(")")) expect(",");
  }
  expect("(");
  std::vector<Expr> initial;
  while (!accept(")")) {
    initial.push_back(expression());
    if (!peek().is(")")) expect(",");
  }
  return located(start, [&] { return loop(trip_count, condition, body, std::move(initial), scanned, span(start)); });
}

// Behind the callee: (args…, name=value…, meta[relay.attrs.…][i])
Expr Parser::call_rest(const Expr& callee, const Token& start) {
  expect("(");
  const auto* op = callee.as<OpExpr>();
  std::vector<Expr> args;
  AttrMap attrs;
  while (!accept(")")) {
    if (peek().kind == TokenKind::Identifier && peek(1).is("=")) {
      const Token& name = peek();
      if (!op) error("an argument is expected: only operators have attributes", name);
      named_value(attrs);
    } else if (peek().is_word("meta") && peek(2).kind == TokenKind::Identifier &&
               peek(2).text.starts_with("relay.attrs.")) {
      const Token& meta = peek();
      const auto [key, index] = meta_reference();
      if (!op) error("an argument is expected: only operators have attributes", meta);
      attrs.merge(located(meta, [&] { return metadata_.attributes(key, index, *op->op->schema); }));
    } else {
      args.push_back(expression());
    }
    if (!peek().is(")")) expect(",");
  }
  return located(start, [&] {
    if (op) return call(op->op, std::move(args), op->op->make_attrs(attrs), span(start));
    return call(callee, std::move(args), span(start));
  });
}

Expr Parser::meta_constant() {
  const Token& token = peek();
  const auto [key, index] = meta_reference();
  if (key != "relay.Constant") unsupported("references to metadata other than relay.Constant here", token);
  const size_t wanted = index;
  return located(token, [&] { return constant(metadata_.constant(wanted), span(token)); });
}

}  // namespace treadle::ir
