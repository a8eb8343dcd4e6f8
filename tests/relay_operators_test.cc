// SPDX-License-Identifier: Apache-2.0
// The real Relay's answers (tests/data/relay/README.md): each program is parsed, typed, evaluated by the interpreter of
// the loop IR and compiled without and with optimisation, and its outputs are compared with what TVM 0.16 computed.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "driver/build.h"
#include "driver/tensor_file.h"
#include "ir/op.h"
#include "ir/text.h"
#include "op/register.h"
#include "pass/interpreter.h"
#include "runtime/session.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(TREADLE_SOURCE_DIR) / "tests/data/relay/operators";

// Operators that do not exist yet; a program that uses one must be refused for this reason and no other.
const std::set<std::string> kMissing = {"nn_sparse_add",  "nn_sparse_transpose",   "qnn_add",
                                        "qnn_dense",      "qnn_dequantize",        "qnn_quantize",
                                        "qnn_requantize", "vision_multibox_prior", "vision_roi_align"};

// How many leading elements count, where TVM leaves the rest of an output unset: behind the distinct values of unique.
const std::map<std::string, int64_t> kMeaningful = {{"unique-0", 4}, {"unique-1", 4}};

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// "nn.conv2d" of "nn_conv2d-3".
std::string operator_of(const std::string& program) { return program.substr(0, program.rfind('-')); }

// Approximations and libm functions are compared less strictly, as the README says.
double tolerance_of(const std::string& program) {
  static const std::vector<std::string> loose = {"fast_", "softmax", "log",     "exp", "sin",
                                                 "cos",   "tan",     "sigmoid", "erf", "cross_entropy"};
  for (const std::string& word : loose) {
    if (operator_of(program).find(word) != std::string::npos) return 1e-3;
  }
  return 1e-4;
}

void compare(const Tensor& ours, const Tensor& expected, double rtol, int64_t count, const std::string& what) {
  ASSERT_EQ(ours.shape(), expected.shape()) << what;
  ASSERT_EQ(to_string(ours.dtype()), to_string(expected.dtype())) << what;
  for (int64_t i = 0; i < std::min(ours.size(), count); ++i) {
    if (!ours.dtype().is_float()) {
      ASSERT_EQ(ours.int_at(i), expected.int_at(i)) << what << ", element " << i;
      continue;
    }
    const double a = ours.at(i), b = expected.at(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    ASSERT_TRUE(a == b || std::fabs(a - b) <= rtol * 0.1 + rtol * std::fabs(b))
        << what << ", element " << i << ": " << a << " instead of " << b;
  }
}

std::vector<std::string> programs() {
  std::vector<std::string> result;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".relay") result.push_back(entry.path().stem().string());
  }
  std::sort(result.begin(), result.end());
  return result;
}

class RelayOperators : public testing::TestWithParam<std::string> {};

TEST_P(RelayOperators, AnswersAsRelay) {
  const std::string program = GetParam();
  op::register_operators();
  const bool missing = kMissing.contains(operator_of(program));
  ir::Module module;
  try {
    module = ir::parse(read_text(kFolder / (program + ".relay")), program + ".relay");
  } catch (const Error& error) {
    ASSERT_TRUE(missing && error.message().find("no operator is called") != std::string::npos) << error.what();
    return;
  }
  ASSERT_FALSE(missing) << "the operator exists now: take it from the list";
  const std::map<std::string, Tensor> arrays = read_npz((kFolder / (program + ".npz")).string());
  pass::Bindings bindings;
  const ir::Function& main = module.main();
  for (size_t i = 0; i < main.params.size(); ++i)
    bindings[main.params[i].get()] = {arrays.at("in" + std::to_string(i))};
  std::vector<Tensor> outputs;
  try {
    outputs = pass::interpret(main.body, bindings);
  } catch (const Error& error) {
    FAIL() << error.what();
  }
  const auto compare_all = [&](const std::vector<Tensor>& outputs, const std::string& how) {
    const int64_t count = kMeaningful.contains(program) ? kMeaningful.at(program) : std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string name = "out" + std::to_string(i);
      ASSERT_TRUE(arrays.contains(name)) << name;
      compare(outputs[i], arrays.at(name), tolerance_of(program), count, program + " " + name + " " + how);
    }
  };
  compare_all(outputs, "interpreted");
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < main.params.size(); ++i) inputs.push_back(arrays.at("in" + std::to_string(i)));
  for (int level : {0, 3}) {
    BuildOptions options;
    options.opt_level = level;
    options.cache = false;
    options.threads = 1;
    options.verify = true;
    try {
      compare_all(Session(build(module, options).executable()).run(inputs), "at O" + std::to_string(level));
    } catch (const Error& error) {
      ADD_FAILURE() << "O" << level << ": " << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, RelayOperators, testing::ValuesIn(programs()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

}  // namespace
}  // namespace treadle
