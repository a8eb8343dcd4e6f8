// SPDX-License-Identifier: Apache-2.0
// Computes at compile time what depends on constants only.
//
//   add(%x, multiply(meta[c], 2f))        =>   add(%x, meta[c'])
//   if (True) { a } else { b }            =>   a
//
// When:   every operand of a pure call is a constant (or made from constants), and its type and attributes are static.
// Not:    inside primitive functions; creation operators (zeros, arange) alone, which cost nothing to keep; a result
// that is much
//         larger than what it is made of (kMaxGrowth); what the run of the pass can no longer pay (Budget).
// Values: as the compiled kernels give them. All foldable subgraphs of the module are computed as one batch by the
// context's evaluator.
#include <unordered_map>
#include <unordered_set>

#include "pass/interpreter.h"
#include "pass/passes.h"
#include "pass/rewriter.h"
#include "pass/work.h"

namespace treadle::pass {
namespace {

using ir::Expr;

constexpr int64_t kFreeBytes = 1 << 20;  // results up to this size may be made from nothing
constexpr int64_t kMaxGrowth = 4;        // larger ones must be at most so many times their constants

// What one run may spend on values that a file merely names: of these, so much for nothing and so much more for each
// byte of the module's constants. Calls beyond it stay for the run of the model.
constexpr int64_t kFreeTotal = 64 << 20, kTotalPerByte = 16;  // bytes of all values made on the way
constexpr int64_t kFreeWork = 1 << 29, kWorkPerByte = 256;    // elements evaluated (work_of)

struct Budget {
  int64_t constants = 0;  // bytes of the module's constants
  int64_t bytes = 0, work = 0;

  explicit Budget(const ir::Module& module) {
    std::unordered_set<const void*> seen;
    for (const auto& [name, function] : module.functions) {
      ir::post_order(function, [&](const Expr& expr) {
        const auto* constant = expr.as<ir::Constant>();
        if (constant && seen.insert(constant->value.data()).second)
          constants += static_cast<int64_t>(constant->value.bytes());
      });
    }
    bytes = kFreeTotal + kTotalPerByte * constants;
    work = kFreeWork + kWorkPerByte * constants;
  }

  // Whether the call can still be paid; pays it.
  bool pay(const ir::Call& call) {
    const int64_t size = static_bytes(call.type);
    if (size > bytes) return false;
    const int64_t steps = work_of(call);
    if (steps > work) return false;
    bytes -= size;
    work -= steps;
    return true;
  }
};

// Whether an attribute is an expression over symbols.
bool symbolic(const ir::Attrs& attrs) {
  for (size_t i = 0; i < attrs.schema().size(); ++i) {
    const ir::AttrValue value = attrs.get(i);
    const auto* dim = std::get_if<Dim>(&value);
    const auto* shape = std::get_if<Shape>(&value);
    if ((dim && !dim->is_const()) || (shape && !is_static(*shape))) return true;
  }
  return false;
}

// What is constant in one function.
struct Analysis {
  std::unordered_map<const ir::ExprNode*, int64_t>
      constant;             // constant expressions, with the bytes of constants they are made of
  std::vector<Expr> roots;  // largest foldable ones
};

class Analyser {
 public:
  explicit Analyser(Budget& budget) : budget_(budget) {}

  Analysis run(const Expr& function) {
    mark_primitive_bodies(function);
    std::vector<Expr> order;
    ir::post_order(function, [&](const Expr& expr) {
      order.push_back(expr);
      if (inside_primitive_.count(expr.get())) return;
      const int64_t made_of = source_bytes(expr);
      if (made_of >= 0) analysis_.constant.emplace(expr.get(), made_of);
    });
    find_roots(order);
    return std::move(analysis_);
  }

 private:
  void mark_primitive_bodies(const Expr& root) {
    ir::post_order(root, [&](const Expr& expr) {
      const auto* function = expr.as<ir::Function>();
      if (function && function->is_primitive())
        ir::post_order(function->body, [&](const Expr& inner) { inside_primitive_.insert(inner.get()); });
    });
  }

  // Bytes of the constants below; -1 when the expression is not constant.
  int64_t source_bytes(const Expr& expr) {
    if (const auto* constant = expr.as<ir::Constant>()) return static_cast<int64_t>(constant->value.bytes());
    const ir::Call* call = op_call(expr);
    if (call) {
      const ir::Op& op = *call->op();
      if (!op.has(ir::kPure) || op.has(ir::kDataDependentShape) || static_bytes(expr.type()) < 0) return -1;
      if (call->attrs && symbolic(*call->attrs)) return -1;  // arange(first=N, stop=N + 1) is no constant
    } else if (!expr.as<ir::Tuple>() && !expr.as<ir::TupleGetItem>()) {
      return -1;
    }
    int64_t bytes = 0;
    for (const Expr& child : ir::children(expr)) {
      auto found = analysis_.constant.find(child.get());
      if (found == analysis_.constant.end()) return -1;
      bytes += found->second;
    }
    if (call && !budget_.pay(*call)) return -1;
    return std::min(bytes, budget_.constants);  // a value used twice counts twice, but there is no more than all
  }

  bool worth_folding(const Expr& expr) const {
    const ir::Call* call = op_call(expr);
    if (!call || call->op()->has(ir::kCreation)) return false;
    const int64_t bytes = static_bytes(expr.type());
    return bytes >= 0 && bytes <= kFreeBytes + kMaxGrowth * analysis_.constant.at(expr.get());
  }

  // A root is a foldable call that something not constant uses, or that a constant call which is not worth folding
  // uses.
  void find_roots(const std::vector<Expr>& order) {
    std::unordered_set<const ir::ExprNode*> taken;
    auto want = [&](const Expr& expr) {
      std::vector<Expr> work = {expr};
      while (!work.empty()) {
        Expr current = work.back();
        work.pop_back();
        if (!analysis_.constant.count(current.get()) || !taken.insert(current.get()).second) continue;
        if (worth_folding(current))
          analysis_.roots.push_back(current);
        else
          for (const Expr& child : ir::children(current)) work.push_back(child);
      }
    };
    for (const Expr& expr : order) {
      if (inside_primitive_.count(expr.get()) || analysis_.constant.count(expr.get())) continue;
      for (const Expr& child : ir::children(expr)) want(child);
    }
  }

  Budget& budget_;
  Analysis analysis_;
  std::unordered_set<const ir::ExprNode*> inside_primitive_;
};

// Puts the computed values in place, and takes the branch of an If whose condition is constant.
class Replacer : public ir::Mutator {
 public:
  Replacer(const std::unordered_map<const ir::ExprNode*, Expr>& values, PassContext& context)
      : values_(values), context_(context) {}

 protected:
  Expr enter(const Expr& expr) override {
    auto found = values_.find(expr.get());
    if (found != values_.end()) return found->second;
    const auto* function = expr.as<ir::Function>();
    return function && function->is_primitive() ? expr : Expr();
  }

  Expr rewrite(const Expr&, const Expr& after) override {
    if (const auto* branch = after.as<ir::If>()) {
      const auto* condition = branch->condition.as<ir::Constant>();
      if (condition && context_.allow_rewrite())
        return condition->value.int_at(0) ? branch->then_branch : branch->else_branch;
    }
    const auto* item = after.as<ir::TupleGetItem>();
    const auto* tuple = item ? item->tuple.as<ir::Tuple>() : nullptr;
    return tuple ? tuple->fields[item->index] : after;
  }

 private:
  const std::unordered_map<const ir::ExprNode*, Expr>& values_;
  PassContext& context_;
};

Expr as_constant(const Expr& root, const std::vector<Tensor>& values) {
  if (as_tensor(root.type())) return ir::constant(values.at(0), root->span);
  std::vector<Expr> fields;
  for (const Tensor& value : values) fields.push_back(ir::constant(value, root->span));
  return ir::tuple(std::move(fields), root->span);
}

}  // namespace

ir::Module fold_constant(const ir::Module& module, PassContext& context) {
  std::vector<Expr> roots;
  Budget budget(module);
  for (const auto& [name, function] : module.functions) {
    for (const Expr& root : Analyser(budget).run(function).roots) {
      if (context.allow_rewrite()) roots.push_back(root);
    }
  }
  std::vector<std::vector<Tensor>> results;
  if (!roots.empty() && context.evaluator) {
    results = context.evaluator(roots);
  } else {
    for (const Expr& root : roots) results.push_back(interpret(root));
  }
  std::unordered_map<const ir::ExprNode*, Expr> values;
  for (size_t i = 0; i < roots.size(); ++i) values[roots[i].get()] = as_constant(roots[i], results[i]);
  ir::Module result = module;
  for (auto& [name, function] : result.functions) function = Replacer(values, context).mutate(function);
  return result;
}

}  // namespace treadle::pass
