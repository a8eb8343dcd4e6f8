// SPDX-License-Identifier: Apache-2.0
#include "op/relations.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/expr.h"

namespace treadle::op {

// ---- Types of a call ----

namespace {

void append_tensors(const Type& type, std::vector<const TensorType*>& result) {
  for (const TensorType* tensor : flatten_tuple_type(type)) {
    if (!tensor)
      fail(ErrorCode::TypeUnresolved, "{} is neither the type of a tensor nor a tuple of such", to_string(type));
    result.push_back(tensor);
  }
}

}  // namespace

std::vector<const TensorType*> input_types(const ir::Call& call) {
  std::vector<const TensorType*> result;
  for (const ir::Expr& arg : call.args) append_tensors(arg.type(), result);
  return result;
}

std::vector<const TensorType*> output_types(const ir::Call& call) {
  std::vector<const TensorType*> result;
  append_tensors(call.type, result);
  return result;
}

const Shape& output_shape(const ir::Call& call) {
  const TensorType* type = as_tensor(call.type);
  if (!type) fail(ErrorCode::TypeUnresolved, "the call's type is not known");
  return type->shape;
}

// ---- Axes ----

int64_t normalise_axis(int64_t axis, size_t rank, std::string_view what) {
  const auto count = static_cast<int64_t>(rank);
  if (axis < -count || axis >= count)
    fail(ErrorCode::TypeAttribute, "{} {} is out of range for rank {}", what, axis, rank);
  return axis < 0 ? axis + count : axis;
}

std::vector<int64_t> normalise_axes(const ir::Ints& axes, size_t rank, std::string_view what) {
  std::vector<int64_t> result;
  std::vector<bool> seen(rank, false);
  for (int64_t axis : axes) {
    const int64_t normal = normalise_axis(axis, rank, what);
    if (seen[normal]) fail(ErrorCode::TypeAttribute, "{} {} is repeated", what, axis);
    seen[normal] = true;
    result.push_back(normal);
  }
  return result;
}

std::vector<int64_t> reduction_axes(const std::optional<ir::Ints>& axis, bool exclude, size_t rank) {
  std::vector<bool> listed(rank, false);
  if (axis) {
    for (int64_t a : normalise_axes(*axis, rank)) listed[a] = true;
  }
  const bool all = !axis || (axis->empty() && !exclude);
  if (!axis && exclude) fail(ErrorCode::TypeAttribute, "exclude needs an axis");
  std::vector<int64_t> result;
  for (size_t a = 0; a < rank; ++a) {
    if (all || listed[a] != exclude) result.push_back(static_cast<int64_t>(a));
  }
  return result;
}

Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keepdims) {
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i))) {
      result.push_back(shape[i]);
    } else if (keepdims) {
      result.push_back(1);
    }
  }
  return result;
}

// ---- Type relations ----

void identity_relation(ir::Relation& relation) {
  if (relation.tensor(0)) relation.set_output(relation.input(0));
}

void require_same_dtype(const ir::Relation& relation, size_t a, size_t b) {
  const TensorType* x = relation.tensor(a);
  const TensorType* y = relation.tensor(b);
  if (x && y && !(x->dtype == y->dtype))
    fail(ErrorCode::TypeMismatch, "inputs {} and {} must have one dtype, they are {} and {}", a, b, to_string(x->dtype),
         to_string(y->dtype));
}

bool assume_same_shape(const Shape& a, const Shape& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = assume_equal(a[i], b[i]);
  return same;
}

bool assume_some(const Dim& extent, const Dim& count) { return assume_at_most(min(count, 1), extent); }

bool assume_same(const Type& a, const Type& b) {
  const TensorType *s = as_tensor(a), *t = as_tensor(b);
  return s && t && s->dtype == t->dtype && assume_same_shape(s->shape, t->shape);
}

void require_rank(const ir::Relation& relation, size_t i, size_t rank) {
  const TensorType* x = relation.tensor(i);
  if (x && x->shape.size() != rank)
    fail(ErrorCode::TypeMismatch, "input {} must have rank {}, it has shape {}", i, rank, to_string(x->shape));
}

void broadcast_relation(ir::Relation& relation) {
  const TensorType* a = relation.tensor(0);
  const TensorType* b = relation.tensor(1);
  if (!a || !b) return;
  require_same_dtype(relation, 0, 1);
  relation.set_output(tensor_type(broadcast(a->shape, b->shape), a->dtype));
}

void comparison_relation(ir::Relation& relation) {
  const TensorType* a = relation.tensor(0);
  const TensorType* b = relation.tensor(1);
  if (!a || !b) return;
  require_same_dtype(relation, 0, 1);
  relation.set_output(tensor_type(broadcast(a->shape, b->shape), dtype::bool_));
}

// ---- Computes ----

loop::Tensor elementwise(std::string name, const loop::Tensor& x, const std::function<loop::Expr(loop::Expr)>& f) {
  return loop::compute(std::move(name), x.shape(),
                       [&](const std::vector<loop::Var>& axes) { return f(x(to_indices(axes))); });
}

Indices broadcast_index(const Shape& from, const Shape& to, const Indices& axes) {
  TREADLE_CHECK(from.size() <= to.size() && to.size() == axes.size(), "ranks {}, {}, {}", from.size(), to.size(),
                axes.size());
  Indices result;
  const size_t skip = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    const loop::Expr& index = axes[skip + i];
    if (from[i].is(1)) {
      result.push_back(loop::int_imm(0));
    } else if (from[i].is_const() || from[i] == to[skip + i]) {
      result.push_back(index);
    } else {
      result.push_back(loop::select(loop::to_expr(from[i]) == loop::int_imm(1), loop::int_imm(0), index));
    }
  }
  return result;
}

loop::Tensor broadcast_compute(std::string name, const Shape& shape, const std::vector<const TensorType*>& types,
                               const std::vector<loop::Tensor>& inputs,
                               const std::function<loop::Expr(const std::vector<loop::Expr>&)>& f) {
  return loop::compute(std::move(name), loop::to_exprs(shape), [&](const std::vector<loop::Var>& axes) {
    std::vector<loop::Expr> values;
    for (size_t i = 0; i < inputs.size(); ++i)
      values.push_back(inputs[i](broadcast_index(types[i]->shape, shape, to_indices(axes))));
    return f(values);
  });
}

loop::Expr flat_index(const Indices& index, const std::vector<loop::Expr>& extents) {
  loop::Expr result = loop::int_imm(0);
  for (size_t i = 0; i < index.size(); ++i) result = i == 0 ? index[0] : result * extents[i] + index[i];
  return result;
}

namespace {

// Consecutive axes [from_begin, from_end) that hold the same elements as [to_begin, to_end).
struct AxisGroup {
  size_t from_begin, from_end, to_begin, to_end;
};

// Pairs runs of axes with equal products, as short as they can be told; symbols in the middle make one long run.
std::vector<AxisGroup> group_axes(const Shape& from, const Shape& to) {
  std::vector<AxisGroup> groups;
  size_t front = 0;
  while (front < from.size() && front < to.size() && from[front] == to[front]) {
    groups.push_back({front, front + 1, front, front + 1});
    ++front;
  }
  size_t from_end = from.size(), to_end = to.size();
  while (from_end > front && to_end > front && from[from_end - 1] == to[to_end - 1]) --from_end, --to_end;
  const size_t back = from.size() - from_end;
  size_t i = front, j = front;
  while (i < from_end || j < to_end) {
    AxisGroup group{i, i, j, j};
    Dim a = 1, b = 1;
    if (i < from_end) a = from[i++];
    if (j < to_end) b = to[j++];
    while (!(a == b) && (i < from_end || j < to_end)) {
      const bool known = a.is_const() && b.is_const() && a.value() > 0 && b.value() > 0;
      if (j == to_end || (known && a.value() < b.value() && i < from_end)) {
        if (i == from_end) break;
        a = a * from[i++];
      } else if (known || i == from_end) {
        b = b * to[j++];
      } else {  // cannot be told: one group to the end
        while (i < from_end) a = a * from[i++];
        while (j < to_end) b = b * to[j++];
      }
    }
    // Trailing axes of extent 1 belong to the group before them.
    group.from_end = i;
    group.to_end = j;
    groups.push_back(group);
  }
  for (size_t k = 0; k < back; ++k) groups.push_back({from_end + k, from_end + k + 1, to_end + k, to_end + k + 1});
  return groups;
}

}  // namespace

loop::Tensor reshaped(std::string name, const loop::Tensor& x, const Shape& from, const Shape& to) {
  const std::vector<AxisGroup> groups = group_axes(from, to);
  const std::vector<loop::Expr> to_extents = loop::to_exprs(to), from_extents = loop::to_exprs(from);
  return loop::compute(std::move(name), to_extents, [&](const std::vector<loop::Var>& axes) {
    Indices index(from.size());
    for (const AxisGroup& group : groups) {
      if (group.from_begin == group.from_end) continue;
      Indices outer(axes.begin() + group.to_begin, axes.begin() + group.to_end);
      loop::Expr flat = flat_index(outer, {to_extents.begin() + group.to_begin, to_extents.begin() + group.to_end});
      size_t first = group.from_begin;  // the outermost axis that is not 1 needs no remainder
      while (first + 1 < group.from_end && from[first].is(1)) ++first;
      for (size_t i = group.from_begin; i < group.from_end; ++i) {
        loop::Expr inner = loop::int_imm(1);
        for (size_t j = i + 1; j < group.from_end; ++j) inner = inner * from_extents[j];
        if (from[i].is(1)) {
          index[i] = loop::int_imm(0);
        } else {
          loop::Expr part = loop::floordiv(flat, inner);
          index[i] = i == first ? part : loop::floormod(part, from_extents[i]);
        }
      }
    }
    return x(index);
  });
}

loop::Expr clamp_index(loop::Expr index, loop::Expr extent) {
  return loop::max(loop::min(std::move(index), std::move(extent) - loop::int_imm(1)), loop::int_imm(0));
}

DType accumulator_dtype(DType dtype) { return dtype.is_half() ? dtype::float32_ : dtype; }

DType mean_accumulator(DType dtype) {
  if (!dtype.is_integer()) return accumulator_dtype(dtype);
  return dtype.is_int() ? dtype::int64_ : dtype::uint64_;
}

loop::Expr saturated_constant(double value, DType dtype) {
  if (dtype.is_float()) return loop::constant(value, dtype);
  if (dtype.is_bool()) return loop::int_imm(value != 0 ? 1 : 0, dtype);
  if (std::isnan(value)) return loop::int_imm(0, dtype);
  const double low = dtype.is_int() ? -std::ldexp(1.0, dtype.bits - 1) : 0.0;
  const double above = std::ldexp(1.0, dtype.is_int() ? dtype.bits - 1 : dtype.bits);
  if (value <= low) {
    return loop::int_imm(dtype.is_int() ? std::numeric_limits<int64_t>::min() >> (64 - dtype.bits) : 0, dtype);
  }
  if (value >= above) {
    const uint64_t ones = ~uint64_t{0} >> (64 - dtype.bits + (dtype.is_int() ? 1 : 0));
    return loop::int_imm(static_cast<int64_t>(ones), dtype);
  }
  if (value >= 9223372036854775808.0) return loop::int_imm(static_cast<int64_t>(static_cast<uint64_t>(value)), dtype);
  return loop::int_imm(static_cast<int64_t>(value), dtype);
}

// ---- Layout rules ----

ir::LayoutAnswer original_layout(const ir::LayoutRequest& request) {
  const size_t outputs = as_tuple(request.call.type) ? as_tuple(request.call.type)->fields.size() : 1;
  return {std::vector<Layout>(request.wanted.size()), std::vector<Layout>(outputs), request.call.attrs};
}

ir::LayoutAnswer same_layout(const ir::LayoutRequest& request) {
  ir::LayoutAnswer answer = original_layout(request);
  for (const Layout& layout : request.wanted) {
    if (!layout.defined()) continue;
    for (Layout& input : answer.inputs) input = layout;
    for (Layout& output : answer.outputs) output = layout;
    break;
  }
  return answer;
}

int64_t unsplit_axis(const Layout& layout, int64_t axis) {
  const char name = layout.primal().axes()[axis].name;
  return layout.block_of(name) == 1 && layout.index_of(static_cast<char>(name - 'A' + 'a')) < 0 ? layout.index_of(name)
                                                                                                : -1;
}

// The layout of an input of shape `shape`, right-aligned with the axes of layout.primal(); undefined when it cannot be
// said: the axes that the input has must be the last ones of `layout`, too.
static Layout partial_layout(const Layout& layout, const Shape& shape) {
  const Layout primal = layout.primal();
  if (shape.size() > primal.rank()) return {};
  const size_t skip = primal.rank() - shape.size();
  std::string text;
  for (const Layout::Axis& axis : layout.axes()) {
    const size_t position = primal.index_of(axis.primal_name());
    if (position < skip) {
      if (!text.empty()) return {};
      continue;
    }
    const Dim& extent = shape[position - skip];
    if (axis.primal()) {
      if (!extent.is(1) && layout.block_of(axis.name) != 1 && !exact_divide(extent, layout.block_of(axis.name)))
        return {};
      text += axis.name;
    } else {
      text += std::to_string(extent.is(1) ? 1 : axis.factor);
      text += axis.name;
    }
  }
  return Layout(text);
}

ir::LayoutAnswer broadcast_layout(const ir::LayoutRequest& request) {
  ir::LayoutAnswer answer = original_layout(request);
  const std::vector<const TensorType*> types = input_types(request.call);
  const size_t rank = output_shape(request.call).size();
  const Shape& shape = output_shape(request.call);
  Layout chosen;
  for (size_t i = 0; i < types.size() && !chosen.defined(); ++i) {
    if (request.wanted[i].defined() && types[i]->shape == shape) chosen = request.wanted[i];
  }
  if (!chosen.defined()) return answer;
  const bool permuted =
      chosen.text() == chosen.primal().text();  // a pure reordering: which axis is which is not known here
  std::vector<Layout> inputs;
  for (const TensorType* type : types) {
    const bool single = std::all_of(type->shape.begin(), type->shape.end(), [](const Dim& dim) { return dim.is(1); });
    if (type->shape.empty()) {
      inputs.emplace_back();
    } else if (type->shape == shape) {
      inputs.push_back(chosen);
    } else {
      if (permuted && type->shape.size() != rank) return answer;
      Layout part = partial_layout(chosen, type->shape);
      if (!part.defined() && !single) return answer;
      inputs.push_back(part);  // undefined: one element, which reaches everywhere in any layout
    }
  }
  answer.inputs = std::move(inputs);
  answer.outputs = {chosen};
  return answer;
}

ir::Expr call_op(std::string_view name, std::vector<ir::Expr> args, ir::AttrsRef attrs) {
  return ir::call(&ir::OpRegistry::instance().get(name), std::move(args), std::move(attrs));
}

ir::Expr scalar(double value, DType dtype) { return ir::constant(Tensor::scalar(dtype, value)); }

std::optional<std::vector<Dim>> pieces_along(const std::vector<const TensorType*>& parts, const Shape& whole,
                                             int64_t axis) {
  for (int64_t i = 0; i < axis; ++i) {
    if (!whole[i].is(1)) return std::nullopt;
  }
  std::vector<Dim> offsets;
  Dim next = 0;
  for (const TensorType* part : parts) {
    offsets.push_back(next);
    next = next + product(part->shape);
  }
  return offsets;
}

}  // namespace treadle::op
