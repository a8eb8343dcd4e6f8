// SPDX-License-Identifier: Apache-2.0
// Evaluation of nodes whose inputs are known at import (known.h): what computes shapes.
#include <algorithm>
#include <cmath>

#include "import/onnx/shapes.h"
#include "import/onnx/tensor.h"
#include "op/tensor/slice.h"

namespace treadle::onnx {
namespace {

using Folded = std::optional<std::vector<Known>>;

Folded one(std::optional<Known> known) {
  if (!known) return std::nullopt;
  return std::vector<Known>{std::move(*known)};
}

// All inputs, or nothing.
std::optional<std::vector<const Known*>> all_known(Node& node) {
  std::vector<const Known*> result;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    if (!node.has(i)) return std::nullopt;
    result.push_back(node.known(i));
    if (!result.back()) return std::nullopt;
  }
  if (result.empty()) return std::nullopt;
  return result;
}

Folded elementwise(Node& node) {
  const auto inputs = all_known(node);
  if (!inputs) return std::nullopt;
  const DType operand = inputs->back()->dtype;
  for (size_t i = node.op_type() == "Where" ? 1 : 0; i < inputs->size(); ++i) {
    if ((*inputs)[i]->dtype != operand) return std::nullopt;  // the rule says what is wrong
  }
  const bool comparison =
      node.op_type() == "Equal" || node.op_type().starts_with("Less") || node.op_type().starts_with("Greater");
  const ElementFn f = element_function(node.op_type(), operand);
  return f ? one(map_known(*inputs, comparison ? dtype::bool_ : operand, f)) : std::nullopt;
}

Folded shape(Node& node) {
  const Type held = node.value(0).type();
  const TensorType* type = as_tensor(held);
  if (!type) return std::nullopt;
  const auto rank = static_cast<int64_t>(type->shape.size());
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t begin = 0, end = rank;
  if (node.opset() >= 15) {
    begin = clamp(node.i("start", 0));
    if (node.has_attr("end")) end = clamp(node.i("end", rank));
  }
  Known result{dtype::int64_, {std::max<int64_t>(end - begin, 0)}, {}};
  for (int64_t i = begin; i < end; ++i) result.values.emplace_back(type->shape[static_cast<size_t>(i)]);
  return one(std::move(result));
}

Folded size(Node& node) {
  const Type held = node.value(0).type();
  const TensorType* type = as_tensor(held);
  if (!type) return std::nullopt;
  return one(Known{dtype::int64_, {}, {Element(product(type->shape))}});
}

Folded cast_to(const Known& x, DType dtype) {
  return one(
      map_known({&x}, dtype, [&](const std::vector<Element>& v) { return convert_element(v[0], x.dtype, dtype); }));
}

Folded cast(Node& node) {
  const Known* x = node.known(0);
  if (!x) return std::nullopt;
  node.ignore("saturate");
  return cast_to(*x, dtype_of_code(node.required_i("to")));
}

Folded gather(Node& node) {
  const Known* x = node.known(0);
  const Known* indices = node.known(1);
  if (!x || !indices || !indices->dtype.is_integer()) return std::nullopt;
  return one(take_known(*x, *indices, axis_of(node, node.i("axis", 0), x->shape.size())));
}

Folded concat(Node& node) {
  const auto inputs = all_known(node);
  if (!inputs) return std::nullopt;
  return one(concat_known(*inputs, axis_of(node, node.required_i("axis"), (*inputs)[0]->shape.size())));
}

// The same elements with another shape.
Folded with_shape(const Known& x, const Shape& shape) {
  Known result = x;
  result.shape = static_extents(shape);
  return one(std::move(result));
}

Folded squeeze(Node& node) {
  const Known* x = node.known(0);
  if (!x) return std::nullopt;
  return with_shape(*x, squeezed_shape(node, to_shape(x->shape), axes_argument(node)));
}

Folded unsqueeze(Node& node) {
  const Known* x = node.known(0);
  const auto axes = x ? axes_argument(node) : std::nullopt;
  if (!axes) return std::nullopt;
  return with_shape(*x, unsqueezed_shape(node, to_shape(x->shape), *axes));
}

Folded reshape(Node& node) {
  const Known* x = node.known(0);
  const Known* target = x ? node.known(1) : nullptr;
  if (!target || !target->is_const()) return std::nullopt;
  const Shape shape = reshaped_shape(node, to_shape(x->shape), node.dims_input(1, "the shape"), node.flag("allowzero"));
  return with_shape(*x, shape);
}

Folded transpose(Node& node) {
  const Known* x = node.known(0);
  if (!x) return std::nullopt;
  const size_t rank = x->shape.size();
  ir::Ints axes;
  for (size_t i = rank; i-- > 0;) axes.push_back(static_cast<int64_t>(i));
  if (const auto given = node.optional_ints("perm")) axes = axes_of(node, *given, rank);
  if (axes.size() != rank) return std::nullopt;
  return one(transpose_known(*x, axes));
}

Folded slice(Node& node) {
  const Known* x = node.known(0);
  if (!x) return std::nullopt;
  const SliceArguments arguments = slice_arguments(node);
  std::optional<Known> result = *x;
  for (size_t i = 0; result && i < arguments.axes.size(); ++i) {
    const int64_t axis = arguments.axes[i];
    const op::SliceRange range = op::slice_range(x->shape[static_cast<size_t>(axis)], arguments.starts[i],
                                                 arguments.ends[i], arguments.steps[i]);
    if (!range.start.is_const() || !range.length.is_const()) return std::nullopt;
    result = slice_known(*result, axis, range.start.value(), range.stride, range.length.value());
  }
  return one(std::move(result));
}

Folded expand(Node& node) {
  const Known* x = node.known(0);
  const Known* target = x ? node.known(1) : nullptr;
  if (!target || !target->is_const()) return std::nullopt;
  const Shape shape = broadcast(to_shape(x->shape), node.dims_input(1, "the shape"));
  return one(expand_known(*x, static_extents(shape)));
}

Folded constant_of_shape(Node& node) {
  const Known* target = node.known(0);
  if (!target || !target->is_const() || target->shape.size() != 1) return std::nullopt;
  const auto tensor = node.tensor("value");
  const auto value = tensor ? known_of(*tensor) : std::optional(Known{dtype::float32_, {1}, {Element(0)}});
  if (!value || value->values.size() != 1) return std::nullopt;
  std::vector<int64_t> shape;
  int64_t count = 1;
  for (const Element& extent : target->values) {
    if (extent.is_real || extent.dim.value() < 0 || extent.dim.value() > kMaxKnown) return std::nullopt;
    count *= extent.dim.value();
    if (count > kMaxKnown) return std::nullopt;
    shape.push_back(extent.dim.value());
  }
  return one(filled_known(value->dtype, std::move(shape), value->values[0]));
}

Folded range(Node& node) {
  const auto inputs = all_known(node);
  if (!inputs || inputs->size() != 3) return std::nullopt;
  const DType dtype = (*inputs)[0]->dtype;
  std::vector<int64_t> numbers;
  for (const Known* input : *inputs) {
    if (!input->dtype.is_integer() || input->dtype != dtype || input->values.size() != 1 || !input->is_const())
      return std::nullopt;
    numbers.push_back(input->values[0].dim.value());
  }
  const int64_t limit = int64_t{1} << 40;
  for (const int64_t number : numbers) {
    if (number > limit || number < -limit) return std::nullopt;
  }
  const auto [start, stop, delta] = std::tuple(numbers[0], numbers[1], numbers[2]);
  if (delta == 0) return std::nullopt;
  const int64_t span = delta > 0 ? stop - start : start - stop, step = std::abs(delta);
  const int64_t count = span <= 0 ? 0 : (span + step - 1) / step;
  if (count > kMaxKnown) return std::nullopt;
  Known result{dtype, {count}, {}};
  for (int64_t i = 0; i < count; ++i) result.values.emplace_back(start + i * delta);
  return one(std::move(result));
}

// Of a list of integers, over all of it.
Folded reduce(Node& node) {
  const Known* x = node.known(0);
  if (!x || !x->dtype.is_integer() || x->shape.size() != 1 || x->values.empty()) return std::nullopt;
  const bool by_input = node.opset() >= (node.op_type() == "ReduceSum" ? 13 : 18);
  ir::Ints axes;
  if (by_input && node.has(1)) {
    const Known* given = node.known(1);
    if (!given || !given->is_const()) return std::nullopt;
    axes = node.ints_input(1, "the axes");
  } else if (!by_input) {
    axes = node.ints("axes");
  }
  if (by_input && axes.empty() && node.flag("noop_with_empty_axes")) return std::nullopt;
  axes_of(node, axes, 1);
  Element result = x->values[0];
  const std::string op = node.op_type() == "ReduceProd"  ? "Mul"
                         : node.op_type() == "ReduceSum" ? "Add"
                                                         : node.op_type().substr(6);
  const ElementFn f = element_function(op, x->dtype);
  for (size_t i = 1; i < x->values.size(); ++i) {
    const auto next = f({result, x->values[i]});
    if (!next) return std::nullopt;
    result = *next;
  }
  return one(Known{x->dtype, node.flag("keepdims", true) ? std::vector<int64_t>{1} : std::vector<int64_t>{}, {result}});
}

}  // namespace

void add_fold_rules(RuleTable& table) {
  for (const char* name :
       {"Identity",       "Neg", "Abs", "Not", "Floor", "Ceil", "Sqrt", "Equal", "Less", "LessOrEqual", "Greater",
        "GreaterOrEqual", "Add", "Sub", "Mul", "Div",   "Max",  "Min",  "And",   "Or",   "Where"}) {
    table.fold(name, elementwise);
  }
  table.fold("Mod", [](Node& node) { return node.flag("fmod") ? Folded() : elementwise(node); });
  table.fold("Shape", shape);
  table.fold("Size", size);
  table.fold("Cast", cast);
  table.fold("Gather", gather);
  table.fold("Concat", concat);
  table.fold("Squeeze", squeeze);
  table.fold("Unsqueeze", unsqueeze);
  table.fold("Reshape", reshape);
  table.fold("Transpose", transpose);
  table.fold("Slice", slice);
  table.fold("Expand", expand);
  table.fold("ConstantOfShape", constant_of_shape);
  table.fold("Range", range);
  for (const char* name : {"ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin"}) table.fold(name, reduce);
}

}  // namespace treadle::onnx
