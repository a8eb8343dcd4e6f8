// SPDX-License-Identifier: Apache-2.0
// Operators that join tensors or cut one into several.
//
//   concatenate  a tuple of tensors of one dtype whose extents agree but on `axis`
//   stack        the same along a new axis, of tensors of one shape
//   split        indices_or_sections a number: that many equal parts; a list: parts begin at 0 and at these positions
// Source: Relay 0.16.
#pragma once

#include "ir/expr.h"

namespace treadle::op {

struct ConcatenateAttrs : ir::AttrsOf<ConcatenateAttrs> {
  int64_t axis;

  template <typename F>
  static void fields(F& field) {
    field(&ConcatenateAttrs::axis, "axis", 0, "the axis along which the tensors follow each other");
  }
};

struct StackAttrs : ir::AttrsOf<StackAttrs> {
  int64_t axis;

  template <typename F>
  static void fields(F& field) {
    field(&StackAttrs::axis, "axis", 0, "where the new axis stands, -rank-1 … rank");
  }
};

struct SplitAttrs : ir::AttrsOf<SplitAttrs> {
  ir::IntOrInts indices_or_sections;
  int64_t axis;

  template <typename F>
  static void fields(F& field) {
    field(&SplitAttrs::indices_or_sections, "indices_or_sections", ir::Required{},
          "how many equal parts, or where they begin")
        .at_least(0);
    field(&SplitAttrs::axis, "axis", 0, "the axis to cut");
  }
};

ir::Expr concatenate(std::vector<ir::Expr> tensors, int64_t axis);
ir::Expr stack(std::vector<ir::Expr> tensors, int64_t axis);
// A tuple.
ir::Expr split(ir::Expr x, ir::IntOrInts indices_or_sections, int64_t axis);

}  // namespace treadle::op
