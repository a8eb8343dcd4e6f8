// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/slice.h"

#include <algorithm>

#include "op/relations.h"

namespace treadle::op {
namespace {

using ir::FusionKind;

constexpr int64_t kFarAway = 2147483647;  // "to the end", as models write it

// Positions of a slice of known extent, cut to low … high.
int64_t known_position(int64_t position, int64_t extent, int64_t low, int64_t high) {
  if (position < 0) position = position < -extent ? -1 : position + extent;
  return std::clamp(position, low, high);
}

SliceRange known_range(int64_t extent, int64_t begin, int64_t end, int64_t stride) {
  if (stride > 0) {
    const int64_t first = known_position(begin, extent, 0, extent), last = known_position(end, extent, 0, extent);
    const int64_t distance = std::max<int64_t>(last - first, 0);
    return {first, distance / stride + (distance % stride != 0), stride};
  }
  const int64_t first = known_position(begin, extent, -1, extent - 1),
                last = known_position(end, extent, -1, extent - 1);
  const auto distance = static_cast<uint64_t>(std::max<int64_t>(first - last, 0));
  const uint64_t step = ~static_cast<uint64_t>(stride) + 1;
  return {std::max<int64_t>(first, 0), static_cast<int64_t>(distance / step + (distance % step != 0)), stride};
}

Dim not_negative(const Dim& dim) { return dim.lower_bound().value_or(-1) >= 0 ? dim : max(dim, 0); }

Dim at_most(const Dim& dim, const Dim& bound) {
  return (bound - dim).lower_bound().value_or(-1) >= 0 ? dim : min(dim, bound);
}

// A position counted from the front; a number below 0 counts from the end, a symbolic one from the front.
Dim from_front(const Dim& position, const Dim& extent) {
  return position.is_const() && position.value() < 0 ? position + extent : position;
}

SliceRange symbolic_forward(const Dim& extent, const Dim& begin, const Dim& end, int64_t stride) {
  const bool to_end = end.is_const() && end.value() >= kFarAway;
  const Dim first = from_front(begin, extent);
  const Dim last = to_end ? extent : from_front(end, extent);
  // extent - k … to the end: min(k, extent) of them.
  const Dim rest = extent - first;
  if (last == extent && rest.is_const() && rest.value() > 0) {
    return {not_negative(first), ceildiv(min(rest, extent), stride), stride};
  }
  const Dim start = not_negative(first);
  const bool inside = last == extent || (end.is_const() && end.value() < 0);
  const Dim bounded = inside ? last : at_most(last, extent);
  return {start, not_negative(ceildiv(bounded - start, stride)), stride};
}

SliceRange symbolic_backward(const Dim& extent, const Dim& begin, const Dim& end, int64_t stride) {
  const Dim last_index = extent - Dim(1);
  const bool from_end = begin.is(-1) || (begin.is_const() && begin.value() >= kFarAway) || begin == last_index;
  const Dim first = from_end ? last_index : at_most(from_front(begin, extent), last_index);
  const bool to_front = end.is_const() && end.value() < -kFarAway / 2;
  const Dim last = to_front ? Dim(-1) : end.is_const() && end.value() < 0 ? max(end + extent, -1) : end;
  return {not_negative(first), not_negative(ceildiv(first - last, -stride)), stride};
}

// The range of every axis of x.
std::vector<SliceRange> slice_ranges(const StridedSliceAttrs& attrs, const Shape& shape) {
  const size_t count = attrs.begin.size();
  const bool sizes = attrs.slice_mode == "size";
  if (attrs.end.size() != count)
    fail(ErrorCode::TypeAttribute, "begin has {} entries, end has {}", count, attrs.end.size());
  if (!sizes && attrs.strides && attrs.strides->size() != 1 && attrs.strides->size() < count)
    fail(ErrorCode::TypeAttribute, "begin has {} entries, strides has {}", count, attrs.strides->size());
  std::vector<int64_t> axes;
  if (attrs.axes) {
    axes = normalise_axes(*attrs.axes, shape.size(), "axes");
  } else {
    for (size_t i = 0; i < count; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.size() != count || count > shape.size())
    fail(ErrorCode::TypeAttribute, "begin has {} entries for {} axes of rank {}", count, axes.size(), shape.size());
  std::vector<SliceRange> ranges;
  for (const Dim& extent : shape) ranges.push_back({0, extent, 1});
  for (size_t i = 0; i < count; ++i) {
    const Dim& extent = shape[axes[i]];
    if (sizes) {
      const bool to_end = attrs.end[i].is(-1);
      const Dim begin = from_front(attrs.begin[i], extent);
      ranges[axes[i]] = slice_range(extent, attrs.begin[i], to_end ? extent : begin + attrs.end[i], 1);
    } else {
      int64_t stride = 1;
      if (attrs.strides && !attrs.strides->empty()) stride = (*attrs.strides)[attrs.strides->size() == 1 ? 0 : i];
      ranges[axes[i]] = slice_range(extent, attrs.begin[i], attrs.end[i], stride);
    }
  }
  return ranges;
}

void slice_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  Shape shape;
  for (const SliceRange& range : slice_ranges(relation.attrs<StridedSliceAttrs>(), x->shape))
    shape.push_back(range.length);
  relation.set_output(tensor_type(shape, x->dtype));
}

std::vector<loop::Tensor> slice_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const std::vector<SliceRange> ranges = slice_ranges(attrs_of<StridedSliceAttrs>(call), input_types(call)[0]->shape);
  return {loop::compute("strided_slice", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    Indices index;
    for (size_t i = 0; i < ranges.size(); ++i) {
      index.push_back(loop::to_expr(ranges[i].start) + axes[i] * loop::int_imm(ranges[i].stride));
    }
    return inputs[0](index);
  })};
}

// In a blocked layout a split axis may be cut at whole blocks.
ir::LayoutAnswer slice_layout(const ir::LayoutRequest& request) {
  ir::LayoutAnswer answer = original_layout(request);
  const Layout& layout = request.wanted[0];
  const Shape& shape = input_types(request.call)[0]->shape;
  if (!layout.defined() || layout.primal().rank() != shape.size()) return answer;
  const std::vector<SliceRange> ranges = slice_ranges(attrs_of<StridedSliceAttrs>(request.call), shape);
  auto attrs = StridedSliceAttrs::defaults();
  ir::Ints strides, axes;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const SliceRange& range = ranges[i];
    if (range.start.is(0) && range.length == shape[i] && range.stride == 1) continue;
    const char name = layout.primal().axes()[i].name;
    const int64_t block = layout.block_of(name);
    const std::optional<Dim> start = exact_divide(range.start, block), length = exact_divide(range.length, block);
    if (range.stride < 0 || !start || !length || !exact_divide(shape[i], block) || (block != 1 && range.stride != 1))
      return answer;
    axes.push_back(layout.index_of(name));
    attrs->begin.push_back(*start);
    attrs->end.push_back(*start + (*length - Dim(1)) * Dim(range.stride) + Dim(1));
    strides.push_back(range.stride);
  }
  attrs->strides = strides;
  attrs->axes = axes;
  answer.inputs = {layout};
  answer.outputs = {layout};
  answer.attrs = attrs;
  return answer;
}

ir::Expr whole_slice(const ir::Call& call) {
  const TensorType* x = as_tensor(call.args[0].type());
  if (!x) return {};
  const std::vector<SliceRange> ranges = slice_ranges(attrs_of<StridedSliceAttrs>(call), x->shape);
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!ranges[i].start.is(0) || !(ranges[i].length == x->shape[i]) || ranges[i].stride != 1) return {};
  }
  return call.args[0];
}

// ---- slice_like ----

std::vector<int64_t> like_axes(const SliceLikeAttrs& attrs, size_t rank, size_t like_rank) {
  if (attrs.axes && !attrs.axes->empty()) return normalise_axes(*attrs.axes, rank, "axes");
  if (rank != like_rank)
    fail(ErrorCode::TypeMismatch, "ranks {} and {} differ, and axes are not given", rank, like_rank);
  std::vector<int64_t> all(rank);
  for (size_t i = 0; i < rank; ++i) all[i] = static_cast<int64_t>(i);
  return all;
}

void slice_like_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  const TensorType* like = relation.tensor(1);
  if (!x || !like) return;
  Shape shape = x->shape;
  for (int64_t axis : like_axes(relation.attrs<SliceLikeAttrs>(), shape.size(), like->shape.size())) {
    if (axis >= static_cast<int64_t>(like->shape.size()))
      fail(ErrorCode::TypeMismatch, "{} has no axis {}", to_string(like->shape), axis);
    const Dim& wanted = like->shape[axis];
    if (!assume_at_most(wanted, shape[axis]))
      fail(ErrorCode::TypeMismatch, "extent {} of axis {} cannot be cut to {}", to_string(shape[axis]), axis,
           to_string(wanted));
    shape[axis] = wanted;
  }
  relation.set_output(tensor_type(shape, x->dtype));
}

std::vector<loop::Tensor> leading_part(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  return {loop::compute("slice_like", loop::to_exprs(output_shape(call)),
                        [&](const std::vector<loop::Var>& axes) { return inputs[0](to_indices(axes)); })};
}

// ---- strided_set ----

void strided_set_relation(ir::Relation& relation) {
  require_same_dtype(relation, 0, 1);
  for (size_t i = 2; i < 5; ++i) {
    require_rank(relation, i, 1);
    const TensorType* positions = relation.tensor(i);
    if (positions && !positions->dtype.is_integer())
      fail(ErrorCode::TypeMismatch, "input {} is {}, it must be an integer", i, to_string(positions->dtype));
  }
  const TensorType *x = relation.tensor(0), *v = relation.tensor(1);
  if (x && v && x->shape.size() != v->shape.size())
    fail(ErrorCode::TypeMismatch, "v has rank {}, x has rank {}", v->shape.size(), x->shape.size());
  if (x) relation.set_output(relation.input(0));
}

std::vector<loop::Tensor> strided_set_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const std::vector<const TensorType*> types = input_types(call);
  const loop::Tensor &x = inputs[0], &v = inputs[1];
  // Entry `axis` of a vector of positions; nothing is given for axes behind its end.
  const auto entry = [&](size_t input, size_t axis) -> std::optional<loop::Expr> {
    const Dim& length = types[input]->shape[0];
    if (length.is_const() && length.value() <= static_cast<int64_t>(axis)) return std::nullopt;
    return loop::cast(inputs[input](Indices{loop::int_imm(static_cast<int64_t>(axis))}), dtype::int64_);
  };
  return {loop::compute("strided_set", x.shape(), [&](const std::vector<loop::Var>& axes) {
    const loop::Expr zero = loop::int_imm(0), one = loop::int_imm(1);
    loop::Expr inside = loop::bool_imm(true);
    Indices index;
    for (size_t i = 0; i < axes.size(); ++i) {
      const loop::Expr extent = x.shape(i), stride = entry(4, i).value_or(one);
      const loop::Expr up = stride > zero;
      const loop::Expr low = loop::select(up, zero, loop::int_imm(-1)), high = loop::select(up, extent, extent - one);
      const auto cut = [&](const loop::Expr& position) {
        return loop::max(loop::min(loop::select(position < zero, position + extent, position), high), low);
      };
      const loop::Expr begin = entry(2, i) ? cut(*entry(2, i)) : zero, end = entry(3, i) ? cut(*entry(3, i)) : extent;
      const loop::Expr distance = loop::select(up, axes[i] - begin, begin - axes[i]);
      const loop::Expr step = loop::select(up, stride, -stride);
      const loop::Expr before_end = loop::select(up, axes[i]<end, axes[i]> end);
      inside = inside && distance >= zero && before_end && loop::floormod(distance, step) == zero;
      index.push_back(clamp_index(loop::floordiv(distance, step), v.shape(i)));
    }
    return loop::select(inside, v(index), x(to_indices(axes)));
  })};
}

// ---- sliding_window ----

void window_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const auto& attrs = relation.attrs<SlidingWindowAttrs>();
  const auto axis = static_cast<size_t>(normalise_axis(attrs.axis, x->shape.size()));
  const size_t count = x->shape.size() - axis;
  if (attrs.window_shape.size() != count || attrs.strides.size() != count)
    fail(ErrorCode::TypeAttribute, "window_shape has {} and strides {} entries for {} axes", attrs.window_shape.size(),
         attrs.strides.size(), count);
  Shape shape(x->shape.begin(), x->shape.begin() + axis);
  for (size_t i = 0; i < count; ++i) {
    const Dim places = x->shape[axis + i] - Dim(attrs.window_shape[i]);
    if (places.is_const() && places.value() < 0)
      fail(ErrorCode::TypeMismatch, "a window of {} does not fit into extent {}", attrs.window_shape[i],
           to_string(x->shape[axis + i]));
    shape.push_back(floordiv(places, attrs.strides[i]) + Dim(1));
  }
  for (int64_t extent : attrs.window_shape) shape.push_back(extent);
  relation.set_output(tensor_type(shape, x->dtype));
}

std::vector<loop::Tensor> window_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<SlidingWindowAttrs>(call);
  const size_t rank = inputs[0].rank(), axis = normalise_axis(attrs.axis, rank);
  return {loop::compute("sliding_window", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    Indices index(axes.begin(), axes.begin() + axis);
    for (size_t i = axis; i < rank; ++i) {
      index.push_back(axes[i] * loop::int_imm(attrs.strides[i - axis]) + axes[rank + i - axis]);
    }
    return inputs[0](index);
  })};
}

}  // namespace

SliceRange slice_range(const Dim& extent, const Dim& begin, const Dim& end, int64_t stride) {
  if (stride == 0) fail(ErrorCode::TypeAttribute, "a stride is 0");
  if (extent.is_const() && begin.is_const() && end.is_const())
    return known_range(extent.value(), begin.value(), end.value(), stride);
  return stride > 0 ? symbolic_forward(extent, begin, end, stride) : symbolic_backward(extent, begin, end, stride);
}

ir::Expr strided_slice(ir::Expr x, const Shape& begin, const Shape& end, const std::optional<ir::Ints>& strides,
                       const std::optional<ir::Ints>& axes) {
  auto attrs = StridedSliceAttrs::defaults();
  attrs->begin = begin;
  attrs->end = end;
  attrs->strides = strides;
  attrs->axes = axes;
  return call_op("strided_slice", {std::move(x)}, std::move(attrs));
}

void register_tensor_slice(ir::OpRegistry& registry) {
  registry.add<StridedSliceAttrs>("strided_slice", "tensor/slice")
      .summary("Every stride-th element from begin to end, per axis.")
      .formula("y = x[begin:end:strides] as in NumPy")
      .source("Relay 0.16; NumPy basic slicing")
      .input("x", "any shape and dtype")
      .fusion(FusionKind::Injective)
      .relation(slice_relation)
      .layout(slice_layout)
      .canonicalise(whole_slice)
      .compute(slice_compute);
  registry.add<SliceLikeAttrs>("slice_like", "tensor/slice")
      .summary("The leading part of a tensor, as large as another one.")
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .input("like", "only its shape counts")
      .fusion(FusionKind::Injective)
      .relation(slice_like_relation)
      .compute(leading_part);
  registry.add("strided_set", "tensor/slice")
      .summary("A tensor with a strided part replaced.")
      .formula("y = x, then y[begin:end:strides] = v")
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .input("v", "the new part; dtype of x")
      .input("begin", "(n) integers")
      .input("end", "(n) integers")
      .input("strides", "(n) integers, not 0")
      .fusion(FusionKind::Injective)
      .relation(strided_set_relation)
      .compute(strided_set_compute);
  registry.add<SlidingWindowAttrs>("sliding_window", "tensor/slice")
      .summary("All windows of a shape over the last axes.")
      .formula("y[…, w…, k…] = x[…, w * stride + k …]")
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .fusion(FusionKind::Injective)
      .relation(window_relation)
      .compute(window_compute);
}

}  // namespace treadle::op
