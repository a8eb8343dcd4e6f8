// SPDX-License-Identifier: Apache-2.0
// Operators that move or repeat whole elements by axes.
//
//   transpose          y's axis i is x's axis axes[i]; None: all reversed
//   layout_transform   x in another layout; where a block does not divide, the last one is filled up with 0
//   reverse            y[…, i, …] = x[…, n-1-i, …] along axis
//   repeat             each element `repeats` times along axis; None: of the flattened tensor
//   tile               the whole tensor repeated reps[i] times along axis i (right-aligned)
//   broadcast_to, broadcast_to_like     NumPy's broadcasting to a shape
//   collapse_sum_to, collapse_sum_like  the reverse of broadcasting: sums over what was stretched
// Source: Relay 0.16.
#pragma once

#include <optional>
#include <string>

#include "ir/expr.h"

namespace treadle::op {

struct TransposeAttrs : ir::AttrsOf<TransposeAttrs> {
  std::optional<ir::Ints> axes;

  template <typename F>
  static void fields(F& field) {
    field(&TransposeAttrs::axes, "axes", std::nullopt,
          "where each axis of the result comes from; None: reversed order");
  }
};

struct LayoutTransformAttrs : ir::AttrsOf<LayoutTransformAttrs> {
  std::string src_layout, dst_layout;

  template <typename F>
  static void fields(F& field) {
    field(&LayoutTransformAttrs::src_layout, "src_layout", ir::Required{}, "layout of x");
    field(&LayoutTransformAttrs::dst_layout, "dst_layout", ir::Required{},
          "layout of the result, of the same primal axes");
  }
};

struct ReverseAttrs : ir::AttrsOf<ReverseAttrs> {
  int64_t axis;

  template <typename F>
  static void fields(F& field) {
    field(&ReverseAttrs::axis, "axis", ir::Required{}, "the axis to turn around");
  }
};

struct RepeatAttrs : ir::AttrsOf<RepeatAttrs> {
  int64_t repeats;
  std::optional<int64_t> axis;

  template <typename F>
  static void fields(F& field) {
    field(&RepeatAttrs::repeats, "repeats", ir::Required{}, "how often each element stands").at_least(0);
    field(&RepeatAttrs::axis, "axis", std::nullopt, "the axis; None: the flattened tensor");
  }
};

struct TileAttrs : ir::AttrsOf<TileAttrs> {
  Shape reps;

  template <typename F>
  static void fields(F& field) {
    field(&TileAttrs::reps, "reps", ir::Required{}, "repetitions of each axis, right-aligned").at_least(0);
  }
};

struct BroadcastToAttrs : ir::AttrsOf<BroadcastToAttrs> {
  Shape shape;
  std::optional<DType> dtype;

  template <typename F>
  static void fields(F& field) {
    field(&BroadcastToAttrs::shape, "shape", ir::Required{}, "the shape of the result");
    field(&BroadcastToAttrs::dtype, "dtype", std::nullopt, "not used; part of Relay's record");
  }
};

ir::Expr transpose(ir::Expr x, const std::optional<ir::Ints>& axes = {});
// x itself when both layouts are the same.
ir::Expr layout_transform(ir::Expr x, const std::string& src_layout, const std::string& dst_layout);
ir::Expr broadcast_to(ir::Expr x, const Shape& shape);

}  // namespace treadle::op
