// SPDX-License-Identifier: Apache-2.0
// Each primitive, interpreted against the nest without a schedule, for extents that divide and that do not.
#include "schedule/schedule.h"

#include "schedule/testing.h"

namespace treadle::schedule {
namespace {

using namespace loop;  // NOLINT(google-build-using-namespace)
using testing::expect_same;
using T = loop::Tensor;

struct Matmul {
  explicit Matmul(Expr m = 13, Expr n = 37, Expr k = 11) {
    a = placeholder("a", {m, k}, dtype::float32_);
    b = placeholder("b", {k, n}, dtype::float32_);
    c = reduce("c", {m, n}, ReduceOp::Sum, {k},
               [&](const auto& i, const auto& r) { return a(i[0], r[0]) * b(r[0], i[1]); });
    d = compute("d", {m, n},
                [&](const auto& i) { return max(c(i[0], i[1]) + a(i[0], 0), float_imm(0, dtype::float32_)); });
  }
  T a, b, c, d;
};

void check(Schedule& s, const std::vector<T>& inputs, const std::vector<T>& outputs,
           const std::map<std::string, int64_t>& symbols = {}) {
  const Function lowered = s.lower();
  expect_same(lowered, inputs, outputs, symbols, false);
  expect_same(finish(lowered), inputs, outputs, symbols, true);
}

TEST(Schedule, SplitReorderFuse) {
  for (Tail tail : {Tail::Guard, Tail::Even, Tail::ShiftInwards}) {
    for (int64_t factor : {1, 4, 5, 13}) {
      Matmul m;
      Schedule s("f", {m.a, m.b}, {m.c});
      Stage& c = s.stage(m.c);
      const auto [xo, xi] = c.split(c.axis(0), factor, tail);
      const auto [ko, ki] = c.split(c.reduce_axis(0), 3, tail == Tail::ShiftInwards ? Tail::Guard : tail);
      c.reorder({ko, c.axis(1), ki, xi});
      check(s, {m.a, m.b}, {m.c});
    }
  }
}

TEST(Schedule, FusedLoopIsSplitAgain) {
  Matmul m;
  Schedule s("f", {m.a, m.b}, {m.c, m.d});
  Stage& c = s.stage(m.c);
  const Var f = c.fuse(c.axis(0), c.axis(1));
  const auto [fo, fi] = c.split(f, 16);
  c.parallel(fo);
  c.vectorize(fi);
  c.reorder({fo, c.reduce_axis(0), fi});
  check(s, {m.a, m.b}, {m.c, m.d});
}

TEST(Schedule, MicroKernelWithEpilogue) {
  for (Tail tail : {Tail::Guard, Tail::Even, Tail::ShiftInwards}) {
    for (int64_t rows : {4, 6}) {
      Matmul m;
      Schedule s("f", {m.a, m.b}, {m.d});
      Stage& d = s.stage(m.d);
      const auto [x, y, xi, yi] = d.tile(d.axis(0), d.axis(1), rows, 8, tail);
      d.parallel(x);
      d.unroll(xi);
      d.vectorize(yi);
      Stage& c = s.stage(m.c);
      c.compute_at(d, y, Scope::Local);
      const auto [ko, ki] = c.split(c.reduce_axis(0), 4);
      c.reorder({ko, ki, c.axis(0), c.axis(1)});
      c.unroll(c.axis(0));
      c.vectorize(c.axis(1));
      check(s, {m.a, m.b}, {m.d});
    }
  }
}

TEST(Schedule, SymbolicExtents) {
  for (Tail tail : {Tail::Guard, Tail::Even}) {
    for (int64_t size : {0, 1, 3, 8, 17}) {
      Matmul m(symbol_var("M"), symbol_var("N"), symbol_var("K"));
      Schedule s("f", {m.a, m.b}, {m.d});
      Stage& d = s.stage(m.d);
      const auto [x, y, xi, yi] = d.tile(d.axis(0), d.axis(1), 4, 8, tail);
      d.parallel(x);
      d.unroll(xi);
      d.vectorize(yi);
      Stage& c = s.stage(m.c);
      c.compute_at(d, y, Scope::Local);
      c.reorder({c.reduce_axis(0), c.axis(0), c.axis(1)});
      c.unroll(c.axis(0));
      c.vectorize(c.axis(1));
      check(s, {m.a, m.b}, {m.d}, {{"M", size}, {"N", 2 * size + 1}, {"K", 5}});
    }
  }
}

TEST(Schedule, CacheWriteAndPack) {
  Matmul m;
  Schedule s("f", {m.a, m.b}, {m.c});
  Stage& c = s.stage(m.c);
  Stage& acc = s.cache_write(c);
  const auto [y, yi] = c.split(c.axis(1), 16);
  c.reorder({y, c.axis(0), yi});
  c.vectorize(yi);
  acc.compute_at(c, c.axis(0), Scope::Local);
  acc.reorder({acc.reduce_axis(0), acc.axis(0), acc.axis(1)});
  acc.vectorize(acc.axis(1));
  const Expr n = 37;
  Stage& packed = s.pack(
      m.b->buffer, {&acc}, {3, 11, 16},
      [&](const auto& p) {
        const Expr column = p[0] * 16 + p[2];
        return select(column < n, m.b(p[1], column), float_imm(0, dtype::float32_));
      },
      [](const auto& i) { return std::vector<Expr>{floordiv(i[1], 16), i[0], floormod(i[1], 16)}; });
  packed.compute_at(c, y);
  packed.vectorize(packed.axis(2));
  Stage& rows = s.cache_read(m.a->buffer, {&acc});
  rows.compute_at(c, c.axis(0));
  check(s, {m.a, m.b}, {m.c});
}

TEST(Schedule, ComputeAtThroughWindow) {
  const T x = placeholder("x", {9, 14}, dtype::float32_);
  const T padded = compute("padded", {11, 16}, [&](const auto& i) {
    const Expr inside = i[0] >= 1 && i[0] < 10 && i[1] >= 1 && i[1] < 15;
    return select(inside, x(i[0] - 1, i[1] - 1), float_imm(0, dtype::float32_));
  });
  const T y = reduce("y", {9, 14}, ReduceOp::Max, {3, 3},
                     [&](const auto& i, const auto& k) { return padded(i[0] + k[0], i[1] + k[1]); });
  for (int place = 0; place < 3; ++place) {
    Schedule s("f", {x}, {y});
    Stage& out = s.stage(y);
    const auto [h, w, hi, wi] = out.tile(out.axis(0), out.axis(1), 4, 4);
    out.parallel(h);
    out.reorder({out.reduce_axis(0), out.reduce_axis(1), hi, wi});
    out.vectorize(wi);
    out.unroll(out.reduce_axis(1));
    Stage& p = s.stage(padded);
    const auto [po, pi] = p.split(p.axis(1), 4);
    p.vectorize(pi);
    if (place == 1) p.compute_at(out, h);
    if (place == 2) p.compute_at(out, w);
    check(s, {x}, {y});
  }
  Schedule s("f", {x}, {y});
  s.stage(padded).compute_inline();
  s.stage(y).vectorize(s.stage(y).axis(1));
  s.stage(y).reorder({s.stage(y).reduce_axis(0), s.stage(y).reduce_axis(1), s.stage(y).axis(1)});
  check(s, {x}, {y});
}

TEST(Schedule, ChainOfStagesInOneRow) {
  const Expr n = symbol_var("N");
  const T x = placeholder("x", {n, 21}, dtype::float32_);
  const T top = reduce("top", {n}, ReduceOp::Max, {21}, [&](const auto& i, const auto& k) { return x(i[0], k[0]); });
  const T e = compute("e", {n, 21}, [&](const auto& i) { return x(i[0], i[1]) - top(i[0]); });
  const T sum = reduce("sum", {n}, ReduceOp::Sum, {21}, [&](const auto& i, const auto& k) { return e(i[0], k[0]); });
  const T y = compute("y", {n, 21}, [&](const auto& i) { return e(i[0], i[1]) * sum(i[0]); });
  for (int64_t size : {0, 1, 5}) {
    Schedule s("f", {x}, {y});
    Stage& out = s.stage(y);
    out.parallel(out.axis(0));
    const auto [yo, yi] = out.split(out.axis(1), 8);
    out.vectorize(yi);
    for (const T& t : {top, e, sum}) s.stage(t).compute_at(out, out.axis(0));
    s.stage(top).vectorize_reduction(s.stage(top).reduce_axis(0), 4, 2);
    s.stage(sum).vectorize_reduction(s.stage(sum).reduce_axis(0), 8, 1);
    check(s, {x}, {y}, {{"N", size}});
  }
}

TEST(Schedule, SplitIntoParts) {
  for (int64_t extent : {1, 3, 8, 21}) {
    const T x = placeholder("x", {extent}, dtype::float32_);
    const T y = compute("y", {extent}, [&](const auto& i) { return x(i[0]) + x(i[0]); });
    Schedule s("f", {x}, {y});
    const auto [o, i] = s.stage(y).split_parts(s.stage(y).axis(0), 4);
    const auto [io, ii] = s.stage(y).split(i, 2);
    s.stage(y).parallel(o);
    s.stage(y).vectorize(ii);
    check(s, {x}, {y});
  }
}

// Blocks and threads are loops to the interpreter.
TEST(Schedule, BindsToAxesOfAGpu) {
  for (int64_t factor : {1, 4, 5, 13, 64}) {
    Matmul m;
    Schedule s("f", {m.a, m.b}, {m.c});
    Stage& c = s.stage(m.c);
    const auto [xo, xi] = c.split(c.axis(0), factor);
    const auto [yo, yi] = c.split(c.axis(1), 8);
    c.reorder({xo, yo, xi, yi, c.reduce_axis(0)});
    c.bind(xo, ThreadAxis::BlockY);
    c.bind(yo, ThreadAxis::BlockX);
    c.bind(xi, ThreadAxis::ThreadY);
    c.bind(yi, ThreadAxis::ThreadX);
    check(s, {m.a, m.b}, {m.c});
    const std::string text = to_string(finish(s.lower()));
    for (const char* axis : {"bind block.y", "bind block.x", "bind thread.y", "bind thread.x"})
      EXPECT_NE(text.find(axis), std::string::npos) << text;
  }
}

TEST(Schedule, BoundStageInsideABlock) {
  for (int64_t extent : {3, 16, 37}) {
    const T x = placeholder("x", {extent}, dtype::float32_);
    const T y = compute("y", {extent}, [&](const auto& i) { return x(i[0]) * x(i[0]); });
    const T z = compute("z", {extent}, [&](const auto& i) { return y(i[0]) + x(i[0]); });
    Schedule s("f", {x}, {z});
    Stage &zs = s.stage(z), &ys = s.stage(y);
    const auto [block, thread] = zs.split(zs.axis(0), 16);
    zs.bind(block, ThreadAxis::BlockX);
    zs.bind(thread, ThreadAxis::ThreadX);
    ys.compute_at(zs, block);
    ys.bind(ys.axis(0), ThreadAxis::ThreadX);
    check(s, {x}, {z});
  }
}

TEST(Schedule, CollapsedAxes) {
  for (int64_t factor : {2, 5, 7}) {
    const T x = placeholder("x", {3, 7, 5}, dtype::float32_);
    const T y = compute("y", {3, 7, 5}, [&](const auto& i) { return x(i[0], i[1], i[2]) * x(i[0], i[1], 0); });
    Schedule s("f", {x}, {y});
    Stage& ys = s.stage(y);
    s.collapse(ys, 0);
    ASSERT_EQ(ys.axes().size(), 2u);
    const auto [o, i] = ys.split(ys.axis(0), factor);
    ys.vectorize(ys.axis(1));
    ys.parallel(o);
    expect_same(finish(s.lower()), {x}, {y});  // y has two axes before its memory becomes flat
  }
}

// What a stage computes behind the end of its shape is never read.
TEST(Schedule, RoundedUpRegions) {
  for (int64_t extent : {1, 8, 13}) {
    for (int64_t multiple : {4, 8}) {
      const T x = placeholder("x", {16}, dtype::float32_);
      const T y = compute("y", {extent}, [&](const auto& i) { return x(i[0]) + x(0); });
      const T z = compute("z", {3, extent}, [&](const auto& i) { return y(i[1]) * x(i[0]); });
      Schedule s("f", {x}, {z});
      Stage &ys = s.stage(y), &zs = s.stage(z);
      ys.compute_at(zs, zs.axis(0));
      ys.round_up(0, multiple);
      const auto [o, i] = ys.split(ys.axis(0), multiple);
      ys.vectorize(i);
      check(s, {x}, {z});
    }
  }
}

// A split whose inner loop runs outside of the outer one is guarded, the start values of the reduction too.
TEST(Schedule, InnerLoopOutsideOfTheOuter) {
  for (Tail tail : {Tail::Guard, Tail::Even}) {
    Matmul m;
    Schedule s("f", {m.a, m.b}, {m.c});
    Stage& c = s.stage(m.c);
    const auto [xo, xi] = c.split(c.axis(0), 4, tail);
    c.reorder({xi, c.reduce_axis(0), xo});
    check(s, {m.a, m.b}, {m.c});
  }
}

TEST(Schedule, BindElementwise) {
  for (Tail tail : {Tail::Guard, Tail::Even, Tail::ShiftInwards}) {
    for (int64_t factor : {1, 4, 7}) {
      const T x = placeholder("x", {7, 13, 9}, dtype::float32_);
      const T y = compute("y", {7, 13, 9}, [&](const auto& i) { return x(i[0], i[1], i[2]) * x(i[0], i[1], 0); });
      Schedule s("f", {x}, {y});
      Stage& out = s.stage(y);
      const auto [bx, bz, tx, tz] = out.tile(out.axis(1), out.axis(2), factor, 4, tail);
      out.bind(out.axis(0), ThreadAxis::BlockY);
      out.bind(bx, ThreadAxis::BlockX);
      out.bind(bz, ThreadAxis::BlockZ);
      out.bind(tx, ThreadAxis::ThreadX);
      out.bind(tz, ThreadAxis::ThreadZ);
      check(s, {x}, {y});
      const std::string text = to_string(finish(s.lower()));
      for (const char* axis : {"block.x", "block.y", "block.z", "thread.x", "thread.z"})
        EXPECT_NE(text.find(axis), std::string::npos) << axis << " is lost\n" << text;
    }
  }
}

// Each block computes a tile of the product; its threads first copy the rows and columns that they share.
TEST(Schedule, BindMatmul) {
  for (Tail tail : {Tail::Guard, Tail::Even, Tail::ShiftInwards}) {
    for (int place = 0; place < 3; ++place) {
      Matmul m;
      Schedule s("f", {m.a, m.b}, {m.c});
      Stage& c = s.stage(m.c);
      const auto [bx, by, tx, ty] = c.tile(c.axis(0), c.axis(1), 4, 8, tail);
      const auto [ko, ki] = c.split(c.reduce_axis(0), 4);
      if (place > 0) c.reorder({ko, tx, ty, ki});
      c.bind(bx, ThreadAxis::BlockY);
      c.bind(by, ThreadAxis::BlockX);
      c.bind(tx, ThreadAxis::ThreadY);
      c.bind(ty, ThreadAxis::ThreadX);
      for (const T& t : {m.a, m.b}) {
        if (place == 0) continue;
        Stage& copy = s.cache_read(t->buffer, {&c});
        copy.compute_at(c, place == 1 ? by : ko);
        copy.bind(copy.axis(0), ThreadAxis::ThreadY);
        copy.bind(copy.axis(1), ThreadAxis::ThreadX);
      }
      check(s, {m.a, m.b}, {m.c});
    }
  }
}

TEST(Schedule, BindSymbolicExtents) {
  for (int64_t size : {0, 1, 4, 9}) {
    Matmul m(symbol_var("M"), symbol_var("N"), symbol_var("K"));
    Schedule s("f", {m.a, m.b}, {m.d});
    Stage& d = s.stage(m.d);
    const auto [bx, by, tx, ty] = d.tile(d.axis(0), d.axis(1), 4, 8);
    d.bind(bx, ThreadAxis::BlockY);
    d.bind(by, ThreadAxis::BlockX);
    d.bind(tx, ThreadAxis::ThreadY);
    d.bind(ty, ThreadAxis::ThreadX);
    s.stage(m.c).compute_at(d, ty, Scope::Local);
    check(s, {m.a, m.b}, {m.d}, {{"M", size}, {"N", 2 * size + 1}, {"K", 5}});
  }
}

// The axes of the output and of what it reads become one, for extents that no tile divides.
TEST(Schedule, Collapse) {
  for (size_t axis : {size_t{0}, size_t{1}}) {
    for (int64_t factor : {4, 8, 35}) {
      const T x = placeholder("x", {3, 5, 7}, dtype::float32_);
      const T y = compute("y", {3, 5, 7}, [&](const auto& i) { return x(i[0], i[1], i[2]) + x(i[0], 0, i[2]); });
      const T z = reduce("z", {3, 5, 7}, ReduceOp::Sum, {5},
                         [&](const auto& i, const auto& k) { return y(i[0], k[0], i[2]) * x(i[0], i[1], i[2]); });
      Schedule s("f", {x}, {z});
      Stage &producer = *s.stages()[0], &out = *s.stages()[1];
      s.collapse(producer, axis);
      ASSERT_EQ(producer.axes().size(), 2u);
      const auto [po, pi] = producer.split(producer.axis(axis), factor);
      producer.vectorize(pi);
      check(s, {x}, {z});  // the output has its three axes still
      s.collapse(out, axis);
      const auto [oo, oi] = out.split(out.axis(axis), factor);
      out.parallel(oo);
      out.reorder({out.reduce_axis(0), oi});
      out.vectorize(oi);
      expect_same(finish(s.lower()), {x}, {z});
    }
  }
}

// The accumulators of a tile are whole vectors, also behind the last column, where a padded copy of b has zeros.
TEST(Schedule, RoundUp) {
  for (int64_t rows : {4, 5}) {
    Matmul m;
    Schedule s("f", {m.a, m.b}, {m.c});
    Stage& c = s.stage(m.c);
    Stage& acc = s.cache_write(c);
    const Expr n = 37;
    s.pack(
        m.b->buffer, {&acc}, {11, 40},
        [&](const auto& p) { return select(p[1] < n, m.b(p[0], p[1]), float_imm(0, dtype::float32_)); },
        [](const auto& i) { return i; });
    const auto [x, y, xi, yi] = c.tile(c.axis(0), c.axis(1), rows, 16);
    c.vectorize(yi);
    acc.compute_at(c, y, Scope::Local);
    acc.round_up(1, 8);
    const auto [v, lane] = acc.split(acc.axis(1), 8);
    acc.reorder({acc.reduce_axis(0), acc.axis(0), v, lane});
    acc.vectorize(lane);
    check(s, {m.a, m.b}, {m.c});
    // 37 = 2*16 + 5: without the rounding the last tile has 5 accumulators of a row.
    int whole = 0, other = 0;
    for_each(
        finish(s.lower()).body, [](const Stmt&) {},
        [&](const Expr& e) {
          const auto* l = e.as<Load>();
          if (l && l->buffer->name == "c_acc" && e.lanes() == 8) ++whole;
          if (l && l->buffer->name == "b_pack" && e.lanes() != 8) ++other;
        });
    EXPECT_GT(whole, 0);
    EXPECT_EQ(other, 0);
  }
}

template <typename F>
void expect_invalid(F&& f, const std::string& part) {
  try {
    f();
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::ScheduleInvalid);
    EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
  }
}

TEST(Schedule, WrongBindings) {
  Matmul m;
  Schedule s("f", {m.a, m.b}, {m.d});
  Stage &c = s.stage(m.c), &d = s.stage(m.d);
  expect_invalid([&] { c.bind(c.reduce_axis(0), ThreadAxis::ThreadX); }, "depend");
  d.bind(d.axis(0), ThreadAxis::ThreadX);
  expect_invalid([&] { d.bind(d.axis(1), ThreadAxis::ThreadX); }, "both bound to thread.x");
  d.bind(d.axis(1), ThreadAxis::BlockX);
  expect_invalid([&] { s.lower(); }, "blocks stand outside of threads");
  d.bind(d.axis(1), ThreadAxis::ThreadY);
  d.unroll(d.axis(0));
  expect_invalid([&] { s.lower(); }, "unrolled");
  expect_invalid([&] { c.bind(d.axis(0), ThreadAxis::ThreadX); }, "no loop of it");
  d.parallel(d.axis(0));
  c.compute_at(d, d.axis(1));
  c.bind(c.axis(1), ThreadAxis::ThreadY);
  expect_invalid([&] { s.lower(); }, "is bound to thread.y, as loop");
}

TEST(Schedule, Errors) {
  Matmul m;
  Schedule s("f", {m.a, m.b}, {m.d});
  Stage &c = s.stage(m.c), &d = s.stage(m.d);
  expect_invalid([&] { c.split(d.axis(0), 4); }, "no loop of it");
  expect_invalid([&] { c.split(c.axis(0), 0); }, "at least 1");
  expect_invalid([&] { c.split(c.reduce_axis(0), 4, Tail::ShiftInwards); }, "twice");
  expect_invalid([&] { c.parallel(c.reduce_axis(0)); }, "depend");
  expect_invalid([&] { c.fuse(c.axis(0), c.reduce_axis(0)); }, "follow");
  expect_invalid([&] { c.fuse(c.axis(1), c.reduce_axis(0)); }, "only one");
  expect_invalid([&] { c.compute_inline(); }, "reduction");
  expect_invalid([&] { d.compute_inline(); }, "output");
  expect_invalid([&] { d.compute_at(c, c.axis(0)); }, "output");
  expect_invalid([&] { c.reorder({c.axis(0), c.axis(0)}); }, "twice");
  expect_invalid([&] { c.vectorize_reduction(c.axis(0), 4, 1); }, "innermost");
  expect_invalid(
      [&] {
        d.split(d.axis(0), 64, Tail::ShiftInwards);
        s.lower();
      },
      "at least its factor");
}

}  // namespace
}  // namespace treadle::schedule
