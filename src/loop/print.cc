// SPDX-License-Identifier: Apache-2.0
// Loop IR as text; parse.cc reads it back. By example:
//
//   func @name(%a: float32[N, 16], out %b: float32[N, 16] strides [S, 1]; N: int64, S: int64) source "conv1" {
//     alloc %t: float32[16] scratch                 (to the end of the enclosing braces, as let)
//     for i from 0 count N parallel {               (parallel, vectorized, unrolled, or nothing)
//       let v = %a[i, 0] + float32(0.5)             (a constant without dtype is int64)
//       if (i < 4 & true) { %t[ramp(0, 1, 8)] = broadcast(v, 8) } else { … }
//       while (%t[0] < v) { … }
//       evaluate extern<int32>("kernel:f", address(%a[0, 0]))
//       $0 = exp(v)                                 (a name for a shared expression in the next statement, where that
//       is large)
//     }
//   }
//
// Infix operators bind as in C; the others are functions: floordiv(a, b), select(c, a, b), cast<int8>(a), sum_lanes(a),
// …
#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "loop/stmt.h"
#include "loop/text.h"

namespace treadle::loop {
namespace {

constexpr size_t kAliasAbove = 400;  // nodes of an expression, written out as a tree
constexpr int kPrimary = 100;

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return fmt::format("{}", value);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result + "\"";
}

class Printer {
 public:
  std::string take() { return std::move(out_); }

  void print(const Function& f) {
    out_ += "func @" + (is_identifier(f.name) ? f.name : quoted(f.name)) + "(";
    for (const Var& scalar : f.scalars) bind(scalar.var());
    for (size_t i = 0; i < f.buffers.size(); ++i) {
      if (i > 0) out_ += ", ";
      if (i + f.num_outputs >= f.buffers.size()) out_ += "out ";
      declare(*f.buffers[i]);
    }
    for (size_t i = 0; i < f.scalars.size(); ++i) {
      out_ += (i == 0 ? "; " : ", ") + name(f.scalars[i].var()) + ": " + to_string(f.scalars[i].dtype());
    }
    out_ += ")";
    if (!f.source.empty()) out_ += " source " + quoted(f.source);
    out_ += " {\n";
    ++indent_;
    if (f.body.defined()) body(f.body);
    --indent_;
    out_ += "}\n";
  }

  // The statements of one pair of braces.
  void body(const Stmt& stmt) { statement(stmt, true); }

  std::string expression(const Expr& expr, int context = 0) {
    if (auto it = aliases_.find(expr.get()); it != aliases_.end()) return "$" + std::to_string(it->second);
    const auto* binary = expr.as<Binary>();
    if (!binary || !is_infix(binary->op)) return primary(expr);
    const int level = precedence(binary->op);
    std::string text =
        expression(binary->a, level) + " " + symbol_of(binary->op) + " " + expression(binary->b, level + 1);
    return level < context ? "(" + text + ")" : text;
  }

  // An expression outside a function; names of shared parts stand on lines before it.
  std::string alone(const Expr& expr) {
    alias_shared({expr});
    return out_ + expression(expr);
  }

 private:
  void line(const std::string& text) { out_ += std::string(2 * static_cast<size_t>(indent_), ' ') + text + "\n"; }

  std::string unique(const std::string& wanted, std::unordered_set<std::string>& used) {
    std::string base;
    for (char c : wanted) base += is_identifier_char(c) ? c : '_';
    if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0]))) base = "_" + base;
    std::string result = base;
    const bool is_var = &used == &used_vars_;
    for (int i = 1; (is_var && is_reserved(result)) || !used.insert(result).second; ++i)
      result = base + "_" + std::to_string(i);
    return result;
  }

  const std::string& bind(const VarNode* var) { return vars_[var] = unique(var->name, used_vars_); }

  // Runs f() with a name for what it binds; afterwards the name is free again.
  template <typename Node, typename F>
  void scoped(std::unordered_map<const Node*, std::string>& names, std::unordered_set<std::string>& used,
              const Node* node, F&& f) {
    const auto outer = names.extract(node);
    const std::string inner = unique(node->name, used);
    names[node] = inner;
    f(inner);
    names.erase(node);
    if (!outer.empty()) names[node] = outer.mapped();
    used.erase(inner);
  }

  const std::string& name(const VarNode* var) {
    auto it = vars_.find(var);
    return it != vars_.end() ? it->second : bind(var);
  }

  const std::string& name(const BufferNode* buffer) {
    auto it = buffers_.find(buffer);
    return it != buffers_.end() ? it->second : buffers_[buffer] = unique(buffer->name, used_buffers_);
  }

  std::string list(const std::vector<Expr>& exprs) {
    std::string text;
    for (const Expr& expr : exprs) text += (text.empty() ? "" : ", ") + expression(expr);
    return text;
  }

  void declare(const BufferNode& buffer) {
    out_ += "%" + name(&buffer) + ": " + to_string(buffer.dtype) + "[" + list(buffer.shape) + "]";
    if (!buffer.strides.empty()) out_ += " strides [" + list(buffer.strides) + "]";
    if (buffer.scope != Scope::Param) out_ += buffer.scope == Scope::Local ? " local" : " scratch";
    if (buffer.alignment != BufferNode().alignment) out_ += " align " + std::to_string(buffer.alignment);
  }

  std::string element(const Buffer& buffer, const std::vector<Expr>& indices) {
    return "%" + name(buffer.get()) + "[" + list(indices) + "]";
  }

  std::string primary(const Expr& expr) {
    auto call = [&](const std::string& function, const std::vector<Expr>& args) {
      return function + "(" + list(args) + ")";
    };
    switch (expr.kind()) {
      case ExprKind::IntImm: {
        const int64_t value = expr.as<IntImm>()->value;
        if (expr.dtype() == dtype::int64_) return std::to_string(value);
        if (expr.dtype().is_bool()) return value ? "true" : "false";
        std::string digits =
            expr.dtype().is_uint() ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
        return to_string(expr.dtype()) + "(" + digits + ")";
      }
      case ExprKind::FloatImm:
        return to_string(expr.dtype()) + "(" + number_text(expr.as<FloatImm>()->value) + ")";
      case ExprKind::Var:
        return name(expr.as<VarNode>());
      case ExprKind::Binary:
        return call(symbol_of(expr.as<Binary>()->op), {expr.as<Binary>()->a, expr.as<Binary>()->b});
      case ExprKind::Not:
        return "!" + expression(expr.as<Not>()->a, kPrimary);
      case ExprKind::Select:
        return call("select", {expr.as<Select>()->condition, expr.as<Select>()->a, expr.as<Select>()->b});
      case ExprKind::Cast:
        return call("cast<" + to_string(expr.dtype()) + ">", {expr.as<Cast>()->a});
      case ExprKind::Reinterpret:
        return call("reinterpret<" + to_string(expr.dtype()) + ">", {expr.as<Reinterpret>()->a});
      case ExprKind::Intrinsic:
        return call(name_of(expr.as<IntrinsicCall>()->function), expr.as<IntrinsicCall>()->args);
      case ExprKind::Load:
        return element(expr.as<Load>()->buffer, expr.as<Load>()->indices);
      case ExprKind::Ramp: {
        const auto* e = expr.as<Ramp>();
        return "ramp(" + expression(e->base) + ", " + expression(e->stride) + ", " + std::to_string(e->lanes) + ")";
      }
      case ExprKind::Broadcast:
        return "broadcast(" + expression(expr.as<Broadcast>()->a) + ", " + std::to_string(expr.lanes()) + ")";
      case ExprKind::VectorReduce:
        return call(name_of(expr.as<VectorReduce>()->op) + std::string("_lanes"), {expr.as<VectorReduce>()->a});
      case ExprKind::Address:
        return "address(" + element(expr.as<Address>()->buffer, expr.as<Address>()->indices) + ")";
      case ExprKind::Extern: {
        const auto* e = expr.as<Extern>();
        return "extern<" + to_string(e->dtype) + ">(" + quoted(e->name) + (e->args.empty() ? "" : ", ") +
               list(e->args) + ")";
      }
    }
    return "";
  }

  // Names for shared parts of expressions that would be long as trees.
  void alias_shared(const std::vector<Expr>& roots) {
    aliases_.clear();
    class Counter : public ExprVisitor {
     public:
      std::unordered_map<const ExprNode*, size_t> size, uses;
      std::vector<Expr> order;  // operands before users

      size_t tree_size(const Expr& expr) {
        visit(expr);
        return size[expr.get()];
      }

     protected:
      void visit_expr(const Expr& expr) override {
        std::vector<Expr> children = operands(expr);
        size_t total = 1;
        for (const Expr& child : children) {
          visit(child);
          ++uses[child.get()];
          total = std::min<size_t>(total + size[child.get()], size_t{1} << 40);
        }
        size[expr.get()] = total;
        order.push_back(expr);
      }
    } counter;
    size_t total = 0;
    for (const Expr& root : roots) {
      total += counter.tree_size(root);
      ++counter.uses[root.get()];
    }
    if (total <= kAliasAbove) return;
    for (const Expr& expr : counter.order) {
      if (counter.uses[expr.get()] < 2 || counter.size[expr.get()] < 3) continue;
      const std::string text = expression(expr);
      line("$" + std::to_string(next_alias_) + " = " + text);
      aliases_[expr.get()] = next_alias_++;
    }
  }

  void braces(const std::string& head, const Stmt& inner, const std::string& tail = "}") {
    line(head + " {");
    ++indent_;
    if (inner.defined()) body(inner);
    --indent_;
    line(tail);
  }

  // `last`: nothing follows in the enclosing braces, so a scope may run to their end.
  void statement(const Stmt& stmt, bool last) {
    switch (stmt.kind()) {
      case StmtKind::Store: {
        const auto* s = stmt.as<Store>();
        std::vector<Expr> roots = s->indices;
        roots.push_back(s->value);
        alias_shared(roots);
        line(element(s->buffer, s->indices) + " = " + expression(s->value));
        break;
      }
      case StmtKind::For: {
        const auto* s = stmt.as<For>();
        constexpr const char* kKinds[] = {"", " parallel", " vectorized", " unrolled"};
        alias_shared({s->min, s->extent});
        std::string range = " from " + expression(s->min) + " count " + expression(s->extent);
        scoped(vars_, used_vars_, s->var.var(), [&](const std::string& var) {
          const auto axis = axis_of(s->for_kind);
          braces("for " + var + range +
                     (axis ? std::string(" bind ") + name_of(*axis) : kKinds[static_cast<int>(s->for_kind)]),
                 s->body);
        });
        break;
      }
      case StmtKind::While: {
        alias_shared({stmt.as<While>()->condition});
        braces("while (" + expression(stmt.as<While>()->condition) + ")", stmt.as<While>()->body);
        break;
      }
      case StmtKind::If: {
        const auto* s = stmt.as<If>();
        alias_shared({s->condition});
        std::string head = "if (" + expression(s->condition) + ")";
        if (!s->else_body.defined()) return braces(head, s->then_body);
        line(head + " {");
        ++indent_;
        body(s->then_body);
        --indent_;
        braces("} else", s->else_body);
        break;
      }
      case StmtKind::Let:
      case StmtKind::Allocate:
        if (!last) return braces_around(stmt);
        scope(stmt);
        break;
      case StmtKind::Block: {
        const auto& stmts = stmt.as<Block>()->stmts;
        for (size_t i = 0; i < stmts.size(); ++i) statement(stmts[i], last && i + 1 == stmts.size());
        break;
      }
      case StmtKind::Evaluate:
        alias_shared({stmt.as<Evaluate>()->value});
        line("evaluate " + expression(stmt.as<Evaluate>()->value));
        break;
    }
    aliases_.clear();
  }

  void braces_around(const Stmt& stmt) {
    line("{");
    ++indent_;
    scope(stmt);
    --indent_;
    line("}");
  }

  // Let and Allocate with what they hold, to the end of the braces.
  void scope(const Stmt& stmt) {
    if (const auto* s = stmt.as<Let>()) {
      alias_shared({s->value});
      std::string value = expression(s->value);
      aliases_.clear();
      return scoped(vars_, used_vars_, s->var.var(), [&](const std::string& var) {
        line("let " + var + " = " + value);
        body(s->body);
      });
    }
    const auto* s = stmt.as<Allocate>();
    scoped(buffers_, used_buffers_, s->buffer.get(), [&](const std::string&) {
      out_ += std::string(2 * static_cast<size_t>(indent_), ' ') + "alloc ";
      declare(*s->buffer);
      out_ += "\n";
      body(s->body);
    });
  }

  std::string out_;
  int indent_ = 0;
  int next_alias_ = 0;
  std::unordered_map<const VarNode*, std::string> vars_;
  std::unordered_map<const BufferNode*, std::string> buffers_;
  std::unordered_set<std::string> used_vars_, used_buffers_;
  std::unordered_map<const ExprNode*, int> aliases_;
};

}  // namespace

bool is_infix(BinaryOp op) { return !std::isalpha(static_cast<unsigned char>(symbol_of(op)[0])); }

int precedence(BinaryOp op) {
  switch (op) {
    case BinaryOp::Mul:
    case BinaryOp::Div:
      return 10;
    case BinaryOp::Add:
    case BinaryOp::Sub:
      return 9;
    case BinaryOp::Shl:
    case BinaryOp::Shr:
      return 8;
    case BinaryOp::Lt:
    case BinaryOp::Le:
    case BinaryOp::Gt:
    case BinaryOp::Ge:
      return 7;
    case BinaryOp::Eq:
    case BinaryOp::Ne:
      return 6;
    case BinaryOp::And:
      return 5;
    case BinaryOp::Xor:
      return 4;
    case BinaryOp::Or:
      return 3;
    default:
      return 0;
  }
}

bool is_identifier_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '?';
}

bool is_identifier(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '.') return false;
  for (char c : text) {
    if (!is_identifier_char(c)) return false;
  }
  return true;
}

bool is_reserved(std::string_view text) {
  for (std::string_view word : {"true", "false", "for", "while", "if", "else", "let", "alloc", "evaluate", "out",
                                "from", "count", "cast", "reinterpret", "extern"}) {
    if (text == word) return true;
  }
  return false;
}

std::string to_string(const Expr& expr) { return expr.defined() ? Printer().alone(expr) : "<none>"; }

std::string to_string(const Stmt& stmt) {
  if (!stmt.defined()) return "";
  Printer printer;
  printer.body(stmt);
  return printer.take();
}

std::string to_string(const Function& function) {
  Printer printer;
  printer.print(function);
  return printer.take();
}

}  // namespace treadle::loop
