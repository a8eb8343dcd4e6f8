// SPDX-License-Identifier: Apache-2.0
// For tests of the driver: builds Relay texts at every level and compares what they compute.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <string>
#include <vector>

#include "driver/build.h"
#include "ir/text.h"
#include "op/register.h"
#include "runtime/session.h"

namespace treadle::test {

using Tensors = std::vector<Tensor>;

template <typename T>
Tensor tensor(const std::vector<T>& values) {
  return Tensor::from(values);
}
template <typename T>
Tensor tensor(const std::vector<T>& values, std::vector<int64_t> shape) {
  return Tensor::from(values, std::move(shape));
}
inline Tensor scalar(int64_t value) { return Tensor::from<int64_t>({value}, {}); }
inline Tensor boolean(bool value) { return Tensor::scalar(dtype::bool_, value); }

inline ir::Module module_of(const std::string& text) {
  op::register_operators();
  return ir::parse(text, "test");
}

inline BuildOptions options_of(int opt_level) {
  BuildOptions options;
  options.opt_level = opt_level;
  options.cache = false;
  options.threads = 1;
  options.verify = true;
  return options;
}

// Memory comes filled with NaN, so that what reads more than was written shows.
inline std::unique_ptr<Session> session_of(const std::string& text, int opt_level) {
  mallopt(M_PERTURB, 0x00);  // glibc fills with the complement
  return std::make_unique<Session>(build(module_of(text), options_of(opt_level)).executable());
}

inline void expect_equal(const Tensors& got, const Tensors& expected, const std::string& what, double rtol = 1e-5) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].shape(), expected[i].shape()) << what << ", output " << i;
    ASSERT_EQ(to_string(got[i].dtype()), to_string(expected[i].dtype())) << what << ", output " << i;
    for (int64_t e = 0; e < got[i].size(); ++e) {
      const double a = got[i].at(e), b = expected[i].at(e);
      if (std::isnan(a) && std::isnan(b)) continue;
      ASSERT_TRUE(a == b || std::fabs(a - b) <= rtol * (1 + std::fabs(b)))
          << what << ", output " << i << ", element " << e << ": " << a << " instead of " << b;
    }
  }
}

// One set of inputs and what comes out.
struct Example {
  Tensors inputs, outputs;
};

// Compiles once per level and runs every example twice, so that each finds the arena as another left it.
inline void expect_values(const std::string& text, const std::vector<Example>& examples) {
  for (int level : {0, 1, 3}) {
    SCOPED_TRACE("O" + std::to_string(level) + " of " + text);
    try {
      const std::unique_ptr<Session> session = session_of(text, level);
      for (int round = 0; round < 2; ++round) {
        for (const Example& example : examples)
          expect_equal(session->run(example.inputs), example.outputs, "round " + std::to_string(round));
      }
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

// The code of the refusal when building, and what its message must say.
inline void expect_refused(const std::string& text, ErrorCode code, const std::string& message) {
  for (int level : {0, 3}) {
    try {
      session_of(text, level);
      ADD_FAILURE() << "O" << level << " compiles " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what() << "\n" << text;
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what() << "\n" << text;
    }
  }
}

}  // namespace treadle::test
