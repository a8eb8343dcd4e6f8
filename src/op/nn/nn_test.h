// SPDX-License-Identifier: Apache-2.0
// For tests of the nn operators: runs on plain tensors, patterns of values, comparison, and index arithmetic of
// references.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/infer.h"
#include "op/op_test.h"
#include "op/relations.h"

namespace treadle::op::test {

inline ir::Expr var(std::string name, Shape shape, DType dtype = dtype::float32_) {
  register_operators();
  return ir::var(std::move(name), tensor_type(std::move(shape), dtype));
}

// The outputs of an operator by name on these tensors.
inline Values run_op_all(std::string_view op, const std::vector<Tensor>& inputs, const ir::AttrMap& attrs = {}) {
  Evaluator evaluator;
  std::vector<ir::Expr> args;
  for (const Tensor& tensor : inputs) {
    args.push_back(var("x" + std::to_string(args.size()), to_shape(tensor.shape()), tensor.dtype()));
    evaluator.set(args.back(), tensor);
  }
  return evaluator.evaluate(ir::call(op, args, attrs));
}

inline Tensor run_op(std::string_view op, const std::vector<Tensor>& inputs, const ir::AttrMap& attrs = {}) {
  return run_op_all(op, inputs, attrs).at(0);
}

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

}  // namespace treadle::op::test
