// SPDX-License-Identifier: Apache-2.0
// Operators that read a tensor at indices which are data.
//
//   take(x, i)          x[…, i…, …]: `axis` of x replaced by the axes of i behind its batch_dims; axis None: of the
//                       flattened x
//   gather(x, i)        y has the shape of i: y[a, b, c] = x[i[a, b, c], b, c] for axis 0
//   gather_nd(x, i)     index tuples run along axis 0 of i, (M, Y…): y[Y…] = x[B…, i[0, Y…], …, i[M-1, Y…], …]
//   adv_index           a tuple (x, i0, i1, …): NumPy's x[i0, i1, …]; the indices broadcast, negative ones count from
//                       the end
//   unravel_index       positions in a flattened tensor of the given shape as index tuples along a new axis 0
//   invert_permutation  y[x[i]] = i
// Indices are any integers. Out of range: take by its mode, the others are cut to the tensor (Relay: undefined).
// Source: Relay 0.16.
#pragma once

#include <optional>
#include <string>

#include "ir/expr.h"

namespace treadle::op {

struct TakeAttrs : ir::AttrsOf<TakeAttrs> {
  int64_t batch_dims;
  std::optional<int64_t> axis;
  std::string mode;

  template <typename F>
  static void fields(F& field) {
    field(&TakeAttrs::batch_dims, "batch_dims", 0,
          "leading axes that x and the indices share; negative: from the end of the indices");
    field(&TakeAttrs::axis, "axis", std::nullopt, "the axis of x that is indexed; None: x flattened");
    field(&TakeAttrs::mode, "mode", "clip",
          "out of range: clip takes the nearest element, wrap counts modulo the extent, fast: as clip")
        .one_of({"clip", "wrap", "fast"});
  }
};

struct GatherAttrs : ir::AttrsOf<GatherAttrs> {
  int64_t axis;

  template <typename F>
  static void fields(F& field) {
    field(&GatherAttrs::axis, "axis", ir::Required{}, "the axis of x that is indexed");
  }
};

struct GatherNdAttrs : ir::AttrsOf<GatherNdAttrs> {
  int64_t batch_dims;
  std::optional<int64_t> index_rank;

  template <typename F>
  static void fields(F& field) {
    field(&GatherNdAttrs::batch_dims, "batch_dims", 0, "leading axes that x and the index tuples share").at_least(0);
    field(&GatherNdAttrs::index_rank, "index_rank", std::nullopt,
          "length of an index tuple, where the indices do not tell it");
  }
};

ir::Expr take(ir::Expr x, ir::Expr indices, std::optional<int64_t> axis, const std::string& mode = "clip",
              int64_t batch_dims = 0);
ir::Expr gather(ir::Expr x, ir::Expr indices, int64_t axis);
ir::Expr gather_nd(ir::Expr x, ir::Expr indices, int64_t batch_dims = 0);

}  // namespace treadle::op
