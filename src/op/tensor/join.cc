// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/join.h"

#include <algorithm>
#include <functional>

#include "op/relations.h"
#include "op/tensor/reshape.h"

namespace treadle::op {
namespace {

using ir::FusionKind;

// The extent that both must have: the number when one is a symbol. Errors: TypeMismatch when they are different
// numbers.
Dim agreed(const Dim& a, const Dim& b, size_t axis) {
  if (!assume_equal(a, b))
    fail(ErrorCode::TypeMismatch, "extents {} and {} of axis {} differ", to_string(a), to_string(b), axis);
  return a.is_const() ? a : b.is_const() ? b : a;
}

void concatenate_relation(ir::Relation& relation) {
  const auto tensors = relation.tensors(0);
  if (!tensors) return;
  if (tensors->empty()) fail(ErrorCode::TypeMismatch, "there is no tensor to concatenate");
  const TensorType* first = tensors->front();
  Shape shape = first->shape;
  const int64_t axis = normalise_axis(relation.attrs<ConcatenateAttrs>().axis, shape.size());
  for (size_t i = 1; i < tensors->size(); ++i) {
    const TensorType* x = (*tensors)[i];
    if (!(x->dtype == first->dtype))
      fail(ErrorCode::TypeMismatch, "tensor {} is {}, tensor 0 is {}", i, to_string(x->dtype), to_string(first->dtype));
    if (x->shape.size() != shape.size())
      fail(ErrorCode::TypeMismatch, "tensor {} has shape {}, tensor 0 has {}", i, to_string(x->shape),
           to_string(first->shape));
    for (size_t a = 0; a < shape.size(); ++a) {
      shape[a] = static_cast<int64_t>(a) == axis ? shape[a] + x->shape[a] : agreed(shape[a], x->shape[a], a);
    }
  }
  relation.set_output(tensor_type(shape, first->dtype));
}

constexpr size_t kFewParts = 16;

std::vector<loop::Tensor> concatenate_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const std::vector<const TensorType*> types = input_types(call);
  const int64_t axis = normalise_axis(attrs_of<ConcatenateAttrs>(call).axis, inputs[0].rank());
  std::vector<Dim> begins{0};
  for (const TensorType* type : types) begins.push_back(begins.back() + type->shape[axis]);
  return {loop::compute("concatenate", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    std::vector<size_t> parts;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!types[i]->shape[axis].is(0)) parts.push_back(i);
    }
    if (parts.empty()) return loop::constant(0, inputs[0].dtype());
    // The element, which lies in one of parts[first … last - 1]. Few parts are asked for one by one; many are halved,
    // since expressions are walked by recursion.
    const std::function<loop::Expr(size_t, size_t)> element = [&](size_t first, size_t last) {
      if (first + 1 == last) {
        Indices index = to_indices(axes);
        index[axis] = index[axis] - loop::to_expr(begins[parts[first]]);
        return inputs[parts[first]](index);
      }
      const size_t middle = parts.size() <= kFewParts ? first + 1 : first + (last - first) / 2;
      const loop::Expr inside = axes[axis] < loop::to_expr(begins[parts[middle]]);
      return loop::select(inside, element(first, middle), element(middle, last));
    };
    return element(0, parts.size());
  })};
}

// All tensors in one layout; on a split axis only when every part fills whole blocks.
ir::LayoutAnswer concatenate_layout(const ir::LayoutRequest& request) {
  ir::LayoutAnswer answer = original_layout(request);
  const auto defined =
      std::find_if(request.wanted.begin(), request.wanted.end(), [](const Layout& l) { return l.defined(); });
  if (defined == request.wanted.end()) return answer;
  const Layout layout = *defined;
  const std::vector<const TensorType*> types = input_types(request.call);
  if (layout.primal().rank() != types[0]->shape.size()) return answer;
  const int64_t axis = normalise_axis(attrs_of<ConcatenateAttrs>(request.call).axis, types[0]->shape.size());
  const char name = layout.primal().axes()[axis].name;
  for (const TensorType* type : types) {
    for (size_t a = 0; a < type->shape.size(); ++a) {
      if (!exact_divide(type->shape[a], layout.block_of(layout.primal().axes()[a].name))) return answer;
    }
  }
  auto attrs = ConcatenateAttrs::defaults();
  attrs->axis = layout.index_of(name);
  answer.inputs.assign(answer.inputs.size(), layout);
  answer.outputs = {layout};
  answer.attrs = attrs;
  return answer;
}

ir::Expr concatenate_canonicalise(const ir::Call& call) {
  const auto* tuple = call.args[0].as<ir::Tuple>();
  return tuple && tuple->fields.size() == 1 ? tuple->fields[0] : ir::Expr();
}

void stack_relation(ir::Relation& relation) {
  const auto tensors = relation.tensors(0);
  if (!tensors) return;
  if (tensors->empty()) fail(ErrorCode::TypeMismatch, "there is no tensor to stack");
  const TensorType* first = tensors->front();
  Shape shape = first->shape;
  for (size_t i = 1; i < tensors->size(); ++i) {
    const TensorType* x = (*tensors)[i];
    if (!(x->dtype == first->dtype) || x->shape.size() != shape.size())
      fail(ErrorCode::TypeMismatch, "tensor {} is {} of {}, tensor 0 is {} of {}", i, to_string(x->shape),
           to_string(x->dtype), to_string(first->shape), to_string(first->dtype));
    for (size_t a = 0; a < shape.size(); ++a) shape[a] = agreed(shape[a], x->shape[a], a);
  }
  shape.insert(shape.begin() + normalise_axis(relation.attrs<StackAttrs>().axis, shape.size() + 1),
               Dim(static_cast<int64_t>(tensors->size())));
  relation.set_output(tensor_type(shape, first->dtype));
}

ir::Expr stack_decompose(const ir::Call& call) {
  const size_t count = input_types(call).size();
  const int64_t axis = normalise_axis(attrs_of<StackAttrs>(call).axis, output_shape(call).size());
  const auto* tuple = call.args[0].as<ir::Tuple>();
  std::vector<ir::Expr> parts;
  for (size_t i = 0; i < count; ++i) {
    parts.push_back(expand_dims(tuple ? tuple->fields[i] : ir::tuple_get(call.args[0], static_cast<int>(i)), axis));
  }
  return concatenate(std::move(parts), axis);
}

// ---- split ----

// Where the parts begin, and the axis' extent at the end.
std::vector<Dim> split_points(const SplitAttrs& attrs, const Dim& extent) {
  std::vector<Dim> points{0};
  if (const int64_t* sections = std::get_if<int64_t>(&attrs.indices_or_sections)) {
    if (*sections <= 0) fail(ErrorCode::TypeAttribute, "indices_or_sections is {}", *sections);
    if (*sections > 65536)
      fail(ErrorCode::Limit, "indices_or_sections is {}, at most 65536 parts can be made", *sections);
    if (!assume_divides(*sections, extent))
      fail(ErrorCode::TypeMismatch, "extent {} cannot be cut into {} equal parts", to_string(extent), *sections);
    const Dim part = floordiv(extent, *sections);
    for (int64_t i = 1; i <= *sections; ++i) points.push_back(part * Dim(i));
    return points;
  }
  for (int64_t index : std::get<ir::Ints>(attrs.indices_or_sections)) {
    if (Dim(index).value() < points.back().value())
      fail(ErrorCode::TypeAttribute, "indices_or_sections are not increasing: {} follows {}", index,
           points.back().value());
    if (!assume_at_most(index, extent))
      fail(ErrorCode::TypeMismatch, "a part begins at {} of an axis of extent {}", index, to_string(extent));
    points.push_back(index);
  }
  points.push_back(extent);
  return points;
}

void split_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const auto& attrs = relation.attrs<SplitAttrs>();
  const int64_t axis = normalise_axis(attrs.axis, x->shape.size());
  const std::vector<Dim> points = split_points(attrs, x->shape[axis]);
  std::vector<Type> parts;
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    Shape shape = x->shape;
    shape[axis] = points[i + 1] - points[i];
    parts.push_back(tensor_type(shape, x->dtype));
  }
  relation.set_output(tuple_type(parts));
}

std::vector<loop::Tensor> split_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const int64_t axis = normalise_axis(attrs_of<SplitAttrs>(call).axis, inputs[0].rank());
  std::vector<loop::Tensor> outputs;
  Dim begin = 0;
  for (const TensorType* type : output_types(call)) {
    outputs.push_back(loop::compute("split", loop::to_exprs(type->shape), [&](const std::vector<loop::Var>& axes) {
      Indices index = to_indices(axes);
      index[axis] = index[axis] + loop::to_expr(begin);
      return inputs[0](index);
    }));
    begin = begin + type->shape[axis];
  }
  return outputs;
}

ir::LayoutAnswer split_layout(const ir::LayoutRequest& request) {
  ir::LayoutAnswer answer = original_layout(request);
  const Layout& layout = request.wanted[0];
  const TensorType* x = input_types(request.call)[0];
  if (!layout.defined() || layout.primal().rank() != x->shape.size()) return answer;
  auto attrs = std::make_shared<SplitAttrs>(attrs_of<SplitAttrs>(request.call));
  const int64_t axis = normalise_axis(attrs->axis, x->shape.size());
  const char name = layout.primal().axes()[axis].name;
  const int64_t block = layout.block_of(name);
  for (const Dim& point : split_points(*attrs, x->shape[axis])) {
    if (!exact_divide(point, block)) return answer;
  }
  if (ir::Ints* points = std::get_if<ir::Ints>(&attrs->indices_or_sections)) {
    for (int64_t& point : *points) point /= block;
  }
  attrs->axis = layout.index_of(name);
  answer.inputs = {layout};
  answer.outputs.assign(answer.outputs.size(), layout);
  answer.attrs = attrs;
  return answer;
}

}  // namespace

ir::Expr concatenate(std::vector<ir::Expr> tensors, int64_t axis) {
  auto attrs = ConcatenateAttrs::defaults();
  attrs->axis = axis;
  return call_op("concatenate", {ir::tuple(std::move(tensors))}, std::move(attrs));
}

ir::Expr stack(std::vector<ir::Expr> tensors, int64_t axis) {
  auto attrs = StackAttrs::defaults();
  attrs->axis = axis;
  return call_op("stack", {ir::tuple(std::move(tensors))}, std::move(attrs));
}

ir::Expr split(ir::Expr x, ir::IntOrInts indices_or_sections, int64_t axis) {
  auto attrs = SplitAttrs::defaults();
  attrs->indices_or_sections = std::move(indices_or_sections);
  attrs->axis = axis;
  return call_op("split", {std::move(x)}, std::move(attrs));
}

void register_tensor_join(ir::OpRegistry& registry) {
  registry.add<ConcatenateAttrs>("concatenate", "tensor/join")
      .summary("Tensors one behind the other along an axis.")
      .source("Relay 0.16; NumPy concatenate")
      .tuple_input("tensors", "one dtype; extents agree but on the axis")
      .fusion(FusionKind::Injective)
      .relation(concatenate_relation)
      .layout(concatenate_layout)
      .canonicalise(concatenate_canonicalise)
      .joins([](const ir::Call& call) {
        const Shape& whole = output_shape(call);
        return pieces_along(input_types(call), whole,
                            normalise_axis(attrs_of<ConcatenateAttrs>(call).axis, whole.size()));
      })
      .compute(concatenate_compute);
  registry.add<StackAttrs>("stack", "tensor/join")
      .summary("Tensors of one shape along a new axis.")
      .source("Relay 0.16; NumPy stack")
      .tuple_input("tensors", "one type")
      .fusion(FusionKind::Injective)
      .relation(stack_relation)
      .decompose(stack_decompose);
  registry.add<SplitAttrs>("split", "tensor/join")
      .summary("A tensor cut along an axis.")
      .source("Relay 0.16; NumPy split")
      .input("x", "any shape and dtype")
      .outputs(0)
      .fusion(FusionKind::Injective)
      .relation(split_relation)
      .layout(split_layout)
      .splits([](const ir::Call& call) {
        const Shape& whole = input_types(call)[0]->shape;
        return pieces_along(output_types(call), whole, normalise_axis(attrs_of<SplitAttrs>(call).axis, whole.size()));
      })
      .compute(split_compute);
}

}  // namespace treadle::op
