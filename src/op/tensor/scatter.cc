// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/scatter.h"

#include <algorithm>
#include <array>

#include "op/relations.h"

namespace treadle::op {
namespace {

void require_integer(const ir::Relation& relation, size_t i) {
  const TensorType* x = relation.tensor(i);
  if (x && !x->dtype.is_integer())
    fail(ErrorCode::TypeMismatch, "indices are {}, they must be integers", to_string(x->dtype));
}

// As the kernels number them.
int64_t reduction_code(const std::string& name) {
  static const std::array<std::string, 6> names{"update", "add", "mul", "min", "max", "mean"};
  return std::find(names.begin(), names.end(), name) - names.begin();
}

void check_equal(const Shape& a, const Shape& b, const char* what) {
  if (!assume_same_shape(a, b))
    fail(ErrorCode::TypeMismatch, "{} have shape {}, expected {}", what, to_string(a), to_string(b));
}

void elements_relation(ir::Relation& relation) {
  require_integer(relation, 1);
  require_same_dtype(relation, 0, 2);
  const TensorType *x = relation.tensor(0), *indices = relation.tensor(1), *updates = relation.tensor(2);
  if (indices && updates) check_equal(updates->shape, indices->shape, "updates");
  if (!x) return;
  const int64_t axis = normalise_axis(relation.attrs<ScatterElementsAttrs>().axis, x->shape.size());
  require_rank(relation, 1, x->shape.size());
  for (size_t i = 0; indices && i < x->shape.size(); ++i) {
    const Dim &a = indices->shape[i], &b = x->shape[i];
    if (static_cast<int64_t>(i) != axis && !assume_at_most(a, b))
      fail(ErrorCode::TypeMismatch, "indices of shape {} reach beyond {} on axis {}", to_string(indices->shape),
           to_string(x->shape), i);
  }
  relation.set_output(relation.input(0));
}

void nd_relation(ir::Relation& relation) {
  require_integer(relation, 1);
  require_same_dtype(relation, 0, 2);
  const TensorType *x = relation.tensor(0), *indices = relation.tensor(1), *updates = relation.tensor(2);
  if (!x) return;
  if (indices) {
    if (indices->shape.empty() || !indices->shape[0].is_const() ||
        indices->shape[0].value() > static_cast<int64_t>(x->shape.size()))
      fail(ErrorCode::TypeMismatch, "indices of shape {} hold no index tuples for shape {}", to_string(indices->shape),
           to_string(x->shape));
    Shape expected(indices->shape.begin() + 1, indices->shape.end());
    expected.insert(expected.end(), x->shape.begin() + indices->shape[0].value(), x->shape.end());
    if (updates) check_equal(updates->shape, expected, "updates");
  }
  relation.set_output(relation.input(0));
}

void argwhere_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  relation.set_output(tensor_type({Dim::any(), static_cast<int64_t>(x->shape.size())}, dtype::int32_));
}

ir::RuntimeCall argwhere_runtime(const ir::Call& call) {
  const std::optional<std::string> rows = output_shape(call)[0].as_symbol();
  TREADLE_CHECK(rows.has_value(), "argwhere gives {}", to_string(call.type));
  return {"argwhere", {}, {*rows}, {{product(input_types(call)[0]->shape), output_shape(call)[1]}}};
}

}  // namespace

ir::Expr scatter_elements(ir::Expr x, ir::Expr indices, ir::Expr updates, int64_t axis, const std::string& reduction) {
  auto attrs = ScatterElementsAttrs::defaults();
  attrs->axis = axis;
  attrs->reduction = reduction;
  return call_op("scatter_elements", {std::move(x), std::move(indices), std::move(updates)}, std::move(attrs));
}

ir::Expr scatter_nd(ir::Expr x, ir::Expr indices, ir::Expr updates, const std::string& mode) {
  auto attrs = ScatterNdAttrs::defaults();
  attrs->mode = mode;
  return call_op("scatter_nd", {std::move(x), std::move(indices), std::move(updates)}, std::move(attrs));
}

void register_tensor_scatter(ir::OpRegistry& registry) {
  registry.add<ScatterElementsAttrs>("scatter_elements", "tensor/scatter")
      .summary("A tensor with single elements replaced or combined along an axis.")
      .formula("y = x, then y[i[a, b], b] = u[a, b] for axis 0")
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .input("indices", "integers, rank of x")
      .input("updates", "the shape of the indices, the dtype of x")
      .relation(elements_relation)
      .runtime([](const ir::Call& call) {
        const auto& attrs = attrs_of<ScatterElementsAttrs>(call);
        const int64_t axis = normalise_axis(attrs.axis, output_shape(call).size());
        return ir::RuntimeCall{"scatter_elements", {axis, reduction_code(attrs.reduction)}, {}, {}};
      });
  registry.add<ScatterNdAttrs>("scatter_nd", "tensor/scatter")
      .summary("A tensor with parts at index tuples replaced or combined.")
      .formula("y = x, then y[i[0, Y…], …, i[M-1, Y…], …] = u[Y…, …]")
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .input("indices", "(M, Y…) integers")
      .input("updates", "(Y…, the extents of x behind the first M), the dtype of x")
      .relation(nd_relation)
      .runtime([](const ir::Call& call) {
        return ir::RuntimeCall{"scatter_nd", {reduction_code(attrs_of<ScatterNdAttrs>(call).mode)}, {}, {}};
      });
  registry.add("argwhere", "tensor/scatter")
      .summary("The index tuples of the elements that are not zero.")
      .source("Relay 0.16; NumPy argwhere")
      .input("x", "any shape and dtype")
      .traits(ir::kDataDependentShape)
      .relation(argwhere_relation)
      .runtime(argwhere_runtime);
}

}  // namespace treadle::op
