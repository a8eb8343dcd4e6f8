// SPDX-License-Identifier: Apache-2.0
#include "driver/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "codegen/codegen.h"
#include "runtime/run_state.h"

namespace treadle {
namespace {

using loop::Expr;

constexpr int64_t kIterations = 200'000;
constexpr int kRounds = 12;

// y[k, :] = y[k, :] * a + b, kIterations times, for as many vectors as hide the latency of the unit and fit the
// registers.
loop::Function peak_function(int accumulators, int lanes) {
  const loop::Buffer in = loop::make_buffer("in", dtype::float32_, {Expr(2)});
  const loop::Buffer out = loop::make_buffer("out", dtype::float32_, {Expr(accumulators), Expr(lanes)});
  const loop::Buffer sums =
      loop::make_buffer("sums", dtype::float32_, {Expr(accumulators), Expr(lanes)}, loop::Scope::Local);
  auto place = [&](int k) { return std::vector<Expr>{Expr(k), loop::ramp(Expr(0), Expr(1), lanes)}; };
  const Expr a = loop::broadcast(loop::load(in, {Expr(0)}), lanes),
             b = loop::broadcast(loop::load(in, {Expr(1)}), lanes);
  std::vector<loop::Stmt> first, step, last;
  for (int k = 0; k < accumulators; ++k) {
    first.push_back(loop::store(sums, place(k), b));
    step.push_back(loop::store(sums, place(k), loop::load(sums, place(k)) * a + b));
    last.push_back(loop::store(out, place(k), loop::load(sums, place(k))));
  }
  loop::Function function;
  function.name = "peak";
  function.buffers = {in, out};
  function.num_outputs = 1;
  function.body = loop::allocate(
      sums,
      loop::block({loop::block(first), loop::for_loop(loop::Var("i"), Expr(0), Expr(kIterations), loop::block(step)),
                   loop::block(last)}));
  return function;
}

}  // namespace

double measure_peak_gflops() {
  const Target target = codegen::host_target();
  const int lanes = target.lanes(4), accumulators = target.vector_registers * 3 / 4;
  codegen::Jit jit(target);
  jit.add(codegen::emit_object({peak_function(accumulators, lanes)}, target));
  const auto kernel = reinterpret_cast<TreadleKernel>(jit.lookup("peak"));
  std::vector<float> in = {0.5f, 0.25f}, out(static_cast<size_t>(accumulators * lanes));
  void* buffers[] = {in.data(), out.data()};
  RunState state;
  state.begin(1, nullptr);
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    kernel(state.context(), buffers, nullptr);
    const double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2.0 * static_cast<double>(accumulators * lanes * kIterations) / ns);
  }
  state.end();
  return best;
}

}  // namespace treadle
