// SPDX-License-Identifier: Apache-2.0
// Operators that give a tensor another shape and move no element.
//
//   reshape(x, newshape)      codes in newshape: 0 the input's extent at this place (allowzero: the number 0), -1 what
//                             remains (once), -2 all remaining extents, -3 the product of the next two, -4 the next
//                             extent split into the two numbers that follow (one may be -1); others may be symbolic
//   contrib_reverse_reshape   the codes, matched from the right
//   reshape_like(x, like)     axes lhs_begin…lhs_end of x get the extents rhs_begin…rhs_end of like
//   expand_dims squeeze       axes of extent 1 come and go
// Source: Relay 0.16.
#pragma once

#include <optional>

#include "ir/expr.h"

namespace treadle::op {

struct ReshapeAttrs : ir::AttrsOf<ReshapeAttrs> {
  Shape newshape;
  bool allowzero;

  template <typename F>
  static void fields(F& field) {
    field(&ReshapeAttrs::newshape, "newshape", ir::Required{}, "the new extents, or the codes 0, -1, -2, -3, -4");
    field(&ReshapeAttrs::allowzero, "allowzero", false, "0 is the extent 0 and no code");
  }
};

struct ReshapeLikeAttrs : ir::AttrsOf<ReshapeLikeAttrs> {
  int64_t lhs_begin;
  std::optional<int64_t> lhs_end;
  int64_t rhs_begin;
  std::optional<int64_t> rhs_end;

  template <typename F>
  static void fields(F& field) {
    field(&ReshapeLikeAttrs::lhs_begin, "lhs_begin", 0, "first axis of x that is replaced; negative from the end");
    field(&ReshapeLikeAttrs::lhs_end, "lhs_end", std::nullopt, "the axis behind the last one; None: to the end");
    field(&ReshapeLikeAttrs::rhs_begin, "rhs_begin", 0, "first axis of like that is taken; negative from the end");
    field(&ReshapeLikeAttrs::rhs_end, "rhs_end", std::nullopt, "the axis behind the last one; None: to the end");
  }
};

struct ExpandDimsAttrs : ir::AttrsOf<ExpandDimsAttrs> {
  int64_t axis, num_newaxis;

  template <typename F>
  static void fields(F& field) {
    field(&ExpandDimsAttrs::axis, "axis", ir::Required{},
          "where the new axes stand, -rank-1 … rank; negative counts from the end");
    field(&ExpandDimsAttrs::num_newaxis, "num_newaxis", 1, "how many").at_least(0).at_most(64);
  }
};

struct SqueezeAttrs : ir::AttrsOf<SqueezeAttrs> {
  std::optional<ir::Ints> axis;

  template <typename F>
  static void fields(F& field) {
    field(&SqueezeAttrs::axis, "axis", std::nullopt, "the axes to drop, of extent 1; None: every axis of extent 1");
  }
};

// The shape that reshape gives. Errors: TypeAttribute for codes that do not fit, TypeMismatch when the element counts
// differ.
Shape resolve_reshape(const Shape& shape, const Shape& newshape, bool allowzero, bool reverse = false);

// With codes.
ir::Expr reshape(ir::Expr x, const Shape& newshape, bool allowzero = false);
// To exactly this shape.
ir::Expr reshape_to(ir::Expr x, const Shape& shape);
ir::Expr expand_dims(ir::Expr x, int64_t axis, int64_t num_newaxis = 1);
ir::Expr squeeze(ir::Expr x, const std::optional<ir::Ints>& axis = {});

}  // namespace treadle::op
