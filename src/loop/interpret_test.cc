// SPDX-License-Identifier: Apache-2.0
// The interpreter and the naive lowering, against plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "loop/stmt.h"

namespace treadle::loop {
namespace {

treadle::Tensor ramp_tensor(std::vector<int64_t> shape, float scale = 0.25f) {
  treadle::Tensor t(dtype::float32_, std::move(shape));
  auto v = t.values<float>();
  for (size_t i = 0; i < v.size(); ++i) v[i] = scale * static_cast<float>(static_cast<int>(i * 7 % 23) - 11);
  return t;
}

TEST(Interpret, MatmulWithSymbolicSizes) {
  const Expr n = symbol_var("N");
  Tensor a = placeholder("a", {n, 5}, dtype::float32_), b = placeholder("b", {5, 3}, dtype::float32_);
  Tensor c = reduce("c", {n, 3}, ReduceOp::Sum, {5}, [&](auto& i, auto& k) { return a(i[0], k[0]) * b(k[0], i[1]); });
  Function f = lower_naive("matmul", {a, b}, {c});
  ASSERT_EQ(f.scalars.size(), 1u);
  EXPECT_EQ(f.scalars[0].name(), "N");
  for (int64_t rows : {0, 1, 4}) {
    treadle::Tensor x = ramp_tensor({rows, 5}), y = ramp_tensor({5, 3}), z(dtype::float32_, {rows, 3});
    interpret(f, {x, y, z}, {rows});
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < 5; ++k) sum += x.values<float>()[i * 5 + k] * y.values<float>()[k * 3 + j];
        EXPECT_EQ(z.values<float>()[i * 3 + j], sum);
      }
    }
  }
}

// Padding is a select around a load out of bounds.
TEST(Interpret, ConvolutionWithPadding) {
  const int64_t h = 5, w = 6;
  Tensor x = placeholder("x", {h, w}, dtype::float32_), k = placeholder("k", {3, 3}, dtype::float32_);
  Tensor y = reduce("y", {h, w}, ReduceOp::Sum, {3, 3}, [&](auto& i, auto& r) {
    Expr row = i[0] + r[0] - 1, column = i[1] + r[1] - 1;
    Expr inside = row >= 0 && row < h && column >= 0 && column < w;
    return select(inside, x(row, column), constant(0, dtype::float32_)) * k(r[0], r[1]);
  });
  treadle::Tensor xs = ramp_tensor({h, w}), ks = ramp_tensor({3, 3}), ys(dtype::float32_, {h, w});
  interpret(lower_naive("conv", {x, k}, {y}), {xs, ks, ys});
  for (int64_t i = 0; i < h; ++i) {
    for (int64_t j = 0; j < w; ++j) {
      float sum = 0;
      for (int64_t u = 0; u < 3; ++u) {
        for (int64_t v = 0; v < 3; ++v) {
          int64_t row = i + u - 1, column = j + v - 1;
          if (row < 0 || row >= h || column < 0 || column >= w) continue;
          sum += xs.values<float>()[row * w + column] * ks.values<float>()[u * 3 + v];
        }
      }
      EXPECT_FLOAT_EQ(ys.values<float>()[i * w + j], sum);
    }
  }
}

TEST(Interpret, SoftmaxInStages) {
  const Expr n = symbol_var("N");
  Tensor x = placeholder("x", {2, n}, dtype::float32_);
  Tensor m = reduce("m", {2}, ReduceOp::Max, {n}, [&](auto& i, auto& k) { return x(i[0], k[0]); });
  Tensor e = compute("e", {2, n}, [&](auto& i) { return intrinsic(Intrinsic::Exp, {x(i[0], i[1]) - m(i[0])}); });
  Tensor s = reduce("s", {2}, ReduceOp::Sum, {n}, [&](auto& i, auto& k) { return e(i[0], k[0]); });
  Tensor y = compute("y", {2, n}, [&](auto& i) { return div(e(i[0], i[1]), s(i[0])); });
  Function f = lower_naive("softmax", {x}, {y});
  treadle::Tensor xs = ramp_tensor({2, 7}), ys(dtype::float32_, {2, 7});
  interpret(f, {xs, ys});
  for (int64_t i = 0; i < 2; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < 7; ++j) sum += std::exp(xs.at(i * 7 + j));
    for (int64_t j = 0; j < 7; ++j) EXPECT_NEAR(ys.at(i * 7 + j), std::exp(xs.at(i * 7 + j)) / sum, 1e-6);
  }
}

TEST(Interpret, DefinitionsOutliveTheirHandles) {
  Tensor x = placeholder("x", {3}, dtype::float32_);
  Tensor y = [&] {
    Tensor inner = compute("inner", {3}, [&](auto& i) { return x(i[0]) + constant(1, dtype::float32_); });
    return compute("y", {3}, [&](auto& i) { return inner(i[0]) * constant(2, dtype::float32_); });
  }();
  treadle::Tensor out(dtype::float32_, {3});
  interpret(lower_naive("f", {x}, {y}), {treadle::Tensor::from<float>({1, 2, 3}), out});
  EXPECT_EQ(out.at(2), 8);
}

TEST(Interpret, OutputsThatAreInputsOrRepeatAreCopies) {
  Tensor x = placeholder("x", {2}, dtype::int32_);
  Tensor y = compute("y", {2}, [&](auto& i) { return x(i[0]) * int_imm(3, dtype::int32_); });
  treadle::Tensor a(dtype::int32_, {2}), b(dtype::int32_, {2}), c(dtype::int32_, {2});
  interpret(lower_naive("f", {x}, {x, y, y}), {treadle::Tensor::from<int32_t>({4, 5}), a, b, c});
  EXPECT_EQ(a.to_ints(), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(b.to_ints(), (std::vector<int64_t>{12, 15}));
  EXPECT_EQ(c.to_ints(), b.to_ints());
}

TEST(Interpret, ComputedTensorsMayBeGiven) {
  Tensor x = placeholder("x", {2}, dtype::int32_);
  Tensor y = compute("y", {2}, [&](auto& i) { return x(i[0]) + int_imm(1, dtype::int32_); });
  Tensor z = compute("z", {2}, [&](auto& i) { return y(i[0]) * int_imm(2, dtype::int32_); });
  treadle::Tensor out(dtype::int32_, {2});
  interpret(lower_naive("f", {y}, {z}), {treadle::Tensor::from<int32_t>({4, 5}), out});
  EXPECT_EQ(out.to_ints(), (std::vector<int64_t>{8, 10}));
}

TEST(Interpret, Inlining) {
  Tensor x = placeholder("x", {4}, dtype::int32_);
  Tensor y = compute("y", {4}, [&](auto& i) { return x(i[0]) + int_imm(1, dtype::int32_); });
  Tensor z = compute("z", {3}, [&](auto& i) { return y(i[0]) * y(i[0] + 1); });
  Expr inlined = inline_tensor(z->value, y);
  Tensor w = compute("w", {3}, [&](auto& i) { return substitute(inlined, {{z->axes[0].var(), i[0]}}); });
  ASSERT_EQ(w->inputs.size(), 1u);
  EXPECT_EQ(w->inputs[0].get(), x.get());
  treadle::Tensor out(dtype::int32_, {3});
  interpret(lower_naive("f", {x}, {w}), {treadle::Tensor::from<int32_t>({0, 1, 2, 3}), out});
  EXPECT_EQ(out.to_ints(), (std::vector<int64_t>{2, 6, 12}));
}

TEST(Interpret, VectorsLanesAndReductions) {
  Buffer a = make_buffer("a", dtype::float32_, {8}), b = make_buffer("b", dtype::float32_, {4}),
         s = make_buffer("s", dtype::float32_, {});
  Expr odd = load(a, {ramp(1, 2, 4)});
  Expr picked =
      select(odd > constant(4, dtype::float32_), load(a, {ramp(10, 1, 4)}), odd);  // out of bounds where not chosen
  Expr safe = select(odd > constant(100, dtype::float32_), load(a, {ramp(10, 1, 4)}), odd);
  Function f{"f", {a, b, s}, 2, {}, {}, {}};
  f.body = block({store(b, {ramp(0, 1, 4)}, safe + constant(1, dtype::float32_)),
                  store(s, {}, vector_reduce(ReduceOp::Sum, odd))});
  treadle::Tensor as = treadle::Tensor::from<float>({0, 1, 2, 3, 4, 5, 6, 7}), bs(dtype::float32_, {4}),
                  ss(dtype::float32_, {});
  interpret(f, {as, bs, ss});
  EXPECT_EQ(bs.to_ints(), (std::vector<int64_t>{2, 4, 6, 8}));
  EXPECT_EQ(ss.at(0), 16);
  f.body = store(b, {ramp(0, 1, 4)}, picked);
  EXPECT_THROW(interpret(f, {as, bs, ss}), Error);
}

TEST(Interpret, WhileIfLetAllocate) {
  Buffer out = make_buffer("out", dtype::int64_, {2});
  Buffer state = make_buffer("state", dtype::int64_, {1}, Scope::Scratch);
  Var n("n");
  Expr zero = 0;
  // Steps of the Collatz sequence from 27.
  Stmt step = let(
      n, load(state, {zero}),
      block({if_then(floormod(n, 2) == 0, store(state, {zero}, floordiv(n, 2)), store(state, {zero}, Expr(n) * 3 + 1)),
             store(out, {zero}, load(out, {zero}) + 1)}));
  Function f{"collatz", {out}, 1, {}, {}, {}};
  f.body = allocate(state, block({store(out, {zero}, 0), store(state, {zero}, 27),
                                  while_loop(load(state, {zero}) != 1, step), store(out, {1}, load(state, {zero}))}));
  treadle::Tensor result(dtype::int64_, {2});
  interpret(f, {result});
  EXPECT_EQ(result.to_ints(), (std::vector<int64_t>{111, 1}));
}

// A variable bound twice, with an expression shared by both uses.
TEST(Interpret, VariablesMayBeBoundAgain) {
  Buffer out = make_buffer("out", dtype::int64_, {4});
  Var v("v"), i("i");
  Expr shared = Expr(v) * 10;
  Function f{"f", {out}, 1, {}, {}, {}};
  Stmt use = for_loop(i, 0, 2, store(out, {Expr(i) + v}, shared + i), ForKind::Unrolled);
  f.body = block({let(v, 0, use), let(v, 2, use)});
  treadle::Tensor result(dtype::int64_, {4});
  interpret(f, {result});
  EXPECT_EQ(result.to_ints(), (std::vector<int64_t>{0, 1, 20, 21}));
}

// A load must see the stores before it, although the expression is one node.
TEST(Interpret, LoadsAreNotMovedOverStores) {
  Buffer out = make_buffer("out", dtype::int64_, {1});
  Expr next = load(out, {Expr(0)}) + 1;
  Var i("i");
  Function f{"f", {out}, 1, {}, {}, {}};
  Stmt bump = store(out, {Expr(0)}, next);
  f.body = block({store(out, {Expr(0)}, 0), bump, bump, for_loop(i, 0, 5, bump, ForKind::Parallel)});
  treadle::Tensor result(dtype::int64_, {1});
  interpret(f, {result});
  EXPECT_EQ(result.int_at(0), 7);
}

TEST(Interpret, StridedParameters) {
  auto strided = std::make_shared<BufferNode>(*make_buffer("a", dtype::int64_, {2, 3}));
  strided->strides = {Expr(symbol_var("S")), Expr(1)};
  Buffer a = strided, out = make_buffer("out", dtype::int64_, {2, 3});
  Var i("i"), j("j");
  Function f{"f", {a, out}, 1, {symbol_var("S")}, {}, {}};
  f.body = for_loop(i, 0, 2, for_loop(j, 0, 3, store(out, {i, j}, load(a, {i, j}))));
  treadle::Tensor memory = treadle::Tensor::from<int64_t>({0, 1, 2, 3, 4, 5, 6, 7}), result(dtype::int64_, {2, 3});
  interpret(f, {memory, result}, {5});
  EXPECT_EQ(result.to_ints(), (std::vector<int64_t>{0, 1, 2, 5, 6, 7}));
  EXPECT_THROW(interpret(f, {memory, result}, {6}), Error);
}

void expect_error(ErrorCode code, const std::function<void()>& f) {
  try {
    f();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
  }
}

TEST(Interpret, BadAccessesAndArguments) {
  Buffer a = make_buffer("a", dtype::float32_, {4}), b = make_buffer("b", dtype::float32_, {4});
  Var i("i");
  Function f{"f", {a, b}, 1, {}, {}, {}};
  f.body = for_loop(i, 0, 4, store(b, {i}, load(a, {Expr(i) + 1})));
  treadle::Tensor x = ramp_tensor({4}), y(dtype::float32_, {4});
  expect_error(ErrorCode::LoopInvalid, [&] { interpret(f, {x, y}); });
  f.body = for_loop(i, -1, 2, store(b, {i}, constant(0, dtype::float32_)));
  expect_error(ErrorCode::LoopInvalid, [&] { interpret(f, {x, y}); });
  f.body = store(b, {0}, constant(0, dtype::float32_));
  interpret(f, {x, y});
  expect_error(ErrorCode::InvalidArgument, [&] { interpret(f, {x}); });
  expect_error(ErrorCode::InvalidArgument, [&] { interpret(f, {x, ramp_tensor({5})}); });
  expect_error(ErrorCode::InvalidArgument, [&] { interpret(f, {x, treadle::Tensor(dtype::int32_, {4})}); });
  expect_error(ErrorCode::InvalidArgument, [&] { interpret(f, {x, y}, {1}); });
  f.body = evaluate(extern_call("profile", {int_imm(0), int_imm(1)}));
  expect_error(ErrorCode::InvalidArgument, [&] { interpret(f, {x, y}); });
  f.body = store(b, {i}, constant(0, dtype::float32_));
  expect_error(ErrorCode::LoopInvalid, [&] { interpret(f, {x, y}); });
}

// Accumulation in a 16-bit float rounds at each step: 2048 + 1 stays 2048.
TEST(Interpret, NarrowFloatsRoundEachOperation) {
  Buffer out = make_buffer("out", dtype::float16_, {});
  Var i("i");
  Function f{"f", {out}, 1, {}, {}, {}};
  f.body = block({store(out, {}, constant(0, dtype::float16_)),
                  for_loop(i, 0, 3000, store(out, {}, load(out, {}) + constant(1, dtype::float16_)))});
  treadle::Tensor result(dtype::float16_, {});
  interpret(f, {result});
  EXPECT_EQ(result.at(0), 2048);
}

}  // namespace
}  // namespace treadle::loop
