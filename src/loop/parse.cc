// SPDX-License-Identifier: Apache-2.0
// Reads the text that print.cc writes. Nodes are made as written, without folding; the builders only check them, and
// what they reject is an error of the text.
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "loop/lexer.h"
#include "loop/scalar.h"
#include "loop/stmt.h"
#include "loop/text.h"

namespace treadle::loop {
namespace {

constexpr int kMaxDepth = 1000;   // nested expressions and statements
constexpr int kMaxHeight = 4000;  // of an expression's tree; passes over it recurse
constexpr int kMaxLanes = 4096;

std::optional<Intrinsic> find_intrinsic(std::string_view name) {
#define TREADLE_INTRINSIC(enumerator, text, arity, meaning) \
  if (name == text) return Intrinsic::enumerator;
#include "loop/intrinsics.def"
#undef TREADLE_INTRINSIC
  return std::nullopt;
}

std::optional<BinaryOp> find_binary(std::string_view symbol) {
  for (int i = 0; i <= static_cast<int>(BinaryOp::Ge); ++i) {
    if (symbol == symbol_of(static_cast<BinaryOp>(i))) return static_cast<BinaryOp>(i);
  }
  return std::nullopt;
}

std::optional<ReduceOp> find_lane_reduction(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(ReduceOp::All); ++i) {
    if (name == name_of(static_cast<ReduceOp>(i)) + std::string("_lanes")) return static_cast<ReduceOp>(i);
  }
  return std::nullopt;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& source)
      : text_(text), source_(source), tokens_(tokenize(text, source)) {}

  bool at_end() const { return peek().kind == TokenKind::End; }

  Function function() {
    vars_.clear();
    buffers_.clear();
    aliases_.clear();
    heights_.clear();
    Function f;
    expect("func");
    f.name = take(TokenKind::Global, "a function name").text;
    expect("(");
    in_header_ = true;
    header_uses_.clear();
    while (peek().text != ")" && peek().text != ";") {
      if (!f.buffers.empty()) expect(",");
      bool output = accept("out");
      if (!output && f.num_outputs > 0) error("an input after an output");
      f.num_outputs += output;
      f.buffers.push_back(buffer());
      if (f.buffers.back()->scope != Scope::Param) error("a parameter has scope local or scratch");
    }
    if (accept(";")) {
      do {
        const Token token = take(TokenKind::Name, "a scalar's name");
        if (!vars_.emplace(token.text, symbol_var(token.text)).second)
          error_at(token, "scalar " + token.text + " is declared twice");
        f.scalars.push_back(vars_[token.text]);
        expect(":");
        expect("int64");
      } while (accept(","));
    }
    expect(")");
    in_header_ = false;
    for (const Token& use : header_uses_) {
      if (!vars_.count(use.text)) error_at(use, "variable " + use.text + " is not declared");
    }
    if (accept("source")) f.source = take(TokenKind::String, "a text").text;
    f.body = braces();
    return f;
  }

 private:
  // ---- Tokens ----

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(next_ + ahead, tokens_.size() - 1)]; }
  bool is(std::string_view text, size_t ahead = 0) const {
    const Token& token = peek(ahead);
    return token.text == text && (token.kind == TokenKind::Symbol || token.kind == TokenKind::Name);
  }
  Token next() {
    Token token = peek();
    if (next_ + 1 < tokens_.size()) ++next_;
    return token;
  }
  bool accept(std::string_view text) {
    if (!is(text)) return false;
    next();
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text))
      error(
          fmt::format("expected '{}', found '{}'", text, peek().kind == TokenKind::End ? "end of text" : peek().text));
  }
  Token take(TokenKind kind, const char* what) {
    if (peek().kind != kind)
      error(fmt::format("expected {}, found '{}'", what, peek().kind == TokenKind::End ? "end of text" : peek().text));
    return next();
  }
  [[noreturn]] void error(const std::string& message) const { error_at(peek(), message); }
  [[noreturn]] void error_at(const Token& token, const std::string& message) const {
    parse_error(text_, source_, token.offset, message);
  }

  // Runs a builder for its checks.
  template <typename F>
  auto checked(const Token& token, F&& f) const {
    try {
      return f();
    } catch (const Error& e) {
      std::string message = e.message();
      if (size_t end = message.find("; check failed"); end != std::string::npos) message.resize(end);
      error_at(token, message);
    }
  }

  struct Depth {
    explicit Depth(Parser& parser) : parser(parser) {
      if (++parser.depth_ > kMaxDepth) parser.error(fmt::format("nested deeper than {}", kMaxDepth));
    }
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };

  DType dtype_name() {
    const Token token = take(TokenKind::Name, "a dtype");
    auto dtype = parse_dtype(token.text);
    if (!dtype) error_at(token, "unknown dtype " + token.text);
    return *dtype;
  }

  DType angle_dtype() {
    expect("<");
    DType dtype = dtype_name();
    expect(">");
    return dtype;
  }

  int small_int(const char* what, int max) {
    const Token token = take(TokenKind::Number, what);
    int value = 0;
    auto [end, status] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    if (status != std::errc() || end != token.text.data() + token.text.size() || value < 1 || value > max) {
      error_at(token, fmt::format("{} is {}, not in 1…{}", what, token.text, max));
    }
    return value;
  }

  // ---- Expressions ----

  std::vector<Expr> list(std::string_view close) {
    std::vector<Expr> exprs;
    while (!is(close)) {
      if (!exprs.empty()) expect(",");
      exprs.push_back(expression());
    }
    expect(close);
    return exprs;
  }

  Expr expression(int level = 0) {
    Depth depth(*this);
    Expr left = primary();
    while (peek().kind == TokenKind::Symbol) {
      const Token token = peek();
      auto op = find_binary(token.text);
      if (!op || precedence(*op) < std::max(level, 1)) break;
      next();
      left = measured(token, raw_binary(token, *op, left, expression(precedence(*op) + 1)));
    }
    return left;
  }

  Expr measured(const Token& token, Expr expr) {
    int height = 0;
    for (const Expr& operand : operands(expr)) {
      if (auto it = heights_.find(operand.get()); it != heights_.end()) height = std::max(height, it->second);
    }
    if (++height > kMaxHeight) error_at(token, fmt::format("an expression is higher than {} operations", kMaxHeight));
    heights_[expr.get()] = height;
    return expr;
  }

  Expr raw_binary(const Token& token, BinaryOp op, const Expr& a, const Expr& b) {
    checked(token, [&] { return binary(op, a, b); });
    if (a.lanes() != b.lanes()) error_at(token, fmt::format("{} of {} and {} lanes", token.text, a.lanes(), b.lanes()));
    return Expr(std::make_shared<Binary>(op, a, b, result_dtype(op, a.dtype())));
  }

  Expr integer(const Token& token, bool negative, DType dtype) {
    uint64_t magnitude = 0;
    const char* last = token.text.data() + token.text.size();
    auto [end, status] = std::from_chars(token.text.data(), last, magnitude);
    if (status != std::errc() || end != last) error_at(token, token.text + " is no 64-bit integer");
    const auto value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
    const bool unsigned64 = dtype == dtype::uint64_;
    bool fits = unsigned64 ? !negative : negative ? value <= 0 : value >= 0;
    if (!fits || wrap(value, dtype) != value)
      error_at(token, fmt::format("{}{} does not fit into {}", negative ? "-" : "", token.text, to_string(dtype)));
    return Expr(std::make_shared<IntImm>(value, dtype));
  }

  Expr typed_constant(DType dtype) {
    expect("(");
    const bool negative = accept("-");
    const Token token = next();
    Expr result;
    if (!dtype.is_float()) {
      if (token.kind != TokenKind::Number || dtype.is_bool()) error_at(token, "no constant of " + to_string(dtype));
      result = integer(token, negative, dtype);
    } else {
      double value = 0;
      const char* last = token.text.data() + token.text.size();
      if (token.text == "inf") {
        value = std::numeric_limits<double>::infinity();
      } else if (token.text == "nan") {
        value = std::numeric_limits<double>::quiet_NaN();
      } else {
        auto [end, status] = std::from_chars(token.text.data(), last, value);
        if (token.kind != TokenKind::Number || status != std::errc() || end != last)
          error_at(token, token.text + " is no number");
      }
      if (negative) value = -value;
      result = Expr(std::make_shared<FloatImm>(round_to(value, dtype), dtype));
    }
    expect(")");
    return result;
  }

  Expr primary() {
    Depth depth(*this);
    const Token token = peek();
    return measured(token, primary_unmeasured(token));
  }

  Expr primary_unmeasured(const Token& token) {
    switch (token.kind) {
      case TokenKind::Number:
        next();
        return integer(token, false, dtype::int64_);
      case TokenKind::Buffer: {
        auto [buffer, indices] = element();
        return checked(token, [&] { return load(buffer, indices); });
      }
      case TokenKind::Alias: {
        next();
        auto it = aliases_.find(token.text);
        if (it == aliases_.end()) error_at(token, "$" + token.text + " is not defined");
        return it->second;
      }
      case TokenKind::Name:
        return is("(", 1) || is("<", 1) ? call_or_variable() : variable();
      default:
        break;
    }
    if (accept("(")) {
      Expr inner = expression();
      expect(")");
      return inner;
    }
    if (accept("-")) return integer(take(TokenKind::Number, "a number"), true, dtype::int64_);
    if (accept("!")) {
      Expr a = primary();
      checked(token, [&] { return !a; });
      return Expr(std::make_shared<Not>(a));
    }
    error(fmt::format("expected an expression, found '{}'", token.kind == TokenKind::End ? "end of text" : token.text));
  }

  Expr variable() {
    const Token token = next();
    if (token.text == "true" || token.text == "false")
      return Expr(std::make_shared<IntImm>(token.text == "true", dtype::bool_));
    if (in_header_) {
      header_uses_.push_back(token);
      return symbol_var(token.text);
    }
    auto it = vars_.find(token.text);
    if (it == vars_.end()) error_at(token, "variable " + token.text + " is not declared");
    return it->second;
  }

  Expr call_or_variable() {
    const Token token = peek();
    const std::string& name = token.text;
    if (name == "cast" || name == "reinterpret" || name == "extern") {
      next();
      return typed_call(token, angle_dtype());
    }
    if (!is("(", 1)) return variable();
    next();
    if (auto dtype = parse_dtype(name)) return typed_constant(*dtype);
    expect("(");
    if (name == "address") {
      auto [buffer, indices] = element();
      expect(")");
      return checked(token, [&] { return address(buffer, indices); });
    }
    if (name == "ramp" || name == "broadcast") return vector(token);
    std::vector<Expr> args = list(")");
    auto need = [&](size_t count) {
      if (args.size() != count) error_at(token, fmt::format("{} of {} arguments, not {}", name, args.size(), count));
    };
    if (name == "select") {
      need(3);
      checked(token, [&] { return select(args[0], args[1], args[2]); });
      if (args[1].lanes() != args[2].lanes()) error_at(token, "sides of a select of different lanes");
      return Expr(std::make_shared<Select>(args[0], args[1], args[2]));
    }
    if (auto op = find_binary(name)) {
      need(2);
      return raw_binary(token, *op, args[0], args[1]);
    }
    if (auto op = find_lane_reduction(name)) {
      need(1);
      checked(token, [&] { return vector_reduce(*op, args[0]); });
      return Expr(std::make_shared<VectorReduce>(*op, args[0]));
    }
    if (auto function = find_intrinsic(name)) {
      need(static_cast<size_t>(arity(*function)));
      checked(token, [&] { return intrinsic(*function, args); });
      return Expr(std::make_shared<IntrinsicCall>(*function, args, result_dtype(*function, args[0].dtype())));
    }
    error_at(token, "unknown function " + name);
  }

  Expr typed_call(const Token& token, DType dtype) {
    expect("(");
    if (token.text == "extern") {
      const std::string name = take(TokenKind::String, "a name").text;
      std::vector<Expr> args;
      while (accept(",")) args.push_back(expression());
      expect(")");
      return extern_call(name, std::move(args), dtype);
    }
    Expr a = expression();
    expect(")");
    if (token.text == "cast") {
      checked(token, [&] { return cast(a, dtype); });
      return Expr(std::make_shared<Cast>(a, dtype));
    }
    checked(token, [&] { return reinterpret(a, dtype); });
    return Expr(std::make_shared<Reinterpret>(a, dtype));
  }

  Expr vector(const Token& token) {
    Expr base = expression();
    expect(",");
    Expr stride;
    if (token.text == "ramp") {
      stride = expression();
      expect(",");
    }
    const int lanes = small_int("the number of lanes", kMaxLanes);
    expect(")");
    checked(token, [&] { return stride.defined() ? ramp(base, stride, lanes) : broadcast(base, lanes); });
    if (stride.defined()) return Expr(std::make_shared<Ramp>(base, stride, lanes));
    return Expr(std::make_shared<Broadcast>(base, lanes));
  }

  std::pair<Buffer, std::vector<Expr>> element() {
    const Token token = take(TokenKind::Buffer, "a buffer");
    auto it = buffers_.find(token.text);
    if (it == buffers_.end()) error_at(token, "buffer %" + token.text + " is not declared");
    expect("[");
    return {it->second, list("]")};
  }

  // ---- Statements ----

  // `%a: float32[N, 16] strides [S, 1] scratch align 32`
  Buffer buffer() {
    auto node = std::make_shared<BufferNode>();
    const Token token = take(TokenKind::Buffer, "a buffer");
    node->name = token.text;
    expect(":");
    node->dtype = dtype_name();
    expect("[");
    node->shape = list("]");
    if (accept("strides")) {
      expect("[");
      node->strides = list("]");
      if (node->strides.size() != node->shape.size()) error_at(token, "strides of another rank than the shape");
    }
    if (accept("local"))
      node->scope = Scope::Local;
    else if (accept("scratch"))
      node->scope = Scope::Scratch;
    if (accept("align")) node->alignment = small_int("the alignment", 4096);
    checked(token, [&] { return make_buffer(node->name, node->dtype, node->shape); });
    checked(token, [&] { return make_buffer(node->name, node->dtype, node->strides); });
    if (!buffers_.emplace(token.text, node).second) error_at(token, "buffer %" + token.text + " is declared twice");
    return node;
  }

  Stmt braces() {
    expect("{");
    Stmt body = rest();
    expect("}");
    return body;
  }

  // Statements up to the closing brace, which stays.
  Stmt rest() {
    Depth depth(*this);
    std::vector<Stmt> stmts;
    while (!is("}")) {
      if (at_end()) error("expected '}', found end of text");
      if (peek().kind == TokenKind::Alias)
        define_alias();
      else
        stmts.push_back(statement());
    }
    return block(std::move(stmts));
  }

  void define_alias() {
    const Token token = next();
    expect("=");
    aliases_[token.text] = expression();
  }

  // Binds the variable while f parses.
  template <typename F>
  Stmt with_var(const std::string& name, const Var& var, F&& f) {
    std::optional<Var> outer;
    if (auto it = vars_.find(name); it != vars_.end()) outer = it->second;
    vars_[name] = var;
    Stmt result = f();
    if (outer)
      vars_[name] = *outer;
    else
      vars_.erase(name);
    return result;
  }

  Expr condition() {
    const Token token = peek();
    expect("(");
    Expr result = expression();
    expect(")");
    if (!result.dtype().is_bool() || result.lanes() != 1)
      error_at(token, "a condition of dtype " + to_string(result.dtype()));
    return result;
  }

  Stmt statement() {
    const Token token = peek();
    if (token.kind == TokenKind::Buffer) {
      auto [buffer, indices] = element();
      expect("=");
      Expr value = expression();
      return checked(token, [&] { return store(buffer, indices, value); });
    }
    if (is("{")) return braces();
    if (accept("for")) return for_statement(token);
    if (accept("while")) {
      Expr test = condition();
      return Stmt(std::make_shared<While>(test, braces()));
    }
    if (accept("if")) {
      Expr test = condition();
      Stmt then_body = braces();
      Stmt else_body = accept("else") ? braces() : Stmt();
      return Stmt(std::make_shared<If>(test, then_body, else_body));
    }
    if (accept("let")) {
      const std::string name = take(TokenKind::Name, "a variable").text;
      expect("=");
      Expr value = expression();
      Var var(std::make_shared<VarNode>(name, value.dtype(), value.lanes()));
      return with_var(name, var, [&] { return let(var, value, rest()); });
    }
    if (accept("alloc")) {
      Buffer local = buffer();
      const std::string name = local->name;
      Stmt body = rest();
      buffers_.erase(name);
      return checked(token, [&] { return allocate(local, body); });
    }
    if (accept("evaluate")) return evaluate(expression());
    error(fmt::format("expected a statement, found '{}'", token.text));
  }

  ThreadAxis thread_axis() {
    const Token token = take(TokenKind::Name, "an axis");
    const auto axis = find_thread_axis(token.text);
    if (!axis)
      error_at(token, fmt::format("unknown axis {}: they are block.x … block.z and thread.x … thread.z", token.text));
    return *axis;
  }

  Stmt for_statement(const Token& token) {
    const std::string name = take(TokenKind::Name, "a variable").text;
    expect("from");
    Expr min = expression();
    expect("count");
    Expr extent = expression();
    ForKind kind = ForKind::Serial;
    if (accept("parallel"))
      kind = ForKind::Parallel;
    else if (accept("vectorized"))
      kind = ForKind::Vectorized;
    else if (accept("unrolled"))
      kind = ForKind::Unrolled;
    else if (accept("bind"))
      kind = bound_to(thread_axis());
    Var var(name);
    return with_var(name, var, [&] {
      Stmt body = braces();
      return checked(token, [&] { return for_loop(var, min, extent, body, kind); });
    });
  }

  std::string_view text_;
  const std::string& source_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  int depth_ = 0;
  bool in_header_ = false;
  std::vector<Token> header_uses_;
  std::map<std::string, Var> vars_;
  std::map<std::string, Buffer> buffers_;
  std::map<std::string, Expr> aliases_;
  std::unordered_map<const ExprNode*, int> heights_;
};

}  // namespace

std::vector<Function> parse_functions(std::string_view text, const std::string& source) {
  Parser parser(text, source);
  std::vector<Function> functions;
  while (!parser.at_end()) functions.push_back(parser.function());
  return functions;
}

Function parse_function(std::string_view text, const std::string& source) {
  std::vector<Function> functions = parse_functions(text, source);
  if (functions.size() != 1) fail(ErrorCode::Parse, "{}: {} functions, not one", source, functions.size());
  return functions[0];
}

}  // namespace treadle::loop
