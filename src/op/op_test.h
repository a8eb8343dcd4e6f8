// SPDX-License-Identifier: Apache-2.0
// For tests of operators: evaluates graph expressions with the reference interpreter of the loop IR.
#pragma once

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/infer.h"
#include "ir/visitor.h"
#include "loop/stmt.h"
#include "op/register.h"
#include "op/relations.h"

namespace treadle::op::testing {

using Values = std::map<const ir::ExprNode*, Tensor>;

// Evaluates expressions of Vars, Constants, operator Calls, Tuples and TupleGetItems.
class Evaluator {
 public:
  // `inputs`: a tensor for every Var. Symbols of the Vars' types are bound by the tensors' extents.
  explicit Evaluator(Values inputs) : inputs_(std::move(inputs)) {
    for (const auto& [node, tensor] : inputs_) {
      const TensorType* type = as_tensor(node->type);
      for (size_t i = 0; type && i < type->shape.size(); ++i) {
        if (const auto name = type->shape[i].as_symbol()) symbols_[*name] = tensor.shape()[i];
      }
    }
  }

  std::vector<Tensor> evaluate(const ir::Expr& root) {
    ir::post_order(root, [&](const ir::Expr& expr) {
      if (!results_.count(expr.get()) && expr.kind() != ir::ExprKind::Op) results_[expr.get()] = evaluate_node(expr);
    });
    return results_.at(root.get());
  }

 private:
  std::vector<Tensor> evaluate_node(const ir::Expr& expr) {
    if (expr.as<ir::Var>()) return {inputs_.at(expr.get())};
    if (const auto* constant = expr.as<ir::Constant>()) return {constant->value};
    if (const auto* item = expr.as<ir::TupleGetItem>())
      return {results_.at(item->tuple.get()).at(static_cast<size_t>(item->index))};
    if (const auto* tuple = expr.as<ir::Tuple>()) return flat(tuple->fields);
    const auto* call = expr.as<ir::Call>();
    TREADLE_CHECK(call && call->op(), "not an operator call");
    if (!call->op()->compute) {
      TREADLE_CHECK(call->op()->decompose, "{} has neither compute nor decompose", call->op()->name);
      return evaluate(call->op()->decompose(*call));
    }
    return compute(*call, flat(call->args));
  }

  std::vector<Tensor> flat(const std::vector<ir::Expr>& exprs) {
    std::vector<Tensor> result;
    for (const ir::Expr& e : exprs) {
      for (const Tensor& t : results_.at(e.get())) result.push_back(t);
    }
    return result;
  }

  std::vector<Tensor> compute(const ir::Call& call, const std::vector<Tensor>& args) {
    std::vector<loop::Tensor> inputs;
    for (const TensorType* type : input_types(call)) {
      inputs.push_back(
          loop::placeholder("x" + std::to_string(inputs.size()), loop::to_exprs(type->shape), type->dtype));
    }
    const std::vector<loop::Tensor> outputs = call.op()->compute(call, inputs);
    const loop::Function function = loop::lower_naive("test", inputs, outputs);
    loop::verify(function);
    std::vector<Tensor> tensors = args, results;
    for (const TensorType* type : output_types(call)) {
      std::vector<int64_t> shape;
      for (const Dim& dim : type->shape) shape.push_back(dim.evaluate(symbols_));
      results.emplace_back(type->dtype, shape);
    }
    EXPECT_EQ(outputs.size(), results.size());
    for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(to_string(outputs[i].dtype()), to_string(results[i].dtype()));
    tensors.insert(tensors.end(), results.begin(), results.end());
    std::vector<int64_t> scalars;
    for (const loop::Var& scalar : function.scalars) scalars.push_back(symbols_.at(scalar.name()));
    loop::interpret(function, tensors, scalars);
    return results;
  }

  Values inputs_;
  std::map<std::string, int64_t> symbols_;
  std::map<const ir::ExprNode*, std::vector<Tensor>> results_;
};

inline ir::Expr var(std::string name, Shape shape, DType dtype = dtype::float32_) {
  register_operators();
  return ir::var(std::move(name), tensor_type(std::move(shape), dtype));
}

// The outputs of an operator by name on these tensors.
inline std::vector<Tensor> run_all(std::string_view op, const std::vector<Tensor>& inputs,
                                   const ir::AttrMap& attrs = {}) {
  register_operators();
  std::vector<ir::Expr> args;
  Values values;
  for (const Tensor& tensor : inputs) {
    args.push_back(var("x" + std::to_string(args.size()), to_shape(tensor.shape()), tensor.dtype()));
    values[args.back().get()] = tensor;
  }
  return Evaluator(values).evaluate(ir::call(op, args, attrs));
}

inline Tensor run(std::string_view op, const std::vector<Tensor>& inputs, const ir::AttrMap& attrs = {}) {
  return run_all(op, inputs, attrs).at(0);
}

inline Tensor run(const ir::Expr& expr, const Values& values) { return Evaluator(values).evaluate(expr).at(0); }

// The type text of a call on Vars of these types; "" when it is not known.
inline std::string type_of(std::string_view op, const std::vector<Type>& types, const ir::AttrMap& attrs = {}) {
  register_operators();
  std::vector<ir::Expr> args;
  for (const Type& type : types) args.push_back(ir::var("x" + std::to_string(args.size()), type));
  const ir::Expr call = ir::call(op, args, attrs);
  return call.type() ? to_string(call.type()) : "";
}

// The whole text of the error that `f` throws; fails the test when it throws none, or another kind.
inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

// Values that differ from element to element, in -2 … 2 (integers: -4 … 4; unsigned: 0 … 8), the same for the same
// seed.
inline Tensor pattern(DType dtype, const std::vector<int64_t>& shape, int seed = 1) {
  Tensor tensor(dtype, shape);
  uint64_t state = 0x9e3779b97f4a7c15ULL * static_cast<uint64_t>(seed + 1);
  visit(dtype, [&]<typename T>() {
    for (T& value : tensor.values<T>()) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const double unit = static_cast<double>(state >> 40) / static_cast<double>(1 << 24);
      if (dtype.is_float())
        value = static_cast<T>(static_cast<float>(4 * unit - 2));
      else if (dtype.is_bool())
        value = static_cast<T>(unit < 0.5);
      else
        value = static_cast<T>(static_cast<int>(9 * unit) - (dtype.is_int() ? 4 : 0));
    }
  });
  return tensor;
}

// Fails unless shapes are equal and values too within rtol and atol; NaN equals NaN.
inline void expect_close(const Tensor& actual, const Tensor& expected, double rtol = 1e-5, double atol = 1e-6) {
  ASSERT_EQ(actual.shape(), expected.shape());
  int shown = 0;
  for (int64_t i = 0; i < actual.size() && shown < 4; ++i) {
    const double a = actual.at(i), e = expected.at(i);
    const bool same = a == e || (std::isnan(a) && std::isnan(e)) || std::abs(a - e) <= atol + rtol * std::abs(e);
    if (!same) ++shown, ADD_FAILURE() << "element " << i << " is " << a << ", expected " << e;
  }
}

// Index arithmetic of dense tensors for references in tests.
inline int64_t at(const Tensor& tensor, const std::vector<int64_t>& index) {
  int64_t flat = 0;
  for (size_t i = 0; i < index.size(); ++i) flat = flat * tensor.shape()[i] + index[i];
  return flat;
}

// A float32 or float64 tensor whose element at each index is f(index).
inline Tensor filled(const std::vector<int64_t>& shape, const std::function<double(const std::vector<int64_t>&)>& f,
                     DType dtype = dtype::float32_) {
  Tensor tensor(dtype, shape);
  std::vector<int64_t> index(shape.size(), 0);
  visit(dtype, [&]<typename T>() {
    for (T& value : tensor.values<T>()) {
      value = static_cast<T>(f(index));
      for (size_t a = shape.size(); a-- > 0;) {
        if (++index[a] < shape[a]) break;
        index[a] = 0;
      }
    }
  });
  return tensor;
}

// The tensor in another layout.
inline Tensor relayout(const Tensor& tensor, const std::string& from, const std::string& to) {
  const LayoutMap map{Layout(from), Layout(to)};
  const std::vector<int64_t> shape = static_extents(map.forward_shape(to_shape(tensor.shape())));
  return filled(
      shape,
      [&](const std::vector<int64_t>& index) {
        const auto source = map.source_index(
            index, [](int64_t a, int64_t b) { return a / b; }, [](int64_t a, int64_t b) { return a % b; });
        return tensor.at(at(tensor, source));
      },
      tensor.dtype());
}

}  // namespace treadle::op::testing
