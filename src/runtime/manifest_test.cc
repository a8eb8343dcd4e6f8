// SPDX-License-Identifier: Apache-2.0
#include "runtime/manifest.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "treadle/abi.h"

namespace treadle {
namespace {

Manifest example() {
  Manifest manifest;
  manifest.abi_version = TREADLE_ABI_VERSION;
  manifest.name = "net \"x\"\n";
  manifest.target = "llvm -mcpu=native";
  manifest.inputs = {{"data", dtype::float32_, {"N", "3"}}, {"mask", dtype::bool_, {}}};
  manifest.outputs = {{"out", dtype::bfloat16_, {"2*N - 1", "?0"}}};
  manifest.symbols = {{"N", ""}, {"?0", "3*N"}};
  manifest.constants = {{"w", 64, dtype::int8_, {2, 3}}};
  manifest.constants_bytes = 70;
  manifest.constants_file = "net.constants";
  manifest.constants_hash = 0xfedcba9876543210ull;
  manifest.arena_bytes = "64*N";
  manifest.kernels = {{"fused_dense", "fc1", "6*N"}};
  return manifest;
}

std::string error_of(const std::string& json) {
  try {
    parse_manifest(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::ArtifactInvalid);
    return error.message();
  }
  return "no error";
}

TEST(Manifest, RoundTrips) {
  const std::string json = to_json(example());
  const Manifest read = parse_manifest(json);
  EXPECT_EQ(to_json(read), json);
  EXPECT_EQ(read.name, example().name);
  EXPECT_EQ(read.outputs[0].dtype, dtype::bfloat16_);
  EXPECT_EQ(read.outputs[0].shape, example().outputs[0].shape);
  EXPECT_EQ(read.symbols[1].bound, "3*N");
  EXPECT_EQ(read.constants[0].offset, 64);
  EXPECT_EQ(read.constants_hash, example().constants_hash);
}

TEST(Manifest, AnEmptyModelIsOne) {
  Manifest manifest;
  manifest.abi_version = TREADLE_ABI_VERSION;
  EXPECT_EQ(to_json(parse_manifest(to_json(manifest))), to_json(manifest));
}

TEST(Manifest, BrokenOnesSayWhatIsWrong) {
  EXPECT_THAT(error_of("{"), testing::HasSubstr("broken"));
  EXPECT_THAT(error_of("[]"), testing::HasSubstr("broken"));
  EXPECT_THAT(error_of(fmt::format("{{\"abi_version\": {}}}", TREADLE_ABI_VERSION)),
              testing::HasSubstr("'name' not found"));
  EXPECT_THAT(error_of(R"({"abi_version": 99})"), testing::HasSubstr("ABI version 99"));
  std::string json = to_json(example());
  json.replace(json.find("bfloat16"), 8, "float7");
  EXPECT_THAT(error_of(json), testing::HasSubstr("unknown dtype \"float7\""));
}

}  // namespace
}  // namespace treadle
