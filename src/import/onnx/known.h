// SPDX-License-Identifier: Apache-2.0
// Values that are known at import: small constants, and integers that are expressions over the symbols of shapes.
// Chains of operators on them (Shape, Gather, Concat, Mul, …) are evaluated here, so that what ends in a shape, a slice
// or a range stays symbolic.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "runtime/tensor.h"
#include "type/dim.h"

namespace treadle::onnx {

// One element: an integer expression, or a real number that is not integral.
struct Element {
  Dim dim;
  double real = 0;
  bool is_real = false;

  Element(Dim dim = 0) : dim(std::move(dim)) {}  // NOLINT(google-explicit-constructor)
  static Element of(double value);
  bool is_const() const { return is_real || dim.is_const(); }
  double number() const { return is_real ? real : static_cast<double>(dim.value()); }  // is_const() must hold
};

// dtype: bool, int32, int64, float32 or float64; at most kMaxKnown elements. Elements of float dtypes may be symbolic
// integers.
struct Known {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<Element> values;

  bool is_const() const;
  // As integer expressions; nullopt when one is a real number.
  std::optional<std::vector<Dim>> dims() const;
};

inline constexpr int64_t kMaxKnown = 4096;

bool may_be_known(DType dtype);
// Nullopt when the dtype or the size is no candidate.
std::optional<Known> known_of(const Tensor& tensor);
// A constant, or the symbolic values made from nothing but the extents.
ir::Expr to_expr(const Known& known, const Span& span);

// Result of an elementwise operator with NumPy broadcasting; nullopt when it cannot be told.
using ElementFn = std::function<std::optional<Element>(const std::vector<Element>&)>;
std::optional<Known> map_known(const std::vector<const Known*>& inputs, DType dtype, const ElementFn& f);

// The elementwise operator of this name on elements of `dtype`, which the operands have; null when there is none.
ElementFn element_function(const std::string& op_type, DType dtype);
// Conversion of one element; nullopt when it cannot be told.
std::optional<Element> convert_element(const Element& x, DType from, DType to);

// Pieces of a known tensor; nullopt only where the result would be too large.
std::optional<Known> take_known(const Known& x, const Known& indices, int64_t axis);
std::optional<Known> concat_known(const std::vector<const Known*>& parts, int64_t axis);
std::optional<Known> transpose_known(const Known& x, const std::vector<int64_t>& axes);
std::optional<Known> slice_known(const Known& x, int64_t axis, int64_t start, int64_t stride, int64_t length);
std::optional<Known> expand_known(const Known& x, const std::vector<int64_t>& shape);
Known filled_known(DType dtype, std::vector<int64_t> shape, const Element& value);

}  // namespace treadle::onnx
