// SPDX-License-Identifier: Apache-2.0
// Traversals of the graph IR. All are iterative: a chain of 100,000 calls costs no stack.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"

namespace treadle::ir {

// The direct operands of a node, in evaluation order (callee first when it is no operator; let: value, body; function:
// body).
std::vector<Expr> children(const Expr& expr);

// Calls f once per node reachable from `root`, operands before users.
void post_order(const Expr& root, const std::function<void(const Expr&)>& f);

// Rebuilds a graph bottom-up. Derived classes change single nodes: `rewrite(before, after)` gets the original node and
// the node with its operands already rewritten (the same pointer when none changed) and gives the replacement. Types of
// rebuilt calls are inferred.
class Mutator {
 public:
  virtual ~Mutator() = default;
  Expr mutate(const Expr& root);

 protected:
  virtual Expr rewrite(const Expr& before, const Expr& after) = 0;
  // Called before a node's operands; a defined result replaces the node without looking inside.
  virtual Expr enter(const Expr&) { return Expr(); }
  // What a node has become; identity for a node not seen yet.
  Expr mapped(const Expr& before) const;

 private:
  std::unordered_map<const ExprNode*, Expr> memo_;
  std::vector<Expr> keep_alive_;
};

// A copy of `expr` with other operands (as `children` lists them); calls are inferred again.
Expr with_children(const Expr& expr, const std::vector<Expr>& operands);

// Replaces variables (by pointer); other parts are shared.
Expr substitute(const Expr& expr, const std::map<const ExprNode*, Expr>& values);
// Variables used but not bound inside, in order of first use.
std::vector<Expr> free_vars(const Expr& expr);
// How many users each node has in the graph of `root` (edges, not distinct users; the root counts one).
std::unordered_map<const ExprNode*, int> count_uses(const Expr& root);
// A number above those of all anonymous symbols in the module's types, for AnonymousScope.
int64_t first_free_anonymous(const Module& module);

}  // namespace treadle::ir
