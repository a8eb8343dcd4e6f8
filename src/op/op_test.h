// SPDX-License-Identifier: Apache-2.0
// For tests: the value of an expression of the graph IR, operator by operator. A call is computed by its tensor
// expressions through lower_naive and the interpreter of the loop IR, or by its decomposition, or by a runtime kernel
// where a test supplies them.
#pragma once

#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/op.h"
#include "ir/visitor.h"
#include "loop/stmt.h"
#include "op/register.h"

namespace treadle::op::test {

using Values = std::vector<Tensor>;  // a tuple's tensors, flattened
using Symbols = std::map<std::string, int64_t>;

// Runs a kernel of the runtime: `outputs` are allocated; gives the kernel's results. Folders left of runtime/kernels
// leave it empty.
using KernelRunner = std::function<std::vector<int64_t>(const ir::RuntimeCall&, const Values& inputs, Values& outputs)>;

inline void bind(const Shape& shape, const std::vector<int64_t>& extents, Symbols& symbols) {
  TREADLE_CHECK(shape.size() == extents.size(), "shape {} for rank {}", to_string(shape), extents.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (const auto name = shape[i].as_symbol()) symbols.emplace(*name, extents[i]);
  }
}

inline std::vector<int64_t> extents_of(const Shape& shape, const Symbols& symbols) {
  std::vector<int64_t> result;
  for (const Dim& dim : shape) result.push_back(dim.evaluate(symbols));
  return result;
}

class Evaluator {
 public:
  explicit Evaluator(KernelRunner kernels = {}) : kernels_(std::move(kernels)) {}

  void set(const ir::Expr& var, const Tensor& value) {
    if (const TensorType* type = as_tensor(var.type())) bind(type->shape, value.shape(), symbols_);
    keep_[var.get()] = var;
    memo_[var.get()] = {value};
  }

  Values evaluate(const ir::Expr& root) {
    ir::post_order(root, [&](const ir::Expr& expr) {
      if (memo_.contains(expr.get())) return;
      if (const auto* let = expr.as<ir::Let>(); let) {
        memo_[expr.get()] = memo_.at(let->body.get());
      } else if (expr.kind() == ir::ExprKind::Var || expr.kind() == ir::ExprKind::Op) {
        return;  // a bound variable gets its value with its binding
      } else {
        memo_[expr.get()] = value_of(expr);
      }
      keep_[expr.get()] = expr;
    });
    return memo_.at(root.get());
  }

  const Symbols& symbols() const { return symbols_; }

 private:
  Values value_of(const ir::Expr& expr) {
    if (const auto* constant = expr.as<ir::Constant>()) return {constant->value};
    if (const auto* tuple = expr.as<ir::Tuple>()) {
      Values result;
      for (const ir::Expr& field : tuple->fields) {
        for (const Tensor& value : memo_.at(field.get())) result.push_back(value);
      }
      return result;
    }
    if (const auto* item = expr.as<ir::TupleGetItem>()) return {memo_.at(item->tuple.get()).at(item->index)};
    const auto* call = expr.as<ir::Call>();
    TREADLE_CHECK(call && call->op(), "the evaluator of the tests does not know this kind of expression");
    Values inputs;
    for (const ir::Expr& arg : call->args) {
      for (const Tensor& value : memo_.at(arg.get())) inputs.push_back(value);
    }
    const ir::Op& op = *call->op();
    if (op.compute) return run_compute(*call, inputs);
    if (op.runtime && kernels_) return run_kernel(*call, inputs);
    TREADLE_CHECK(op.decompose != nullptr, "operator {} needs a runtime kernel", op.name);
    const ir::Expr simpler = op.decompose(*call);
    TREADLE_CHECK(equal(simpler.type(), call->type), "{} decomposes into {} instead of {}", op.name,
                  to_string(simpler.type()), to_string(call->type));
    return Evaluator::evaluate(simpler);
  }

  Values allocate(const Type& type) const {
    Values result;
    for (const TensorType* tensor : flatten_tuple_type(type))
      result.emplace_back(tensor->dtype, extents_of(tensor->shape, symbols_));
    return result;
  }

  Values run_compute(const ir::Call& call, const Values& inputs) {
    std::vector<loop::Tensor> placeholders;
    for (const ir::Expr& arg : call.args) {
      for (const TensorType* type : flatten_tuple_type(arg.type())) {
        placeholders.push_back(
            loop::placeholder("x" + std::to_string(placeholders.size()), loop::to_exprs(type->shape), type->dtype));
      }
    }
    const std::vector<loop::Tensor> tensors = call.op()->compute(call, placeholders);
    const loop::Function function = loop::lower_naive(call.op()->name, placeholders, tensors);
    Values outputs = allocate(call.type);
    TREADLE_CHECK(outputs.size() == tensors.size(), "{} computes {} outputs of {}", call.op()->name, tensors.size(),
                  outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      TREADLE_CHECK(tensors[i].dtype() == outputs[i].dtype() && tensors[i].rank() == outputs[i].shape().size(),
                    "{} computes {} of rank {}, its type is {}", call.op()->name, to_string(tensors[i].dtype()),
                    tensors[i].rank(), to_string(call.type));
    }
    std::vector<Tensor> args = inputs;
    args.insert(args.end(), outputs.begin(), outputs.end());
    std::vector<int64_t> scalars;
    for (const loop::Var& scalar : function.scalars) scalars.push_back(symbols_.at(scalar.name()));
    loop::interpret(function, args, scalars);
    return outputs;
  }

  Values run_kernel(const ir::Call& call, const Values& inputs) {
    const ir::RuntimeCall kernel = call.op()->runtime(call);
    Values outputs;
    if (kernel.result_symbols.empty()) {
      outputs = allocate(call.type);
    } else {
      const std::vector<const TensorType*> types = flatten_tuple_type(call.type);
      for (size_t i = 0; i < types.size(); ++i)
        outputs.emplace_back(types[i]->dtype, extents_of(kernel.output_bounds[i], symbols_));
    }
    const std::vector<int64_t> results = kernels_(kernel, inputs, outputs);
    for (size_t i = 0; i < kernel.result_symbols.size(); ++i) symbols_[kernel.result_symbols[i]] = results.at(i);
    if (kernel.result_symbols.empty()) return outputs;
    // The kernel fills the front of its bound; outputs are dense in their real shape.
    Values cut;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor& whole = outputs[i];
      Tensor part(whole.dtype(), extents_of(flatten_tuple_type(call.type)[i]->shape, symbols_));
      std::copy_n(static_cast<const char*>(whole.data()), part.bytes(), static_cast<char*>(part.data()));
      cut.push_back(part);
    }
    return cut;
  }

  KernelRunner kernels_;
  Symbols symbols_;
  std::unordered_map<const ir::ExprNode*, Values> memo_;
  std::unordered_map<const ir::ExprNode*, ir::Expr> keep_;  // keeps the keys of memo_ alive
};

// The value of an expression whose leaves are constants.
inline Values run_all(const ir::Expr& expr) {
  register_operators();
  return Evaluator().evaluate(expr);
}
inline Tensor run(const ir::Expr& expr) { return run_all(expr).at(0); }

// The value of f(variables) where the variables have these types (with symbols) and values.
inline Tensor run(const std::vector<std::pair<Type, Tensor>>& inputs,
                  const std::function<ir::Expr(const std::vector<ir::Expr>&)>& f) {
  register_operators();
  Evaluator evaluator;
  std::vector<ir::Expr> vars;
  for (const auto& [type, value] : inputs) {
    vars.push_back(ir::var("x" + std::to_string(vars.size()), type));
    evaluator.set(vars.back(), value);
  }
  return evaluator.evaluate(f(vars)).at(0);
}

// A call by name, with attributes by name.
inline ir::Expr call(std::string_view op, std::vector<ir::Expr> args, const ir::AttrMap& attrs = {}) {
  register_operators();
  return ir::call(op, std::move(args), attrs);
}

template <typename T>
ir::Expr constant(const std::vector<T>& values, std::vector<int64_t> shape) {
  return ir::constant(Tensor::from(values, std::move(shape)));
}
template <typename T>
ir::Expr constant(const std::vector<T>& values) {
  return ir::constant(Tensor::from(values));
}

// 0, 1, 2, … in float32.
inline ir::Expr counting(std::vector<int64_t> shape) {
  std::vector<float> values(element_count(shape));
  std::iota(values.begin(), values.end(), 0.0f);
  return constant(values, std::move(shape));
}

// The elements as doubles, for comparisons.
inline std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.size(); ++i) result.push_back(tensor.at(i));
  return result;
}

}  // namespace treadle::op::test
