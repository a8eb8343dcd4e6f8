// SPDX-License-Identifier: Apache-2.0
// Scheduled kernels as machine code, with shared constants and parallel loops split in two, against the interpreted
// straightforward nest.
#include <array>
#include <cstdlib>

#include "codegen/codegen.h"
#include "lower/schedule.h"
#include "schedule/abstract_constants.h"
#include "schedule/testing.h"
#include "treadle/abi.h"

namespace treadle {
namespace {

using namespace loop;  // NOLINT(google-build-using-namespace)
using T = loop::Tensor;
using Symbols = std::map<std::string, int64_t>;

// The second half of the iterations first: an order that no kernel may depend on.
int32_t two_halves(TreadleContext* context, TreadleParallelBody body, void* closure, int64_t extent) {
  const int32_t code = body(context, closure, extent / 2, extent);
  return code ? code : body(context, closure, 0, extent / 2);
}
void* allocate_memory(TreadleContext*, int64_t bytes) {
  return std::aligned_alloc(64, static_cast<size_t>((std::max<int64_t>(bytes, 1) + 63) / 64 * 64));
}
void release_memory(TreadleContext*, void* memory) { std::free(memory); }
int32_t failed(TreadleContext*, const char*) { return 1; }

std::vector<Target> targets() {
  std::vector<Target> all = {codegen::parse_target("llvm")};
  const Target host = codegen::host_target();
  if (host.vector_bytes >= 32 && host.fma) all.push_back(codegen::parse_target("llvm -mcpu=haswell"));
  if (host.vector_bytes >= 32) all.push_back(host);
  return all;
}

void check(const std::vector<T>& inputs, const std::vector<T>& outputs, const Symbols& symbols = {}) {
  const std::vector<treadle::Tensor> expected =
      schedule::testing::run(lower_naive("naive", inputs, outputs), inputs, outputs, symbols, false);
  for (const Target& target : targets()) {
    const schedule::Abstracted kernel =
        schedule::abstract_constants(lower::schedule_function("kernel", inputs, outputs, target));
    codegen::Jit jit(target);
    jit.add(codegen::emit_object({kernel.function}, target));
    auto* code = reinterpret_cast<TreadleKernel>(jit.lookup("kernel"));
    std::vector<treadle::Tensor> tensors;
    std::vector<void*> buffers;
    unsigned seed = 1;
    const auto shape_of = [&](const T& t) {
      std::vector<int64_t> shape;
      for (const Expr& extent : t.shape()) shape.push_back(schedule::testing::evaluate(extent, symbols));
      return shape;
    };
    for (const T& t : inputs) tensors.push_back(schedule::testing::random_tensor(t.dtype(), shape_of(t), seed++));
    for (const T& t : outputs) tensors.push_back(treadle::Tensor::zeros(t.dtype(), shape_of(t)));
    for (treadle::Tensor& t : tensors) buffers.push_back(t.data());
    std::vector<int64_t> scalars;
    for (const Expr& e : kernel.arguments) scalars.push_back(schedule::testing::evaluate(e, symbols));
    TreadleContext context{};
    context.abi_version = TREADLE_ABI_VERSION;
    context.num_threads = 2;
    context.parallel_for = two_halves;
    context.allocate = allocate_memory;
    context.release = release_memory;
    context.fail = failed;
    ASSERT_EQ(code(&context, buffers.data(), scalars.data()), 0);
    for (size_t i = 0; i < outputs.size(); ++i) {
      for (int64_t j = 0; j < expected[i].size(); ++j) {
        const double e = expected[i].at(j), a = tensors[inputs.size() + i].at(j);
        ASSERT_NEAR(a, e, 1e-4 * (1 + std::abs(e))) << target.cpu << ", output " << i << ", element " << j << "\n"
                                                    << to_string(kernel.function);
      }
    }
  }
}

T input(const std::string& name, std::vector<Expr> shape) {
  return placeholder(name, std::move(shape), dtype::float32_);
}
Expr f32(double value) { return float_imm(value, dtype::float32_); }

T padded(const T& x, int64_t pad) {
  std::vector<Expr> shape = x.shape();
  shape[2] = shape[2] + int_imm(2 * pad);
  shape[3] = shape[3] + int_imm(2 * pad);
  return compute("pad", shape, [&](const auto& i) {
    std::vector<Expr> at(i.begin(), i.end());
    at[2] = at[2] - int_imm(pad);
    at[3] = at[3] - int_imm(pad);
    const Expr inside =
        i[2] >= pad && i[2] < x.shape(2) + int_imm(pad) && i[3] >= pad && i[3] < x.shape(3) + int_imm(pad);
    return select(inside, x(at), f32(0));
  });
}

void convolution(int64_t ic, int64_t oc, int64_t size, int64_t block, int64_t kernel, int64_t stride) {
  const int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  const T x = input("x", {2, ic, size, size, block}), w = input("w", {oc, ic, kernel, kernel, block, block});
  const T b = input("b", {oc, block}), r = input("r", {2, oc, out, out, block});
  const T p = pad ? padded(x, pad) : x;
  const T y = reduce(
      "y", {2, oc, out, out, block}, ReduceOp::Sum, {ic, kernel, kernel, block}, [&](const auto& i, const auto& k) {
        return p(i[0], k[0], i[2] * stride + k[1], i[3] * stride + k[2], k[3]) * w(i[1], k[0], k[1], k[2], k[3], i[4]);
      });
  check({x, w, b, r}, {compute("z", y.shape(), [&](const auto& i) {
          return max(y(i[0], i[1], i[2], i[3], i[4]) + b(i[1], i[4]) + r(i[0], i[1], i[2], i[3], i[4]), f32(0));
        })});
}

TEST(ScheduledKernel, Convolution) {
  convolution(2, 4, 14, 16, 3, 1);
  convolution(2, 3, 7, 8, 3, 1);
  convolution(2, 5, 9, 8, 1, 1);
  convolution(1, 4, 13, 16, 1, 2);
  convolution(2, 2, 17, 8, 3, 2);
}

TEST(ScheduledKernel, FirstLayer) {
  const T x = input("x", {1, 3, 30, 30}), w = input("w", {4, 3, 7, 7, 8});
  const T p = padded(x, 3);
  check({x, w}, {reduce("y", {1, 4, 15, 15, 8}, ReduceOp::Sum, {3, 7, 7}, [&](const auto& i, const auto& k) {
          return p(i[0], k[0], i[2] * 2 + k[1], i[3] * 2 + k[2]) * w(i[1], k[0], k[1], k[2], i[4]);
        })});
}

TEST(ScheduledKernel, DepthwiseAndPool) {
  for (int64_t stride : {1, 2}) {
    const int64_t out = (28 - 1) / stride + 1;
    const T x = input("x", {1, 5, 28, 28, 8}), w = input("w", {5, 3, 3, 8}), p = padded(x, 1);
    check({x, w}, {reduce("y", {1, 5, out, out, 8}, ReduceOp::Sum, {3, 3}, [&](const auto& i, const auto& k) {
            return p(i[0], i[1], i[2] * stride + k[0], i[3] * stride + k[1], i[4]) * w(i[1], k[0], k[1], i[4]);
          })});
    check({x}, {reduce("y", {1, 5, out, out, 8}, ReduceOp::Max, {3, 3}, [&](const auto& i, const auto& k) {
            return p(i[0], i[1], i[2] * stride + k[0], i[3] * stride + k[1], i[4]);
          })});
    check({x}, {reduce("y", {1, 5, 1, 1, 8}, ReduceOp::Sum, {28, 28},
                       [&](const auto& i, const auto& k) { return x(i[0], i[1], k[0], k[1], i[4]); })});
  }
}

TEST(ScheduledKernel, MatrixProducts) {
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 200, 64}, {70, 130, 33}, {33, 96, 128}}) {
    const T x = input("x", {m, k}), b = input("b", {k, n}), w = input("w", {n, k}),
            p = input("p", {(n + 15) / 16, k, 16});
    check({x, b}, {reduce("y", {m, n}, ReduceOp::Sum, {k},
                          [&](const auto& i, const auto& r) { return x(i[0], r[0]) * b(r[0], i[1]); })});
    check({x, w}, {reduce("y", {m, n}, ReduceOp::Sum, {k},
                          [&](const auto& i, const auto& r) { return x(i[0], r[0]) * w(i[1], r[0]); })});
    check({x, p}, {reduce("y", {m, n}, ReduceOp::Sum, {k}, [&](const auto& i, const auto& r) {
            return x(i[0], r[0]) * p(floordiv(i[1], 16), r[0], floormod(i[1], 16));
          })});
  }
}

TEST(ScheduledKernel, SymbolicAttention) {
  const Expr s = symbol_var("S"), n = symbol_var("N");
  const T q = input("q", {n, s, 24}), v = input("v", {n, s, 24});
  const T scores = reduce("scores", {n, s, s}, ReduceOp::Sum, {24},
                          [&](const auto& i, const auto& k) { return q(i[0], i[1], k[0]) * v(i[0], i[2], k[0]); });
  const T x = input("x", {n, s, s});
  const T top =
      reduce("top", {n, s}, ReduceOp::Max, {s}, [&](const auto& i, const auto& k) { return x(i[0], i[1], k[0]); });
  const T e = compute("e", {n, s, s}, [&](const auto& i) {
    return intrinsic(Intrinsic::Exp, {x(i[0], i[1], i[2]) - top(i[0], i[1])});
  });
  const T sum =
      reduce("sum", {n, s}, ReduceOp::Sum, {s}, [&](const auto& i, const auto& k) { return e(i[0], i[1], k[0]); });
  const T soft = compute("soft", {n, s, s}, [&](const auto& i) { return div(e(i[0], i[1], i[2]), sum(i[0], i[1])); });
  for (int64_t size : {1, 7, 45}) {
    check({q, v}, {scores}, {{"S", size}, {"N", 3}});
    check({x}, {soft}, {{"S", size}, {"N", 3}});
  }
}

TEST(ScheduledKernel, ElementwiseAndLayout) {
  const T x = input("x", {2, 20, 33, 31}), c = input("c", {20, 1, 1});
  check({x, c},
        {compute("y", x.shape(), [&](const auto& i) { return x(i[0], i[1], i[2], i[3]) * c(i[1], 0, 0) + f32(1); })});
  check({x}, {compute("y", {2, 2, 33, 31, 16}, [&](const auto& i) {
          const Expr channel = i[1] * 16 + i[4];
          return select(channel < 20, x(i[0], channel, i[2], i[3]), f32(0));
        })});
  check({x}, {compute("y", {2, 33, 31, 20}, [&](const auto& i) { return x(i[0], i[3], i[1], i[2]); })});
  const T flat = input("flat", {100001});
  check({flat}, {compute("y", {100001}, [&](const auto& i) { return max(flat(i[0]), f32(0)); })});
}

}  // namespace
}  // namespace treadle
