// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/sort.h"

#include "op/relations.h"

namespace treadle::op {
namespace {

// ---- sort, argsort, topk ----

void check_integer(DType dtype) {
  if (!dtype.is_integer()) fail(ErrorCode::TypeAttribute, "dtype is {}, it must be an integer", to_string(dtype));
}

ir::RelationFn sort_relation(bool indices) {
  return [indices](ir::Relation& relation) {
    const TensorType* x = relation.tensor(0);
    if (!x) return;
    const auto& attrs = relation.attrs<SortAttrs>();
    normalise_axis(attrs.axis, x->shape.size());
    if (indices) check_integer(attrs.dtype);
    relation.set_output(tensor_type(x->shape, indices ? attrs.dtype : x->dtype));
  };
}

ir::RuntimeFn sort_runtime(const char* kernel) {
  return [kernel](const ir::Call& call) {
    const auto& attrs = attrs_of<SortAttrs>(call);
    return ir::RuntimeCall{kernel, {normalise_axis(attrs.axis, output_shape(call).size()), attrs.is_ascend}, {}, {}};
  };
}

void topk_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const auto& attrs = relation.attrs<TopkAttrs>();
  check_integer(attrs.dtype);
  Shape shape = x->shape;
  Dim& extent = shape[normalise_axis(attrs.axis, shape.size())];
  if (attrs.k >= 1) {
    if (!assume_at_most(attrs.k, extent))
      fail(ErrorCode::TypeMismatch, "k is {}, the axis has {} elements", attrs.k, to_string(extent));
    extent = attrs.k;
  }
  const Type values = tensor_type(shape, x->dtype), indices = tensor_type(shape, attrs.dtype);
  relation.set_output(attrs.ret_type == "values"    ? values
                      : attrs.ret_type == "indices" ? indices
                                                    : tuple_type({values, indices}));
}

ir::RuntimeCall topk_runtime(const ir::Call& call) {
  const auto& attrs = attrs_of<TopkAttrs>(call);
  const int64_t axis = normalise_axis(attrs.axis, input_types(call)[0]->shape.size());
  const int64_t kind = attrs.ret_type == "values" ? 1 : attrs.ret_type == "indices" ? 2 : 0;
  return {"topk", {axis, attrs.is_ascend, kind}, {}, {}};
}

// ---- searchsorted ----

void search_relation(ir::Relation& relation) {
  const TensorType *sequence = relation.tensor(0), *values = relation.tensor(1);
  const auto& attrs = relation.attrs<SearchSortedAttrs>();
  check_integer(attrs.dtype);
  require_same_dtype(relation, 0, 1);
  if (sequence && sequence->shape.empty()) fail(ErrorCode::TypeMismatch, "the sequence is a scalar");
  if (!sequence || !values) return;
  if (sequence->shape.size() != 1) {
    require_rank(relation, 1, sequence->shape.size());
    for (size_t i = 0; i + 1 < sequence->shape.size(); ++i) {
      if (!assume_equal(sequence->shape[i], values->shape[i]))
        fail(ErrorCode::TypeMismatch, "shapes {} and {} differ on axis {}", to_string(sequence->shape),
             to_string(values->shape), i);
    }
  }
  relation.set_output(tensor_type(values->shape, attrs.dtype));
}

// ---- unique ----

void unique_relation(ir::Relation& relation) {
  require_rank(relation, 0, 1);
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const Type positions = tensor_type(x->shape, dtype::int32_);
  std::vector<Type> outputs{relation.input(0), positions, positions, tensor_type({1}, dtype::int32_)};
  if (relation.attrs<UniqueAttrs>().return_counts) outputs.push_back(positions);
  relation.set_output(tuple_type(outputs));
}

// ---- cumsum, cumprod ----

void scan_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const auto& attrs = relation.attrs<ScanopAttrs>();
  if (attrs.axis) normalise_axis(*attrs.axis, x->shape.size());
  relation.set_output(tensor_type(attrs.axis ? x->shape : Shape{product(x->shape)}, attrs.dtype.value_or(x->dtype)));
}

ir::RuntimeFn scan_runtime(const char* kernel) {
  return [kernel](const ir::Call& call) {
    const auto& attrs = attrs_of<ScanopAttrs>(call);
    const int64_t axis = attrs.axis ? normalise_axis(*attrs.axis, output_shape(call).size()) : 0;
    return ir::RuntimeCall{kernel, {axis, attrs.exclusive.value_or(false), attrs.reverse}, {}, {}};
  };
}

}  // namespace

ir::Expr sort(ir::Expr x, int64_t axis, bool is_ascend) {
  auto attrs = SortAttrs::defaults();
  attrs->axis = axis;
  attrs->is_ascend = is_ascend;
  return call_op("sort", {std::move(x)}, std::move(attrs));
}

ir::Expr argsort(ir::Expr x, int64_t axis, bool is_ascend, DType dtype) {
  auto attrs = SortAttrs::defaults();
  attrs->axis = axis;
  attrs->is_ascend = is_ascend;
  attrs->dtype = dtype;
  return call_op("argsort", {std::move(x)}, std::move(attrs));
}

ir::Expr topk(ir::Expr x, int64_t k, int64_t axis, const std::string& ret_type, bool is_ascend, DType dtype) {
  auto attrs = TopkAttrs::defaults();
  attrs->k = k;
  attrs->axis = axis;
  attrs->ret_type = ret_type;
  attrs->is_ascend = is_ascend;
  attrs->dtype = dtype;
  return call_op("topk", {std::move(x)}, std::move(attrs));
}

ir::Expr scan(std::string_view name, ir::Expr x, std::optional<int64_t> axis, bool exclusive, bool reverse) {
  auto attrs = ScanopAttrs::defaults();
  attrs->axis = axis;
  if (exclusive) attrs->exclusive = true;
  attrs->reverse = reverse;
  return call_op(name, {std::move(x)}, std::move(attrs));
}

void register_tensor_sort(ir::OpRegistry& registry) {
  registry.add<SortAttrs>("sort", "tensor/sort")
      .summary("Elements in order along an axis; stable, NaN last.")
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .relation(sort_relation(false))
      .runtime(sort_runtime("sort"));
  registry.add<SortAttrs>("argsort", "tensor/sort")
      .summary("The indices that sort an axis; stable, NaN last.")
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .relation(sort_relation(true))
      .runtime(sort_runtime("argsort"));
  registry.add<TopkAttrs>("topk", "tensor/sort")
      .summary("The largest or smallest elements along an axis, in order.")
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .outputs(0)
      .relation(topk_relation)
      .runtime(topk_runtime);
  registry.add<SearchSortedAttrs>("searchsorted", "tensor/sort")
      .summary("Where values belong in ascending sequences.")
      .source("Relay 0.16; NumPy searchsorted")
      .input("sequence", "(n), or (…, n) with the leading axes of the values; ascending along the last axis")
      .input("values", "any shape, or (…, m)")
      .relation(search_relation)
      .runtime([](const ir::Call& call) {
        return ir::RuntimeCall{"searchsorted", {attrs_of<SearchSortedAttrs>(call).right}, {}, {}};
      });
  registry.add<UniqueAttrs>("unique", "tensor/sort")
      .summary("The different values of a vector.")
      .source("Relay 0.16")
      .input("x", "(n)")
      .outputs(0)
      .relation(unique_relation)
      .runtime([](const ir::Call& call) {
        const auto& attrs = attrs_of<UniqueAttrs>(call);
        return ir::RuntimeCall{"unique", {attrs.sorted, attrs.return_counts}, {}, {}};
      });
  for (const char* name : {"cumprod", "cumsum"}) {
    registry.add<ScanopAttrs>(name, "tensor/sort")
        .summary(name == std::string("cumsum") ? "Running sums along an axis." : "Running products along an axis.")
        .formula("y[i] = x[0] op … op x[i]; exclusive: to x[i-1]")
        .source("Relay 0.16; NumPy; ONNX CumSum (reverse)")
        .input("x", "any shape, a number or bool")
        .relation(scan_relation)
        .runtime(scan_runtime(name));
  }
}

}  // namespace treadle::op
