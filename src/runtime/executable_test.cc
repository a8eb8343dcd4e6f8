// SPDX-License-Identifier: Apache-2.0
#include "runtime/executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/session.h"

namespace treadle {
namespace {

using testing::HasSubstr;

class ExecutableFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("executable-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const char* name, const void* data, size_t size) {
    std::ofstream(folder_ / name, std::ios::binary)
        .write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
    return folder_ / name;
  }
  static Error load_error(const std::string& path) {
    try {
      Executable::load(path);
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorCode::Internal, "no error");
  }

  std::filesystem::path folder_;
};

constexpr float kConstants[4] = {10, 20, 30, 40};  // as in test/model.c

void expect_runs(const std::string& path) {
  Session session(Executable::load(path));
  EXPECT_EQ(session.manifest().name, "model");
  const Tensor y = session.run({Tensor::from<float>({1, 2, 3, 4, 5})})[0];
  EXPECT_TRUE(y.identical(Tensor::from<float>({11, 22, 33, 44, 15})));
  EXPECT_EQ(static_cast<const float*>(session.executable().constant(0))[2], 30);
}

TEST_F(ExecutableFile, LoadsConstantsInside) { expect_runs(TREADLE_TEST_MODEL); }

TEST_F(ExecutableFile, MapsConstantsBeside) {
  const std::string path = folder_ / "net.so";
  std::filesystem::copy_file(TREADLE_TEST_MODEL_SIDE_FILE, path);
  EXPECT_EQ(load_error(path).code(), ErrorCode::Io);  // not there
  write("model.constants", kConstants, 12);
  EXPECT_THAT(load_error(path).message(), HasSubstr("have 12 bytes, the model expects 16"));
  const float changed[4] = {10, 20, 30, 41};
  write("model.constants", changed, 16);
  EXPECT_EQ(load_error(path).code(), ErrorCode::ArtifactInvalid);
  EXPECT_THAT(load_error(path).message(), HasSubstr("hash"));
  write("model.constants", kConstants, 16);
  expect_runs(path);
}

TEST_F(ExecutableFile, AReplacedFileIsNotTakenForTheNewOne) {
  const std::string path = folder_ / "net.so";
  std::filesystem::copy_file(TREADLE_TEST_MODEL, path);
  auto old_model = Executable::load(path);
  EXPECT_NO_THROW(Executable::load(path));
  std::filesystem::copy_file(TREADLE_TEST_MODEL, folder_ / "new.so");
  std::filesystem::rename(folder_ / "new.so", path);
  EXPECT_THAT(load_error(path).message(), HasSubstr("has changed since it was loaded"));
  old_model.reset();
  expect_runs(path);
}

TEST_F(ExecutableFile, OtherFilesAreErrors) {
  EXPECT_EQ(load_error("/no/such/file.so").code(), ErrorCode::Io);
  EXPECT_EQ(load_error(write("text.so", "hello", 5)).code(), ErrorCode::ArtifactInvalid);
  EXPECT_EQ(load_error(write("empty.so", "", 0)).code(), ErrorCode::ArtifactInvalid);
  EXPECT_EQ(load_error(folder_).code(), ErrorCode::ArtifactInvalid);
}

TEST(Executable, InProcessConstantsAreAligned) {
  alignas(64) static char memory[80] = {};
  memory[4] = 7;
  Manifest manifest;
  manifest.abi_version = TREADLE_ABI_VERSION;
  manifest.constants = {{"c", 0, dtype::int8_, {4}}};
  manifest.constants_bytes = 4;
  auto main = +[](TreadleContext*, void* const*, const int64_t*) -> int32_t { return 0; };
  const auto executable = Executable::in_process(manifest, main, memory + 4, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(executable->constants()) % 64, 0u);
  EXPECT_EQ(*static_cast<const char*>(executable->constant(0)), 7);
  EXPECT_EQ(Executable::in_process(manifest, main, memory, nullptr)->constants(), memory);
  manifest.constants[0].offset = 1;
  EXPECT_THROW(Executable::in_process(manifest, main, memory, nullptr), Error);
}

}  // namespace
}  // namespace treadle
