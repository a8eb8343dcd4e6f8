// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/dynamic.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "op/relations.h"

namespace treadle::op {
namespace {

using ir::FusionKind;

// As the kernel numbers them.
int64_t mode_code(const std::string& mode) {
  static const std::array<std::string, 5> names{"extents", "reshape", "broadcast", "count", "slice"};
  return std::find(names.begin(), names.end(), mode) - names.begin();
}

void extents_relation(ir::Relation& relation) {
  const auto& attrs = relation.attrs<ExtentsAttrs>();
  const auto tensors = relation.tensors(0);
  if (!tensors) return;
  const size_t wanted = attrs.mode == "slice" ? 4 : attrs.mode == "count" ? 3 : attrs.mode == "extents" ? 1 : 2;
  if (tensors->size() != wanted)
    fail(ErrorCode::TypeMismatch, "mode {} takes {} tensors, not {}", attrs.mode, wanted, tensors->size());
  if (attrs.mode == "count") {
    for (const TensorType* scalar : *tensors) {
      if (!scalar->shape.empty())
        fail(ErrorCode::TypeMismatch, "a bound of the range has shape {}, it must be a scalar",
             to_string(scalar->shape));
    }
  } else if (tensors->front()->shape.size() != 1 || !tensors->front()->dtype.is_integer()) {
    fail(ErrorCode::TypeMismatch, "the extents are {} of {}, they must be a vector of integers",
         to_string(tensors->front()->shape), to_string(tensors->front()->dtype));
  }
  if (attrs.mode == "slice") {
    if (!attrs.axes || attrs.axes->size() != attrs.names.size())
      fail(ErrorCode::TypeAttribute, "axes and names must have one length");
    for (int64_t axis : normalise_axes(*attrs.axes, tensors->back()->shape.size(), "axes")) {
      if (std::find(attrs.axes->begin(), attrs.axes->end(), axis) == attrs.axes->end())
        fail(ErrorCode::TypeAttribute, "axes must count from the front");
    }
  }
  Shape shape;
  for (const std::string& name : attrs.names) {
    if (name.empty()) fail(ErrorCode::TypeAttribute, "a symbol has no name");
    shape.push_back(Dim::symbol(name));
  }
  shape.push_back(0);
  relation.set_output(tensor_type(shape, dtype::bool_));
}

ir::RuntimeCall extents_runtime(const ir::Call& call) {
  const auto& attrs = attrs_of<ExtentsAttrs>(call);
  std::vector<int64_t> params{mode_code(attrs.mode), attrs.allowzero};
  if (attrs.axes) params.insert(params.end(), attrs.axes->begin(), attrs.axes->end());
  Shape bound(attrs.names.size() + 1, Dim(0));
  const bool bounded = attrs.mode == "slice";  // no longer than what is sliced
  if (bounded) {
    const std::vector<const TensorType*> types = input_types(call);
    for (size_t i = 0; i < attrs.names.size(); ++i) bound[i] = types.back()->shape[(*attrs.axes)[i]];
  }
  return {"extents", params, attrs.names, {bound}, bounded};
}

// The shape that argument i, the extents, carries; nullopt while it is not known.
std::optional<Shape> carried_shape(const ir::Relation& relation, size_t i) {
  const TensorType* extents = relation.tensor(i);
  if (!extents) return std::nullopt;
  if (extents->shape.empty() || !extents->shape.back().is(0))
    fail(ErrorCode::TypeMismatch, "input {} has shape {}, it must be extents: behind the shape an axis of extent 0", i,
         to_string(extents->shape));
  return Shape(extents->shape.begin(), extents->shape.end() - 1);
}

void reshape_relation(ir::Relation& relation) {
  const std::optional<Shape> shape = carried_shape(relation, 1);
  const TensorType* x = relation.tensor(0);
  if (x && shape) relation.set_output(tensor_type(*shape, x->dtype));
}

void broadcast_relation_to(ir::Relation& relation) {
  const std::optional<Shape> shape = carried_shape(relation, 1);
  const TensorType* x = relation.tensor(0);
  if (!x || !shape) return;
  if (x->shape.size() > shape->size())
    fail(ErrorCode::TypeMismatch, "{} does not broadcast to {}", to_string(x->shape), to_string(*shape));
  relation.set_output(tensor_type(*shape, x->dtype));
}

void full_relation(ir::Relation& relation) {
  require_rank(relation, 0, 0);
  reshape_relation(relation);
}

void arange_relation(ir::Relation& relation) {
  require_rank(relation, 0, 0);
  require_rank(relation, 1, 0);
  require_same_dtype(relation, 0, 1);
  const std::optional<Shape> shape = carried_shape(relation, 2);
  if (shape && shape->size() != 1) fail(ErrorCode::TypeMismatch, "a range has one axis, not {}", shape->size());
  const TensorType* start = relation.tensor(0);
  if (start && shape) relation.set_output(tensor_type(*shape, start->dtype));
}

void slice_relation(ir::Relation& relation) {
  const std::optional<Shape> lengths = carried_shape(relation, 3);
  const TensorType* x = relation.tensor(0);
  for (size_t i = 1; i < 3; ++i) {
    require_rank(relation, i, 1);
    const TensorType* positions = relation.tensor(i);
    if (positions && !positions->dtype.is_integer())
      fail(ErrorCode::TypeMismatch, "input {} is {}, it must be an integer", i, to_string(positions->dtype));
  }
  if (!x || !lengths) return;
  const std::vector<int64_t> axes = normalise_axes(relation.attrs<DynamicSliceAttrs>().axes, x->shape.size(), "axes");
  if (axes.size() != lengths->size())
    fail(ErrorCode::TypeMismatch, "{} extents for {} axes", lengths->size(), axes.size());
  Shape shape = x->shape;
  for (size_t i = 0; i < axes.size(); ++i) shape[axes[i]] = (*lengths)[i];
  relation.set_output(tensor_type(shape, x->dtype));
}

std::vector<loop::Tensor> slice_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const loop::Tensor& x = inputs[0];
  const std::vector<int64_t> sliced = normalise_axes(attrs_of<DynamicSliceAttrs>(call).axes, x.rank(), "axes");
  return {loop::compute("strided_slice", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    Indices index = to_indices(axes);
    for (size_t i = 0; i < sliced.size(); ++i) {
      const auto entry = [&](size_t input) {
        return loop::cast(inputs[input](Indices{loop::int_imm(static_cast<int64_t>(i))}), dtype::int64_);
      };
      const loop::Expr zero = loop::int_imm(0), extent = x.shape(sliced[i]), begin = entry(1), stride = entry(2);
      const loop::Expr start = clamp_index(loop::select(begin < zero, begin + extent, begin), extent);
      index[sliced[i]] = clamp_index(start + axes[sliced[i]] * stride, extent);
    }
    return x(index);
  })};
}

std::vector<loop::Tensor> stretched(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  return {broadcast_compute(call.op()->name, output_shape(call), {input_types(call)[0]}, {inputs[0]},
                            [](const std::vector<loop::Expr>& values) { return values[0]; })};
}

std::vector<loop::Tensor> arange_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  return {loop::compute("arange", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    const DType dtype = inputs[0].dtype(), wide = accumulator_dtype(dtype);
    const auto value = [&](size_t i) { return loop::cast(inputs[i](Indices{}), wide); };
    return loop::cast(value(0) + loop::cast(axes[0], wide) * value(1), dtype);
  })};
}

// Extents bound to `count` symbols that nothing else uses.
ir::Expr bind_extents(std::vector<ir::Expr> tensors, size_t count, const std::string& mode, bool allowzero = false,
                      std::optional<ir::Ints> axes = {}) {
  static std::atomic<int64_t> counter{0};
  auto attrs = ExtentsAttrs::defaults();
  for (size_t i = 0; i < count; ++i) attrs->names.push_back(fmt::format("run_time_{}", counter++));
  attrs->mode = mode;
  attrs->allowzero = allowzero;
  attrs->axes = std::move(axes);
  return call_op("dyn.extents", {ir::tuple(std::move(tensors))}, std::move(attrs));
}

size_t known_length(const ir::Expr& vector) {
  const TensorType& type = vector.tensor_type();
  if (type.shape.size() != 1 || !type.shape[0].is_const() || type.shape[0].value() > 64)
    fail(ErrorCode::TypeMismatch, "a shape must be a vector of known, small length, not of shape {}",
         to_string(type.shape));
  return static_cast<size_t>(type.shape[0].value());
}

}  // namespace

ir::Expr dynamic_reshape(ir::Expr x, ir::Expr shape, bool allowzero) {
  const size_t rank = known_length(shape);
  return call_op("dyn.reshape", {x, bind_extents({std::move(shape), x}, rank, "reshape", allowzero)});
}

ir::Expr dynamic_broadcast_to(ir::Expr x, ir::Expr shape) {
  const size_t rank = std::max(known_length(shape), x.tensor_type().shape.size());
  return call_op("dyn.broadcast_to", {x, bind_extents({std::move(shape), x}, rank, "broadcast")});
}

ir::Expr dynamic_full(ir::Expr value, ir::Expr shape) {
  const size_t rank = known_length(shape);
  return call_op("dyn.full", {std::move(value), bind_extents({std::move(shape)}, rank, "extents")});
}

ir::Expr dynamic_strided_slice(ir::Expr x, ir::Expr begin, ir::Expr end, ir::Expr strides, const ir::Ints& axes) {
  const std::vector<int64_t> from_front = normalise_axes(axes, x.tensor_type().shape.size(), "axes");
  const ir::Expr extents = bind_extents({begin, std::move(end), strides, x}, axes.size(), "slice", false, from_front);
  auto attrs = DynamicSliceAttrs::defaults();
  attrs->axes = from_front;
  return call_op("dyn.strided_slice", {std::move(x), std::move(begin), std::move(strides), extents}, std::move(attrs));
}

ir::Expr dynamic_arange(ir::Expr start, ir::Expr stop, ir::Expr step) {
  const ir::Expr extents = bind_extents({start, std::move(stop), step}, 1, "count");
  return call_op("dyn.arange", {std::move(start), std::move(step), extents});
}

void register_tensor_dynamic(ir::OpRegistry& registry) {
  registry.add<ExtentsAttrs>("dyn.extents", "tensor/dynamic")
      .summary("Extents that tensors hold, bound to symbols when the program runs.")
      .source("Treadle")
      .tuple_input("tensors", "by mode")
      .traits(ir::kDataDependentShape)
      .relation(extents_relation)
      .runtime(extents_runtime);
  const auto add = [&](const char* name, const char* summary, FusionKind kind, const char* first) {
    return registry.add(name, "tensor/dynamic")
        .summary(summary)
        .source("Relay 0.16, dyn.*")
        .fusion(kind)
        .input("x", first);
  };
  add("dyn.reshape", "reshape to extents known at run time.", FusionKind::Injective, "any shape and dtype")
      .input("extents", "of dyn.extents")
      .relation(reshape_relation)
      .compute([](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
        return std::vector{reshaped("reshape", inputs[0], input_types(call)[0]->shape, output_shape(call))};
      });
  add("dyn.broadcast_to", "broadcast_to extents known at run time.", FusionKind::Broadcast, "broadcasts to the extents")
      .input("extents", "of dyn.extents")
      .relation(broadcast_relation_to)
      .compute(stretched);
  add("dyn.full", "full of extents known at run time.", FusionKind::Elementwise, "0-d")
      .input("extents", "of dyn.extents")
      .relation(full_relation)
      .compute(stretched);
  registry.add<DynamicSliceAttrs>("dyn.strided_slice", "tensor/dynamic")
      .summary("strided_slice of positions and extents known at run time.")
      .source("Relay 0.16, dyn.*")
      .input("x", "any shape and dtype")
      .input("begin", "(n) integers, one per axis")
      .input("strides", "(n) integers, not 0")
      .input("extents", "of dyn.extents, one per axis")
      .fusion(FusionKind::Injective)
      .relation(slice_relation)
      .compute(slice_compute);
  add("dyn.arange", "arange of an extent known at run time.", FusionKind::Elementwise, "0-d, the first value")
      .input("step", "0-d")
      .input("extents", "of dyn.extents, one axis")
      .relation(arange_relation)
      .compute(arange_compute);
}

}  // namespace treadle::op
