// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/creation.h"

#include <cmath>

#include "op/relations.h"

namespace treadle::op {
namespace {

using ir::FusionKind;

// ---- zeros, ones, full ----

void init_relation(ir::Relation& relation) {
  const auto& attrs = relation.attrs<InitAttrs>();
  relation.set_output(tensor_type(attrs.shape, attrs.dtype.value_or(dtype::float32_)));
}

ir::ComputeFn constant_compute(const char* name, double value) {
  return [name, value](const ir::Call& call, const std::vector<loop::Tensor>&) {
    const loop::Expr number = loop::constant(value, output_types(call)[0]->dtype);
    return std::vector{loop::compute(name, loop::to_exprs(output_shape(call)), [&](const auto&) { return number; })};
  };
}

void full_relation(ir::Relation& relation) {
  const TensorType* value = relation.tensor(0);
  if (!value) return;
  require_rank(relation, 0, 0);
  const auto& attrs = relation.attrs<InitAttrs>();
  relation.set_output(tensor_type(attrs.shape, attrs.dtype.value_or(value->dtype)));
}

std::vector<loop::Tensor> full_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const loop::Expr value = loop::cast(inputs.back()(Indices{}), output_types(call)[0]->dtype);
  return {loop::compute("full", loop::to_exprs(output_shape(call)), [&](const auto&) { return value; })};
}

void full_like_relation(ir::Relation& relation) {
  require_rank(relation, 1, 0);
  if (relation.tensor(0)) relation.set_output(relation.input(0));
}

ir::Expr init_call(const char* name, std::vector<ir::Expr> args, const Shape& shape, DType dtype) {
  auto attrs = InitAttrs::defaults();
  attrs->shape = shape;
  attrs->dtype = dtype;
  return call_op(name, std::move(args), std::move(attrs));
}

// The operators that end in _like keep their argument while an extent is symbolic: what binds the symbol must run
// before them.
void register_constants(ir::OpRegistry& registry) {
  for (const auto& [name, value] : {std::pair("ones", 1.0), std::pair("zeros", 0.0)}) {
    registry.add<InitAttrs>(name, "tensor/creation")
        .summary(value == 0 ? "A tensor of zeros." : "A tensor of ones.")
        .source("Relay 0.16")
        .fusion(FusionKind::Elementwise)
        .traits(ir::kCreation)
        .relation(init_relation)
        .compute(constant_compute(name, value));
    registry.add(std::string(name) + "_like", "tensor/creation")
        .summary(value == 0 ? "Zeros in the type of another tensor." : "Ones in the type of another tensor.")
        .source("Relay 0.16")
        .input("x", "only its type counts")
        .fusion(FusionKind::Elementwise)
        .traits(ir::kReadsShapeOnly)
        .relation(identity_relation)
        .canonicalise([name = name](const ir::Call& call) {
          const TensorType* type = output_types(call)[0];
          return is_static(type->shape) ? init_call(name, {}, type->shape, type->dtype) : ir::Expr();
        })
        .compute(constant_compute(name, value));
  }
  registry.add<InitAttrs>("full", "tensor/creation")
      .summary("A tensor in which every element is one value.")
      .source("Relay 0.16")
      .input("value", "0-d")
      .fusion(FusionKind::Elementwise)
      .relation(full_relation)
      .compute(full_compute);
  registry.add("full_like", "tensor/creation")
      .summary("One value in the type of another tensor.")
      .source("Relay 0.16")
      .input("x", "only its type counts")
      .input("value", "0-d")
      .fusion(FusionKind::Elementwise)
      .relation(full_like_relation)
      .canonicalise([](const ir::Call& call) {
        const TensorType* type = output_types(call)[0];
        return is_static(type->shape) ? init_call("full", {call.args[1]}, type->shape, type->dtype) : ir::Expr();
      })
      .compute(full_compute);
}

// ---- Shapes as values ----

void check_integer(DType dtype) {
  if (!dtype.is_integer()) fail(ErrorCode::TypeAttribute, "dtype is {}, it must be an integer", to_string(dtype));
}

void shape_of_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  const DType dtype = relation.attrs<ShapeOfAttrs>().dtype;
  check_integer(dtype);
  if (x) relation.set_output(tensor_type({static_cast<int64_t>(x->shape.size())}, dtype));
}

void size_relation(ir::Relation& relation) {
  const DType dtype = relation.attrs<ShapeOfAttrs>().dtype;
  check_integer(dtype);
  if (relation.tensor(0)) relation.set_output(tensor_type({}, dtype));
}

std::vector<loop::Tensor> shape_of_compute(const ir::Call& call, const std::vector<loop::Tensor>&) {
  const std::vector<loop::Expr> extents = loop::to_exprs(input_types(call)[0]->shape);
  const DType dtype = attrs_of<ShapeOfAttrs>(call).dtype;
  return {loop::compute("shape_of", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    loop::Expr result = loop::int_imm(0, dtype);
    for (size_t i = extents.size(); i-- > 0;) {
      const loop::Expr extent = loop::cast(extents[i], dtype);
      result = i + 1 == extents.size()
                   ? extent
                   : loop::select(axes[0] == loop::int_imm(static_cast<int64_t>(i)), extent, result);
    }
    return result;
  })};
}

std::vector<loop::Tensor> size_compute(const ir::Call& call, const std::vector<loop::Tensor>&) {
  const loop::Expr size = loop::to_expr(product(input_types(call)[0]->shape));
  return {loop::compute("size", {}, [&](const auto&) { return loop::cast(size, attrs_of<ShapeOfAttrs>(call).dtype); })};
}

// ---- arange ----

Dim arange_extent(const ArangeAttrs& attrs) {
  const double step = attrs.step.value_or(1);
  if (step == 0 || !std::isfinite(step)) fail(ErrorCode::TypeAttribute, "step is {}", step);
  if (attrs.first || attrs.last) {
    if (!attrs.last || attrs.start || attrs.stop || step != std::trunc(step))
      fail(ErrorCode::TypeAttribute, "first and last stand instead of start and stop, with an integer step");
    const Dim first = attrs.first.value_or(0), whole_step = static_cast<int64_t>(step);
    const Dim extent =
        step > 0 ? ceildiv(*attrs.last - first, whole_step) : ceildiv(first - *attrs.last, Dim(0) - whole_step);
    return extent.lower_bound().value_or(-1) >= 0 ? extent : max(extent, 0);
  }
  if (!attrs.stop) fail(ErrorCode::TypeAttribute, "stop is not given");
  const double count = std::ceil((*attrs.stop - attrs.start.value_or(0)) / step);
  if (!(count < 9e15))
    fail(ErrorCode::TypeAttribute, "the range from {} to {} has no extent", attrs.start.value_or(0), *attrs.stop);
  return static_cast<int64_t>(std::max(count, 0.0));
}

// With three inputs and no attributes the extent is known when it runs.
void arange_relation(ir::Relation& relation) {
  const auto& attrs = relation.attrs<ArangeAttrs>();
  for (size_t i = 0; i < relation.num_inputs(); ++i) require_rank(relation, i, 0);
  if (!attrs.stop && !attrs.last) fail(ErrorCode::TypeAttribute, "stop is not given");
  relation.set_output(tensor_type({arange_extent(attrs)}, attrs.dtype));
}

std::vector<loop::Tensor> arange_compute(const ir::Call& call, const std::vector<loop::Tensor>&) {
  const auto& attrs = attrs_of<ArangeAttrs>(call);
  const DType dtype = attrs.dtype;
  const double start = attrs.start.value_or(0), step = attrs.step.value_or(1);
  return {loop::compute("arange", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    if (attrs.first || attrs.last) {
      const loop::Expr first = loop::to_expr(attrs.first.value_or(0));
      return loop::cast(first + axes[0] * loop::int_imm(static_cast<int64_t>(step)), dtype);
    }
    if (!dtype.is_float() && start == std::trunc(start) && step == std::trunc(step)) {
      return loop::cast(
          loop::int_imm(static_cast<int64_t>(start)) + axes[0] * loop::int_imm(static_cast<int64_t>(step)), dtype);
    }
    // As NumPy: the values in the result's dtype, but those of 16 bits and of integers in float32 and float64.
    const DType wide = dtype.is_half() ? dtype::float32_ : dtype.is_float() ? dtype : dtype::float64_;
    return loop::cast(loop::constant(start, wide) + loop::cast(axes[0], wide) * loop::constant(step, wide), dtype);
  })};
}

// ---- meshgrid, one_hot ----

void meshgrid_relation(ir::Relation& relation) {
  const auto vectors = relation.tensors(0);
  if (!vectors) return;
  Shape shape;
  for (const TensorType* vector : *vectors) {
    if (vector->shape.size() > 1)
      fail(ErrorCode::TypeMismatch, "meshgrid takes vectors, not shape {}", to_string(vector->shape));
    if (!(vector->dtype == (*vectors)[0]->dtype)) fail(ErrorCode::TypeMismatch, "the vectors must have one dtype");
    shape.push_back(vector->shape.empty() ? Dim(1) : vector->shape[0]);
  }
  if (relation.attrs<MeshgridAttrs>().indexing == "xy" && shape.size() >= 2) std::swap(shape[0], shape[1]);
  std::vector<Type> outputs;
  for (const TensorType* vector : *vectors) outputs.push_back(tensor_type(shape, vector->dtype));
  relation.set_output(tuple_type(outputs));
}

std::vector<loop::Tensor> meshgrid_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const bool swapped = attrs_of<MeshgridAttrs>(call).indexing == "xy";
  std::vector<loop::Tensor> outputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t axis = swapped && inputs.size() >= 2 && i < 2 ? 1 - i : i;
    outputs.push_back(loop::compute("meshgrid", loop::to_exprs(output_types(call)[i]->shape),
                                    [&](const std::vector<loop::Var>& axes) {
                                      return inputs[i](inputs[i].rank() == 0 ? Indices{} : Indices{axes[axis]});
                                    }));
  }
  return outputs;
}

void one_hot_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  require_rank(relation, 1, 0);
  require_rank(relation, 2, 0);
  if (!x) return;
  if (!x->dtype.is_integer())
    fail(ErrorCode::TypeMismatch, "indices are {}, they must be integers", to_string(x->dtype));
  const auto& attrs = relation.attrs<OneHotAttrs>();
  Shape shape = x->shape;
  shape.insert(shape.begin() + normalise_axis(attrs.axis, shape.size() + 1), Dim(attrs.depth));
  relation.set_output(tensor_type(shape, attrs.dtype));
}

std::vector<loop::Tensor> one_hot_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<OneHotAttrs>(call);
  const int64_t axis = normalise_axis(attrs.axis, inputs[0].rank() + 1);
  return {loop::compute("one_hot", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& axes) {
    Indices index = to_indices(axes);
    index.erase(index.begin() + axis);
    const loop::Expr hot = loop::cast(inputs[0](index), dtype::int64_) == axes[axis];
    const auto value = [&](size_t i) { return loop::cast(inputs[i](Indices{}), attrs.dtype); };
    return loop::select(hot, value(1), value(2));
  })};
}

void register_shapes(ir::OpRegistry& registry) {
  registry.add<ShapeOfAttrs>("shape_of", "tensor/creation")
      .summary("The extents of a tensor as a vector.")
      .source("Relay 0.16")
      .input("x", "only its shape counts")
      .fusion(FusionKind::Injective)
      .traits(ir::kReadsShapeOnly)
      .relation(shape_of_relation)
      .compute(shape_of_compute);
  registry.add<ShapeOfAttrs>("ndarray_size", "tensor/creation")
      .summary("The number of elements.")
      .source("Relay 0.16")
      .input("x", "only its shape counts")
      .fusion(FusionKind::Injective)
      .traits(ir::kReadsShapeOnly)
      .relation(size_relation)
      .compute(size_compute);
}

}  // namespace

ir::Expr zeros(const Shape& shape, DType dtype) { return init_call("zeros", {}, shape, dtype); }
ir::Expr ones(const Shape& shape, DType dtype) { return init_call("ones", {}, shape, dtype); }

ir::Expr full(ir::Expr value, const Shape& shape) {
  auto attrs = InitAttrs::defaults();
  attrs->shape = shape;
  return call_op("full", {std::move(value)}, std::move(attrs));
}

ir::Expr shape_of(ir::Expr x, DType dtype) {
  auto attrs = ShapeOfAttrs::defaults();
  attrs->dtype = dtype;
  return call_op("shape_of", {std::move(x)}, std::move(attrs));
}

ir::Expr arange(double start, double stop, double step, DType dtype) {
  auto attrs = ArangeAttrs::defaults();
  attrs->start = start;
  attrs->stop = stop;
  attrs->step = step;
  attrs->dtype = dtype;
  return call_op("arange", {}, std::move(attrs));
}

ir::Expr arange(const Dim& first, const Dim& last, int64_t step, DType dtype) {
  auto attrs = ArangeAttrs::defaults();
  attrs->first = first;
  attrs->last = last;
  attrs->step = static_cast<double>(step);
  attrs->dtype = dtype;
  return call_op("arange", {}, std::move(attrs));
}

ir::Expr one_hot(ir::Expr x, ir::Expr on, ir::Expr off, int64_t depth, int64_t axis, DType dtype) {
  auto attrs = OneHotAttrs::defaults();
  attrs->depth = depth;
  attrs->axis = axis;
  attrs->dtype = dtype;
  return call_op("one_hot", {std::move(x), std::move(on), std::move(off)}, std::move(attrs));
}

void register_tensor_creation(ir::OpRegistry& registry) {
  register_constants(registry);
  register_shapes(registry);
  registry.add<ArangeAttrs>("arange", "tensor/creation")
      .summary("Equally spaced numbers.")
      .formula("y[i] = start + i * step")
      .source("Relay 0.16; NumPy arange")
      .optional_input("start", "0-d; the attribute counts")
      .optional_input("stop", "0-d; the attribute counts")
      .optional_input("step", "0-d; the attribute counts")
      .fusion(FusionKind::Elementwise)
      .traits(ir::kCreation)
      .relation(arange_relation)
      .compute(arange_compute);
  registry.add<MeshgridAttrs>("meshgrid", "tensor/creation")
      .summary("Coordinate tensors from coordinate vectors.")
      .source("Relay 0.16; NumPy meshgrid")
      .tuple_input("vectors", "n vectors of one dtype")
      .outputs(0)
      .fusion(FusionKind::Injective)
      .relation(meshgrid_relation)
      .compute(meshgrid_compute);
  registry.add<OneHotAttrs>("one_hot", "tensor/creation")
      .summary("Indices as rows of one on value among off values.")
      .formula("y[…, k, …] = x[…] == k ? on : off; an index out of range gives off everywhere")
      .source("Relay 0.16")
      .input("indices", "integers")
      .input("on", "0-d")
      .input("off", "0-d")
      .fusion(FusionKind::Injective)
      .relation(one_hot_relation)
      .compute(one_hot_compute);
}

}  // namespace treadle::op
