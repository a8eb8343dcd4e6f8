// SPDX-License-Identifier: Apache-2.0
// Prints Relay's text format, version 0.0.5.
#include "ir/print.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "ir/metadata.h"
#include "ir/op.h"
#include "ir/text.h"
#include "ir/visitor.h"

namespace treadle::ir {
namespace {

constexpr int kMaxBlocks = 128;  // nesting of blocks; what the parser accepts

bool is_identifier(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (name.empty() || !letter(name[0])) return false;
  for (char c : name) {
    if (!letter(c) && !(c >= '0' && c <= '9')) return false;
  }
  return true;
}

std::string sigil_name(char sigil, const std::string& name) {
  return sigil + (is_identifier(name) ? name : quote(name));
}

// The suffix that names the dtype of a scalar.
std::string suffix(DType dtype) {
  if (dtype == dtype::int32_) return "";
  if (dtype == dtype::float32_) return "f";
  if (dtype == dtype::bfloat16_) return "bf16";
  return fmt::format("{}{}", dtype.is_int() ? "i" : dtype.is_uint() ? "u" : "f", dtype.bits);
}

// The text of a scalar; empty when only its bytes tell it (a NaN with a payload).
std::string scalar_text(const Tensor& value) {
  return visit(value.dtype(), [&]<typename T>() -> std::string {
    const T element = *static_cast<const T*>(value.data());
    if constexpr (std::is_same_v<T, bool>) {
      return element ? "True" : "False";
    } else if constexpr (std::is_integral_v<T>) {
      return fmt::format("{}{}", element, suffix(value.dtype()));
    } else {
      using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
      const Wide number = static_cast<Wide>(element);
      const T again(std::isnan(number) ? std::numeric_limits<Wide>::quiet_NaN() : number);
      if (std::isnan(number) && std::memcmp(&again, &element, sizeof(T)) != 0) return "";
      return fmt::format("{}{}", number, suffix(value.dtype()));
    }
  });
}

// Type of the result as it is declared; null when it is not known.
Type result_type(const Function& function) {
  const Type& type = function.ret_type ? function.ret_type : function.body.type();
  return is_complete(type) ? type : nullptr;
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  // Names the anonymous symbols that occur more than once.
  void collect(const Expr& root) {
    std::map<std::string, int> counts;
    std::vector<std::string> order;
    post_order(root, [&](const Expr& expr) {
      std::map<std::string, int> here;
      const auto count = [&](const std::string& name) { ++here[name]; };
      if (const auto* function = expr.as<Function>()) {
        for (const Expr& param : function->params) for_each_anonymous(param.type(), count);
        for_each_anonymous(result_type(*function), count);
      } else if (const auto* let = expr.as<Let>()) {
        for_each_anonymous(let->var.type(), count);
      }
      for (const auto& [name, count] : here) {
        if (counts[name] == 0) order.push_back(name);
        counts[name] += count;
      }
    });
    for (const std::string& name : order) {
      if (symbols_.count(name)) continue;
      symbols_[name] = Dim::symbol(counts[name] > 1 ? fmt::format("?{}", named_symbols_++) : "?");
    }
  }

  void definition(const std::string& name, const Expr& expr) {
    const auto* function = expr.as<Function>();
    if (!function) fail(ErrorCode::InvalidArgument, "\"@{}\" is no function", name);
    start(expr);
    out_ += "def " + sigil_name('@', name);
    function_text(expr, 0);
    out_ += '\n';
  }

  void expression(const Expr& expr) {
    const Expr wrapped = function({}, expr);
    start(wrapped);
    for (const Expr& free : free_vars(expr)) {
      out_ += fmt::format("free_var {}: {};\n", var_name(free), type_text(free.type()));
    }
    block(plan_->body(wrapped), 0);
    out_ += '\n';
  }

  std::string finish() {
    if (options_.constants && !constants_.empty()) out_ += "\n" + metadata_text(constants_);
    return std::move(out_);
  }

  std::string& out() { return out_; }

 private:
  void start(const Expr& expr) {
    plan_ = std::make_unique<PrintPlan>(expr);
    names_.clear();
    used_names_.clear();
    name_counts_.clear();
    graph_names_.clear();
  }

  std::string type_text(const Type& type) const {
    return to_string(symbols_.empty() ? type : substitute(type, symbols_));
  }

  // In a comment: nothing reads it, so symbols that are nowhere declared are plain question marks.
  std::string comment(const Expr& expr) const {
    std::string text;
    if (options_.types && expr.type()) {
      std::map<std::string, Dim> shown;
      for_each_anonymous(expr.type(), [&](const std::string& name) {
        const auto known = symbols_.find(name);
        shown.emplace(name, known == symbols_.end() ? Dim::symbol("?") : known->second);
      });
      text += " ty=" + to_string(shown.empty() ? expr.type() : substitute(expr.type(), shown));
    }
    if (options_.spans && expr->span) text += " span=" + to_string(expr->span);
    // What ends a comment must not stand in it.
    for (size_t i = text.find("*/"); i != std::string::npos; i = text.find("*/", i)) text.replace(i, 2, "* /");
    for (size_t i = text.find("/*"); i != std::string::npos; i = text.find("/*", i)) text.replace(i, 2, "/ *");
    return text.empty() ? "" : " /*" + text + " */";
  }

  std::string var_name(const Expr& expr) {
    auto [place, added] = names_.try_emplace(expr.get());
    if (added) {
      const std::string& base = expr.as<Var>()->name;
      std::string name = base.empty() ? "v" : base;
      int& count = name_counts_[name];  // goes on where the last of this name stopped
      while (!used_names_.insert(name).second) name = fmt::format("{}{}", base.empty() ? "v" : base, ++count);
      place->second = sigil_name('%', name);
    }
    return place->second;
  }

  std::string constant_text(const Expr& expr) {
    const Tensor& value = expr.as<Constant>()->value;
    if (value.shape().empty()) {
      std::string text = scalar_text(value);
      if (!text.empty()) return text;
    }
    const auto [place, added] = constant_index_.try_emplace(expr.get(), constants_.size());
    if (added) constants_.push_back(value);
    return fmt::format("meta[relay.Constant][{}]{}", place->second, comment(expr));
  }

  // An operand: an atom, or the name of a binding.
  std::string operand(const Expr& expr) {
    switch (expr.kind()) {
      case ExprKind::Var:
        return var_name(expr);
      case ExprKind::GlobalVar:
        return sigil_name('@', expr.as<GlobalVar>()->name);
      case ExprKind::Op:
        return expr.as<OpExpr>()->op->name;
      case ExprKind::Constant:
        return constant_text(expr);
      case ExprKind::TupleGetItem: {
        std::string fields;
        Expr tuple = expr;
        for (; const auto* get = tuple.as<TupleGetItem>(); tuple = get->tuple)
          fields.insert(0, fmt::format(".{}", get->index));
        return operand(tuple) + fields;
      }
      default:
        break;
    }
    const auto found = graph_names_.find(expr.get());
    TREADLE_CHECK(found != graph_names_.end(), "a node is printed before its operands");
    return fmt::format("%{}", found->second);
  }

  std::string operands(const std::vector<Expr>& exprs) {
    std::string text;
    for (size_t i = 0; i < exprs.size(); ++i) text += (i ? ", " : "") + operand(exprs[i]);
    return text;
  }

  void indent(int level) { out_.append(static_cast<size_t>(level) * 2, ' '); }

  // The lines of a block without its braces, starting where the first line is already indented.
  void block(const PrintScope& first, int level) {
    const PrintScope* scope = &first;
    for (;;) {
      for (const Expr& binding : scope->bindings) {
        const int name = next_graph_name_++;  // before the names inside
        out_ += fmt::format("%{} = ", name);
        value(binding, level);
        out_ += ";\n";
        indent(level);
        graph_names_[binding.get()] = name;
      }
      const auto* let = scope->tail.as<Let>();
      if (!let || !plan_->is_inline(scope->tail)) break;
      let_head(*let, level);
      scope = &plan_->body(scope->tail);
    }
    place(scope->tail, level);
  }

  void let_head(const Let& let, int level) {
    out_ += "let " + var_name(let.var);
    if (is_complete(let.var.type())) out_ += ": " + type_text(let.var.type());
    out_ += " = ";
    place(let.value, level);
    out_ += ";\n";
    indent(level);
  }

  // Where any expression may stand: the expression itself, or its name when it has one.
  void place(const Expr& expr, int level) {
    if (!plan_->is_inline(expr))
      out_ += operand(expr);
    else
      value(expr, level);
  }

  void braces(const PrintScope& scope, int level) {
    out_ += "{\n";
    indent(level + 1);
    block(scope, level + 1);
    out_ += '\n';
    indent(level);
    out_ += '}';
  }

  void value(const Expr& expr, int level) {
    if (level > kMaxBlocks) fail(ErrorCode::Limit, "functions and branches are nested deeper than {}", kMaxBlocks);
    switch (expr.kind()) {
      case ExprKind::Var:
      case ExprKind::GlobalVar:
      case ExprKind::Op:
      case ExprKind::Constant:
      case ExprKind::TupleGetItem:
        out_ += operand(expr);
        return;
      case ExprKind::Call:
        call_text(*expr.as<Call>());
        break;
      case ExprKind::Tuple: {
        const auto& fields = expr.as<Tuple>()->fields;
        out_ += fmt::format("({}{})", operands(fields), fields.size() == 1 ? "," : "");
        break;
      }
      case ExprKind::Let:
        out_ += "{\n";
        indent(level + 1);
        let_head(*expr.as<Let>(), level + 1);
        block(plan_->body(expr), level + 1);
        out_ += '\n';
        indent(level);
        out_ += '}';
        return;
      case ExprKind::If:
        out_ += fmt::format("if ({}) ", operand(expr.as<If>()->condition));
        braces(plan_->body(expr), level);
        out_ += " else ";
        braces(plan_->else_branch(expr), level);
        break;
      case ExprKind::Function:
        out_ += "fn ";
        function_text(expr, level);
        break;
      case ExprKind::Loop:
        loop_text(*expr.as<Loop>(), level);
        break;
    }
    out_ += comment(expr);
  }

  void call_text(const Call& call) {
    out_ += operand(call.callee) + "(" + operands(call.args);
    if (call.attrs) {
      bool first = call.args.empty();
      const AttrSchema& schema = call.attrs->schema();
      for (size_t i = 0; i < schema.size(); ++i) {
        const AttrValue value = call.attrs->get(i);
        if (!schema[i].required && equal(value, schema[i].default_value)) continue;
        out_ += fmt::format("{}{}={}", first ? "" : ", ", schema[i].name, to_string(value));
        first = false;
      }
    }
    out_ += ')';
  }

  // [A](%x: T, attr=value) -> R { body }
  void function_text(const Expr& expr, int level) {
    const Function& function = *expr.as<Function>();
    if (!function.type_params.empty()) {
      std::string names;
      for (const std::string& name : function.type_params) names += (names.empty() ? "" : ", ") + name;
      out_ += "[" + names + "]";
    }
    out_ += '(';
    bool first = true;
    for (const Expr& param : function.params) {
      out_ += (first ? "" : ", ") + var_name(param);
      if (is_complete(param.type())) out_ += ": " + type_text(param.type());
      first = false;
    }
    for (const auto& [name, value] : function.attrs) {
      out_ += fmt::format("{}{}={}", first ? "" : ", ", name, to_string(value));
      first = false;
    }
    out_ += ") ";
    if (const Type result = result_type(function)) out_ += "-> " + type_text(result) + " ";
    braces(plan_->body(expr), level);
  }

  void loop_text(const Loop& loop, int level) {
    out_ += "loop(";
    if (loop.trip_count.defined()) out_ += "trip=" + operand(loop.trip_count) + ", ";
    if (loop.condition.defined()) {
      out_ += "cond=";
      place(loop.condition, level);
      out_ += ", ";
    }
    out_ += "body=";
    place(loop.body, level);
    out_ += fmt::format(", scanned={})({})", loop.num_scanned, operands(loop.initial));
  }

  const PrintOptions& options_;
  std::string out_;
  std::unique_ptr<PrintPlan> plan_;
  std::unordered_map<const ExprNode*, std::string> names_;
  std::set<std::string> used_names_;
  std::unordered_map<std::string, int> name_counts_;
  std::unordered_map<const ExprNode*, int> graph_names_;
  int next_graph_name_ = 0;
  std::map<std::string, Dim> symbols_;  // anonymous symbols as they are printed
  int named_symbols_ = 0;
  std::vector<Tensor> constants_;
  std::unordered_map<const ExprNode*, size_t> constant_index_;
};

}  // namespace

std::string print(const Module& module, const PrintOptions& options) {
  Printer printer(options);
  printer.out() = "#[version = \"0.0.5\"]\n";
  std::vector<Expr> all;
  for (const auto& [name, function] : module.functions) all.push_back(function);
  printer.collect(tuple(all));
  bool first = true;
  for (const auto& [name, function] : module.functions) {
    if (!first) printer.out() += '\n';
    first = false;
    printer.definition(name, function);
  }
  return printer.finish();
}

std::string print(const Expr& expr, const PrintOptions& options) {
  Printer printer(options);
  printer.collect(expr);
  printer.expression(expr);
  return printer.finish();
}

}  // namespace treadle::ir
