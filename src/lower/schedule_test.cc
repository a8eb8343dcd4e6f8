// SPDX-License-Identifier: Apache-2.0
// Schedules of templates, interpreted against the straightforward nest over odd and symbolic extents.
#include "lower/schedule.h"

#include <array>

#include "schedule/testing.h"

namespace treadle::lower {
namespace {

using namespace loop;  // NOLINT(google-build-using-namespace)
using T = loop::Tensor;
using Symbols = std::map<std::string, int64_t>;

Target avx2() {
  Target t;
  t.vector_bytes = 32;
  t.fma = true;
  return t;
}

Target avx512() {
  Target t = avx2();
  t.vector_bytes = 64;
  t.vector_registers = 32;
  t.l2_bytes = 2 << 20;
  return t;
}

void check(const std::vector<T>& inputs, const std::vector<T>& outputs, const Symbols& symbols = {},
           double tolerance = 1e-5) {
  for (const Target& target : {Target(), avx2(), avx512()}) {
    const Function f = schedule_function("f", inputs, outputs, target);
    schedule::testing::expect_same(f, inputs, outputs, symbols, true, tolerance);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

T input(const std::string& name, std::vector<Expr> shape, DType dtype = dtype::float32_) {
  return placeholder(name, std::move(shape), dtype);
}
Expr f32(double value) { return float_imm(value, dtype::float32_); }

TEST(ScheduleFunction, Elementwise) {
  for (const auto& shape :
       std::vector<std::vector<Expr>>{{}, {1}, {7}, {33}, {3, 5, 7}, {2, 1, 40, 40}, {1, 1, 1}, {0, 4}, {70000}}) {
    const T x = input("x", shape), y = input("y", shape);
    const T sum = compute("sum", shape, [&](const auto& i) {
      const std::vector<Expr> at(i.begin(), i.end());
      return x(at) + y(at);
    });
    const T relu =
        compute("relu", shape, [&](const auto& i) { return max(sum(std::vector<Expr>(i.begin(), i.end())), f32(0)); });
    check({x, y}, {relu});
    check({x, y}, {sum, relu});
  }
}

TEST(ScheduleFunction, ElementwiseSymbolic) {
  const Expr n = symbol_var("N"), c = symbol_var("C");
  const T x = input("x", {n, c, 5}), b = input("b", {c, 1});
  const T y = compute("y", {n, c, 5}, [&](const auto& i) { return x(i[0], i[1], i[2]) * b(i[1], 0); });
  const T flat = compute("flat", {n * c * 5}, [&](const auto& i) {
    return y(floordiv(i[0], c * 5), floormod(floordiv(i[0], 5), c), floormod(i[0], 5)) + f32(1);
  });
  for (int64_t size : {0, 1, 9}) {
    check({x, b}, {y}, {{"N", size}, {"C", size + 2}});
    check({x, b}, {flat}, {{"N", size}, {"C", size + 2}});
  }
}

TEST(ScheduleFunction, BroadcastTransposeConcat) {
  const T x = input("x", {2, 20, 9, 11}), b = input("b", {20});
  check({x, b}, {compute("y", {2, 20, 9, 11}, [&](const auto& i) { return x(i[0], i[1], i[2], i[3]) + b(i[1]); })});
  check({x}, {compute("y", {2, 9, 11, 20}, [&](const auto& i) { return x(i[0], i[3], i[1], i[2]); })});
  check({x}, {compute("y", {2, 2, 9, 11, 16}, [&](const auto& i) {
          const Expr channel = i[1] * 16 + i[4];
          return select(channel < 20, x(i[0], channel, i[2], i[3]), f32(0));
        })});
  const T z = input("z", {2, 3, 9, 11});
  check({x, z}, {compute("y", {2, 23, 9, 11}, [&](const auto& i) {
          return select(i[1] < 20, x(i[0], i[1], i[2], i[3]), z(i[0], i[1] - 20, i[2], i[3]));
        })});
  const T p = input("p", {4, 40}), q = input("q", {4, 9});
  check({p, q},
        {compute("y", {4, 49}, [&](const auto& i) { return select(i[1] < 40, p(i[0], i[1]), q(i[0], i[1] - 40)); })});
  check({p}, {compute("y", {5, 47}, [&](const auto& i) {
          return select(i[0] < 4 && i[1] >= 3 && i[1] < 43, p(i[0], i[1] - 3), f32(-1));
        })});
}

TEST(ScheduleFunction, SharedExpensiveProducer) {
  const T x = input("x", {6, 50});
  T t = x;
  for (int i = 0; i < 30; ++i) {  // each step reads the last twice: 2^30 when inlined blindly
    const T last = t;
    t = compute("t" + std::to_string(i), {6, 50},
                [&](const auto& a) { return last(a[0], a[1]) * last(a[0], a[1]) - f32(1); });
  }
  check({x}, {t}, {}, 1e300);
}

TEST(ScheduleFunction, DataTypes) {
  for (DType d : {dtype::int8_, dtype::int32_, dtype::int64_, dtype::float64_}) {
    const T x = input("x", {3, 45}, d);
    check({x}, {compute("y", {3, 45}, [&](const auto& i) { return cast(x(i[0], i[1]), dtype::float32_) * f32(0.5); })});
    check({x}, {compute("y", {3, 45}, [&](const auto& i) { return x(i[0], i[1]) > constant(2, d); })});
    check({x}, {reduce("y", {3}, ReduceOp::Max, {45}, [&](const auto& i, const auto& k) { return x(i[0], k[0]); })});
    check({x}, {reduce("y", {45}, ReduceOp::Sum, {3}, [&](const auto& i, const auto& k) { return x(k[0], i[0]); })});
  }
}

TEST(ScheduleFunction, Reductions) {
  for (const Expr& n : {Expr(1), Expr(5), Expr(37), Expr(130), Expr(symbol_var("N"))}) {
    const Symbols symbols{{"N", 35}};
    const T x = input("x", {3, n, 19});
    check({x},
          {reduce("y", {3, n}, ReduceOp::Sum, {19}, [&](const auto& i, const auto& k) { return x(i[0], i[1], k[0]); })},
          symbols);
    check({x},
          {reduce("y", {3, 19}, ReduceOp::Max, {n}, [&](const auto& i, const auto& k) { return x(i[0], k[0], i[1]); })},
          symbols);
    check({x},
          {reduce("y", {3}, ReduceOp::Sum, {n, 19}, [&](const auto& i, const auto& k) { return x(i[0], k[0], k[1]); })},
          symbols);
    check({x},
          {reduce("y", {}, ReduceOp::Min, {3, n, 19}, [&](const auto&, const auto& k) { return x(k[0], k[1], k[2]); })},
          symbols);
    const T sum =
        reduce("sum", {3, n}, ReduceOp::Sum, {19}, [&](const auto& i, const auto& k) { return x(i[0], i[1], k[0]); });
    check({x}, {compute("mean", {3, n}, [&](const auto& i) { return sum(i[0], i[1]) * f32(0.25); })}, symbols);
    check({x},
          {reduce(
              "y", {n, 19}, ReduceOp::Sum, {3}, [&](const auto& i, const auto& k) { return x(k[0], i[0], i[1]); },
              f32(2))},
          symbols);
  }
}

TEST(ScheduleFunction, PoolingWindows) {
  for (int64_t block : {8, 16}) {
    for (int64_t size : {7, 12}) {
      const T x = input("x", {2, 3, size, size, block});
      const Expr out = (size + 2 - 3) / 2 + 1;
      const auto padded = [&](double value) {
        return compute("pad", {2, 3, size + 2, size + 2, block}, [&](const auto& i) {
          const Expr inside = i[2] >= 1 && i[2] < size + 1 && i[3] >= 1 && i[3] < size + 1;
          return select(inside, x(i[0], i[1], i[2] - 1, i[3] - 1, i[4]), f32(value));
        });
      };
      const T low = padded(-100), zero = padded(0);
      const auto window = [](const T& t) {
        return [t](const auto& i, const auto& k) { return t(i[0], i[1], i[2] * 2 + k[0], i[3] * 2 + k[1], i[4]); };
      };
      check({x}, {reduce("y", {2, 3, out, out, block}, ReduceOp::Max, {3, 3}, window(low))});
      const T sum = reduce("sum", {2, 3, out, out, block}, ReduceOp::Sum, {3, 3}, window(zero));
      check({x}, {compute("y", {2, 3, out, out, block},
                          [&](const auto& i) { return sum(i[0], i[1], i[2], i[3], i[4]) * f32(0.25); })});
      check({x}, {reduce("y", {2, 3, 1, 1, block}, ReduceOp::Sum, {size, size},
                         [&](const auto& i, const auto& k) { return x(i[0], i[1], k[0], k[1], i[4]); })});
    }
  }
}

// Convolution in NCHW{c}c with weights OIHW{c}i{c}o, bias, residual and activation.
void check_conv(int64_t batch, int64_t ic, int64_t oc, int64_t size, int64_t block, int64_t kernel, int64_t stride,
                int64_t pad, bool residual) {
  const T x = input("x", {batch, ic, size, size, block}), w = input("w", {oc, ic, kernel, kernel, block, block}),
          b = input("b", {oc, block});
  T padded = x;
  if (pad > 0) {
    padded = compute("pad", {batch, ic, size + 2 * pad, size + 2 * pad, block}, [&](const auto& i) {
      const Expr inside = i[2] >= pad && i[2] < size + pad && i[3] >= pad && i[3] < size + pad;
      return select(inside, x(i[0], i[1], i[2] - pad, i[3] - pad, i[4]), f32(0));
    });
  }
  const int64_t out = (size + 2 * pad - kernel) / stride + 1;
  const T y = reduce("conv", {batch, oc, out, out, block}, ReduceOp::Sum, {ic, kernel, kernel, block},
                     [&](const auto& i, const auto& k) {
                       return padded(i[0], k[0], i[2] * stride + k[1], i[3] * stride + k[2], k[3]) *
                              w(i[1], k[0], k[1], k[2], k[3], i[4]);
                     });
  if (!residual) return check({x, w}, {y});
  const T r = input("r", {batch, oc, out, out, block});
  const T z = compute("z", {batch, oc, out, out, block}, [&](const auto& i) {
    return max(y(i[0], i[1], i[2], i[3], i[4]) + b(i[1], i[4]) + r(i[0], i[1], i[2], i[3], i[4]), f32(0));
  });
  check({x, w, b, r}, {z});
}

TEST(ScheduleFunction, BlockedConvolution) {
  check_conv(1, 2, 3, 7, 8, 1, 1, 0, true);
  check_conv(2, 1, 4, 9, 16, 1, 1, 0, false);
  check_conv(1, 2, 2, 7, 8, 3, 1, 1, true);
  check_conv(1, 1, 5, 14, 16, 3, 1, 1, false);
  check_conv(1, 2, 2, 10, 8, 3, 2, 1, true);
  check_conv(1, 2, 2, 9, 8, 1, 2, 0, true);
}

TEST(ScheduleFunction, FirstLayerAndPlainConvolution) {
  const T x = input("x", {1, 3, 20, 20}), w = input("w", {2, 3, 7, 7, 16});
  check({x, w}, {reduce("y", {1, 2, 7, 7, 16}, ReduceOp::Sum, {3, 7, 7}, [&](const auto& i, const auto& k) {
          return x(i[0], k[0], i[2] * 2 + k[1], i[3] * 2 + k[2]) * w(i[1], k[0], k[1], k[2], i[4]);
        })});
  const T v = input("v", {5, 3, 3, 3});
  for (int64_t stride : {1, 2}) {
    const int64_t out = (20 - 3) / stride + 1;
    check({x, v}, {reduce("y", {1, 5, out, out}, ReduceOp::Sum, {3, 3, 3}, [&](const auto& i, const auto& k) {
            return x(i[0], k[0], i[2] * stride + k[1], i[3] * stride + k[2]) * v(i[1], k[0], k[1], k[2]);
          })});
  }
  const T g = input("g", {6, 2, 3, 3}), x4 = input("x4", {1, 4, 20, 20});  // two groups
  check({x4, g}, {reduce("y", {1, 6, 18, 18}, ReduceOp::Sum, {2, 3, 3}, [&](const auto& i, const auto& k) {
          return x4(i[0], floordiv(i[1], 3) * 2 + k[0], i[2] + k[1], i[3] + k[2]) * g(i[1], k[0], k[1], k[2]);
        })});
}

TEST(ScheduleFunction, DepthwiseConvolution) {
  for (int64_t block : {8, 16}) {
    for (int64_t stride : {1, 2}) {
      const int64_t out = (13 - 3) / stride + 1;
      const T x = input("x", {1, 3, 13, 13, block}), w = input("w", {3, 3, 3, block}), b = input("b", {3, block});
      const T y = reduce("y", {1, 3, out, out, block}, ReduceOp::Sum, {3, 3}, [&](const auto& i, const auto& k) {
        return x(i[0], i[1], i[2] * stride + k[0], i[3] * stride + k[1], i[4]) * w(i[1], k[0], k[1], i[4]);
      });
      check({x, w, b}, {compute("z", {1, 3, out, out, block}, [&](const auto& i) {
              return min(max(y(i[0], i[1], i[2], i[3], i[4]) + b(i[1], i[4]), f32(0)), f32(6));
            })});
    }
  }
}

TEST(ScheduleFunction, ContractionsWithoutElements) {
  for (const auto& [rows, columns, depth] : std::vector<std::array<int64_t, 3>>{{0, 16, 8}, {8, 0, 8}, {8, 16, 0}}) {
    const T a = input("a", {rows, depth}), b = input("b", {depth, columns});
    check({a, b}, {reduce("product", {rows, columns}, ReduceOp::Sum, {depth},
                          [&](const auto& i, const auto& k) { return a(i[0], k[0]) * b(k[0], i[1]); })});
  }
}

TEST(ScheduleFunction, DenseAndMatmul) {
  for (const auto& [m, n, k] :
       std::vector<std::array<int64_t, 3>>{{1, 40, 9}, {3, 37, 10}, {17, 64, 33}, {40, 100, 8}, {6, 3, 20}}) {
    const T x = input("x", {m, k}), w = input("w", {n, k}), b = input("b", {k, n}), bias = input("bias", {n});
    check({x, w}, {reduce("y", {m, n}, ReduceOp::Sum, {k},
                          [&](const auto& i, const auto& r) { return x(i[0], r[0]) * w(i[1], r[0]); })});
    const T y = reduce("y", {m, n}, ReduceOp::Sum, {k},
                       [&](const auto& i, const auto& r) { return x(i[0], r[0]) * b(r[0], i[1]); });
    check({x, b, bias}, {compute("z", {m, n}, [&](const auto& i) { return y(i[0], i[1]) + bias(i[1]); })});
    for (int64_t t : {8, 16, 32}) {
      const T packed = input("packed", {(n + t - 1) / t, k, t});
      check({x, packed}, {reduce("y", {m, n}, ReduceOp::Sum, {k}, [&](const auto& i, const auto& r) {
              return x(i[0], r[0]) * packed(floordiv(i[1], t), r[0], floormod(i[1], t));
            })});
    }
  }
}

TEST(ScheduleFunction, BatchMatmulAndSymbolicDense) {
  const Expr s = symbol_var("S"), n = symbol_var("N");
  for (int64_t size : {0, 1, 5, 33}) {
    const Symbols symbols{{"S", size}, {"N", 3}};
    const T q = input("q", {n, s, 16}), v = input("v", {n, s, 16}), w = input("w", {3, 16, 16});
    const T scores = reduce("scores", {n, s, s}, ReduceOp::Sum, {16},
                            [&](const auto& i, const auto& k) { return q(i[0], i[1], k[0]) * v(i[0], i[2], k[0]); });
    check({q, v}, {scores}, symbols);
    const T p = input("p", {n, s, s});
    check({p, v},
          {reduce("y", {n, s, 16}, ReduceOp::Sum, {s},
                  [&](const auto& i, const auto& k) { return p(i[0], i[1], k[0]) * v(i[0], k[0], i[2]); })},
          symbols);
    check({q, w},
          {reduce("y", {n, s, 48}, ReduceOp::Sum, {16},
                  [&](const auto& i, const auto& k) {
                    return q(i[0], i[1], k[0]) * w(floordiv(i[2], 16), k[0], floormod(i[2], 16));
                  })},
          symbols);
  }
}

TEST(ScheduleFunction, IntegerContraction) {
  const T x = input("x", {9, 20}, dtype::int8_), w = input("w", {20, 33}, dtype::int8_);
  check({x, w}, {reduce("y", {9, 33}, ReduceOp::Sum, {20}, [&](const auto& i, const auto& k) {
          return cast(x(i[0], k[0]), dtype::int32_) * cast(w(k[0], i[1]), dtype::int32_);
        })});
}

T softmax(const T& x) {
  const Expr n = x.shape(0), m = x.shape(1);
  const T top = reduce("top", {n, 1}, ReduceOp::Max, {m}, [&](const auto& i, const auto& k) { return x(i[0], k[0]); });
  const T e =
      compute("e", {n, m}, [&](const auto& i) { return intrinsic(Intrinsic::Exp, {x(i[0], i[1]) - top(i[0], 0)}); });
  const T sum = reduce("sum", {n, 1}, ReduceOp::Sum, {m}, [&](const auto& i, const auto& k) { return e(i[0], k[0]); });
  return compute("y", {n, m}, [&](const auto& i) { return div(e(i[0], i[1]), sum(i[0], 0)); });
}

TEST(ScheduleFunction, RowsOfSeveralStages) {
  for (int64_t m : {1, 7, 33, 200}) {
    const T x = input("x", {5, m});
    check({x}, {softmax(x)});
  }
  const T x = input("x", {symbol_var("N"), symbol_var("M")});
  for (int64_t size : {0, 1, 40}) check({x}, {softmax(x)}, {{"N", 3}, {"M", size}});

  const T v = input("v", {2, 9, 50}), gamma = input("gamma", {50});
  const T mean = reduce("mean", {2, 9}, ReduceOp::Sum, {50},
                        [&](const auto& i, const auto& k) { return v(i[0], i[1], k[0]) * f32(0.02); });
  const T var = reduce("var", {2, 9}, ReduceOp::Sum, {50}, [&](const auto& i, const auto& k) {
    const Expr d = v(i[0], i[1], k[0]) - mean(i[0], i[1]);
    return d * d;
  });
  check({v, gamma}, {compute("y", {2, 9, 50}, [&](const auto& i) {
          const Expr scale = intrinsic(Intrinsic::Rsqrt, {var(i[0], i[1]) * f32(0.02) + f32(1e-5)});
          return (v(i[0], i[1], i[2]) - mean(i[0], i[1])) * scale * gamma(i[2]);
        })});
}

}  // namespace
}  // namespace treadle::lower
