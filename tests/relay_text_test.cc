// SPDX-License-Identifier: Apache-2.0
// Every text under tests/data/relay, as TVM printed it or as a person wrote it, parses, has types, passes the verifier,
// and is the same module after it is printed and parsed again; the types are those that TVM found.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "ir/infer.h"
#include "ir/op.h"
#include "ir/text.h"
#include "op/register.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;

fs::path data_folder() { return fs::path(TREADLE_SOURCE_DIR) / "tests" / "data" / "relay"; }

std::vector<std::string> texts() {
  std::vector<std::string> result;
  for (const char* folder : {"language", "operators"}) {
    for (const auto& entry : fs::directory_iterator(data_folder() / folder)) {
      if (entry.path().extension() == ".relay")
        result.push_back(std::string(folder) + "/" + entry.path().filename().string());
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::string read(const std::string& name) {
  std::ifstream file(data_folder() / name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Operators that the texts use and that do not exist yet. A text that names one must be refused, with the operator's
// name; when the operator comes, its line here must go.
const std::set<std::string>& missing_operators() {
  static const std::set<std::string> names = {
      "nn.sparse_add",  "nn.sparse_transpose",   "qnn.add",          "qnn.dense", "qnn.dequantize", "qnn.quantize",
      "qnn.requantize", "vision.multibox_prior", "vision.roi_align",
  };
  return names;
}

std::string missing_operator(const std::string& text) {
  for (const std::string& name : missing_operators()) {
    const std::string call = name + "(";
    for (size_t i = text.find(call); i != std::string::npos; i = text.find(call, i + 1)) {
      const char before = i == 0 ? ' ' : text[i - 1];
      if (!std::isalnum(static_cast<unsigned char>(before)) && before != '_' && before != '.') return name;
    }
  }
  return "";
}

// The result type that TVM's text declares for main; empty when it declares none.
std::string declared_result(const std::string& text) {
  const size_t main = text.find("def @main");
  const size_t arrow = text.find(") -> ", main);
  const size_t brace = text.find(" {\n", main);
  if (main == std::string::npos || arrow == std::string::npos || brace == std::string::npos || brace < arrow) return "";
  return text.substr(arrow + 5, brace - arrow - 5);
}

class RelayText : public ::testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { op::register_operators(); }
};

TEST_P(RelayText, ParsesAndRoundTrips) {
  const std::string text = read(GetParam());
  if (const std::string missing = missing_operator(text); !missing.empty()) {
    ASSERT_EQ(ir::OpRegistry::instance().find(missing), nullptr) << missing << " exists now: take it off the list";
    try {
      ir::parse(text, GetParam());
      FAIL() << "the unknown operator " << missing << " is accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Parse) << error.what();
      EXPECT_NE(error.message().find(missing), std::string::npos) << error.what();
    }
    return;
  }
  ir::Module module;
  try {
    module = ir::parse(text, GetParam());
    ir::verify(module);
  } catch (const Error& error) {
    FAIL() << error.what();
  }
  const std::string printed = ir::print(module);
  try {
    const ir::Module again = ir::parse(printed, "printed");
    EXPECT_EQ(ir::structural_difference(again, module), std::nullopt) << printed;
    EXPECT_EQ(ir::structural_hash(again), ir::structural_hash(module));
    EXPECT_EQ(ir::print(again), printed);
  } catch (const Error& error) {
    FAIL() << error.what() << "\n" << printed;
  }
  // The body's own type, which the parser did not read from the text.
  const std::string declared = declared_result(text);
  if (!declared.empty() && declared.find('?') == std::string::npos) {
    EXPECT_EQ(to_string(module.main().body.type()), declared);
  }
}

// A damaged text gives a coded error or a module, nothing else.
TEST_P(RelayText, DamageIsAnError) {
  const std::string text = read(GetParam());
  uint64_t state = text.size();
  const auto random = [&](size_t bound) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<size_t>(state >> 33) % bound;
  };
  for (int round = 0; round < 12; ++round) {
    std::string damaged = text;
    const size_t at = random(text.size());
    switch (round % 4) {
      case 0:
        damaged.resize(at);
        break;
      case 1:
        damaged.erase(at, 1 + random(8));
        break;
      case 2:
        damaged[at] = "(){}[],;:.=%@?0123456789\"f-"[random(27)];
        break;
      case 3:
        damaged.insert(at, text.substr(random(text.size()), 1 + random(30)));
        break;
    }
    try {
      ir::verify(ir::parse(damaged, "damaged"));
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::Internal) << error.what() << "\n" << damaged;
      EXPECT_NE(error.code(), ErrorCode::VerifyFailed) << error.what() << "\n" << damaged;
    }
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, RelayText, ::testing::ValuesIn(texts()), test_name);

}  // namespace
}  // namespace treadle
