// SPDX-License-Identifier: Apache-2.0
// Speed of scheduled kernels: GFLOP/s of the convolutions of ResNet-50, of depthwise layers and of matrix
// products, beside the machine's multiply-add peak measured in the same run. Usage: bench_kernels [TARGET [FILTER]];
// --threads N (default 1), --rows N --vectors N --unroll N set knobs,
// --share compiles kernels with sizes as arguments, --loops and --asm print them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "codegen/codegen.h"
#include "lower/schedule.h"
#include "runtime/run_state.h"
#include "runtime/thread_pool.h"
#include "schedule/abstract_constants.h"
#include "schedule/analyzer.h"

namespace {

using namespace treadle;        // NOLINT(google-build-using-namespace)
using namespace treadle::loop;  // NOLINT(google-build-using-namespace)
using T = loop::Tensor;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Independent multiply-adds in registers, the best of several tries; `registers` is "zmm" or "ymm".
#define TREADLE_PEAK(name, registers, lanes)                                                                    \
  double name() {                                                                                               \
    double best = 0;                                                                                            \
    for (int attempt = 0; attempt < 30; ++attempt) {                                                            \
      const auto start = Clock::now();                                                                          \
      for (int i = 0; i < 2000; ++i) {                                                                          \
        asm volatile(                                                                                           \
            "vpxor %%xmm14, %%xmm14, %%xmm14\n vpxor %%xmm15, %%xmm15, %%xmm15\n .rept 50\n"                    \
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11\n vfmadd231ps %%" registers "14, %%" registers "15, %%" registers \
            "\\n\n .endr\n .endr\n"                                                                             \
            :                                                                                                   \
            :                                                                                                   \
            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", \
              "xmm14", "xmm15");                                                                                \
      }                                                                                                         \
      best = std::max(best, 2.0 * 2000 * 50 * 12 * (lanes) / seconds_since(start) / 1e9);                       \
    }                                                                                                           \
    return best;                                                                                                \
  }
TREADLE_PEAK(peak_avx512, "zmm", 16)
TREADLE_PEAK(peak_avx2, "ymm", 8)

// The peaks of so many cores at the same time, added up.
double peak_of(const Target& target, int threads) {
  std::vector<double> peaks(static_cast<size_t>(threads));
  std::vector<std::thread> others;
  const auto measure = [&](size_t i) { peaks[i] = target.vector_bytes >= 64 ? peak_avx512() : peak_avx2(); };
  for (size_t i = 1; i < peaks.size(); ++i) others.emplace_back(measure, i);
  measure(0);
  for (std::thread& other : others) other.join();
  return std::accumulate(peaks.begin(), peaks.end(), 0.0);
}

struct Case {
  std::string name;
  std::vector<T> inputs, outputs;
  double flops;
};

Expr f32(double v) { return float_imm(v, dtype::float32_); }

Case conv(const std::string& name, int64_t ic, int64_t oc, int64_t size, int64_t kernel, int64_t stride,
          int64_t block) {
  const int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  const T x = placeholder("x", {1, ic / block, size, size, block}, dtype::float32_);
  const T w = placeholder("w", {oc / block, ic / block, kernel, kernel, block, block}, dtype::float32_);
  const T b = placeholder("b", {oc / block, block}, dtype::float32_);
  T p = x;
  if (pad > 0) {
    p = compute("pad", {1, ic / block, size + 2 * pad, size + 2 * pad, block}, [&](const auto& i) {
      const Expr inside = i[2] >= pad && i[2] < size + pad && i[3] >= pad && i[3] < size + pad;
      return select(inside, x(i[0], i[1], i[2] - pad, i[3] - pad, i[4]), f32(0));
    });
  }
  const T y = reduce("conv", {1, oc / block, out, out, block}, ReduceOp::Sum, {ic / block, kernel, kernel, block},
                     [&](const auto& i, const auto& k) {
                       return p(i[0], k[0], i[2] * stride + k[1], i[3] * stride + k[2], k[3]) *
                              w(i[1], k[0], k[1], k[2], k[3], i[4]);
                     });
  const T z = compute("relu", y.shape(),
                      [&](const auto& i) { return max(y(i[0], i[1], i[2], i[3], i[4]) + b(i[1], i[4]), f32(0)); });
  return {name, {x, w, b}, {z}, 2.0 * static_cast<double>(ic * oc * out * out * kernel * kernel)};
}

Case first_layer(int64_t block) {
  const T x = placeholder("x", {1, 3, 224, 224}, dtype::float32_),
          w = placeholder("w", {64 / block, 3, 7, 7, block}, dtype::float32_);
  const T p = compute("pad", {1, 3, 230, 230}, [&](const auto& i) {
    const Expr inside = i[2] >= 3 && i[2] < 227 && i[3] >= 3 && i[3] < 227;
    return select(inside, x(i[0], i[1], i[2] - 3, i[3] - 3), f32(0));
  });
  const T y =
      reduce("conv", {1, 64 / block, 112, 112, block}, ReduceOp::Sum, {3, 7, 7}, [&](const auto& i, const auto& k) {
        return p(i[0], k[0], i[2] * 2 + k[1], i[3] * 2 + k[2]) * w(i[1], k[0], k[1], k[2], i[4]);
      });
  return {"first 7x7 s2 3->64", {x, w}, {y}, 2.0 * 3 * 49 * 64 * 112 * 112};
}

Case depthwise(int64_t channels, int64_t size, int64_t kernel, int64_t stride, int64_t block) {
  const int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  const T x = placeholder("x", {1, channels / block, size, size, block}, dtype::float32_);
  const T w = placeholder("w", {channels / block, kernel, kernel, block}, dtype::float32_);
  const T p = compute("pad", {1, channels / block, size + 2 * pad, size + 2 * pad, block}, [&](const auto& i) {
    const Expr inside = i[2] >= pad && i[2] < size + pad && i[3] >= pad && i[3] < size + pad;
    return select(inside, x(i[0], i[1], i[2] - pad, i[3] - pad, i[4]), f32(0));
  });
  const T y = reduce(
      "dw", {1, channels / block, out, out, block}, ReduceOp::Sum, {kernel, kernel}, [&](const auto& i, const auto& k) {
        return p(i[0], i[1], i[2] * stride + k[0], i[3] * stride + k[1], i[4]) * w(i[1], k[0], k[1], i[4]);
      });
  const T z = compute("relu", y.shape(), [&](const auto& i) { return max(y(i[0], i[1], i[2], i[3], i[4]), f32(0)); });
  return {fmt::format("depthwise {0}x{0} s{1} {2}@{3}", kernel, stride, channels, size),
          {x, w},
          {z},
          2.0 * static_cast<double>(channels * out * out * kernel * kernel)};
}

Case matmul(int64_t m, int64_t n, int64_t k, int64_t packed) {
  const T a = placeholder("a", {m, k}, dtype::float32_);
  const T b = packed ? placeholder("b", {(n + packed - 1) / packed, k, packed}, dtype::float32_)
                     : placeholder("b", {k, n}, dtype::float32_);
  const T y = reduce("y", {m, n}, ReduceOp::Sum, {k}, [&](const auto& i, const auto& r) {
    return a(i[0], r[0]) * (packed ? b(floordiv(i[1], packed), r[0], floormod(i[1], packed)) : b(r[0], i[1]));
  });
  return {fmt::format("gemm {}x{}x{}{}", m, n, k, packed ? " packed" : ""),
          {a, b},
          {y},
          2.0 * static_cast<double>(m * n * k)};
}

// The same with a symbolic number of rows, run with kRows of them.
constexpr int64_t kRows = 128;

Case symbolic_rows(int64_t n, int64_t k) {
  const T a = placeholder("a", {symbol_var("S"), k}, dtype::float32_),
          b = placeholder("b", {(n + 15) / 16, k, 16}, dtype::float32_);
  const T y = reduce("y", {symbol_var("S"), n}, ReduceOp::Sum, {k}, [&](const auto& i, const auto& r) {
    return a(i[0], r[0]) * b(floordiv(i[1], 16), r[0], floormod(i[1], 16));
  });
  return {fmt::format("gemm S={}x{}x{} packed", kRows, n, k), {a, b}, {y}, 2.0 * static_cast<double>(kRows * n * k)};
}

int64_t value_of(const Expr& e) {
  schedule::Analyzer analyzer;
  const Expr result = analyzer.simplify(substitute(e, {{symbol_var("S").var(), int_imm(kRows)}}));
  return *as_int(result);
}

Case scores(int64_t batch, int64_t m, int64_t k) {
  const T q = placeholder("q", {batch, m, k}, dtype::float32_), v = placeholder("v", {batch, m, k}, dtype::float32_);
  const T y = reduce("y", {batch, m, m}, ReduceOp::Sum, {k},
                     [&](const auto& i, const auto& r) { return q(i[0], i[1], r[0]) * v(i[0], i[2], r[0]); });
  return {fmt::format("q k^T {}x{}x{}", batch, m, k), {q, v}, {y}, 2.0 * static_cast<double>(batch * m * m * k)};
}

// Kernels that move memory more than they compute: GFLOP/s counts one operation per element read or written.
void add_light(std::vector<Case>& all, int64_t block) {
  const auto count = [](const T& t) {
    double n = 1;
    for (const Expr& e : t.shape()) n *= static_cast<double>(*as_int(e));
    return n;
  };
  const T x = placeholder("x", {1, 64, 112, 112}, dtype::float32_);
  const T blocked = compute("y", {1, 64 / block, 112, 112, block},
                            [&](const auto& i) { return x(i[0], i[1] * block + i[4], i[2], i[3]); });
  all.push_back({"NCHW to blocked 64@112", {x}, {blocked}, 2 * count(x)});
  const T y = placeholder("x", {1, 64 / block, 112, 112, block}, dtype::float32_);
  all.push_back(
      {"blocked to NCHW 64@112",
       {y},
       {compute("z", {1, 64, 112, 112},
                [&](const auto& i) { return y(i[0], floordiv(i[1], block), i[2], i[3], floormod(i[1], block)); })},
       2 * count(y)});
  const T p = compute("pad", {1, 64 / block, 114, 114, block}, [&](const auto& i) {
    const Expr inside = i[2] >= 1 && i[2] < 113 && i[3] >= 1 && i[3] < 113;
    return select(inside, y(i[0], i[1], i[2] - 1, i[3] - 1, i[4]), f32(-1e30));
  });
  all.push_back(
      {"max pool 3x3 s2 64@112",
       {y},
       {reduce("z", {1, 64 / block, 56, 56, block}, ReduceOp::Max, {3, 3},
               [&](const auto& i, const auto& k) { return p(i[0], i[1], i[2] * 2 + k[0], i[3] * 2 + k[1], i[4]); })},
       1.25 * count(y)});
  const T g = placeholder("x", {1, 2048 / block, 7, 7, block}, dtype::float32_);
  all.push_back({"global pool 2048@7",
                 {g},
                 {reduce("z", {1, 2048 / block, 1, 1, block}, ReduceOp::Sum, {7, 7},
                         [&](const auto& i, const auto& k) { return g(i[0], i[1], k[0], k[1], i[4]); })},
                 count(g)});
  const T a = placeholder("a", {1, 512, 28, 28}, dtype::float32_),
          b = placeholder("b", {1, 512, 28, 28}, dtype::float32_);
  all.push_back(
      {"add relu 512@28",
       {a, b},
       {compute("z", a.shape(),
                [&](const auto& i) { return max(a(i[0], i[1], i[2], i[3]) + b(i[0], i[1], i[2], i[3]), f32(0)); })},
       3 * count(a)});
  const T s = placeholder("s", {12, 197, 197}, dtype::float32_);
  const T top = reduce("top", {12, 197, 1}, ReduceOp::Max, {197},
                       [&](const auto& i, const auto& k) { return s(i[0], i[1], k[0]); });
  const T e = compute("e", s.shape(), [&](const auto& i) {
    return intrinsic(Intrinsic::Exp, {s(i[0], i[1], i[2]) - top(i[0], i[1], 0)});
  });
  const T sum = reduce("sum", {12, 197, 1}, ReduceOp::Sum, {197},
                       [&](const auto& i, const auto& k) { return e(i[0], i[1], k[0]); });
  all.push_back({"softmax 12x197x197",
                 {s},
                 {compute("z", s.shape(), [&](const auto& i) { return div(e(i[0], i[1], i[2]), sum(i[0], i[1], 0)); })},
                 2 * count(s)});
  const T v = placeholder("v", {197, 768}, dtype::float32_);
  const T mean = reduce("mean", {197, 1}, ReduceOp::Sum, {768},
                        [&](const auto& i, const auto& k) { return v(i[0], k[0]) * f32(1.0 / 768); });
  const T var = reduce("var", {197, 1}, ReduceOp::Sum, {768}, [&](const auto& i, const auto& k) {
    const Expr d = v(i[0], k[0]) - mean(i[0], 0);
    return d * d;
  });
  all.push_back({"layer norm 197x768",
                 {v},
                 {compute("z", v.shape(),
                          [&](const auto& i) {
                            return (v(i[0], i[1]) - mean(i[0], 0)) *
                                   intrinsic(Intrinsic::Rsqrt, {var(i[0], 0) * f32(1.0 / 768) + f32(1e-5)});
                          })},
                 2 * count(v)});
  const T h = placeholder("h", {197, 3072}, dtype::float32_);
  all.push_back({"gelu 197x3072",
                 {h},
                 {compute("z", h.shape(),
                          [&](const auto& i) {
                            const Expr t = h(i[0], i[1]);
                            return t * f32(0.5) * (f32(1) + intrinsic(Intrinsic::Erf, {t * f32(0.70710678)}));
                          })},
                 2 * count(h)});
  const T q = placeholder("q", {197, 12, 64}, dtype::float32_);
  all.push_back({"transpose 197x12x64",
                 {q},
                 {compute("z", {12, 197, 64}, [&](const auto& i) { return q(i[1], i[0], i[2]); })},
                 2 * count(q)});
  const T m = placeholder("m", {768, 768}, dtype::float32_);
  all.push_back({"transpose 768x768",
                 {m},
                 {compute("z", {768, 768}, [&](const auto& i) { return m(i[1], i[0]); })},
                 2 * count(m)});
}

std::vector<Case> cases(int64_t block) {
  std::vector<Case> all;
  all.push_back(first_layer(block));
  for (const auto& [ic, oc, size, kernel, stride] : std::vector<std::array<int64_t, 5>>{
           {64, 64, 56, 1, 1},     {64, 256, 56, 1, 1},   {256, 64, 56, 1, 1},   {256, 128, 56, 1, 1},
           {256, 512, 56, 1, 2},   {128, 512, 28, 1, 1},  {512, 128, 28, 1, 1},  {512, 256, 28, 1, 1},
           {512, 1024, 28, 1, 2},  {256, 1024, 14, 1, 1}, {1024, 256, 14, 1, 1}, {1024, 512, 14, 1, 1},
           {1024, 2048, 14, 1, 2}, {512, 2048, 7, 1, 1},  {2048, 512, 7, 1, 1},  {64, 64, 56, 3, 1},
           {128, 128, 56, 3, 2},   {128, 128, 28, 3, 1},  {256, 256, 28, 3, 2},  {256, 256, 14, 3, 1},
           {512, 512, 14, 3, 2},   {512, 512, 7, 3, 1}}) {
    all.push_back(conv(fmt::format("conv {0}x{0} s{1} {2}->{3}@{4}", kernel, stride, ic, oc, size), ic, oc, size,
                       kernel, stride, block));
  }
  all.push_back(depthwise(96, 112, 3, 2, block));
  all.push_back(depthwise(144, 56, 3, 1, block));
  all.push_back(depthwise(576, 14, 3, 1, block));
  all.push_back(depthwise(240, 28, 5, 1, block));
  all.push_back(matmul(512, 512, 512, 0));
  all.push_back(matmul(512, 512, 512, 16));
  all.push_back(matmul(197, 768, 768, 16));
  all.push_back(matmul(197, 3072, 768, 16));
  all.push_back(matmul(197, 768, 3072, 16));
  all.push_back(matmul(197, 768, 3072, 32));
  all.push_back(matmul(197, 3072, 768, 32));
  all.push_back(matmul(1, 1000, 2048, 32));
  all.push_back(matmul(1, 1000, 2048, 16));
  all.push_back(symbolic_rows(768, 768));
  all.push_back(scores(12, 197, 64));
  add_light(all, block);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  std::string target_text = "llvm -mcpu=native", filter;
  lower::Knobs knobs;
  bool assembly = false, loops = false, share = false;
  int position = 0, threads = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::atoll(argv[++i]) : 0; };
    if (arg == "--rows")
      knobs.rows = number();
    else if (arg == "--vectors")
      knobs.vectors = number();
    else if (arg == "--unroll")
      knobs.unroll = number();
    else if (arg == "--row-block")
      knobs.row_block = number();
    else if (arg == "--threads")
      threads = static_cast<int>(std::max<int64_t>(number(), 1));
    else if (arg == "--asm")
      assembly = true;
    else if (arg == "--share")
      share = true;
    else if (arg == "--loops")
      loops = true;
    else
      (position++ == 0 ? target_text : filter) = arg;
  }
  const Target target = codegen::parse_target(target_text);
  thread_pool::set_num_threads(threads);
  RunState state;
  state.begin(threads, nullptr);
  std::printf("target %s: %d-byte vectors, %d registers; multiply-add peak of %d threads %.1f GFLOP/s\n",
              target.cpu.c_str(), target.vector_bytes, target.vector_registers, threads, peak_of(target, threads));
  std::printf("%-34s %10s %10s %7s   %s\n", "kernel", "us", "GFLOP/s", "peak", "schedule and compile, ms");
  std::set<uint64_t> shapes;
  for (Case& c : cases(target.vector_bytes >= 64 ? 16 : 8)) {
    if (c.name.find(filter) == std::string::npos) continue;
    const auto start = Clock::now();
    const Function own = lower::schedule_function("kernel", c.inputs, c.outputs, target, knobs);
    schedule::Abstracted shared{own, {own.scalars.begin(), own.scalars.end()}};
    if (share) shared = schedule::abstract_constants(own);
    const Function& f = shared.function;
    std::vector<int64_t> scalars;
    for (const Expr& e : shared.arguments) scalars.push_back(value_of(e));
    const bool known = !shapes.insert(structural_hash(f)).second;
    const double schedule_time = seconds_since(start);
    if (loops) std::printf("%s\n", to_string(f).c_str());
    if (assembly) std::printf("%s\n", codegen::emit_assembly({f}, target).c_str());
    const auto compile_start = Clock::now();
    codegen::Jit jit(target);
    jit.add(codegen::emit_object({f}, target));
    auto* kernel = reinterpret_cast<TreadleKernel>(jit.lookup("kernel"));
    const double compile_time = seconds_since(compile_start);
    std::vector<treadle::Tensor> tensors;
    std::vector<void*> buffers;
    std::mt19937 random(7);
    for (const Buffer& buffer : own.buffers) {
      tensors.emplace_back(buffer->dtype, std::vector<int64_t>{value_of(buffer->shape[0])});
      for (float& v : tensors.back().values<float>()) v = static_cast<float>(random() % 1000) / 1000.0f - 0.5f;
      buffers.push_back(tensors.back().data());
    }
    double best = 1e9;
    double machine = 0;
    const auto begin = Clock::now();
    for (int run = 0; run < 5 || (seconds_since(begin) < 0.25 && run < 3000); ++run) {
      const auto t = Clock::now();
      if (kernel(state.context(), buffers.data(), scalars.data()) != 0) {
        std::fprintf(stderr, "kernel failed: %s\n", state.message().c_str());
        return 1;
      }
      best = std::min(best, seconds_since(t));
    }
    machine = peak_of(target, threads);
    std::printf("%-34s %10.1f %10.1f %6.1f%%   %.1f + %.1f%s\n", c.name.c_str(), best * 1e6, c.flops / best / 1e9,
                100 * c.flops / best / 1e9 / machine, schedule_time * 1e3, compile_time * 1e3, known ? ", shared" : "");
    std::fflush(stdout);
  }
  return 0;
}
