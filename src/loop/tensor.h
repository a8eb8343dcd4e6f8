// SPDX-License-Identifier: Apache-2.0
// Tensor expressions: *what* is computed. An operator's compute makes them; lowering turns them into loop nests.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "loop/expr.h"

namespace treadle::loop {

struct TensorNode;

// A tensor: a placeholder (an input) or one definition, an expression for each element. Shared, identity is the
// pointer.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::shared_ptr<const TensorNode> node) : node_(std::move(node)) {}
  bool defined() const { return node_ != nullptr; }
  const TensorNode* operator->() const { return node_.get(); }
  const TensorNode* get() const { return node_.get(); }
  const std::shared_ptr<const TensorNode>& node() const { return node_; }
  const std::vector<Expr>& shape() const;
  const Expr& shape(size_t axis) const { return shape()[axis]; }
  size_t rank() const { return shape().size(); }
  DType dtype() const;
  // The element at `indices`, one per axis.
  Expr operator()(std::vector<Expr> indices) const;
  template <typename... Indices>
  Expr operator()(Indices... indices) const {
    return (*this)(std::vector<Expr>{Expr(indices)...});
  }

 private:
  std::shared_ptr<const TensorNode> node_;
};

// value[axes] combined over reduce_axes, starting from `init` (by default the operator's neutral element).
struct Reduction {
  ReduceOp op;
  std::vector<Var> axes;  // each runs over 0 … extent-1
  std::vector<Expr> extents;
  Expr init;  // defined: the start value; may use the tensor's axes
};

struct TensorNode {
  Buffer buffer;                       // its memory: name, dtype, shape
  std::vector<Var> axes;               // one per axis of the buffer; empty in a placeholder
  Expr value;                          // undefined: a placeholder
  std::optional<Reduction> reduction;  // then `value` is what is combined
  std::vector<Tensor> inputs;          // tensors that `value` loads, in the order of first use

  bool is_placeholder() const { return !value.defined(); }
};

Tensor placeholder(std::string name, std::vector<Expr> shape, DType dtype);
// The tensor whose element at indices i is f(i).
Tensor compute(std::string name, std::vector<Expr> shape, const std::function<Expr(const std::vector<Var>&)>& f);
// The tensor whose element at i is f(i, k) combined over all k in 0…extents-1.
Tensor reduce(std::string name, std::vector<Expr> shape, ReduceOp op, std::vector<Expr> extents,
              const std::function<Expr(const std::vector<Var>& i, const std::vector<Var>& k)>& f, Expr init = Expr());

// All tensors that `outputs` need, inputs before users, each once.
std::vector<Tensor> topological_order(const std::vector<Tensor>& outputs);

}  // namespace treadle::loop
