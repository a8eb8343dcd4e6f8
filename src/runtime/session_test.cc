// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

// Counts what a run allocates.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* data = std::malloc(size)) return data;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, size_t) noexcept { std::free(data); }

namespace treadle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Manifest manifest_of(std::vector<Manifest::TensorInfo> inputs, std::vector<Manifest::TensorInfo> outputs,
                     std::vector<Manifest::Symbol> symbols = {}) {
  Manifest manifest;
  manifest.abi_version = TREADLE_ABI_VERSION;
  manifest.name = "model";
  manifest.inputs = std::move(inputs);
  manifest.outputs = std::move(outputs);
  manifest.symbols = std::move(symbols);
  return manifest;
}

Session session_of(Manifest manifest, TreadleKernel main) {
  return Session(Executable::in_process(std::move(manifest), main, nullptr, nullptr));
}

template <typename F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::Internal, "no error");
}

// y = 2 x, x: (N, 3), through the arena and in parallel.
int32_t double_main(TreadleContext* ctx, void* const* buffers, const int64_t* scalars) {
  struct Arguments {
    const float* x;
    float* arena;
  } arguments{static_cast<const float*>(buffers[0]), static_cast<float*>(buffers[3])};
  if (reinterpret_cast<uintptr_t>(arguments.arena) % 64 != 0) return ctx->fail(ctx, "arena is not aligned");
  const int64_t count = scalars[0] * 3;
  auto body = [](TreadleContext*, void* closure, int64_t begin, int64_t end) -> int32_t {
    auto* a = static_cast<Arguments*>(closure);
    for (int64_t i = begin; i < end; ++i) a->arena[i] = 2 * a->x[i];
    return 0;
  };
  if (ctx->profile) ctx->profile(ctx, 0, 1);
  const int32_t code = ctx->parallel_for(ctx, body, &arguments, count);
  if (ctx->profile) ctx->profile(ctx, 0, 0);
  if (count > 0) std::memcpy(buffers[1], arguments.arena, count * sizeof(float));
  return code;
}

Session double_session() {
  Manifest manifest =
      manifest_of({{"x", dtype::float32_, {"N", "3"}}}, {{"y", dtype::float32_, {"N", "3"}}}, {{"N", ""}});
  manifest.arena_bytes = "12*N";
  manifest.kernels = {{"double", "x2", "3*N"}};
  return session_of(manifest, double_main);
}

TEST(Session, RunsAtAnySize) {
  Session session = double_session();
  for (int64_t n : {1, 2, 7, 1000, 0, 3}) {
    Tensor x(dtype::float32_, {n, 3});
    for (int64_t i = 0; i < x.size(); ++i) x.values<float>()[i] = static_cast<float>(i);
    const std::vector<Tensor> y = session.run({x});
    ASSERT_EQ(y.size(), 1u);
    EXPECT_THAT(y[0].shape(), ElementsAre(n, 3));
    for (int64_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[0].at(i), 2.0 * i);
  }
}

TEST(Session, WrongInputsAreNamed) {
  Session session = double_session();
  auto message = [&](const Tensor& input) {
    const Error error = error_of([&] { session.run({input}); });
    EXPECT_EQ(error.code(), ErrorCode::RuntimeInput);
    return error.message();
  };
  EXPECT_EQ(message(Tensor::zeros(dtype::float32_, {2, 4})),
            "input \"x\": expected (N, 3) float32, got (2, 4) float32");
  EXPECT_EQ(message(Tensor::zeros(dtype::int8_, {2, 3})), "input \"x\": expected (N, 3) float32, got (2, 3) int8");
  EXPECT_EQ(message(Tensor::zeros(dtype::float32_, {3})), "input \"x\": expected (N, 3) float32, got (3) float32");
  EXPECT_THAT(message(Tensor()), HasSubstr("input \"x\""));
  EXPECT_THAT(error_of([&] { session.run(std::vector<Tensor>{}); }).message(), HasSubstr("1 inputs, 0 were given"));
}

TEST(Session, NamesAreChecked) {
  Session session = double_session();
  const Tensor x = Tensor::zeros(dtype::float32_, {1, 3});
  EXPECT_EQ(session.run_named({{"x", x}}).size(), 1u);
  EXPECT_THAT(error_of([&] { session.run_named({{"x", x}, {"z", x}}); }).message(),
              HasSubstr("no input \"z\"; its inputs are \"x\""));
  EXPECT_THAT(error_of([&] { session.run_named(std::map<std::string, Tensor>{}); }).message(),
              HasSubstr("input \"x\", (N, 3) float32, is missing"));
}

TEST(Session, ASymbolHasOneValue) {
  auto main = +[](TreadleContext*, void* const*, const int64_t*) -> int32_t { return 0; };
  Session session =
      session_of(manifest_of({{"a", dtype::int8_, {"N"}}, {"b", dtype::int8_, {"2*N + 1"}}}, {}, {{"N", ""}}), main);
  EXPECT_NO_THROW(session.run({Tensor::zeros(dtype::int8_, {3}), Tensor::zeros(dtype::int8_, {7})}));
  const Error error =
      error_of([&] { session.run({Tensor::zeros(dtype::int8_, {3}), Tensor::zeros(dtype::int8_, {8})}); });
  EXPECT_EQ(error.message(), "input \"b\": expected (2*N + 1) int8, got (8) int8");
  EXPECT_THAT(error.notes(), ElementsAre("N is 3, from axis 0 of input \"a\""));
}

TEST(Session, ASymbolFollowsFromALinearExtent) {
  auto main = +[](TreadleContext*, void* const* buffers, const int64_t* scalars) -> int32_t {
    *static_cast<int64_t*>(buffers[1]) = scalars[0];
    return 0;
  };
  Session session =
      session_of(manifest_of({{"a", dtype::int8_, {"3*H - 2"}}}, {{"h", dtype::int64_, {}}}, {{"H", ""}}), main);
  EXPECT_EQ(session.run({Tensor::zeros(dtype::int8_, {10})})[0].int_at(0), 4);
  EXPECT_EQ(error_of([&] { session.run({Tensor::zeros(dtype::int8_, {11})}); }).code(), ErrorCode::RuntimeInput);
}

TEST(Session, ASymbolThatNothingBindsIsAnError) {
  auto main = +[](TreadleContext*, void* const*, const int64_t*) -> int32_t { return 0; };
  const Error error =
      error_of([&] { session_of(manifest_of({{"a", dtype::int8_, {"A*B"}}}, {}, {{"A", ""}, {"B", ""}}), main); });
  EXPECT_EQ(error.code(), ErrorCode::ArtifactInvalid);
  EXPECT_THAT(error.message(), HasSubstr("symbol A"));
  EXPECT_EQ(error_of([&] { session_of(manifest_of({{"a", dtype::int8_, {"A +"}}}, {}, {{"A", ""}}), main); }).code(),
            ErrorCode::ArtifactInvalid);
}

// Positions of the elements of x (N) that are not zero: as many as there are.
int32_t positions_main(TreadleContext* ctx, void* const* buffers, const int64_t* scalars) {
  const auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<int64_t*>(buffers[1]);
  int64_t count = 0;
  for (int64_t i = 0; i < scalars[0]; ++i) {
    if (x[i] < 0) return ctx->fail(ctx, "element is negative");
    if (x[i] != 0) y[count++] = i;
  }
  static_cast<int64_t*>(buffers[4])[0] = count;
  return 0;
}

TEST(Session, OutputsThatDependOnData) {
  const Manifest manifest =
      manifest_of({{"x", dtype::float32_, {"N"}}}, {{"y", dtype::int64_, {"?0", "1"}}}, {{"N", ""}, {"?0", "N"}});
  Session session = session_of(manifest, positions_main);
  const Tensor x = Tensor::from<float>({0, 3, 0, 4});
  const Tensor y = session.run({x})[0];
  EXPECT_THAT(y.shape(), ElementsAre(2, 1));
  EXPECT_THAT(y.to_ints(), ElementsAre(1, 3));
  // Into memory of the caller: room for the bound, the true extent comes back.
  int64_t data[4], shape[2] = {4, 1};
  const TreadleTensorRef ref = tensor_ref(x);
  const OutputBuffer output{data, shape, 2, dtype::int64_};
  session.run({&ref, 1}, {&output, 1});
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(data[1], 3);
  const Error error = error_of([&] { session.run({Tensor::from<float>({1, -1})}); });
  EXPECT_EQ(error.code(), ErrorCode::RuntimeKernel);
  EXPECT_EQ(error.message(), "element is negative");
}

TEST(Session, WrongOutputMemoryIsAnError) {
  Session session = double_session();
  const Tensor x = Tensor::zeros(dtype::float32_, {2, 3});
  const TreadleTensorRef ref = tensor_ref(x);
  float data[6];
  int64_t shape[2] = {1, 3};
  const OutputBuffer output{data, shape, 2, dtype::float32_};
  const Error error = error_of([&] { session.run({&ref, 1}, {&output, 1}); });
  EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(error.message(), "output \"y\": expected (N, 3) float32, got memory for (1, 3) float32");
}

TEST(Session, AllocatesNothingIntoMemoryOfTheCaller) {
  Session session = double_session();
  const Tensor x = Tensor::zeros(dtype::float32_, {50, 3});
  Tensor y(dtype::float32_, {50, 3});
  const TreadleTensorRef ref = tensor_ref(x);
  int64_t shape[2] = {50, 3};
  const OutputBuffer output{y.data(), shape, 2, dtype::float32_};
  session.run({&ref, 1}, {&output, 1});
  const int64_t before = allocations;
  for (int i = 0; i < 10; ++i) session.run({&ref, 1}, {&output, 1});
  EXPECT_EQ(allocations, before);
}

TEST(Session, ConcurrentRunsKeepApart) {
  Session session = double_session();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Tensor x = Tensor::from<float>(std::vector<float>(300, static_cast<float>(t)), {100, 3});
      for (int round = 0; round < 200; ++round) {
        const Tensor y = session.run({x})[0];
        for (float value : y.values<float>()) wrong += value != 2.0f * t;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Session, ProfilesKernels) {
  Session session = double_session();
  std::vector<KernelTime> times;
  RunOptions options;
  options.profile = &times;
  const Tensor x = Tensor::zeros(dtype::float32_, {2, 3});
  session.run({x}, options);
  session.run({x}, options);
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times[0].calls, 2);
  EXPECT_GT(times[0].nanoseconds, 0);
  const TreadleTensorRef ref = tensor_ref(x);
  EXPECT_THAT(session.kernel_flops({&ref, 1}), ElementsAre(6));
}

TEST(Session, MemoryOfARunIsKeptForTheNext) {
  auto main = +[](TreadleContext* ctx, void* const* buffers, const int64_t*) -> int32_t {
    void* a = ctx->allocate(ctx, 1000);
    void* b = ctx->allocate(ctx, 1000);
    if (!a || !b || a == b || reinterpret_cast<uintptr_t>(a) % 64 != 0) return 1;
    std::memset(a, 1, 1000);
    ctx->release(ctx, a);
    if (ctx->allocate(ctx, 900) != a) return 2;
    if (ctx->allocate(ctx, -1) || ctx->allocate(ctx, INT64_MAX)) return 3;
    *static_cast<int64_t*>(buffers[0]) = static_cast<int64_t>(reinterpret_cast<uintptr_t>(a));
    return 0;
  };
  Session session = session_of(manifest_of({}, {{"y", dtype::int64_, {}}}), main);
  const int64_t first = session.run(std::vector<Tensor>{})[0].int_at(0);
  EXPECT_EQ(session.run(std::vector<Tensor>{})[0].int_at(0), first);
}

}  // namespace
}  // namespace treadle
