// SPDX-License-Identifier: Apache-2.0
// Shapes that are known only when the program runs, because tensors hold them.
//
//   dyn.extents(tensors)    a kernel of the runtime that reads extents S0, S1, … and binds them to the symbols `names`.
//                           Its result, the "extents", is a bool tensor of shape (S0, S1, …, 0): it has no element and
//                           carries the shape only
//   dyn.reshape(x, extents)    dyn.broadcast_to(x, extents)    dyn.full(value, extents)
//   dyn.strided_slice(x, begin, strides, extents)    x[begin::strides] on `axes`, as many elements as the extents say
//   dyn.arange(start, step, extents)    scalars of one dtype; y[i] = start + i * step
// Whatever uses the symbols gets the extents as an argument, so that it runs behind what binds them.
// Relay's dyn.* operators have the shape tensor itself as argument. ONNX:
// Reshape, Expand, ConstantOfShape, Range, Slice.
#pragma once

#include <optional>
#include <string>

#include "ir/expr.h"

namespace treadle::op {

struct ExtentsAttrs : ir::AttrsOf<ExtentsAttrs> {
  ir::Strings names;
  std::string mode;
  bool allowzero;
  std::optional<ir::Ints> axes;

  template <typename F>
  static void fields(F& field) {
    field(&ExtentsAttrs::names, "names", ir::Required{},
          "the symbols that the extents are bound to, each used for nothing else");
    field(&ExtentsAttrs::mode, "mode", "extents",
          "extents: a vector of them; reshape: a vector with the codes 0 and -1, and the tensor to reshape; broadcast: "
          "a vector and a tensor, the shape to which both broadcast; count: start, stop and step of a range; slice: "
          "begin, end, strides and the tensor to slice")
        .one_of({"extents", "reshape", "broadcast", "count", "slice"});
    field(&ExtentsAttrs::allowzero, "allowzero", false, "of reshape: 0 is the extent 0 and no code");
    field(&ExtentsAttrs::axes, "axes", std::nullopt, "of slice: the axes, counted from the front");
  }
};

struct DynamicSliceAttrs : ir::AttrsOf<DynamicSliceAttrs> {
  ir::Ints axes;

  template <typename F>
  static void fields(F& field) {
    field(&DynamicSliceAttrs::axes, "axes", ir::Required{}, "the axes that are sliced");
  }
};

// `shape`: a vector of integers of known length. The symbols are new ones.
ir::Expr dynamic_reshape(ir::Expr x, ir::Expr shape, bool allowzero = false);
// To the shape to which x and `shape` broadcast, as ONNX Expand.
ir::Expr dynamic_broadcast_to(ir::Expr x, ir::Expr shape);
// value: a scalar.
ir::Expr dynamic_full(ir::Expr value, ir::Expr shape);
// begin, end, strides: vectors of integers, one entry per axis of `axes`; NumPy's rule.
ir::Expr dynamic_strided_slice(ir::Expr x, ir::Expr begin, ir::Expr end, ir::Expr strides, const ir::Ints& axes);
// Scalars of one dtype.
ir::Expr dynamic_arange(ir::Expr start, ir::Expr stop, ir::Expr step);

}  // namespace treadle::op
