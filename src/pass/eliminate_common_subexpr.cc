// SPDX-License-Identifier: Apache-2.0
// Computes equal calls once.
//
//   add(relu(%x), relu(%x)')   =>   %0 = relu(%x); add(%0, %0)
//
// When:   same pure operator, equal attributes, and arguments that are the same values; constants of at most kMaxScalar
// elements are
//         compared by value. Projections of one tuple likewise.
// Values: equal.
#include <unordered_map>

#include "base/hash.h"
#include "pass/passes.h"
#include "pass/rewriter.h"

namespace treadle::pass {
namespace {

using ir::Expr;

constexpr int64_t kMaxScalar = 16;

class Eliminator : public ir::Mutator {
 public:
  explicit Eliminator(PassContext& context) : context_(context) {}

 protected:
  Expr enter(const Expr& expr) override {
    const auto* function = expr.as<ir::Function>();
    return function && function->is_primitive() ? expr : Expr();
  }

  Expr rewrite(const Expr&, const Expr& after) override {
    if (!candidate(after)) return after;
    const uint64_t key = hash(after);
    auto [begin, end] = known_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
      if (same(it->second, after) && context_.allow_rewrite()) return it->second;
    }
    known_.emplace(key, after);
    return after;
  }

 private:
  static bool candidate(const Expr& expr) {
    if (const ir::Call* call = op_call(expr))
      return call->op()->has(ir::kPure) && !call->op()->has(ir::kDataDependentShape);
    if (const auto* constant = expr.as<ir::Constant>()) return constant->value.size() <= kMaxScalar;
    return expr.as<ir::TupleGetItem>() || expr.as<ir::Tuple>();
  }

  static uint64_t hash(const Expr& expr) {
    uint64_t key = static_cast<uint64_t>(expr.kind());
    if (const auto* constant = expr.as<ir::Constant>()) {
      return hash_bytes(constant->value.data(), constant->value.bytes(), hash_combine(key, treadle::hash(expr.type())));
    }
    if (const ir::Call* call = op_call(expr)) {
      key = hash_combine(key, hash_string(call->op()->name));
      if (call->attrs) key = hash_combine(key, call->attrs->hash());
    } else if (const auto* item = expr.as<ir::TupleGetItem>()) {
      key = hash_combine(key, static_cast<uint64_t>(item->index));
    }
    for (const Expr& child : ir::children(expr)) key = hash_combine(key, reinterpret_cast<uintptr_t>(child.get()));
    return key;
  }

  static bool same(const Expr& a, const Expr& b) {
    if (a.kind() != b.kind()) return false;
    if (const auto* constant = a.as<ir::Constant>()) return constant->value.identical(b.as<ir::Constant>()->value);
    const std::vector<Expr> x = ir::children(a), y = ir::children(b);
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!x[i].same_as(y[i])) return false;
    }
    if (const ir::Call* call = op_call(a)) {
      const ir::Call* other = op_call(b);
      if (call->op() != other->op()) return false;
      return call->attrs == other->attrs || (call->attrs && other->attrs && call->attrs->equals(*other->attrs));
    }
    if (const auto* item = a.as<ir::TupleGetItem>()) return item->index == b.as<ir::TupleGetItem>()->index;
    return true;
  }

  PassContext& context_;
  std::unordered_multimap<uint64_t, Expr> known_;
};

}  // namespace

ir::Module eliminate_common_subexpr(const ir::Module& module, PassContext& context) {
  ir::Module result = module;
  for (auto& [name, function] : result.functions) {
    Eliminator eliminator(context);
    function = eliminator.mutate(function);
  }
  return result;
}

}  // namespace treadle::pass
