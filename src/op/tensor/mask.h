// SPDX-License-Identifier: Apache-2.0
// Operators that change a tensor at positions given by rules.
//
//   sequence_mask(x, valid_length)     positions from valid_length[b] on along the time axis become mask_value; `axis`
//                                      (0 or 1) is the time, the other of the two the batch
//   reverse_sequence(x, seq_lengths)   the first seq_lengths[b] elements along seq_axis turned around
//   matrix_set_diag(x, diagonal)       the diagonals k1 … k2 of the last two axes replaced
//   trilu(x, k)                        upper: 0 below diagonal k, else 0 above it
// Source: Relay 0.16; TensorFlow MatrixSetDiagV3.
#pragma once

#include "ir/expr.h"

namespace treadle::op {

struct SequenceMaskAttrs : ir::AttrsOf<SequenceMaskAttrs> {
  double mask_value;
  int64_t axis;

  template <typename F>
  static void fields(F& field) {
    field(&SequenceMaskAttrs::mask_value, "mask_value", 0.0, "the value of masked positions");
    field(&SequenceMaskAttrs::axis, "axis", 0, "the time axis").at_least(0).at_most(1);
  }
};

struct ReverseSequenceAttrs : ir::AttrsOf<ReverseSequenceAttrs> {
  int64_t seq_axis, batch_axis;

  template <typename F>
  static void fields(F& field) {
    field(&ReverseSequenceAttrs::seq_axis, "seq_axis", 1, "the axis that is turned around");
    field(&ReverseSequenceAttrs::batch_axis, "batch_axis", 0, "the axis that the lengths run along");
  }
};

struct MatrixSetDiagAttrs : ir::AttrsOf<MatrixSetDiagAttrs> {
  int64_t k1, k2;
  bool super_diag_right_align, sub_diag_right_align;

  template <typename F>
  static void fields(F& field) {
    field(&MatrixSetDiagAttrs::k1, "k1", 0, "lowest diagonal; negative: below the main one");
    field(&MatrixSetDiagAttrs::k2, "k2", 0, "highest diagonal");
    field(&MatrixSetDiagAttrs::super_diag_right_align, "super_diag_right_align", true,
          "shorter diagonals above stand at the end of their row");
    field(&MatrixSetDiagAttrs::sub_diag_right_align, "sub_diag_right_align", false,
          "shorter diagonals below stand at the end of their row");
  }
};

struct TriluAttrs : ir::AttrsOf<TriluAttrs> {
  bool upper;

  template <typename F>
  static void fields(F& field) {
    field(&TriluAttrs::upper, "upper", true, "keep the upper triangle, else the lower one");
  }
};

// k: an integer scalar.
ir::Expr trilu(ir::Expr x, ir::Expr k, bool upper);

}  // namespace treadle::op
