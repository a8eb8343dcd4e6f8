// SPDX-License-Identifier: Apache-2.0
// Contractions: Y[rows, columns] = sum over k of A[rows, k] * B[k, columns], and whatever looks like that: convolutions
// in blocked and plain layouts, dense layers, matrix products.
//
// The innermost kept axis is the vector axis; the operand that it walks through contiguously is B. Axes that only A
// depends on are rows, those that only B depends on are columns, axes of both are a batch. A register tile of rows x
// vectors is accumulated over the whole reduction, A is broadcast element by element; the pointwise reader (bias,
// activation, residual) is computed from the registers:
//
//   parallel over batch, blocks of rows, column tiles:           a block of rows of A stays in L2
//     for tiles of rows in the block:                            a column panel of B stays in L1 or L2
//       acc[rows][vectors] = 0
//       for k: acc[r][v] += A[r, k] * B[k, v]                    unrolled over r and v
//       Y[tile] = epilogue(acc)
//
// When the vector axis walks through both operands contiguously (depthwise convolution) the tile has one vector and the
// taps are unrolled.
#include <algorithm>
#include <set>

#include "lower/template.h"
#include "lower/tile_model.h"

namespace treadle::lower {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it
using schedule::Analyzer;
using schedule::Stage;
using schedule::Tail;

namespace {

constexpr size_t kNone = static_cast<size_t>(-1);
constexpr int64_t kSymbolic = 128;  // what a symbolic extent is taken for where a number is needed

enum class Role { Row, Column, Batch };

struct Operand {
  Access access;
  std::optional<int64_t> vector_stride;  // along the vector axis inside one vector; nullopt: not linear
};

struct Contraction {
  Operand a, b;             // b holds the vector axis
  std::vector<Role> roles;  // per data axis
  size_t vector_axis = 0;
  int64_t lanes = 1;
  bool depthwise = false;
};

bool depends(const Access& access, const Var& axis) {
  return std::any_of(access.indices.begin(), access.indices.end(),
                     [&](const Expr& index) { return uses_var(index, axis); });
}

// Stride inside one vector when the axis is cut into vectors of `lanes`.
std::optional<int64_t> stride_in_vector(const Access& access, const Var& axis, int64_t lanes, const Expr& extent,
                                        Analyzer& analyzer) {
  const Var outer("q"), lane("l");
  analyzer.bind(outer, 0, floordiv(extent + int_imm(lanes - 1), int_imm(lanes)));
  analyzer.bind(lane, 0, int_imm(lanes));
  const Expr offset = substitute(access.offset, {{axis.var(), outer * int_imm(lanes) + lane}});
  const auto linear = analyzer.split_linear(offset, lane);
  const int64_t* stride = linear ? as_int(linear->first) : nullptr;
  return stride ? std::optional(*stride) : std::nullopt;
}

bool is_one(const Expr& extent) {
  const int64_t* n = as_int(extent);
  return n && *n == 1;
}

const Binary* product_of(const Stage& stage) {
  if (!stage.reduction() || stage.reduction()->op != ReduceOp::Sum || stage.reduction()->axes.empty()) return nullptr;
  if (stage.reduction()->init.defined() || stage.buffer()->dtype.is_bool()) return nullptr;
  const auto* product = stage.value().as<Binary>();
  return product && product->op == BinaryOp::Mul ? product : nullptr;
}

std::optional<Contraction> analyse(TemplateContext& context, Stage& stage) {
  if (!product_of(stage) || stage.axes().empty()) return std::nullopt;
  const std::vector<Access> accesses = accesses_of(stage, context.analyzer);
  if (accesses.size() != 2) return std::nullopt;
  Contraction c;
  size_t v = stage.axes().size() - 1;
  while (v > 0 && is_one(stage.extent(v))) --v;
  c.vector_axis = v;
  const int64_t* extent = as_int(stage.extent(v));
  c.lanes = context.target.lanes(static_cast<int>(stage.buffer()->dtype.bytes()));
  if (extent) c.lanes = std::min(c.lanes, power_of_two_below(*extent));
  if (c.lanes < 4 && c.lanes < context.target.lanes(static_cast<int>(stage.buffer()->dtype.bytes())))
    return std::nullopt;
  const Var axis = stage.axes()[v];
  const bool in_first = depends(accesses[0], axis), in_second = depends(accesses[1], axis);
  if (!in_first && !in_second) return std::nullopt;
  const size_t b = in_second ? 1 : 0;
  c.a.access = accesses[1 - b];
  c.b.access = accesses[b];
  // Panels narrower than a register: shorter vectors.
  while (c.lanes > 4 && !stride_in_vector(c.b.access, axis, c.lanes, stage.extent(v), context.analyzer)) c.lanes /= 2;
  for (Operand* operand : {&c.a, &c.b}) {
    operand->vector_stride = stride_in_vector(operand->access, axis, c.lanes, stage.extent(v), context.analyzer);
  }
  if (in_first && in_second) {
    c.depthwise = c.a.vector_stride && c.b.vector_stride && *c.a.vector_stride <= 1 && *c.b.vector_stride <= 1;
    if (!c.depthwise) return std::nullopt;
  }
  for (const Var& data_axis : stage.axes()) {
    const bool in_a = depends(c.a.access, data_axis), in_b = depends(c.b.access, data_axis);
    c.roles.push_back(in_a && !in_b ? Role::Row : (in_b && !in_a ? Role::Column : Role::Batch));
  }
  return c;
}

// Makes adjacent row axes one where A walks through both in one go, so that tiles of rows need not end at the inner
// one.
void collapse_rows(TemplateContext& context, Stage& stage, Stage*& reader, Contraction& c) {
  for (size_t i = stage.axes().size(); i-- > 1;) {
    if (c.roles[i - 1] != Role::Row || c.roles[i] != Role::Row || i == c.vector_axis || is_one(stage.extent(i - 1)))
      continue;
    const auto outer = stride_of(c.a.access, stage.axes()[i - 1], context.analyzer);
    const auto inner = stride_of(c.a.access, stage.axes()[i], context.analyzer);
    if (!outer || !inner || !context.analyzer.proves(*outer == *inner * stage.extent(i))) continue;
    context.schedule.collapse(stage, i - 1);
    if (reader) context.schedule.collapse(*reader, i - 1);
    const Contraction old = c;
    c = *analyse(context, stage);
  }
}

// B copied into panels [batch of B..., vector of columns, k, columns of a vector], zeros behind the last column; only
// for plain indices, as in a product of matrices.
bool pack_columns(TemplateContext& context, Stage& acc, const Contraction& c, int64_t columns) {
  const Reduction& r = *acc.reduction();
  if (r.axes.size() != 1) return false;
  const Var axis = acc.axes()[c.vector_axis], k = r.axes[0];
  const std::vector<Expr>& indices = c.b.access.indices;
  std::optional<size_t> at_axis, at_k;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (uses_var(indices[i], axis)) {
      if (!indices[i].same_as(axis) || at_axis) return false;
      at_axis = i;
    } else if (uses_var(indices[i], k)) {
      if (!indices[i].same_as(k) || at_k) return false;
      at_k = i;
    }
  }
  if (!at_axis || !at_k) return false;
  const Buffer source = c.b.access.buffer;
  const Expr extent = source->shape[*at_axis];
  std::vector<Expr> shape;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (i != *at_axis && i != *at_k) shape.push_back(source->shape[i]);
  }
  const size_t rest = shape.size();
  shape.push_back(floordiv(extent + int_imm(columns - 1), int_imm(columns)));
  shape.push_back(source->shape[*at_k]);
  shape.push_back(int_imm(columns));
  const auto place = [&](const std::vector<Var>& p) {
    std::vector<Expr> from;
    for (size_t i = 0, next = 0; i < source->shape.size(); ++i) {
      from.push_back(i == *at_axis ? p[rest] * int_imm(columns) + p[rest + 2]
                                   : (i == *at_k ? Expr(p[rest + 1]) : Expr(p[next++])));
    }
    return select(from[*at_axis] < extent, load(source, from), constant(0, source->dtype));
  };
  const auto index = [&](const std::vector<Expr>& at) {
    std::vector<Expr> to;
    for (size_t i = 0; i < at.size(); ++i) {
      if (i != *at_axis && i != *at_k) to.push_back(at[i]);
    }
    to.push_back(floordiv(at[*at_axis], int_imm(columns)));
    to.push_back(at[*at_k]);
    to.push_back(floormod(at[*at_axis], int_imm(columns)));
    return to;
  };
  schedule_elementwise(context, context.schedule.pack(source, {&acc}, shape, place, index), true);
  return true;
}

// The reduction loops: the innermost is unrolled by `unroll`; all of them in a depthwise tile.
std::vector<Var> reduction_order(Stage& acc, int64_t unroll, bool all) {
  std::vector<Var> order;
  const Reduction& r = *acc.reduction();
  for (size_t i = 0; i < r.axes.size(); ++i) order.push_back(acc.reduce_axis(i));
  if (all) {
    int64_t repeated = 1;
    for (size_t i = r.axes.size(); i-- > 0;) {
      const int64_t* extent = as_int(r.extents[i]);
      if (!extent || *extent > 32 || repeated * *extent > 32) break;
      repeated *= *extent;
      acc.unroll(acc.reduce_axis(i));
    }
    return order;
  }
  const int64_t* extent = as_int(r.extents.back());
  if (extent && *extent <= unroll) {
    acc.unroll(order.back());
  } else if (unroll > 1) {
    const auto [outer, inner] = acc.split(order.back(), unroll);
    order.back() = outer;
    order.push_back(inner);
    acc.unroll(inner);
  }
  return order;
}

// Whether B is stored in blocks of whole vectors along the vector axis, the last one padded: indices floordiv(v, t) and
// floormod(v, t).
bool padded_panels(const Contraction& c, const Var& axis) {
  for (const Expr& index : c.b.access.indices) {
    const auto* e = index.as<Binary>();
    const int64_t* block = e && e->op == BinaryOp::FloorMod && e->a.same_as(axis) ? as_int(e->b) : nullptr;
    if (block && *block % c.lanes == 0) return true;
  }
  return false;
}

int64_t reduction_size(const Stage& acc) { return size_of(acc.reduction()->extents, kSymbolic); }

// A loop of the output and its iterations, a guess where they are symbolic.
struct CountedLoop {
  Var loop;
  int64_t count;
  bool symbolic = false;
};

// So many steps of the innermost reduction axis may stand in one body before rows read the same elements of A: LLVM
// would keep those in registers that the tile needs.
int64_t unroll_limit(const Contraction& c, const Stage& stage, size_t row, Analyzer& analyzer) {
  if (row == kNone) return 16;
  const auto along_k = stride_of(c.a.access, stage.reduction()->axes.back(), analyzer);
  const auto along_row = stride_of(c.a.access, stage.axes()[row], analyzer);
  const int64_t* k = along_k ? as_int(*along_k) : nullptr;
  const int64_t* r = along_row ? as_int(*along_row) : nullptr;
  if (!k || !r || *k <= 0 || *r <= 0) return 16;
  if (*r >= *k) return *r % *k == 0 ? std::max<int64_t>(1, *r / *k) : 16;
  return *k % *r == 0 && *k / *r < 32 ? 1 : 16;
}

struct Loops {
  std::vector<CountedLoop> batch, rows, columns;
  std::vector<Var> inside;
};

// Orders the loops of the output around the tile, cuts rows into blocks, and picks the parallel loop; gives the loop
// just outside the tile.
Var arrange(TemplateContext& context, const Stage& acc, Stage& out, const Contraction& c, Loops loops,
            const TileProblem& problem, const Tile& tile) {
  const auto extent_of = [&](Role role) {
    std::vector<Expr> extents;
    for (size_t i = 0; i < c.roles.size(); ++i) {
      if (c.roles[i] == role) extents.push_back(out.extent(i));
    }
    return size_of(extents, kSymbolic);
  };
  const int64_t batch = extent_of(Role::Batch);
  const int64_t inner_tiles = (problem.vectors_inner + tile.vectors_inner - 1) / tile.vectors_inner;
  const int64_t outer_tiles = (problem.vectors_outer + tile.vectors_outer - 1) / tile.vectors_outer;
  const Buffer& a = c.a.access.buffer;
  const int64_t a_bytes = size_of(a->shape, kSymbolic) * static_cast<int64_t>(a->dtype.bytes());
  const double work =
      2.0 * static_cast<double>(size_of(out.buffer()->shape, kSymbolic)) * static_cast<double>(reduction_size(acc));
  // Blocks of rows: so many that a block of A lies in half of L2, and that there are tasks for several threads.
  const int64_t for_cache = 2 * (a_bytes / std::max<int64_t>(batch, 1)) / context.target.l2_bytes + 1;
  const int64_t tasks = std::clamp<int64_t>(static_cast<int64_t>(work / 1e6), 1, 16);
  const int64_t others = std::max({batch, inner_tiles, outer_tiles});
  // Where A does not stay in L2 but B does, there are so many blocks that their loop lies outside of the columns'.
  const Buffer& b = c.b.access.buffer;
  const int64_t b_bytes = size_of(b->shape, kSymbolic) * static_cast<int64_t>(b->dtype.bytes());
  const bool rows_outside = a_bytes > context.target.l2_bytes && 2 * b_bytes <= context.target.l2_bytes;
  int64_t blocks = others >= 8 && !rows_outside ? for_cache : std::max(for_cache, tasks);
  // A padded copy of what a block reads should come from the nearest cache.
  Stage* const source = context.schedule.find(a);
  if (c.depthwise && source)
    blocks = std::max(blocks, 4 * (a_bytes / std::max<int64_t>(batch, 1)) / context.target.l2_bytes + 1);
  if (context.knobs.row_block > 0) blocks = std::max<int64_t>(1, extent_of(Role::Row) / context.knobs.row_block);
  std::vector<CountedLoop> outside = loops.batch;
  size_t alone = outside.size();  // loops outside of those over columns
  if (!loops.rows.empty() && blocks > 1) {
    // The first loop of rows that has enough iterations, else the longest.
    size_t at = 0;
    for (size_t i = 1; i < loops.rows.size(); ++i) {
      if (loops.rows[at].symbolic || (loops.rows[at].count < blocks && loops.rows[i].count > loops.rows[at].count))
        at = i;
    }
    if (!loops.rows[at].symbolic) {
      // A symbolic number of rows is cut into blocks of a fixed size, which keeps the arithmetic of tiles linear.
      const int64_t iterations = std::max<int64_t>(1, loops.rows[at].count / blocks);
      const auto [block_loop, rest] = loops.rows[at].symbolic ? out.split(loops.rows[at].loop, iterations)
                                                              : out.split_parts(loops.rows[at].loop, blocks);
      outside.push_back({block_loop, std::min(blocks, loops.rows[at].count)});
      alone = outside.size();
      loops.rows[at].loop = rest;
    } else if (others < 4) {
      // Cutting a loop of unknown length multiplies the special cases of its ends; it is a block of one row each as it
      // is.
      outside.push_back(loops.rows[0]);
      alone = outside.size();
      loops.rows.erase(loops.rows.begin());
    }
  }
  outside.insert(outside.end(), loops.columns.begin(), loops.columns.end());
  // Parallel: the first loop with enough iterations for several threads, else the one with the most. It comes first.
  size_t best = 0;
  for (size_t i = 0; i < outside.size(); ++i) {
    if (outside[best].count < 8 && outside[i].count > outside[best].count) best = i;
  }
  const bool first_is_column = best >= alone;
  if (!outside.empty()) {
    std::rotate(outside.begin(), outside.begin() + static_cast<ptrdiff_t>(best),
                outside.begin() + static_cast<ptrdiff_t>(best) + 1);
    if (work >= 200000 && outside[0].count > 1) out.parallel(outside[0].loop);
  }
  // The padded copy is made per task where no column loop lies outside of it, so that it is made once.
  if (source && alone > 0 && !first_is_column && !source->reduction() && context.schedule.readers(a).size() == 1) {
    context.attach = {source, (c.depthwise ? outside[alone - 1] : outside[0]).loop};
  }
  outside.insert(outside.end(), loops.rows.begin(), loops.rows.end());
  std::vector<Var> order;
  for (const CountedLoop& l : outside) order.push_back(l.loop);
  order.insert(order.end(), loops.inside.begin(), loops.inside.end());
  out.reorder(order);
  return outside.back().loop;
}

// Which axes of the output the tile is made of; kNone where there is none.
struct TileAxes {
  size_t row = kNone;         // its elements of A are broadcast
  size_t row_around = kNone;  // the axis of rows around it
  size_t column = kNone;      // beside the vector axis
};

TileAxes tile_axes(const Stage& stage, const Contraction& c) {
  const auto last_of = [&](Role role) -> size_t {  // the innermost axis of a role, the vector axis left out
    for (size_t i = stage.axes().size(); i-- > 0;) {
      if (c.roles[i] == role && i != c.vector_axis && !is_one(stage.extent(i))) return i;
    }
    return kNone;
  };
  // In a depthwise tile the rows are pixels: batch axes of both operands are not, but axes of the data alone are rows.
  TileAxes axes{last_of(Role::Row), kNone, c.depthwise ? kNone : last_of(Role::Column)};
  for (size_t i = axes.row == kNone ? 0 : axes.row; i-- > 0 && axes.row_around == kNone;) {
    if (c.roles[i] == Role::Row && i != c.vector_axis && as_int(stage.extent(i)) && !is_one(stage.extent(i)))
      axes.row_around = i;
  }
  return axes;
}

TileProblem tile_problem(const Stage& stage, const Contraction& c, const TileAxes& axes) {
  const auto extent_of = [&](size_t axis) { return axis != kNone ? size_of({stage.extent(axis)}, kSymbolic) : 1; };
  TileProblem problem;
  problem.rows = extent_of(axes.row);
  problem.rows_outer = extent_of(axes.row_around);
  problem.reduction = reduction_size(stage);
  problem.lanes = c.lanes;
  problem.vectors_inner = (size_of({stage.extent(c.vector_axis)}, kSymbolic * c.lanes) + c.lanes - 1) / c.lanes;
  problem.vectors_outer = extent_of(axes.column);
  problem.depthwise = c.depthwise;
  return problem;
}

// Splits the output's axes into what the tile holds and the loops around it.
Loops tile_loops(Stage& out, const Contraction& c, const TileAxes& axes, const TileProblem& problem, const Tile& tile) {
  Loops loops;
  for (size_t i = 0; i < out.axes().size(); ++i) {
    if (i == c.vector_axis || i == axes.row || i == axes.column) continue;
    if (i == axes.row_around && tile.rows_outer > 1) {
      const auto [ao, ai] = out.split(out.axis(i), tile.rows_outer, Tail::Even);
      out.unroll(ai);
      loops.inside.push_back(ai);
      loops.rows.push_back({ao, (problem.rows_outer + tile.rows_outer - 1) / tile.rows_outer});
      continue;
    }
    const int64_t count = size_of({out.extent(i)}, kSymbolic);
    const bool row_loop = c.roles[i] == Role::Row && count > 1;  // single iterations go out of the way
    (row_loop ? loops.rows : (c.roles[i] == Role::Column ? loops.columns : loops.batch))
        .push_back({out.axis(i), count, !as_int(out.extent(i))});
  }
  if (axes.row != kNone) {
    const auto [row_tile, row_in] = out.split(out.axis(axes.row), tile.rows, Tail::Even);
    out.unroll(row_in);
    loops.inside.push_back(row_in);
    loops.rows.push_back({row_tile, (problem.rows + tile.rows - 1) / tile.rows, !as_int(out.extent(axes.row))});
  }
  if (axes.column != kNone) {
    const auto [co, ci] = out.split(out.axis(axes.column), tile.vectors_outer, Tail::Even);
    loops.columns.push_back({co, (problem.vectors_outer + tile.vectors_outer - 1) / tile.vectors_outer});
    out.unroll(ci);
    loops.inside.push_back(ci);
  }
  const auto [vt, lane] = out.split(out.axis(c.vector_axis), c.lanes);
  const auto [vo, vv] = out.split(vt, tile.vectors_inner, Tail::Even);
  loops.columns.push_back({vo, (problem.vectors_inner + tile.vectors_inner - 1) / tile.vectors_inner});
  out.unroll(vv);
  out.vectorize(lane);
  loops.inside.insert(loops.inside.end(), {vv, lane});
  return loops;
}

// The accumulators of one tile, in registers: reduction outside, rows, then columns.
void schedule_accumulation(Stage& acc, Stage& out, const Contraction& c, int64_t unroll, const Var& tile_loop) {
  std::vector<Var> order = reduction_order(acc, c.depthwise ? 0 : unroll, c.depthwise);
  // Rows outside of columns: one broadcast element of A lives at a time, beside the vectors of B of one step.
  for (const bool row_axes : {true, false}) {
    for (size_t i = 0; i < acc.axes().size(); ++i) {
      if (i == c.vector_axis || (c.roles[i] == Role::Row) != row_axes) continue;
      acc.unroll(acc.axis(i));
      order.push_back(acc.axis(i));
    }
  }
  const auto [av, alane] = acc.split(acc.axis(c.vector_axis), c.lanes);
  acc.unroll(av);
  acc.vectorize(alane);
  order.insert(order.end(), {av, alane});
  acc.reorder(order);
  acc.compute_at(out, tile_loop, Scope::Local);
}

}  // namespace

bool is_contraction(TemplateContext& context, Stage& stage) { return analyse(context, stage).has_value(); }

bool schedule_contraction(TemplateContext& context, Stage& stage) {
  auto found = analyse(context, stage);
  if (!found) return false;
  Contraction& c = *found;
  Stage* reader = pointwise_reader(context, stage);
  collapse_rows(context, stage, reader, c);
  const TileAxes axes = tile_axes(stage, c);
  const TileProblem problem = tile_problem(stage, c, axes);
  const int64_t total_rows = [&] {
    std::vector<Expr> extents;
    for (size_t i = 0; i < c.roles.size(); ++i) {
      if (c.roles[i] == Role::Row) extents.push_back(stage.extent(i));
    }
    return size_of(extents, kSymbolic);
  }();
  // Without contiguous columns a few rows do not pay for a copy: dot products along k are faster.
  const bool strided = !c.b.vector_stride || *c.b.vector_stride != 1;
  if (strided && !c.depthwise && total_rows < 4) return false;
  const Tile tile = choose_tile(problem, context.target, context.knobs);
  const int64_t unroll = std::min(tile.unroll, unroll_limit(c, stage, axes.row, context.analyzer));

  Stage& acc = reader ? stage : context.schedule.cache_write(stage);
  Stage& out = reader ? *reader : stage;
  const Var c_axis = acc.axes()[c.vector_axis];
  bool packed = false;
  if (!c.depthwise && total_rows >= 4) {
    // Panels also spare rows of B that lie far apart the conflicts in the cache.
    const auto k_stride = stride_of(c.b.access, acc.reduction()->axes.back(), context.analyzer);
    const int64_t* distance = k_stride ? as_int(*k_stride) : nullptr;
    const bool far = total_rows >= 32 && (!distance || *distance > 4 * c.lanes);
    if (strided || far) packed = pack_columns(context, acc, c, c.lanes);
  }

  Loops loops = tile_loops(out, c, axes, problem, tile);
  context.attach = {};
  const Var tile_loop = arrange(context, acc, out, c, std::move(loops), problem, tile);
  schedule_accumulation(acc, out, c, unroll, tile_loop);
  if (Stage* source = context.attach.first) {
    schedule_elementwise(context, *source, false);
    source->compute_at(out, context.attach.second);
  }

  // Columns behind the last one are computed where B has zeros for them, so that all vectors are whole.
  const auto ends = context.analyzer.simplify(floormod(out.extent(c.vector_axis), int_imm(c.lanes)));
  const bool whole = as_int(ends) && *as_int(ends) == 0;
  if (!whole && (packed || padded_panels(c, c_axis))) acc.round_up(c.vector_axis, c.lanes);
  return true;
}

}  // namespace treadle::lower
