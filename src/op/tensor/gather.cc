// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/gather.h"

#include "op/relations.h"

namespace treadle::op {
namespace {

using ir::FusionKind;

void require_integer(const ir::Relation& relation, size_t i) {
  const TensorType* x = relation.tensor(i);
  if (x && !x->dtype.is_integer())
    fail(ErrorCode::TypeMismatch, "indices are {}, they must be integers", to_string(x->dtype));
}

loop::Expr index_at(const loop::Tensor& indices, const Indices& position) {
  return loop::cast(indices(position), dtype::int64_);
}

// ---- take ----

int64_t take_batch(const TakeAttrs& attrs, size_t index_rank) {
  const int64_t batch = attrs.batch_dims < 0 ? attrs.batch_dims + static_cast<int64_t>(index_rank) : attrs.batch_dims;
  if (batch < 0 || batch > static_cast<int64_t>(index_rank))
    fail(ErrorCode::TypeAttribute, "batch_dims {} is out of range for indices of rank {}", attrs.batch_dims,
         index_rank);
  return batch;
}

void take_relation(ir::Relation& relation) {
  require_integer(relation, 1);
  const TensorType *x = relation.tensor(0), *indices = relation.tensor(1);
  if (!x || !indices) return;
  const auto& attrs = relation.attrs<TakeAttrs>();
  if (!attrs.axis) {
    if (attrs.batch_dims != 0) fail(ErrorCode::TypeAttribute, "batch_dims needs an axis");
    return relation.set_output(tensor_type(indices->shape, x->dtype));
  }
  const int64_t axis = normalise_axis(*attrs.axis, x->shape.size());
  const int64_t batch = take_batch(attrs, indices->shape.size());
  if (batch > axis) fail(ErrorCode::TypeAttribute, "batch_dims {} is greater than axis {}", batch, axis);
  for (int64_t i = 0; i < batch; ++i) broadcast({x->shape[i]}, {indices->shape[i]});
  if (!assume_some(x->shape[axis], product(indices->shape)))
    fail(ErrorCode::TypeMismatch, "axis {} of {} has no element to take", axis, to_string(x->shape));
  Shape shape(x->shape.begin(), x->shape.begin() + axis);
  shape.insert(shape.end(), indices->shape.begin() + batch, indices->shape.end());
  shape.insert(shape.end(), x->shape.begin() + axis + 1, x->shape.end());
  relation.set_output(tensor_type(shape, x->dtype));
}

std::vector<loop::Tensor> take_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<TakeAttrs>(call);
  const Shape& from = input_types(call)[0]->shape;
  const loop::Tensor x = attrs.axis ? inputs[0] : reshaped("flatten", inputs[0], from, {product(from)});
  const loop::Tensor& indices = inputs[1];
  const int64_t axis = attrs.axis ? normalise_axis(*attrs.axis, x.rank()) : 0;
  const int64_t batch = take_batch(attrs, indices.rank());
  const auto count = static_cast<int64_t>(indices.rank()) - batch;
  return {loop::compute("take", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    Indices position(axes.begin(), axes.begin() + batch);
    position.insert(position.end(), axes.begin() + axis, axes.begin() + axis + count);
    loop::Expr index = index_at(indices, position);
    index = attrs.mode == "wrap" ? loop::floormod(index, x.shape(axis)) : clamp_index(index, x.shape(axis));
    Indices source(axes.begin(), axes.begin() + axis);
    source.push_back(index);
    source.insert(source.end(), axes.begin() + axis + count, axes.end());
    return x(source);
  })};
}

// ---- gather ----

void gather_relation(ir::Relation& relation) {
  require_integer(relation, 1);
  const TensorType *x = relation.tensor(0), *indices = relation.tensor(1);
  if (!x || !indices) return;
  require_rank(relation, 1, x->shape.size());
  const int64_t axis = normalise_axis(relation.attrs<GatherAttrs>().axis, x->shape.size());
  for (size_t i = 0; i < x->shape.size(); ++i) {
    const Dim &a = indices->shape[i], &b = x->shape[i];
    if (static_cast<int64_t>(i) != axis && !assume_at_most(a, b))
      fail(ErrorCode::TypeMismatch, "indices of shape {} reach beyond {} on axis {}", to_string(indices->shape),
           to_string(x->shape), i);
  }
  if (!assume_some(x->shape[axis], product(indices->shape)))
    fail(ErrorCode::TypeMismatch, "axis {} of {} has no element to gather", axis, to_string(x->shape));
  relation.set_output(tensor_type(indices->shape, x->dtype));
}

std::vector<loop::Tensor> gather_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const loop::Tensor &x = inputs[0], &indices = inputs[1];
  const int64_t axis = normalise_axis(attrs_of<GatherAttrs>(call).axis, x.rank());
  return {loop::compute("gather", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    Indices source = to_indices(axes);
    source[axis] = clamp_index(index_at(indices, to_indices(axes)), x.shape(axis));
    return x(source);
  })};
}

// ---- gather_nd ----

int64_t tuple_length(const GatherNdAttrs& attrs, const Shape& indices) {
  if (indices.empty()) fail(ErrorCode::TypeMismatch, "the indices are a scalar; their axis 0 holds the index tuple");
  if (indices[0].is_const()) return indices[0].value();
  if (!attrs.index_rank)
    fail(ErrorCode::TypeMismatch, "the length {} of an index tuple is not known", to_string(indices[0]));
  return *attrs.index_rank;
}

void gather_nd_relation(ir::Relation& relation) {
  require_integer(relation, 1);
  const TensorType *x = relation.tensor(0), *indices = relation.tensor(1);
  if (!x || !indices) return;
  const auto& attrs = relation.attrs<GatherNdAttrs>();
  const int64_t length = tuple_length(attrs, indices->shape), batch = attrs.batch_dims;
  if (batch + length > static_cast<int64_t>(x->shape.size()) ||
      batch >= static_cast<int64_t>(indices->shape.size()) + (batch == 0))
    fail(ErrorCode::TypeMismatch, "index tuples of {} behind {} batch axes do not fit shape {}", length, batch,
         to_string(x->shape));
  Shape shape(indices->shape.begin() + 1, indices->shape.end());
  shape.insert(shape.end(), x->shape.begin() + batch + length, x->shape.end());
  for (int64_t m = batch; m < batch + length; ++m) {
    if (!assume_some(x->shape[m], product(shape)))
      fail(ErrorCode::TypeMismatch, "axis {} of {} has no element to gather", m, to_string(x->shape));
  }
  relation.set_output(tensor_type(shape, x->dtype));
}

std::vector<loop::Tensor> gather_nd_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<GatherNdAttrs>(call);
  const loop::Tensor &x = inputs[0], &indices = inputs[1];
  const int64_t length = tuple_length(attrs, input_types(call)[1]->shape), batch = attrs.batch_dims;
  const size_t places = indices.rank() - 1;
  return {loop::compute("gather_nd", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    Indices source(axes.begin(), axes.begin() + batch);
    for (int64_t m = 0; m < length; ++m) {
      Indices position{loop::int_imm(m)};
      position.insert(position.end(), axes.begin(), axes.begin() + places);
      source.push_back(clamp_index(index_at(indices, position), x.shape(batch + m)));
    }
    source.insert(source.end(), axes.begin() + places, axes.end());
    return x(source);
  })};
}

// ---- adv_index ----

Shape index_shape(const std::vector<const TensorType*>& tensors) {
  Shape shape;
  for (size_t i = 1; i < tensors.size(); ++i) shape = broadcast(shape, tensors[i]->shape);
  return shape;
}

void adv_index_relation(ir::Relation& relation) {
  const auto tensors = relation.tensors(0);
  if (!tensors) return;
  if (tensors->size() < 2 || tensors->size() - 1 > (*tensors)[0]->shape.size())
    fail(ErrorCode::TypeMismatch, "{} indices for {} axes", tensors->empty() ? 0 : tensors->size() - 1,
         tensors->empty() ? 0 : (*tensors)[0]->shape.size());
  for (size_t i = 1; i < tensors->size(); ++i) {
    if (!(*tensors)[i]->dtype.is_integer())
      fail(ErrorCode::TypeMismatch, "indices are {}, they must be integers", to_string((*tensors)[i]->dtype));
  }
  const TensorType* x = (*tensors)[0];
  Shape shape = index_shape(*tensors);
  shape.insert(shape.end(), x->shape.begin() + (tensors->size() - 1), x->shape.end());
  for (size_t i = 0; i + 1 < tensors->size(); ++i) {
    if (!assume_some(x->shape[i], product(shape)))
      fail(ErrorCode::TypeMismatch, "axis {} of {} has no element to gather", i, to_string(x->shape));
  }
  relation.set_output(tensor_type(shape, x->dtype));
}

std::vector<loop::Tensor> adv_index_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const std::vector<const TensorType*> types = input_types(call);
  const Shape places = index_shape(types);
  const loop::Tensor& x = inputs[0];
  return {loop::compute("adv_index", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    const Indices place(axes.begin(), axes.begin() + places.size());
    Indices source;
    for (size_t i = 1; i < inputs.size(); ++i) {
      const loop::Expr index = index_at(inputs[i], broadcast_index(types[i]->shape, places, place));
      const loop::Expr& extent = x.shape(i - 1);
      source.push_back(clamp_index(loop::select(index < loop::int_imm(0), index + extent, index), extent));
    }
    source.insert(source.end(), axes.begin() + places.size(), axes.end());
    return x(source);
  })};
}

// ---- unravel_index, invert_permutation ----

void unravel_relation(ir::Relation& relation) {
  require_integer(relation, 0);
  require_integer(relation, 1);
  require_rank(relation, 1, 1);
  const TensorType *x = relation.tensor(0), *shape = relation.tensor(1);
  if (!x || !shape) return;
  if (!shape->shape[0].is_const())
    fail(ErrorCode::TypeMismatch, "the rank {} of the shape is not known", to_string(shape->shape[0]));
  Shape result{shape->shape[0]};
  result.insert(result.end(), x->shape.begin(), x->shape.end());
  relation.set_output(tensor_type(result, x->dtype));
}

std::vector<loop::Tensor> unravel_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const int64_t rank = input_types(call)[1]->shape[0].value();
  return {loop::compute("unravel_index", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    loop::Expr rest = index_at(inputs[0], Indices(axes.begin() + 1, axes.end()));
    loop::Expr result = loop::int_imm(0);
    for (int64_t i = rank; i-- > 0;) {
      const loop::Expr extent = index_at(inputs[1], {loop::int_imm(i)});
      result = loop::select(axes[0] == loop::int_imm(i), loop::floormod(rest, extent), result);
      rest = loop::floordiv(rest, extent);
    }
    return loop::cast(result, inputs[0].dtype());
  })};
}

void permutation_relation(ir::Relation& relation) {
  require_integer(relation, 0);
  require_rank(relation, 0, 1);
  identity_relation(relation);
}

// The place of each number is searched: n^2 comparisons, all independent.
std::vector<loop::Tensor> permutation_compute(const ir::Call&, const std::vector<loop::Tensor>& inputs) {
  const loop::Tensor& x = inputs[0];
  const loop::Tensor place = loop::reduce(
      "place", x.shape(), loop::ReduceOp::Max, x.shape(),
      [&](const std::vector<loop::Var>& i, const std::vector<loop::Var>& k) {
        return loop::select(index_at(x, {k[0]}) == i[0], loop::Expr(k[0]), loop::int_imm(0));
      },
      loop::int_imm(0));
  return {elementwise("invert_permutation", place,
                      [&](loop::Expr value) { return loop::cast(std::move(value), x.dtype()); })};
}

}  // namespace

ir::Expr take(ir::Expr x, ir::Expr indices, std::optional<int64_t> axis, const std::string& mode, int64_t batch_dims) {
  auto attrs = TakeAttrs::defaults();
  attrs->axis = axis;
  attrs->mode = mode;
  attrs->batch_dims = batch_dims;
  return call_op("take", {std::move(x), std::move(indices)}, std::move(attrs));
}

ir::Expr gather(ir::Expr x, ir::Expr indices, int64_t axis) {
  auto attrs = GatherAttrs::defaults();
  attrs->axis = axis;
  return call_op("gather", {std::move(x), std::move(indices)}, std::move(attrs));
}

ir::Expr gather_nd(ir::Expr x, ir::Expr indices, int64_t batch_dims) {
  auto attrs = GatherNdAttrs::defaults();
  attrs->batch_dims = batch_dims;
  return call_op("gather_nd", {std::move(x), std::move(indices)}, std::move(attrs));
}

void register_tensor_gather(ir::OpRegistry& registry) {
  const auto add = [&](ir::OpBuilder builder, const char* summary, ir::RelationFn relation, ir::ComputeFn compute) {
    builder.summary(summary)
        .source("Relay 0.16")
        .fusion(FusionKind::Injective)
        .relation(std::move(relation))
        .compute(std::move(compute));
  };
  add(registry.add<TakeAttrs>("take", "tensor/gather").input("x", "any shape and dtype").input("indices", "integers"),
      "Elements along an axis at indices.", take_relation, take_compute);
  add(registry.add<GatherAttrs>("gather", "tensor/gather")
          .input("x", "any shape and dtype")
          .input("indices", "integers, rank of x"),
      "For each place of the indices the element of x whose position on one axis they give.", gather_relation,
      gather_compute);
  add(registry.add<GatherNdAttrs>("gather_nd", "tensor/gather")
          .input("x", "any shape and dtype")
          .input("indices", "(M, Y…) integers"),
      "Parts of x at index tuples, which run along axis 0 of the indices.", gather_nd_relation, gather_nd_compute);
  add(registry.add("adv_index", "tensor/gather")
          .tuple_input("x and indices", "a tensor, then integers for its leading axes"),
      "NumPy's indexing with integer arrays.", adv_index_relation, adv_index_compute);
  add(registry.add("unravel_index", "tensor/gather").input("indices", "integers").input("shape", "(n) integers"),
      "Positions in a flattened tensor as index tuples along axis 0.", unravel_relation, unravel_compute);
  add(registry.add("invert_permutation", "tensor/gather").input("x", "(n) a permutation of 0 … n-1"),
      "The inverse of a permutation.", permutation_relation, permutation_compute);
}

}  // namespace treadle::op
