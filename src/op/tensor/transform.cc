// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/transform.h"

#include <numeric>

#include "op/relations.h"
#include "op/tensor/reduce.h"
#include "op/tensor/reshape.h"

namespace treadle::op {
namespace {

using ir::FusionKind;

// ---- transpose ----

std::vector<int64_t> permutation(const TransposeAttrs& attrs, size_t rank) {
  if (attrs.axes) {
    if (attrs.axes->size() != rank)
      fail(ErrorCode::TypeAttribute, "axes has {} entries for rank {}", attrs.axes->size(), rank);
    return normalise_axes(*attrs.axes, rank, "axes");
  }
  std::vector<int64_t> reversed(rank);
  for (size_t i = 0; i < rank; ++i) reversed[i] = static_cast<int64_t>(rank - 1 - i);
  return reversed;
}

void transpose_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  Shape shape;
  for (int64_t axis : permutation(relation.attrs<TransposeAttrs>(), x->shape.size())) shape.push_back(x->shape[axis]);
  relation.set_output(tensor_type(shape, x->dtype));
}

std::vector<loop::Tensor> transpose_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const loop::Tensor& x = inputs[0];
  const std::vector<int64_t> order = permutation(attrs_of<TransposeAttrs>(call), x.rank());
  return {loop::compute("transpose", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    Indices index(x.rank());
    for (size_t i = 0; i < order.size(); ++i) index[order[i]] = axes[i];
    return x(index);
  })};
}

// Two transpositions are one; the identity is none.
ir::Expr merge_transposes(const ir::Call& call) {
  const TensorType* x = as_tensor(call.args[0].type());
  if (!x) return {};
  std::vector<int64_t> order = permutation(attrs_of<TransposeAttrs>(call), x->shape.size());
  ir::Expr source = call.args[0];
  const auto* inner = source.as<ir::Call>();
  const bool merged = inner && inner->op() == call.op();
  if (merged) {
    const std::vector<int64_t> first = permutation(attrs_of<TransposeAttrs>(*inner), x->shape.size());
    for (int64_t& axis : order) axis = first[axis];
    source = inner->args[0];
  }
  if (std::is_sorted(order.begin(), order.end())) return source;
  return merged ? transpose(source, order) : ir::Expr();
}

// ---- layout_transform ----

LayoutMap layout_map(const LayoutTransformAttrs& attrs) { return {Layout(attrs.src_layout), Layout(attrs.dst_layout)}; }

void layout_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  relation.set_output(
      tensor_type(layout_map(relation.attrs<LayoutTransformAttrs>()).forward_shape(x->shape), x->dtype));
}

std::vector<loop::Tensor> layout_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const LayoutMap map = layout_map(attrs_of<LayoutTransformAttrs>(call));
  const Shape& from = input_types(call)[0]->shape;
  const auto div = [](const loop::Expr& a, int64_t b) { return loop::floordiv(a, loop::int_imm(b)); };
  const auto mod = [](const loop::Expr& a, int64_t b) { return loop::floormod(a, loop::int_imm(b)); };
  return {
      loop::compute("layout_transform", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
        const Indices index = to_indices(axes);
        loop::Expr value = inputs[0](map.source_index(index, div, mod));
        // Behind the end of a primal axis that the new block does not divide stands 0.
        loop::Expr inside;
        for (const auto& [name, position] : primal_index(map.to(), index)) {
          const Dim extent = from[map.from().index_of(name)] * Dim(map.from().block_of(name));
          if (exact_divide(extent, map.to().block_of(name))) continue;
          const loop::Expr condition = position < loop::to_expr(extent);
          inside = inside.defined() ? inside && condition : condition;
        }
        return inside.defined() ? loop::select(inside, value, loop::constant(0, value.dtype())) : value;
      })};
}

ir::Expr merge_layout_transforms(const ir::Call& call) {
  const auto& attrs = attrs_of<LayoutTransformAttrs>(call);
  if (attrs.src_layout == attrs.dst_layout) return call.args[0];
  const auto* inner = call.args[0].as<ir::Call>();
  if (!inner || inner->op() != call.op()) return {};
  const auto& first = attrs_of<LayoutTransformAttrs>(*inner);
  const TensorType* x = as_tensor(inner->args[0].type());
  const TensorType* y = as_tensor(call.type);
  // There and back again; not when the way back keeps what was filled up.
  if (x && y && first.src_layout == attrs.dst_layout && first.dst_layout == attrs.src_layout && x->shape == y->shape)
    return inner->args[0];
  return {};
}

// ---- reverse, repeat, tile ----

void reverse_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  normalise_axis(relation.attrs<ReverseAttrs>().axis, x->shape.size());
  relation.set_output(relation.input(0));
}

std::vector<loop::Tensor> reverse_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const loop::Tensor& x = inputs[0];
  const int64_t axis = normalise_axis(attrs_of<ReverseAttrs>(call).axis, x.rank());
  return {loop::compute("reverse", x.shape(), [&](const std::vector<loop::Var>& axes) {
    Indices index = to_indices(axes);
    index[axis] = x.shape(axis) - loop::int_imm(1) - index[axis];
    return x(index);
  })};
}

void repeat_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const auto& attrs = relation.attrs<RepeatAttrs>();
  Shape shape = attrs.axis ? x->shape : Shape{product(x->shape)};
  Dim& extent = shape[attrs.axis ? normalise_axis(*attrs.axis, shape.size()) : 0];
  extent = extent * Dim(attrs.repeats);
  relation.set_output(tensor_type(shape, x->dtype));
}

std::vector<loop::Tensor> repeat_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<RepeatAttrs>(call);
  loop::Tensor x = inputs[0];
  const Shape& from = input_types(call)[0]->shape;
  if (!attrs.axis) x = reshaped("flatten", x, from, {product(from)});
  const int64_t axis = attrs.axis ? normalise_axis(*attrs.axis, x.rank()) : 0;
  return {loop::compute("repeat", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    Indices index = to_indices(axes);
    index[axis] = loop::floordiv(index[axis], loop::int_imm(attrs.repeats));
    return x(index);
  })};
}

void tile_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const Shape& reps = relation.attrs<TileAttrs>().reps;
  Shape shape(std::max(reps.size(), x->shape.size()), Dim(1));
  for (size_t i = 0; i < x->shape.size(); ++i) shape[shape.size() - x->shape.size() + i] = x->shape[i];
  for (size_t i = 0; i < reps.size(); ++i) {
    Dim& extent = shape[shape.size() - reps.size() + i];
    extent = extent * reps[i];
  }
  relation.set_output(tensor_type(shape, x->dtype));
}

std::vector<loop::Tensor> tile_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const loop::Tensor& x = inputs[0];
  const Shape& from = input_types(call)[0]->shape;
  const Shape& to = output_shape(call);
  const size_t skip = to.size() - from.size();
  return {loop::compute("tile", loop::to_exprs(to), [&](const std::vector<loop::Var>& axes) {
    Indices index;
    for (size_t i = 0; i < from.size(); ++i) {
      const bool repeated = !(from[i] == to[skip + i]);
      index.push_back(repeated ? loop::floormod(axes[skip + i], x.shape(i)) : loop::Expr(axes[skip + i]));
    }
    return x(index);
  })};
}

// ---- broadcasting and its reverse ----

void check_broadcastable(const Shape& from, const Shape& to) {
  if (from.size() > to.size())
    fail(ErrorCode::TypeMismatch, "shape {} does not broadcast to {}", to_string(from), to_string(to));
  for (size_t i = 0; i < from.size(); ++i) {
    if (!assume(Assumption::Kind::BroadcastTo, from[i], to[to.size() - from.size() + i]))
      fail(ErrorCode::TypeMismatch, "shape {} does not broadcast to {}", to_string(from), to_string(to));
  }
}

void broadcast_to_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const Shape& shape = relation.attrs<BroadcastToAttrs>().shape;
  check_broadcastable(x->shape, shape);
  relation.set_output(tensor_type(shape, x->dtype));
}

void broadcast_like_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  const TensorType* like = relation.tensor(1);
  if (!x || !like) return;
  check_broadcastable(x->shape, like->shape);
  relation.set_output(tensor_type(like->shape, x->dtype));
}

std::vector<loop::Tensor> broadcast_to_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  return {broadcast_compute("broadcast_to", output_shape(call), {input_types(call)[0]}, {inputs[0]},
                            [](const std::vector<loop::Expr>& values) { return values[0]; })};
}

void collapse_to_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const Shape& shape = relation.attrs<BroadcastToAttrs>().shape;
  check_broadcastable(shape, x->shape);
  relation.set_output(tensor_type(shape, x->dtype));
}

void collapse_like_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  const TensorType* like = relation.tensor(1);
  if (!x || !like) return;
  check_broadcastable(like->shape, x->shape);
  relation.set_output(tensor_type(like->shape, x->dtype));
}

ir::Expr collapse_decompose(const ir::Call& call) {
  const Shape& from = input_types(call)[0]->shape;
  const Shape& to = output_shape(call);
  const size_t skip = from.size() - to.size();
  ir::Ints axes;
  for (size_t i = 0; i < from.size(); ++i) {
    if (i < skip || (to[i - skip].is(1) && !from[i].is(1))) axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return reshape_to(call.args[0], to);
  return reshape_to(sum(call.args[0], axes, true), to);
}

void register_moves(ir::OpRegistry& registry) {
  registry.add<TransposeAttrs>("transpose", "tensor/transform")
      .summary("Axes in another order.")
      .formula("y[i…] = x with index i[k] on axis axes[k]")
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .fusion(FusionKind::Injective)
      .relation(transpose_relation)
      .canonicalise(merge_transposes)
      .compute(transpose_compute);
  registry.add<LayoutTransformAttrs>("layout_transform", "tensor/transform")
      .summary("The tensor in another layout; an incomplete last block is filled up with 0.")
      .source("Relay 0.16")
      .input("x", "a shape that fits src_layout")
      .fusion(FusionKind::Injective)
      .relation(layout_relation)
      .canonicalise(merge_layout_transforms)
      .compute(layout_compute);
  registry.add<ReverseAttrs>("reverse", "tensor/transform")
      .summary("One axis turned around.")
      .formula("y[…, i, …] = x[…, n-1-i, …]")
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .fusion(FusionKind::Injective)
      .relation(reverse_relation)
      .compute(reverse_compute);
  registry.add<RepeatAttrs>("repeat", "tensor/transform")
      .summary("Each element repeated along an axis.")
      .formula("y[…, i, …] = x[…, floor(i / repeats), …]")
      .source("Relay 0.16; NumPy repeat")
      .input("x", "any shape and dtype")
      .fusion(FusionKind::Broadcast)
      .relation(repeat_relation)
      .compute(repeat_compute);
  registry.add<TileAttrs>("tile", "tensor/transform")
      .summary("The whole tensor repeated along its axes.")
      .formula("y[…, i, …] = x[…, i mod n, …]")
      .source("Relay 0.16; NumPy tile")
      .input("x", "any shape and dtype")
      .fusion(FusionKind::Broadcast)
      .relation(tile_relation)
      .compute(tile_compute);
}

}  // namespace

ir::Expr transpose(ir::Expr x, const std::optional<ir::Ints>& axes) {
  auto attrs = TransposeAttrs::defaults();
  attrs->axes = axes;
  return call_op("transpose", {std::move(x)}, std::move(attrs));
}

ir::Expr layout_transform(ir::Expr x, const std::string& src_layout, const std::string& dst_layout) {
  if (src_layout == dst_layout) return x;
  auto attrs = LayoutTransformAttrs::defaults();
  attrs->src_layout = src_layout;
  attrs->dst_layout = dst_layout;
  return call_op("layout_transform", {std::move(x)}, std::move(attrs));
}

ir::Expr broadcast_to(ir::Expr x, const Shape& shape) {
  auto attrs = BroadcastToAttrs::defaults();
  attrs->shape = shape;
  return call_op("broadcast_to", {std::move(x)}, std::move(attrs));
}

void register_tensor_transform(ir::OpRegistry& registry) {
  register_moves(registry);
  registry.add<BroadcastToAttrs>("broadcast_to", "tensor/transform")
      .summary("The tensor stretched to a shape.")
      .source("Relay 0.16; NumPy broadcast_to")
      .input("x", "broadcasts to the shape")
      .fusion(FusionKind::Broadcast)
      .relation(broadcast_to_relation)
      .compute(broadcast_to_compute);
  registry.add("broadcast_to_like", "tensor/transform")
      .summary("The tensor stretched to another's shape.")
      .source("Relay 0.16")
      .input("x", "broadcasts to the shape of like")
      .input("like", "only its shape counts")
      .fusion(FusionKind::Broadcast)
      .relation(broadcast_like_relation)
      .canonicalise([](const ir::Call& call) {
        return is_static(output_shape(call)) ? broadcast_to(call.args[0], output_shape(call)) : ir::Expr();
      })
      .compute(broadcast_to_compute);
  registry.add<BroadcastToAttrs>("collapse_sum_to", "tensor/transform")
      .summary("Sums over the axes along which a smaller shape was stretched.")
      .source("Relay 0.16")
      .input("x", "a shape to which the attribute's shape broadcasts")
      .optional_input("shape", "the shape as a vector; the attribute counts")
      .fusion(FusionKind::Reduction)
      .relation(collapse_to_relation)
      .decompose(collapse_decompose);
  registry.add("collapse_sum_like", "tensor/transform")
      .summary("Sums over the axes along which another tensor would be stretched.")
      .source("Relay 0.16")
      .input("x", "a shape to which that of like broadcasts")
      .input("like", "only its shape counts")
      .fusion(FusionKind::Reduction)
      .relation(collapse_like_relation)
      .decompose(collapse_decompose);
}

}  // namespace treadle::op
