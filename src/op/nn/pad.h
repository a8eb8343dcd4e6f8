// SPDX-License-Identifier: Apache-2.0
// nn.pad and nn.mirror_pad. Every axis of extent n becomes before + n + after.
//
//   constant   the value of the second argument
//   edge       the border element
//   reflect    mirrored, the border element once:  c b | a b c | b a    (mirror_pad REFLECT)
//   symmetric  mirrored, the border element twice: b a | a b c | c b    (mirror_pad SYMMETRIC)
// Negative widths of nn.pad crop. Widths beyond the extent go on mirroring back and forth. Source: Relay 0.16, NumPy.
#pragma once

#include <string>

#include "ir/expr.h"

namespace treadle::op {

struct PadAttrs : ir::AttrsOf<PadAttrs> {
  ir::IntLists pad_width;
  std::string pad_mode;

  template <typename F>
  static void fields(F& field) {
    field(&PadAttrs::pad_width, "pad_width", ir::Required{},
          "elements before and after, a pair for every axis; negative: cropped");
    field(&PadAttrs::pad_mode, "pad_mode", "constant", "what the new elements are")
        .one_of({"constant", "edge", "reflect"});
  }
};

struct MirrorPadAttrs : ir::AttrsOf<MirrorPadAttrs> {
  std::string mode;
  ir::IntLists pad_width;

  template <typename F>
  static void fields(F& field) {
    field(&MirrorPadAttrs::mode, "mode", "SYMMETRIC", "whether the border element is repeated")
        .one_of({"SYMMETRIC", "REFLECT"});
    field(&MirrorPadAttrs::pad_width, "pad_width", ir::Required{}, "elements before and after, a pair for every axis")
        .at_least(0);
  }
};

// `value` is a 0-d tensor, converted to the data's dtype. Errors: TypeMismatch, TypeAttribute.
ir::Expr pad(ir::Expr data, ir::Expr value, ir::IntLists pad_width, std::string mode = "constant", Span span = nullptr);
ir::Expr mirror_pad(ir::Expr data, ir::IntLists pad_width, std::string mode, Span span = nullptr);

}  // namespace treadle::op
