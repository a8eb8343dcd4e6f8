// SPDX-License-Identifier: Apache-2.0
// Compiled functions, run in this process.
#include <gtest/gtest.h>

#include <numeric>

#include "codegen/codegen.h"
#include "loop/stmt.h"
#include "treadle/abi.h"

namespace treadle::codegen {
namespace {

using namespace loop;  // NOLINT(google-build-using-namespace): loop IR is written in these tests

TEST(Jit, RunsAnElementwiseKernel) {
  Var n("n"), i("i");
  Buffer a = make_buffer("a", dtype::float32_, {n}), b = make_buffer("b", dtype::float32_, {n});
  Function f{"twice", {a, b}, 1, {n}, for_loop(i, 0, n, store(b, {i}, load(a, {i}) * constant(2, dtype::float32_))),
             ""};
  const Target target = host_target();
  Jit jit(target);
  jit.add(emit_object({f}, target));
  auto* kernel = reinterpret_cast<TreadleKernel>(jit.lookup("twice"));
  std::vector<float> in(37), out(37);
  std::iota(in.begin(), in.end(), 1.0f);
  void* buffers[] = {in.data(), out.data()};
  const int64_t scalars[] = {37};
  TreadleContext context{};
  EXPECT_EQ(kernel(&context, buffers, scalars), 0);
  for (size_t k = 0; k < in.size(); ++k) EXPECT_EQ(out[k], in[k] * 2);
}

}  // namespace
}  // namespace treadle::codegen
