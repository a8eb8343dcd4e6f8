// SPDX-License-Identifier: Apache-2.0
// The whole road: levels, passes left out, bisecting, export and loading, profiles, the compile cache.
#include "driver/build.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include "driver/model.h"
#include "driver/testing.h"
#include "pass/pass.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using test::module_of;
using test::options_of;
using test::tensor;
using test::Tensors;

// A net that gives most passes something to do: blocked convolutions with a scale and a shift behind, a residual,
// constants, equal calls, reshapes.
constexpr const char* kNet = R"(
def @norm(%x: Tensor[(1, 16, 6, 6), float32], %s: Tensor[(16), float32]) {
  %0 = nn.batch_norm(%x, %s, %s, %s, multiply(%s, %s), epsilon=1e-3);
  let %y = %0.0;
  nn.relu(%y)
}
def @main(%x: Tensor[(1, 16, 6, 6), float32]) {
  %10 = add(multiply(subtract(cumsum(ones(shape=[16], dtype="float32"), axis=0), 1f), 0.0625f), 0.5f);
  %11 = multiply(subtract(reshape(subtract(cumsum(ones(shape=[2304], dtype="float32"), axis=0), 1f), newshape=[16, 16, 3, 3]), 1000f), 1e-4f);
  %0 = @norm(nn.conv2d(%x, %11, padding=[1, 1]), %10);
  %1 = @norm(nn.conv2d(%0, %11, padding=[1, 1]), %10);
  %2 = add(%1, %0);
  %3 = nn.max_pool2d(%2, pool_size=[2, 2], strides=[2, 2]);
  %4 = nn.batch_flatten(%3);
  %5 = multiply(multiply(%4, 2f), 0.25f);
  %6 = add(exp(multiply(%5, 0.01f)), exp(multiply(%5, 0.01f)));
  (%2, nn.softmax(%6), reshape(expand_dims(%5, axis=0), newshape=[9, 16]), if (less(1f, 2f)) { %5 } else { %6 })
}
)";

// A few rewrites of every kind, quick to compile many times.
constexpr const char* kSmallNet = R"(
def @main(%x: Tensor[(1, 16, 6, 6), float32]) {
  %0 = multiply(reshape(cumsum(ones(shape=[256], dtype="float32"), axis=0), newshape=[16, 16, 1, 1]), 0.01f);
  %1 = reshape(cumsum(ones(shape=[16], dtype="float32"), axis=0), newshape=[16, 1, 1]);
  %2 = multiply(nn.relu(add(nn.conv2d(copy(%x), %0, padding=[0, 0]), %1)), %1);
  add(reshape(reshape(%2, newshape=[16, 36]), newshape=[1, 16, 6, 6]), nn.relu(nn.conv2d(%x, %0, padding=[0, 0])))
}
)";

Tensor net_input() {
  Tensor x(dtype::float32_, {1, 16, 6, 6});
  for (int64_t i = 0; i < x.size(); ++i) x.values<float>()[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  return x;
}

Tensors run(const ir::Module& module, const BuildOptions& options) {
  return Session(build(module, options).executable()).run({net_input()});
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class BuildTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("treadle_build_test_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    setenv("TREADLE_CACHE", (folder_ / "cache").c_str(), 1);
  }
  void TearDown() override {
    fs::remove_all(folder_);
    unsetenv("TREADLE_CACHE_BYTES");
    setenv("TREADLE_CACHE", "off", 1);
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  // Entries of the cache.
  std::vector<fs::path> cached() const {
    std::vector<fs::path> found;
    if (!fs::exists(folder_ / "cache")) return found;
    for (const auto& entry : fs::directory_iterator(folder_ / "cache")) {
      if (entry.path().extension() == ".so") found.push_back(entry.path());
    }
    return found;
  }

  fs::path folder_;
};

TEST_F(BuildTest, EveryLevelGivesTheSameValues) {
  const ir::Module module = module_of(kNet);
  const Tensors expected = run(module, options_of(0));
  for (int level : {1, 2, 3, 4})
    test::expect_equal(run(module, options_of(level)), expected, "O" + std::to_string(level), 1e-4);
}

TEST_F(BuildTest, EveryPassMayBeLeftOut) {
  const ir::Module module = module_of(kNet);
  const Tensors expected = run(module, options_of(0));
  for (const pass::Pass& pass : pass::all_passes()) {
    BuildOptions options = options_of(3);
    options.disabled_passes = {pass.name};
    test::expect_equal(run(module, options), expected, "without " + pass.name, 1e-4);
  }
}

// Bisecting: whatever number of rewrites is done, the values stay.
TEST_F(BuildTest, StopsAfterAnyNumberOfRewrites) {
  const ir::Module module = module_of(kSmallNet);
  const Tensors expected = run(module, options_of(0));
  int all = 0;
  BuildReport report;
  optimize(module, options_of(3), &report);
  for (const pass::PassTime& time : report.passes) all += time.rewrites;
  ASSERT_GT(all, 10);
  for (int stop = 0; stop <= all; ++stop) {
    BuildOptions options = options_of(3);
    options.stop_after = stop;
    test::expect_equal(run(module, options), expected, "after " + std::to_string(stop) + " rewrites", 1e-4);
    if (HasFailure()) return;
  }
}

TEST_F(BuildTest, ExportedFilesGiveTheSameBytesAndValues) {
  const ir::Module module = module_of(kNet);
  for (int level : {0, 3}) {
    export_module(module, file("a.so"), EmitKind::SharedObject, options_of(level));
    export_module(module_of(kNet), file("b.so"), EmitKind::SharedObject, options_of(level));
    EXPECT_EQ(bytes_of(file("a.so")), bytes_of(file("b.so"))) << "O" << level;
    const Tensors in_process = run(module, options_of(level));
    const Tensors loaded = Session(load_artifact(file("a.so")).executable()).run({net_input()});
    ASSERT_EQ(loaded.size(), in_process.size());
    for (size_t i = 0; i < loaded.size(); ++i)
      EXPECT_TRUE(loaded[i].identical(in_process[i])) << "O" << level << ", output " << i;
  }
}

TEST_F(BuildTest, EveryKindIsWrittenTwiceAlike) {
  const ir::Module module = module_of(kNet);
  for (EmitKind kind : {EmitKind::Object, EmitKind::Llvm, EmitKind::Assembly, EmitKind::Loop, EmitKind::Relay}) {
    export_module(module, file("a"), kind, options_of(3));
    export_module(module, file("b"), kind, options_of(3));
    const std::string text = bytes_of(file("a"));
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text, bytes_of(file("b"))) << static_cast<int>(kind);
  }
  // What was written last, the optimised module, can be read back.
  EXPECT_NO_THROW(import_model(file("a")));
}

TEST_F(BuildTest, LargeConstantsLieInAFileBeside) {
  Tensor big = Tensor::zeros(dtype::float32_, {kSideFileBytes / 4 + 1});
  big.values<float>()[7] = 3;
  const ir::Expr x = ir::var("x", tensor_type({}, dtype::float32_));
  op::register_operators();
  ir::Module module;
  module.functions["main"] = ir::function({x}, ir::call("add", {x, ir::constant(big)}));
  export_module(module, file("big.so"), EmitKind::SharedObject, options_of(3));
  ASSERT_TRUE(fs::exists(file("big.so.constants")));
  EXPECT_LT(fs::file_size(file("big.so")), 1 << 20);
  {
    Session session(load_artifact(file("big.so")).executable());
    const Tensors outputs = session.run({tensor<float>({1}, {})});
    EXPECT_EQ(outputs.at(0).at(7), 4);
    EXPECT_EQ(outputs.at(0).at(8), 1);
  }
  // Damaged or missing, it is an error.
  fs::resize_file(file("big.so.constants"), 1000);
  EXPECT_THROW(load_artifact(file("big.so")), Error);
  fs::remove(file("big.so.constants"));
  EXPECT_THROW(load_artifact(file("big.so")), Error);
}

TEST_F(BuildTest, ProfileTimesEveryKernel) {
  BuildOptions options = options_of(3);
  options.profile = true;
  Session session(build(module_of(kNet), options).executable());
  std::vector<KernelTime> times;
  RunOptions run_options;
  run_options.profile = &times;
  session.run({net_input()}, run_options);
  session.run({net_input()}, run_options);
  ASSERT_EQ(times.size(), session.manifest().kernels.size());
  ASSERT_FALSE(times.empty());
  for (const KernelTime& time : times) EXPECT_EQ(time.calls, 2u);
}

TEST_F(BuildTest, CacheFindsWhatWasCompiled) {
  BuildOptions options;
  options.threads = 1;
  const Artifact first = build(module_of(kNet), options);
  EXPECT_FALSE(first.report().from_cache);
  const Artifact second = build(module_of(kNet), options);
  EXPECT_TRUE(second.report().from_cache);
  const Tensors a = Session(first.executable()).run({net_input()}), b = Session(second.executable()).run({net_input()});
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].identical(b[i])) << i;
  options.opt_level = 1;
  EXPECT_FALSE(build(module_of(kNet), options).report().from_cache);
  // Names are part of what is found: the manifest has them.
  EXPECT_FALSE(build(module_of("def @main(%a: Tensor[(2), float32]) { exp(%a) }"), options).report().from_cache);
  EXPECT_FALSE(build(module_of("def @main(%b: Tensor[(2), float32]) { exp(%b) }"), options).report().from_cache);
  EXPECT_TRUE(build(module_of("def @main(%b: Tensor[(2), float32]) { exp(%b) }"), options).report().from_cache);
}

TEST_F(BuildTest, CacheSurvivesDamage) {
  const std::string text = "def @main(%x: Tensor[(2), float32]) { exp(%x) }";
  build(module_of(text));
  for (const std::string& damage : {std::string(), std::string("garbage"), std::string(5000, 'x')}) {
    ASSERT_EQ(cached().size(), 1u);
    std::ofstream(cached()[0], std::ios::binary | std::ios::trunc) << damage;
    const Artifact artifact = build(module_of(text));
    EXPECT_FALSE(artifact.report().from_cache);
    test::expect_equal(Session(artifact.executable()).run({tensor<float>({0, 1})}), {tensor<float>({1, 2.7182818f})},
                       "rebuilt");
  }
  const auto half = fs::file_size(cached()[0]) / 2;
  fs::resize_file(cached()[0], half);
  EXPECT_FALSE(build(module_of(text)).report().from_cache);
}

TEST_F(BuildTest, CacheForgetsTheOldest) {
  build(module_of("def @main(%x: Tensor[(2), float32]) { exp(%x) }"));
  ASSERT_EQ(cached().size(), 1u);
  const fs::path first = cached()[0];
  setenv("TREADLE_CACHE_BYTES", std::to_string(fs::file_size(first) * 5 / 2).c_str(), 1);
  fs::last_write_time(first, fs::file_time_type::clock::now() - std::chrono::hours(1));
  build(module_of("def @main(%x: Tensor[(2), float32]) { negative(%x) }"));
  EXPECT_TRUE(fs::exists(first));
  build(module_of("def @main(%x: Tensor[(2), float32]) { sqrt(%x) }"));
  EXPECT_FALSE(fs::exists(first));
  EXPECT_EQ(cached().size(), 2u);
}

TEST_F(BuildTest, CacheCanBeOffOrUnusable) {
  const std::string text = "def @main(%x: Tensor[(2), float32]) { exp(%x) }";
  setenv("TREADLE_CACHE", "off", 1);
  build(module_of(text));
  EXPECT_FALSE(build(module_of(text)).report().from_cache);
  setenv("TREADLE_CACHE", "/proc/nowhere", 1);
  EXPECT_FALSE(build(module_of(text)).report().from_cache);
  std::ofstream(file("not_a_folder")) << "x";
  setenv("TREADLE_CACHE", file("not_a_folder").c_str(), 1);
  EXPECT_FALSE(build(module_of(text)).report().from_cache);
}

TEST_F(BuildTest, ErrorsNameWhatIsWrong) {
  BuildOptions options = options_of(3);
  options.target = "abacus";
  EXPECT_THROW(build(module_of(kNet), options), Error);
  EXPECT_THROW(optimize_until(module_of(kNet), "FoldConstants", options_of(3)), Error);
  EXPECT_THROW(export_module(module_of(kNet), "/nowhere/a.so", EmitKind::SharedObject, options_of(0)), Error);
  EXPECT_THROW(export_module(module_of(kNet), "/nowhere/a.txt", EmitKind::Relay, options_of(0)), Error);
  EXPECT_THROW(load_artifact("/nowhere/a.so"), Error);
}

}  // namespace
}  // namespace treadle
