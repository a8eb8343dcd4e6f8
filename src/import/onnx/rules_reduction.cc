// SPDX-License-Identifier: Apache-2.0
// Reductions. The axes are an attribute, from opset 13 (ReduceSum) or 18 (the others) an input.
#include "import/onnx/rules.h"
#include "op/tensor/binary.h"
#include "op/tensor/reduce.h"
#include "op/tensor/unary.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

using Reduction = std::function<Expr(Node&, Expr, const ir::Ints&, bool)>;

Exprs reduce(Node& node, const Reduction& reduction, const std::optional<ir::Ints>& axes, bool noop) {
  const bool keepdims = node.flag("keepdims", true);
  const size_t rank = node.rank(0);
  ir::Ints sorted;
  if (axes && !axes->empty())
    sorted = axes_of(node, *axes, rank);
  else if (!noop) {
    for (size_t i = 0; i < rank; ++i) sorted.push_back(static_cast<int64_t>(i));
  }
  return {reduction(node, node.input(0), sorted, keepdims)};
}

Rule by_attribute(Reduction reduction) {
  return [reduction = std::move(reduction)](Node& node) {
    return reduce(node, reduction, node.optional_ints("axes"), false);
  };
}

Rule by_input(Reduction reduction) {
  return [reduction = std::move(reduction)](Node& node) {
    std::optional<ir::Ints> axes;
    if (node.has(1)) axes = node.ints_input(1, "the axes");
    return reduce(node, reduction, axes, node.flag("noop_with_empty_axes"));
  };
}

// No axes: each element is its own group.
Expr plain(const char* name, Expr x, const ir::Ints& axes, bool keepdims) {
  if (axes.empty()) return x;
  return op::reduce(name, std::move(x), axes, keepdims);
}

Reduction named(const char* name) {
  return
      [name](Node&, Expr x, const ir::Ints& axes, bool keepdims) { return plain(name, std::move(x), axes, keepdims); };
}

// Bool: max is any, min is all.
Reduction extreme(const char* name) {
  return [name](Node& node, Expr x, const ir::Ints& axes, bool keepdims) {
    if (!node.dtype(0).is_bool()) return plain(name, std::move(x), axes, keepdims);
    return plain(std::string_view(name) == "max" ? "any" : "all", std::move(x), axes, keepdims);
  };
}

Expr absolute(Node& node, const Expr& x) { return x.tensor_type().dtype.is_uint() ? x : node.call("abs", {x}); }

Expr l1(Node& node, Expr x, const ir::Ints& axes, bool keepdims) {
  return plain("sum", absolute(node, x), axes, keepdims);
}

Expr square_sum(Node&, Expr x, const ir::Ints& axes, bool keepdims) {
  return plain("sum", op::multiply(x, x), axes, keepdims);
}

// Functions of floats; of integers through double, truncated.
template <typename F>
Expr in_floats(const Expr& x, F f) {
  const DType dtype = x.tensor_type().dtype;
  if (dtype.is_float() && !dtype.is_half()) return f(x);
  return op::cast(f(op::cast(x, dtype.is_half() ? dtype::float32_ : dtype::float64_)), dtype);
}

Expr l2(Node& node, Expr x, const ir::Ints& axes, bool keepdims) {
  return in_floats(
      x, [&](const Expr& y) { return node.call("sqrt", {plain("sum", op::multiply(y, y), axes, keepdims)}); });
}

Expr log_sum(Node& node, Expr x, const ir::Ints& axes, bool keepdims) {
  return in_floats(x, [&](const Expr& y) { return node.call("log", {plain("sum", y, axes, keepdims)}); });
}

// Of no values, or when the largest is infinite, the shift would give NaN: then it is 0.
Expr log_sum_exp(Node& node, Expr x, const ir::Ints& axes, bool keepdims) {
  return in_floats(x, [&](const Expr& y) {
    if (axes.empty()) return y;
    const DType dtype = y.tensor_type().dtype;
    const Expr largest = op::reduce("max", y, axes, true);
    const Expr shift = op::where(node.call("isfinite", {largest}), largest, node.number(0, dtype));
    const Expr total = op::sum(node.call("exp", {op::subtract(y, shift)}), axes, keepdims);
    const Expr shift_out = keepdims ? shift : node.call("squeeze", {shift}, {{"axis", axes}});
    return op::add(node.call("log", {total}), shift_out);
  });
}

Rule arg_rule(const char* name) {
  return [name](Node& node) -> Exprs {
    const int64_t axis = axis_of(node, node.i("axis", 0), node.rank(0));
    const Expr index = op::arg_reduce(name, node.input(0), ir::Ints{axis}, node.flag("keepdims", true),
                                      node.flag("select_last_index"));
    return {op::cast(index, dtype::int64_)};
  };
}

}  // namespace

void add_reduction_rules(RuleTable& table) {
  const std::pair<const char*, Reduction> reductions[] = {
      {"ReduceL1", l1},
      {"ReduceL2", l2},
      {"ReduceLogSum", log_sum},
      {"ReduceLogSumExp", log_sum_exp},
      {"ReduceMean", named("mean")},
      {"ReduceProd", named("prod")},
      {"ReduceSumSquare", square_sum},
  };
  for (const auto& [name, reduction] : reductions) {
    table.add(name, {1, 11, 13}, by_attribute(reduction));
    table.add(name, {18}, by_input(reduction));
  }
  table.add("ReduceLogSum", {28}, by_input(log_sum));
  table.add("ReduceLogSumExp", {28}, by_input(log_sum_exp));
  table.add("ReduceSum", {1, 11}, by_attribute(named("sum")));
  table.add("ReduceSum", {13}, by_input(named("sum")));
  for (const char* name : {"ReduceMax", "ReduceMin"}) {
    const Reduction reduction = extreme(std::string_view(name) == "ReduceMax" ? "max" : "min");
    table.add(name, {1, 11, 12, 13}, by_attribute(reduction));
    table.add(name, {18, 20}, by_input(reduction));
  }
  table.add("ArgMax", {1, 11, 12, 13}, arg_rule("argmax"));
  table.add("ArgMin", {1, 11, 12, 13}, arg_rule("argmin"));
}

}  // namespace treadle::onnx
