// SPDX-License-Identifier: Apache-2.0
#include "lower/tile_model.h"

#include <algorithm>

namespace treadle::lower {

namespace {

// Cycles of one step of k. Two loads per cycle are not reached beside misses; `line` those that the fetch of one cache
// line of B costs beside the arithmetic.
double step_cycles(int64_t rows, int64_t vectors, double lines_per_vector, double line) {
  const auto fma = static_cast<double>(rows * vectors);
  const auto loads = static_cast<double>(rows + vectors);
  return std::max({fma / 2, loads / 1.6, (fma + loads + 2) / 4.5, 4.0}) +
         static_cast<double>(vectors) * lines_per_vector * line;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

Tile choose_tile(const TileProblem& p, const Target& target, const Knobs& knobs) {
  Tile best;
  if (p.depthwise) {  // a third of the registers accumulates; the rest holds what neighbouring rows share
    best.rows = std::min<int64_t>(p.rows, knobs.rows ? knobs.rows : (target.vector_registers >= 32 ? 14 : 6));
    return best;
  }
  double best_time = 0;
  for (int64_t vectors = 1; vectors <= 8; ++vectors) {
    if (knobs.vectors && vectors != std::min(knobs.vectors, p.vectors_inner * p.vectors_outer)) continue;
    const int64_t inner = std::min(vectors, p.vectors_inner);
    if (vectors % inner != 0) continue;
    const int64_t outer = vectors / inner;
    if (outer > p.vectors_outer || (outer > 1 && inner < p.vectors_inner)) continue;
    const double lines = static_cast<double>(p.lanes) * 4 / 64;
    const bool in_l1 = p.reduction * vectors * p.lanes * 4 <= target.l1_bytes / 2;
    const double line = in_l1 ? 0.0 : 0.8;
    for (int64_t count = 1; count <= 30; ++count) {
      // Up to the whole inner axis, then several of them.
      const bool whole = count >= p.rows;
      if (whole && count % p.rows != 0) continue;
      const int64_t rows = whole ? p.rows : count, around = whole ? count / p.rows : 1;
      if (around > p.rows_outer) break;
      if (knobs.rows && rows * around != std::min(knobs.rows, p.rows)) continue;
      if (count * vectors + vectors + 1 > target.vector_registers) break;
      const int64_t row_tiles = ceil_div(p.rows, rows), around_tiles = ceil_div(p.rows_outer, around);
      const int64_t most = ceil_div(p.rows, row_tiles), around_most = ceil_div(p.rows_outer, around_tiles);
      if ((most != rows || around_most != around) && !knobs.rows)
        continue;  // a smaller number gives the same even split
      const int64_t longer = p.rows - row_tiles * (most - 1),
                    around_longer = p.rows_outer - around_tiles * (around_most - 1);
      const auto rows_at = [&](int64_t v, int64_t a) {
        return static_cast<double>(longer) * step_cycles(most * a, v, lines, line) +
               (row_tiles > longer
                    ? static_cast<double>(row_tiles - longer) * step_cycles((most - 1) * a, v, lines, line)
                    : 0.0);
      };
      const auto all_rows = [&](int64_t v) {
        return static_cast<double>(around_longer) * rows_at(v, around_most) +
               (around_tiles > around_longer
                    ? static_cast<double>(around_tiles - around_longer) * rows_at(v, around_most - 1)
                    : 0.0);
      };
      // column tiles, split evenly too: some have one vector less
      const int64_t inner_tiles = ceil_div(p.vectors_inner, inner), inner_most = ceil_div(p.vectors_inner, inner_tiles);
      const int64_t tail_inner = inner_tiles * inner_most - p.vectors_inner, whole_inner = inner_tiles - tail_inner;
      const int64_t outer_tiles = ceil_div(p.vectors_outer, outer), outer_most = ceil_div(p.vectors_outer, outer_tiles);
      const int64_t outer_longer = p.vectors_outer - outer_tiles * (outer_most - 1);
      const auto columns = [&](int64_t o) {
        return static_cast<double>(whole_inner) * all_rows(inner_most * o) +
               (tail_inner ? static_cast<double>(tail_inner) * all_rows((inner_most - 1) * o) : 0.0);
      };
      double time =
          static_cast<double>(outer_longer) * columns(outer_most) +
          (outer_tiles > outer_longer ? static_cast<double>(outer_tiles - outer_longer) * columns(outer_most - 1)
                                      : 0.0);
      // Each further shape of tile is code of its own; of equal tiles the one that reads less.
      const int shapes = (row_tiles > longer ? 2 : 1) * (around_tiles > around_longer ? 2 : 1) *
                         (tail_inner || outer_tiles > outer_longer ? 2 : 1);
      time *= 1.0 + 0.02 * (shapes - 1);
      time *=
          1.0 + 0.05 * (static_cast<double>(most * around + vectors) / static_cast<double>(most * around * vectors));
      if (best_time == 0 || time < best_time) {
        best_time = time;
        best.rows = rows;
        best.rows_outer = around;
        best.vectors_inner = inner;
        best.vectors_outer = outer;
      }
    }
  }
  best.unroll = knobs.unroll ? knobs.unroll : 4;
  return best;
}

}  // namespace treadle::lower
