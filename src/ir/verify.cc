// SPDX-License-Identifier: Apache-2.0
// The invariants of the graph IR:
//   1  the module maps names to functions, and every GlobalVar names one of them
//   2  each variable is bound once, and used only where it is bound (also when a shared node uses it)
//   3  every type is known
//   4  a call of an operator has its number of arguments and its attributes, and the type that its relation gives
//   5  a call of a function has arguments that fit the parameters, and the type of the result
//   6  a field of a tuple exists and has the type of the projection
//   7  a let-bound variable has the type of its value
//   8  the condition of an if is a bool scalar, and its branches fit its type
//   9  the body of a function fits the declared result; a primitive function uses no variable from outside
//  10  a constant has a dtype that is known and holds as many elements as its type says
//  11  a loop fits the rules that stand at its node
// Types fit when Unifier says so: extents that may be equal are no error, they are checked when the model runs.
#include <algorithm>
#include <memory>
#include <unordered_map>

#include "ir/infer.h"
#include "ir/op.h"
#include "ir/unify.h"
#include "ir/visitor.h"

namespace treadle::ir {
namespace {

std::string describe(const Expr& expr) {
  std::string text;
  if (const auto* call = expr.as<Call>(); call && call->op())
    text = "a call of " + call->op()->name;
  else if (const auto* var = expr.as<Var>())
    text = "%" + var->name;
  else if (const auto* global = expr.as<GlobalVar>())
    text = "@" + global->name;
  else if (const auto* let = expr.as<Let>())
    text = "let %" + let->var.as<Var>()->name;
  else
    text = fmt::format("an expression of kind {}", static_cast<int>(expr.kind()));
  if (expr->span) text += " (" + to_string(expr->span) + ")";
  return text;
}

[[noreturn]] void broken(int rule, const Expr& expr, const std::string& why) {
  fail(ErrorCode::VerifyFailed, "rule {} is broken by {}: {}", rule, describe(expr), why);
}

// Runs f; any error breaks `rule`.
template <typename F>
void rule_holds(int rule, const Expr& expr, F f) {
  try {
    f();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::VerifyFailed) throw;
    broken(rule, expr, error.message());
  }
}

void fits(const Type& a, const Type& b) {
  Unifier unifier;
  unifier.unify(unifier.open(a), unifier.open(b));
}

// Rule 2. A node's place is the innermost block around all its users; a variable may be used at places inside the block
// that binds it.
class Scopes {
 public:
  explicit Scopes(const Expr& function) {
    std::vector<Expr> order;
    post_order(function, [&](const Expr& expr) { order.push_back(expr); });
    places_[function.get()] = open(nullptr);
    for (auto expr = order.rbegin(); expr != order.rend(); ++expr) visit(*expr);
    for (const Expr& expr : order) {
      if (expr.kind() == ExprKind::Var) check(expr);
    }
  }

 private:
  struct Block {
    const Block* parent;
    int depth;
  };

  const Block* open(const Block* parent) {
    blocks_.push_back(std::make_unique<Block>(Block{parent, parent ? parent->depth + 1 : 0}));
    return blocks_.back().get();
  }

  void bind(const Expr& var, const Block* block, const Expr& binder) {
    if (!bound_.emplace(var.get(), block).second)
      broken(2, binder, fmt::format("%{} is bound a second time", var.as<Var>()->name));
  }

  void use(const Expr& operand, const Block* block) {
    const auto [place, first] = places_.emplace(operand.get(), block);
    if (first) return;
    const Block *a = place->second, *b = block;
    while (a != b) (a->depth >= b->depth ? a : b) = (a->depth >= b->depth ? a : b)->parent;
    place->second = a;
  }

  void visit(const Expr& expr) {
    const Block* block = places_.at(expr.get());
    if (const auto* let = expr.as<Let>()) {
      const bool recursive = let->value.kind() == ExprKind::Function;
      const Block* inner = open(block);
      bind(let->var, inner, expr);
      use(let->value, recursive ? inner : block);
      use(let->body, inner);
    } else if (const auto* node = expr.as<If>()) {
      use(node->condition, block);
      use(node->then_branch, open(block));
      use(node->else_branch, open(block));
    } else if (const auto* function = expr.as<Function>()) {
      const Block* inner = open(block);
      for (const Expr& param : function->params) bind(param, inner, expr);
      use(function->body, inner);
    } else {
      for (const Expr& operand : children(expr)) use(operand, block);
    }
  }

  void check(const Expr& var) {
    const auto found = bound_.find(var.get());
    const Block* block = places_.at(var.get());
    while (found != bound_.end() && block && block != found->second) block = block->parent;
    if (found == bound_.end() || !block) broken(2, var, "it is used where it is not bound");
  }

  std::vector<std::unique_ptr<Block>> blocks_;
  std::unordered_map<const ExprNode*, const Block*> places_, bound_;
};

class Verifier {
 public:
  explicit Verifier(const Module& module) : module_(module) {}

  void node(const Expr& expr) {
    if (expr.kind() != ExprKind::Op && !is_complete(expr.type()))
      broken(3, expr, fmt::format("its type is {}", to_string(expr.type())));
    switch (expr.kind()) {
      case ExprKind::GlobalVar:
        return global(expr);
      case ExprKind::Constant:
        return constant(expr);
      case ExprKind::Call:
        return expr.as<Call>()->op() ? operator_call(expr) : function_call(expr);
      case ExprKind::TupleGetItem:
        return field(expr);
      case ExprKind::Let:
        return rule_holds(7, expr, [&] {
          const Let& let = *expr.as<Let>();
          if (!is_complete(let.var.type())) broken(3, let.var, "its type is not known");
          fits(let.var.type(), let.value.type());
        });
      case ExprKind::If:
        return branches(expr);
      case ExprKind::Function:
        return function(expr);
      case ExprKind::Loop:
        return loop(expr);
      case ExprKind::Var:
      case ExprKind::Op:
      case ExprKind::Tuple:
        return;
    }
  }

 private:
  void global(const Expr& expr) {
    const auto found = module_.functions.find(expr.as<GlobalVar>()->name);
    if (found == module_.functions.end()) broken(1, expr, "the module has no such function");
    rule_holds(1, expr, [&] { fits(expr.type(), found->second.type()); });
  }

  void constant(const Expr& expr) {
    const Tensor& value = expr.as<Constant>()->value;
    const TensorType* type = as_tensor(expr.type());
    const auto& known = all_dtypes();
    if (std::find(known.begin(), known.end(), value.dtype()) == known.end()) broken(10, expr, "its dtype is unknown");
    if (!type || type->dtype != value.dtype() || type->shape != to_shape(value.shape()))
      broken(10, expr, "its type is not that of its value");
  }

  void operator_call(const Expr& expr) {
    const Call& call = *expr.as<Call>();
    if (!call.attrs) broken(4, expr, "it has no attributes");
    std::vector<Type> inputs;
    for (const Expr& arg : call.args) inputs.push_back(arg.type());
    rule_holds(4, expr, [&] {
      const Type again = infer_call(*call.op(), *call.attrs, inputs);
      if (!same_up_to_anonymous(again, expr.type()) && !compatible(again, expr.type())) {
        broken(4, expr,
               fmt::format("its type is {}, but its relation gives {}", to_string(expr.type()), to_string(again)));
      }
    });
  }

  void function_call(const Expr& expr) {
    const Call& call = *expr.as<Call>();
    rule_holds(5, expr, [&] {
      Unifier unifier;
      std::vector<Type> args;
      for (const Expr& arg : call.args) args.push_back(arg.type());
      unifier.unify(unifier.apply(call.callee.type(), args), expr.type());
    });
  }

  void field(const Expr& expr) {
    const TupleGetItem& node = *expr.as<TupleGetItem>();
    const TupleType* tuple = as_tuple(node.tuple.type());
    if (!tuple || node.index < 0 || static_cast<size_t>(node.index) >= tuple->fields.size())
      broken(6, expr, "there is no such field");
    rule_holds(6, expr, [&] { fits(tuple->fields[static_cast<size_t>(node.index)], expr.type()); });
  }

  void branches(const Expr& expr) {
    const If& node = *expr.as<If>();
    rule_holds(8, expr, [&] {
      fits(node.condition.type(), tensor_type({}, dtype::bool_));
      fits(expr.type(), join_types(node.then_branch.type(), node.else_branch.type()));
    });
  }

  void function(const Expr& expr) {
    const Function& node = *expr.as<Function>();
    for (const Expr& param : node.params) {
      if (!is_complete(param.type())) broken(3, param, "its type is not known");
    }
    rule_holds(9, expr, [&] { fits(as_func(expr.type())->result, node.body.type()); });
    if (node.is_primitive()) {
      for (const Expr& free : free_vars(expr))
        broken(9, expr, fmt::format("it is primitive, but uses %{} from outside", free.as<Var>()->name));
    }
  }

  void loop(const Expr& expr) {
    const Loop& node = *expr.as<Loop>();
    rule_holds(11, expr, [&] {
      // The builder has the rules; building the node again applies them.
      const Expr again = ir::loop(node.trip_count, node.condition, node.body, node.initial, node.num_scanned);
      if (node.trip_count.defined()) fits(node.trip_count.type(), tensor_type({}, dtype::int64_));
      fits(again.type(), expr.type());
    });
  }

  const Module& module_;
};

}  // namespace

void verify(const Module& module) {
  Verifier verifier(module);
  for (const auto& [name, function] : module.functions) {
    try {
      if (!function.defined() || !function.as<Function>())
        fail(ErrorCode::VerifyFailed, "rule 1 is broken: @{} is no function", name);
      post_order(function, [&](const Expr& expr) { verifier.node(expr); });
      const Scopes scopes(function);
    } catch (Error& error) {
      error.at("@" + name);
      throw;
    }
  }
}

}  // namespace treadle::ir
