// SPDX-License-Identifier: Apache-2.0
// Inference of whole modules. Every node gets a type that may have placeholders; a walk over each function unifies them
// as the rules of the node say; calls of operators whose relation lacks something wait, and are tried again until
// nothing changes. Then the nodes whose type became known are rebuilt; all others are kept.
#include "ir/infer.h"

#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "ir/op.h"
#include "ir/unify.h"
#include "ir/visitor.h"

namespace treadle::ir {
namespace {

class Inference {
 public:
  explicit Inference(const Module& module) : module_(module) {}

  Module run() {
    for (const auto& [name, function] : module_.functions) {
      if (!function.as<Function>()) fail(ErrorCode::InvalidArgument, "\"@{}\" is no function", name);
      signatures_[name] = signature(function);
    }
    for (const auto& [name, function] : module_.functions) in_function(name, [&, f = function] { walk(f); });
    solve_pending();
    Module result = module_;
    for (auto& [name, function] : result.functions) in_function(name, [&, &f = function] { f = rebuild(f); });
    return result;
  }

 private:
  struct Frame {
    Expr expr;
    std::vector<Expr> operands;
    size_t next = 0;
  };

  template <typename F>
  void in_function(const std::string& name, F f) {
    try {
      f();
    } catch (Error& error) {
      error.at("@" + name);
      throw;
    }
  }

  // Runs f; an error gets the place of the node.
  template <typename F>
  static void at(const Expr& expr, F f) {
    try {
      f();
    } catch (Error& error) {
      if (expr->span) error.at(to_string(expr->span));
      throw;
    }
  }

  // ---- Types of nodes ----

  // Of a node that has one already, or of a variable or name on its first occurrence.
  const Type& slot(const Expr& expr) {
    auto [place, added] = slots_.try_emplace(expr.get());
    if (!added) return place->second;
    Type type;
    if (const auto* global = expr.as<GlobalVar>()) {
      const auto found = signatures_.find(global->name);
      if (found == signatures_.end()) fail(ErrorCode::InvalidArgument, "@{} is not defined", global->name);
      type = found->second;
    } else {
      type = unifier_.open(expr.type());
    }
    return slots_[expr.get()] = std::move(type);
  }

  const Type& signature(const Expr& expr) {
    const auto found = slots_.find(expr.get());
    if (found != slots_.end()) return found->second;
    const auto* function = expr.as<Function>();
    std::vector<Type> params;
    for (const Expr& param : function->params) params.push_back(slot(param));
    Type result = function->ret_type ? unifier_.open(function->ret_type) : unifier_.fresh();
    return slots_[expr.get()] = func_type(std::move(params), std::move(result), function->type_params);
  }

  bool settled(const Expr& expr) const { return settled_.count(expr.get()) != 0; }

  // ---- The walk ----

  void walk(const Expr& root) {
    std::vector<Frame> stack;
    auto enter = [&](const Expr& expr) {
      if (!seen_.insert(expr.get()).second) return;
      if (expr.kind() == ExprKind::Function) signature(expr);
      stack.push_back({expr, children(expr)});
    };
    enter(root);
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (const auto* let = top.expr.as<Let>()) at(top.expr, [&] { bind(*let, top.next); });
      if (top.next < top.operands.size()) {
        const Expr operand = top.operands[top.next++];
        enter(operand);
        continue;
      }
      const Expr done = std::move(top.expr);
      stack.pop_back();
      at(done, [&] { finish(done); });
    }
  }

  // Before the value of a let (operand 0) a function's signature is made known, so that it may call itself; before the
  // body the variable gets the value's type.
  void bind(const Let& let, size_t operand) {
    try {
      if (operand == 0 && let.value.kind() == ExprKind::Function) unifier_.unify(slot(let.var), signature(let.value));
      if (operand == 1 && let.value.kind() != ExprKind::Function) unifier_.unify(slot(let.var), slot(let.value));
    } catch (Error& error) {
      error.at("let %" + let.var.as<Var>()->name);
      throw;
    }
  }

  void finish(const Expr& expr) {
    const std::vector<Expr> operands = children(expr);
    bool operands_settled = true;
    for (const Expr& operand : operands) operands_settled &= settled(operand);
    bool keeps_type = is_complete(expr.type()) && operands_settled;
    switch (expr.kind()) {
      case ExprKind::Var:
        keeps_type = is_complete(expr.type());
        slot(expr);
        break;
      case ExprKind::GlobalVar:
        keeps_type = false;
        slot(expr);
        break;
      case ExprKind::Op:
      case ExprKind::Constant:
        keeps_type = true;
        slot(expr);
        break;
      case ExprKind::Call:
        keeps_type = finish_call(expr, keeps_type);
        break;
      case ExprKind::Tuple: {
        std::vector<Type> fields;
        for (const Expr& operand : operands) fields.push_back(slot(operand));
        slots_[expr.get()] = keeps_type ? expr.type() : tuple_type(fields);
        break;
      }
      case ExprKind::Let:
        keeps_type &= is_complete(expr.as<Let>()->var.type());
        slots_[expr.get()] = slot(expr.as<Let>()->body);
        break;
      case ExprKind::If:
        finish_if(expr, keeps_type);
        break;
      case ExprKind::Function: {
        for (const Expr& param : expr.as<Function>()->params) keeps_type &= is_complete(param.type());
        check_result(expr);
        break;
      }
      case ExprKind::TupleGetItem:
      case ExprKind::Loop:
        slots_[expr.get()] = keeps_type ? expr.type() : unifier_.fresh();
        if (!keeps_type && !attempt(expr)) pending_.push_back(expr);
        break;
    }
    if (keeps_type) settled_.insert(expr.get());
  }

  void check_result(const Expr& expr) {
    const FuncType* type = as_func(signature(expr));
    try {
      unifier_.unify(type->result, slot(expr.as<Function>()->body));
    } catch (Error& error) {
      error.at("the result of a function");
      throw;
    }
  }

  // True when the call keeps its node.
  bool finish_call(const Expr& expr, bool keeps_type) {
    const Call& call = *expr.as<Call>();
    if (call.op()) {
      slots_[expr.get()] = keeps_type ? expr.type() : unifier_.fresh();
      if (!keeps_type && !attempt(expr)) pending_.push_back(expr);
      return keeps_type;
    }
    std::vector<Type> args;
    for (const Expr& arg : call.args) args.push_back(slot(arg));
    const Type result = unifier_.apply(slot(call.callee), args);
    // The name of a function is never settled, its calls are when their type is what it was.
    bool same = is_complete(expr.type()) && same_up_to_anonymous(expr.type(), unifier_.resolve(result));
    for (const Expr& arg : call.args) same &= settled(arg);
    slots_[expr.get()] = same ? expr.type() : result;
    return same && (settled(call.callee) || is_complete(call.callee.type()));
  }

  void finish_if(const Expr& expr, bool keeps_type) {
    const If& node = *expr.as<If>();
    if (keeps_type) {
      slots_[expr.get()] = expr.type();
      return;
    }
    try {
      unifier_.unify(slot(node.condition), tensor_type({}, dtype::bool_));
    } catch (Error& error) {
      error.at("the condition of an if");
      throw;
    }
    try {
      const Type then_type = unifier_.close(slot(node.then_branch)), else_type = unifier_.close(slot(node.else_branch));
      if (is_complete(then_type) && is_complete(else_type)) {
        slots_[expr.get()] = join_types(then_type, else_type);
      } else {
        unifier_.unify(slot(node.then_branch), slot(node.else_branch));
        slots_[expr.get()] = slot(node.then_branch);
      }
    } catch (Error& error) {
      error.at("the two branches of an if");
      throw;
    }
  }

  // ---- Nodes that may lack something; true when nothing is missing any more ----

  bool attempt(const Expr& expr) {
    if (expr.kind() == ExprKind::Call) return attempt_call(expr);
    return expr.kind() == ExprKind::Loop ? attempt_loop(expr) : attempt_field(expr);
  }

  bool attempt_call(const Expr& expr) {
    const Call& call = *expr.as<Call>();
    std::vector<Type> before, types;
    for (const Expr& arg : call.args) before.push_back(unifier_.close(slot(arg)));
    types = before;
    Type result = infer_call(*call.op(), *call.attrs, types);
    // Extents that the call brings into being keep the symbols by which others know them.
    if (call.op()->has(kDataDependentShape) && is_complete(expr.type()) && is_complete(result) &&
        same_up_to_anonymous(result, expr.type()))
      result = expr.type();
    bool complete = is_complete(result);
    for (size_t i = 0; i < types.size(); ++i) {
      complete &= is_complete(types[i]);
      if (types[i] != before[i] && !is_complete(before[i])) unifier_.unify(slot(call.args[i]), unifier_.open(types[i]));
    }
    if (result) unifier_.unify(slot(expr), unifier_.open(result));
    return complete;
  }

  bool attempt_field(const Expr& expr) {
    const TupleGetItem& node = *expr.as<TupleGetItem>();
    const Type type = unifier_.resolve(slot(node.tuple));
    if (type && type->kind == TypeKind::Var && as_type_var(type)->name.starts_with('$')) return false;
    const TupleType* tuple = as_tuple(type);
    if (!tuple) fail(ErrorCode::TypeMismatch, "field {} is taken of a value of type {}", node.index, to_string(type));
    if (node.index < 0 || static_cast<size_t>(node.index) >= tuple->fields.size()) {
      fail(ErrorCode::TypeMismatch, "field {} is taken of a tuple of {} fields", node.index, tuple->fields.size());
    }
    unifier_.unify(slot(expr), tuple->fields[static_cast<size_t>(node.index)]);
    return true;
  }

  bool attempt_loop(const Expr& expr) {
    const Loop& node = *expr.as<Loop>();
    if (node.trip_count.defined()) unifier_.unify(slot(node.trip_count), tensor_type({}, dtype::int64_));
    std::vector<Type> args{tensor_type({}, dtype::int64_)}, initial;
    for (const Expr& value : node.initial) {
      args.push_back(slot(value));
      initial.push_back(unifier_.close(slot(value)));
    }
    if (node.condition.defined()) {
      unifier_.unify(unifier_.apply(slot(node.condition), args, false), tensor_type({}, dtype::bool_));
    }
    const Type body = unifier_.close(unifier_.apply(slot(node.body), args, false));
    const Type result = loop_type(initial, body, node.num_scanned, trip_extent(node.trip_count, node.condition));
    if (!is_complete(result)) return false;
    // What one iteration gives is what the next one takes.
    const Type function_type = unifier_.resolve(slot(node.body));  // keeps `function` alive
    const FuncType* function = as_func(function_type);
    for (size_t i = 0; i < initial.size(); ++i) unifier_.unify(function->params[i + 1], as_tuple(body)->fields[i]);
    unifier_.unify(slot(expr), result);
    return true;
  }

  void solve_pending() {
    while (!pending_.empty()) {
      const size_t bindings = unifier_.bindings(), count = pending_.size();
      std::erase_if(pending_, [&](const Expr& expr) {
        bool done = false;
        at(expr, [&] { done = attempt(expr); });
        return done;
      });
      if (unifier_.bindings() == bindings && pending_.size() == count) return;
    }
  }

  // ---- Rebuilding ----

  [[noreturn]] void unresolved(const Expr& expr) {
    if (const auto* var = expr.as<Var>()) {
      fail(ErrorCode::TypeUnresolved,
           "the type of %{} cannot be inferred: give it one, as in %{}: Tensor[(…), float32]", var->name, var->name);
    }
    // The cause is more often a variable than the node.
    for (const Expr& operand : children(expr)) {
      if (!is_complete(unifier_.close(slot(operand)))) unresolved_at(operand);
    }
    const auto* call = expr.as<Call>();
    fail(ErrorCode::TypeUnresolved, "the type of {} cannot be inferred",
         call && call->op() ? "a call of " + call->op()->name : "an expression");
  }

  [[noreturn]] void unresolved_at(const Expr& expr) {
    at(expr, [&] { unresolved(expr); });
    TREADLE_CHECK(false);
    std::abort();
  }

  Type final_type(const Expr& expr) {
    if (settled(expr)) return expr.type();
    Type type = unifier_.close(slot(expr));
    if (!is_complete(type)) unresolved_at(expr);
    return type;
  }

  Expr rebuilt_var(const Expr& expr) {
    auto [place, added] = rebuilt_.try_emplace(expr.get());
    if (!added) return place->second;
    return place->second = is_complete(expr.type()) ? expr : var(expr.as<Var>()->name, final_type(expr), expr->span);
  }

  Expr rebuilt(const Expr& expr) {
    const auto found = rebuilt_.find(expr.get());
    TREADLE_CHECK(found != rebuilt_.end(), "an operand is not rebuilt");
    return found->second;
  }

  std::vector<Expr> all_rebuilt(const std::vector<Expr>& exprs) {
    std::vector<Expr> result;
    result.reserve(exprs.size());
    for (const Expr& expr : exprs) result.push_back(expr.kind() == ExprKind::Op ? expr : rebuilt(expr));
    return result;
  }

  Expr rebuild(const Expr& root) {
    post_order(root, [&](const Expr& expr) {
      if (rebuilt_.count(expr.get())) return;
      Expr result = rebuild_node(expr);
      rebuilt_[expr.get()] = std::move(result);
    });
    return rebuilt(root);
  }

  Expr rebuild_node(const Expr& expr) {
    if (expr.kind() == ExprKind::Var) return rebuilt_var(expr);
    if (const auto* global = expr.as<GlobalVar>()) {
      Expr& shared = globals_[global->name];
      if (!shared.defined()) {
        Type type = final_type(expr);
        shared = same_up_to_anonymous(expr.type(), type) ? expr : global_var(global->name, type, expr->span);
      }
      return shared;
    }
    bool changed = !settled(expr);
    for (const Expr& operand : children(expr)) changed |= !rebuilt(operand).same_as(operand);
    if (!changed) return expr;
    switch (expr.kind()) {
      case ExprKind::Call: {
        const Call& node = *expr.as<Call>();
        Expr callee = node.op() ? node.callee : rebuilt(node.callee);
        return std::make_shared<Call>(std::move(callee), all_rebuilt(node.args), node.attrs, final_type(expr),
                                      node.span);
      }
      case ExprKind::Tuple:
        return tuple(all_rebuilt(expr.as<Tuple>()->fields), expr->span);
      case ExprKind::TupleGetItem: {
        const TupleGetItem& node = *expr.as<TupleGetItem>();
        return std::make_shared<TupleGetItem>(rebuilt(node.tuple), node.index, final_type(expr), node.span);
      }
      case ExprKind::Let: {
        const Let& node = *expr.as<Let>();
        return let(rebuilt_var(node.var), rebuilt(node.value), rebuilt(node.body), node.span);
      }
      case ExprKind::If: {
        const If& node = *expr.as<If>();
        return std::make_shared<If>(rebuilt(node.condition), rebuilt(node.then_branch), rebuilt(node.else_branch),
                                    final_type(expr), node.span);
      }
      case ExprKind::Function:
        return rebuild_function(expr);
      case ExprKind::Loop: {
        const Loop& node = *expr.as<Loop>();
        Expr trip_count = node.trip_count.defined() ? rebuilt(node.trip_count) : Expr();
        Expr condition = node.condition.defined() ? rebuilt(node.condition) : Expr();
        return std::make_shared<Loop>(std::move(trip_count), std::move(condition), rebuilt(node.body),
                                      all_rebuilt(node.initial), node.num_scanned, final_type(expr), node.span);
      }
      default:
        return expr;
    }
  }

  Expr rebuild_function(const Expr& expr) {
    const Function& node = *expr.as<Function>();
    std::vector<Expr> params;
    for (const Expr& param : node.params) params.push_back(rebuilt_var(param));
    Type result = node.ret_type;
    if (result && !is_complete(result)) result = unifier_.close(as_func(signature(expr))->result);
    return function(std::move(params), rebuilt(node.body), std::move(result), node.attrs, node.type_params, node.span);
  }

  const Module& module_;
  Unifier unifier_;
  std::map<std::string, Type> signatures_;
  std::unordered_map<const ExprNode*, Type> slots_;
  std::unordered_set<const ExprNode*> seen_;
  std::unordered_set<const ExprNode*> settled_;  // keep their node: type known and operands settled
  std::vector<Expr> pending_;
  std::unordered_map<const ExprNode*, Expr> rebuilt_;
  std::map<std::string, Expr> globals_;
};

}  // namespace

Module infer_types(const Module& module) { return Inference(module).run(); }

Expr infer_types(const Expr& expr, const Module& module) {
  constexpr const char* kName =
      "\x01"
      "expression";  // no name that a text can give
  Module with = module;
  with.functions[kName] = function(free_vars(expr), expr);
  return infer_types(with).function(kName).body;
}

}  // namespace treadle::ir
