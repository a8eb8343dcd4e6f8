// SPDX-License-Identifier: Apache-2.0
// The analytic model that chooses the register tile of a contraction.
#pragma once

#include <cstdint>

#include "base/target.h"
#include "lower/schedule.h"

namespace treadle::lower {

struct TileProblem {
  int64_t rows = 1;        // extent of the axis whose elements are broadcast
  int64_t rows_outer = 1;  // extent of the axis of rows around it
  int64_t reduction = 1;   // steps of k
  int64_t lanes = 1;
  int64_t vectors_inner = 1;  // vectors along the vector axis
  int64_t vectors_outer = 1;  // extent of the other axis of columns
  bool depthwise = false;
};

struct Tile {
  int64_t rows = 1, vectors_inner = 1, vectors_outer = 1;
  int64_t rows_outer = 1;  // above 1 only when `rows` is the whole extent
  int64_t unroll = 1;
};

// The tile with the least time for all tiles of the problem, where one step of k takes the largest of: two
// multiply-adds per cycle; 1.6 loads per cycle (one per row and per vector); issue of all of these; and the latency of
// a multiply-add, four cycles, when there are few independent ones. Rows are split evenly, so a tile that does not
// divide them costs a shorter tile and not a nearly empty one.
Tile choose_tile(const TileProblem& problem, const Target& target, const Knobs& knobs);

}  // namespace treadle::lower
