// SPDX-License-Identifier: Apache-2.0
// Structural comparison and hashing. Both ignore how nodes are shared, names of bound variables, anonymous symbols and
// spans.
#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "ir/op.h"
#include "ir/text.h"
#include "ir/unify.h"
#include "ir/visitor.h"

namespace treadle::ir {
namespace {

using Difference = std::optional<std::string>;

const char* kind_name(ExprKind kind) {
  switch (kind) {
    case ExprKind::Var:
      return "a variable";
    case ExprKind::GlobalVar:
      return "the name of a function";
    case ExprKind::Op:
      return "an operator";
    case ExprKind::Constant:
      return "a constant";
    case ExprKind::Call:
      return "a call";
    case ExprKind::Tuple:
      return "a tuple";
    case ExprKind::TupleGetItem:
      return "a field of a tuple";
    case ExprKind::Let:
      return "a let";
    case ExprKind::If:
      return "an if";
    case ExprKind::Function:
      return "a function";
    case ExprKind::Loop:
      return "a loop";
  }
  return "an expression";
}

// The name of operand `i` as `children` counts, for a difference's place.
std::string operand_name(const Expr& expr, size_t i) {
  switch (expr.kind()) {
    case ExprKind::Call: {
      const Call& call = *expr.as<Call>();
      if (call.op()) return fmt::format("argument {} of {}", i, call.op()->name);
      const auto* global = call.callee.as<GlobalVar>();
      const std::string callee = global ? "@" + global->name : "a function";
      return i == 0 ? "callee of a call" : fmt::format("argument {} of {}", i - 1, callee);
    }
    case ExprKind::Tuple:
      return fmt::format("field {} of a tuple", i);
    case ExprKind::TupleGetItem:
      return "tuple of a field";
    case ExprKind::Let:
      return i == 0 ? "value of let %" + expr.as<Let>()->var.as<Var>()->name
                    : "body of let %" + expr.as<Let>()->var.as<Var>()->name;
    case ExprKind::If:
      return i == 0 ? "condition of an if" : i == 1 ? "then branch" : "else branch";
    case ExprKind::Function:
      return "body";
    case ExprKind::Loop:
      return fmt::format("operand {} of a loop", i);
    default:
      return "operand";
  }
}

// NaNs with the same bits are equal, so are attributes of functions that print alike (a dtype and its name).
Difference attrs_difference(const AttrMap& a, const AttrMap& b) {
  for (const auto& [name, value] : a) {
    const auto found = b.find(name);
    if (found == b.end()) return fmt::format("attribute {} is on the left only", name);
    if (to_string(value) != to_string(found->second)) {
      return fmt::format("attribute {}: {} and {}", name, to_string(value), to_string(found->second));
    }
  }
  for (const auto& [name, value] : b) {
    if (!a.count(name)) return fmt::format("attribute {} is on the right only", name);
  }
  return std::nullopt;
}

Difference attrs_difference(const AttrsRef& a, const AttrsRef& b) {
  if (!a || !b) return a == b ? Difference() : Difference("attributes are on one side only");
  if (a->equals(*b)) return std::nullopt;
  if (&a->schema() != &b->schema()) return Difference("attributes are of different kinds");
  for (size_t i = 0; i < a->schema().size(); ++i) {
    if (!equal(a->get(i), b->get(i))) {
      return fmt::format("attribute {}: {} and {}", a->schema()[i].name, to_string(a->get(i)), to_string(b->get(i)));
    }
  }
  return std::nullopt;
}

// Compares two graphs, node by node, with an explicit stack.
class Comparison {
 public:
  Difference run(const Expr& a, const Expr& b) {
    enter(a, b, nullptr, 0);
    while (!stack_.empty() && !difference_) {
      Pair& top = *stack_.back();
      if (top.next == top.left.size()) {
        stack_.pop_back();
        continue;
      }
      const size_t i = top.next++;
      if (i == 1 && top.a.kind() == ExprKind::Let) bind_let(top);
      enter(Expr(top.left[i]), Expr(top.right[i]), &top, i);
    }
    return difference_;
  }

 private:
  struct Pair {
    Expr a, b;
    std::vector<Expr> left, right;
    const Pair* parent = nullptr;
    size_t index = 0;  // which operand of the parent
    size_t next = 0;
  };
  struct PairHash {
    size_t operator()(const std::pair<const ExprNode*, const ExprNode*>& pair) const {
      return hash_combine(reinterpret_cast<uintptr_t>(pair.first), reinterpret_cast<uintptr_t>(pair.second));
    }
  };

  void bind(const Expr& a, const Expr& b) {
    right_of_[a.get()] = b.get();
    left_of_[b.get()] = a.get();
  }

  void bind_let(Pair& pair) { bind(pair.a.as<Let>()->var, pair.b.as<Let>()->var); }

  // Where the pair is, from the outside in; the middle of a long way is left out.
  static std::string place(const Pair* pair) {
    constexpr size_t kShown = 4;
    std::vector<std::string> steps;
    size_t count = 0;
    for (; pair && pair->parent; pair = pair->parent, ++count) {
      if (steps.size() < kShown)
        steps.push_back(operand_name(pair->parent->a, pair->index));
      else
        steps.back() = operand_name(pair->parent->a, pair->index);
    }
    std::string text;
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      text += (text.empty() ? "" : ", ") + *step;
      if (step == steps.rbegin() && count > kShown) text += ", …";
    }
    return text.empty() ? "" : text + ": ";
  }

  void differ(const Pair& pair, std::string what) { difference_ = place(&pair) + std::move(what); }

  void enter(const Expr& a, const Expr& b, const Pair* parent, size_t index) {
    if (!visited_.insert({a.get(), b.get()}).second) return;
    auto pair = std::make_unique<Pair>(Pair{a, b, {}, {}, parent, index});
    compare(*pair);
    if (difference_) return;
    pair->left = children(a);
    pair->right = children(b);
    if (pair->left.size() != pair->right.size())
      return differ(*pair, fmt::format("{} and {} operands", pair->left.size(), pair->right.size()));
    stack_.push_back(std::move(pair));
  }

  // What the two nodes hold themselves.
  void compare(const Pair& pair) {
    const Expr &a = pair.a, &b = pair.b;
    if (a.kind() != b.kind()) return differ(pair, fmt::format("{} and {}", kind_name(a.kind()), kind_name(b.kind())));
    if (const auto* function = a.as<Function>()) compare_functions(pair, *function, *b.as<Function>());
    if (difference_) return;
    if (a.kind() != ExprKind::Op && a.kind() != ExprKind::GlobalVar && !same_up_to_anonymous(a.type(), b.type()) &&
        !(a.type() && b.type() && a.kind() == ExprKind::Function)) {
      return differ(pair, fmt::format("types {} and {}", to_string(a.type()), to_string(b.type())));
    }
    switch (a.kind()) {
      case ExprKind::Var:
        return compare_vars(pair);
      case ExprKind::GlobalVar: {
        const std::string &x = a.as<GlobalVar>()->name, &y = b.as<GlobalVar>()->name;
        if (x != y) differ(pair, fmt::format("@{} and @{}", x, y));
        return;
      }
      case ExprKind::Op:
        if (a.as<OpExpr>()->op != b.as<OpExpr>()->op)
          differ(pair, a.as<OpExpr>()->op->name + " and " + b.as<OpExpr>()->op->name);
        return;
      case ExprKind::Constant:
        if (!a.as<Constant>()->value.identical(b.as<Constant>()->value))
          differ(pair, "constants with different values");
        return;
      case ExprKind::Call: {
        const Call &x = *a.as<Call>(), &y = *b.as<Call>();
        const std::string s = x.op() ? x.op()->name : "a function", t = y.op() ? y.op()->name : "a function";
        if (x.op() != y.op()) return differ(pair, fmt::format("{} and {} are called", s, t));
        if (const Difference attrs = attrs_difference(x.attrs, y.attrs)) differ(pair, s + ": " + *attrs);
        return;
      }
      case ExprKind::TupleGetItem: {
        const int x = a.as<TupleGetItem>()->index, y = b.as<TupleGetItem>()->index;
        if (x != y) differ(pair, fmt::format("fields {} and {}", x, y));
        return;
      }
      case ExprKind::Let:
        // A function may call itself through the variable; another value does not see it.
        if (a.as<Let>()->value.kind() == ExprKind::Function) bind(a.as<Let>()->var, b.as<Let>()->var);
        return;
      case ExprKind::Loop: {
        const Loop &x = *a.as<Loop>(), &y = *b.as<Loop>();
        if (x.num_scanned != y.num_scanned)
          return differ(pair, fmt::format("{} and {} scanned values", x.num_scanned, y.num_scanned));
        if (x.trip_count.defined() != y.trip_count.defined()) differ(pair, "a trip count is on one side only");
        return;
      }
      case ExprKind::Tuple:
      case ExprKind::If:
      case ExprKind::Function:
        return;
    }
  }

  void compare_functions(const Pair& pair, const Function& a, const Function& b) {
    if (a.params.size() != b.params.size())
      return differ(pair, fmt::format("{} and {} parameters", a.params.size(), b.params.size()));
    if (a.type_params.size() != b.type_params.size()) {
      return differ(pair, fmt::format("{} and {} type parameters", a.type_params.size(), b.type_params.size()));
    }
    for (size_t i = 0; i < a.params.size(); ++i) {
      if (!same_up_to_anonymous(a.params[i].type(), b.params[i].type())) {
        return differ(pair, fmt::format("parameter {} (%{}) has the types {} and {}", i, a.params[i].as<Var>()->name,
                                        to_string(a.params[i].type()), to_string(b.params[i].type())));
      }
      bind(a.params[i], b.params[i]);
    }
    const Type &x = as_func(pair.a.type())->result, &y = as_func(pair.b.type())->result;
    if (!same_up_to_anonymous(x, y))
      return differ(pair, fmt::format("the results have the types {} and {}", to_string(x), to_string(y)));
    if (const Difference attrs = attrs_difference(a.attrs, b.attrs)) differ(pair, *attrs);
  }

  void compare_vars(const Pair& pair) {
    const ExprNode *a = pair.a.get(), *b = pair.b.get();
    const auto right = right_of_.find(a);
    const auto left = left_of_.find(b);
    const std::string &x = pair.a.as<Var>()->name, &y = pair.b.as<Var>()->name;
    if (right == right_of_.end() && left == left_of_.end()) {
      if (a != b && x != y)
        differ(pair, fmt::format("free variables %{} and %{}", x, y));
      else
        bind(pair.a, pair.b);
      return;
    }
    if (right == right_of_.end() || left == left_of_.end() || right->second != b || left->second != a) {
      differ(pair, fmt::format("%{} and %{} are different variables", x, y));
    }
  }

  std::vector<std::unique_ptr<Pair>> stack_;  // a pair's parent is below it
  std::unordered_set<std::pair<const ExprNode*, const ExprNode*>, PairHash> visited_;
  std::unordered_map<const ExprNode*, const ExprNode*> right_of_, left_of_;
  Difference difference_;
};

// ---- Hash ----
// Of a node from its operands' hashes. A parameter hashes as its position and the nesting of functions inside its
// function, a let-bound variable as its value: both are independent of names and of sharing.

class Hash {
 public:
  uint64_t run(const Expr& root) {
    measure(root);
    post_order(root, [&](const Expr& expr) { hashes_[expr.get()] = node(expr); });
    return hashes_.at(root.get());
  }

 private:
  // Height of functions inside each function, and what variables are bound to; operands before users.
  void measure(const Expr& root) {
    std::unordered_map<const ExprNode*, int> heights;
    post_order(root, [&](const Expr& expr) {
      int height = 0;
      for (const Expr& operand : children(expr)) height = std::max(height, heights[operand.get()]);
      if (const auto* function = expr.as<Function>()) {
        ++height;
        for (size_t i = 0; i < function->params.size(); ++i) {
          variables_[function->params[i].get()] =
              hash_combine(hash_combine(kParameter, static_cast<uint64_t>(height)), i);
        }
      } else if (const auto* let = expr.as<Let>()) {
        lets_[let->var.get()] = let->value;
      }
      heights[expr.get()] = height;
    });
  }

  // Anonymous symbols do not count.
  static uint64_t type_hash(const Type& type) {
    if (!type) return 0;
    uint64_t h = static_cast<uint64_t>(type->kind) + 1;
    if (const TensorType* tensor = as_tensor(type)) {
      h = hash_combine(h, static_cast<uint64_t>(tensor->dtype.code) << 8 | tensor->dtype.bits);
      for (const Dim& dim : tensor->shape) {
        h = hash_combine(h, is_anonymous(dim) ? 1 : dim.hash());
      }
    } else if (const TupleType* tuple = as_tuple(type)) {
      for (const Type& field : tuple->fields) h = hash_combine(h, type_hash(field));
    } else if (const FuncType* func = as_func(type)) {
      for (const Type& param : func->params) h = hash_combine(h, type_hash(param));
      h = hash_combine(h, type_hash(func->result));
    }
    return h;
  }

  uint64_t variable(const Expr& expr) {
    if (const auto found = variables_.find(expr.get()); found != variables_.end()) return found->second;
    if (const auto let = lets_.find(expr.get()); let != lets_.end()) {
      // The value of the let is done before its body; only a function that calls itself comes here before.
      const auto value = hashes_.find(let->second.get());
      return value == hashes_.end() ? kRecursion : hash_combine(kLet, value->second);
    }
    return hash_string(expr.as<Var>()->name, kFree);
  }

  uint64_t node(const Expr& expr) {
    uint64_t h = hash_combine(static_cast<uint64_t>(expr.kind()),
                              expr.kind() == ExprKind::GlobalVar ? 0 : type_hash(expr.type()));
    switch (expr.kind()) {
      case ExprKind::Var:
        return hash_combine(h, variable(expr));
      case ExprKind::GlobalVar:
        return hash_string(expr.as<GlobalVar>()->name, h);
      case ExprKind::Op:
        return hash_string(expr.as<OpExpr>()->op->name, h);
      case ExprKind::Constant: {
        const Tensor& value = expr.as<Constant>()->value;
        return hash_bytes(value.data(), value.bytes(), h);
      }
      case ExprKind::Call: {
        const Call& call = *expr.as<Call>();
        if (call.op()) h = hash_string(call.op()->name, h);
        if (call.attrs) h = hash_combine(h, call.attrs->hash());
        break;
      }
      case ExprKind::TupleGetItem:
        h = hash_combine(h, static_cast<uint64_t>(expr.as<TupleGetItem>()->index));
        break;
      case ExprKind::Function:
        for (const auto& [name, value] : expr.as<Function>()->attrs)
          h = hash_string(to_string(value), hash_string(name, h));
        break;
      case ExprKind::Loop: {
        const Loop& loop = *expr.as<Loop>();
        h = hash_combine(h, static_cast<uint64_t>(loop.num_scanned) * 2 + loop.trip_count.defined());
        break;
      }
      case ExprKind::Tuple:
      case ExprKind::Let:
      case ExprKind::If:
        break;
    }
    for (const Expr& operand : children(expr)) h = hash_combine(h, hashes_.at(operand.get()));
    return h;
  }

  static constexpr uint64_t kParameter = 1, kLet = 2, kRecursion = 3, kFree = 4;
  std::unordered_map<const ExprNode*, uint64_t> variables_, hashes_;
  std::unordered_map<const ExprNode*, Expr> lets_;
};

}  // namespace

std::optional<std::string> structural_difference(const Module& a, const Module& b) {
  for (const auto& [name, function] : a.functions) {
    const auto found = b.functions.find(name);
    if (found == b.functions.end()) return fmt::format("@{} is on the left only", name);
    if (const Difference difference = Comparison().run(function, found->second))
      return fmt::format("@{}, {}", name, *difference);
  }
  for (const auto& [name, function] : b.functions) {
    if (!a.functions.count(name)) return fmt::format("@{} is on the right only", name);
  }
  return std::nullopt;
}

std::optional<std::string> structural_difference(const Expr& a, const Expr& b) { return Comparison().run(a, b); }

bool structural_equal(const Module& a, const Module& b) { return !structural_difference(a, b); }
bool structural_equal(const Expr& a, const Expr& b) { return !Comparison().run(a, b); }

uint64_t structural_hash(const Expr& expr) { return Hash().run(expr); }

uint64_t structural_hash(const Module& module) {
  uint64_t h = module.functions.size();
  for (const auto& [name, function] : module.functions)
    h = hash_combine(hash_string(name, h), structural_hash(function));
  return h;
}

}  // namespace treadle::ir
