// SPDX-License-Identifier: Apache-2.0
// For tests: a scheduled function is interpreted against the straightforward nest of the same tensors.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "loop/stmt.h"
#include "schedule/simplify.h"

namespace treadle::schedule::testing {

inline int64_t evaluate(const loop::Expr& e, const std::map<std::string, int64_t>& symbols) {
  std::map<const loop::VarNode*, loop::Expr> values;
  for (const auto& [name, value] : symbols) values[loop::symbol_var(name).var()] = loop::int_imm(value);
  Analyzer analyzer;
  const loop::Expr result = analyzer.simplify(loop::substitute(e, values));
  const int64_t* number = loop::as_int(result);
  EXPECT_TRUE(number) << loop::to_string(result);
  return number ? *number : 0;
}

// Random numbers (small integers in floats are exact in any order of addition).
inline Tensor random_tensor(DType dtype, const std::vector<int64_t>& shape, unsigned seed) {
  Tensor t(dtype, shape);
  std::mt19937 random(seed);
  for (int64_t i = 0; i < t.size(); ++i) {
    const int value = static_cast<int>(random() % 17) - 8;
    if (dtype == dtype::float32_) t.values<float>()[static_cast<size_t>(i)] = static_cast<float>(value) / 4;
    if (dtype == dtype::float64_) t.values<double>()[static_cast<size_t>(i)] = value;
    if (dtype == dtype::int32_) t.values<int32_t>()[static_cast<size_t>(i)] = value;
    if (dtype == dtype::int64_) t.values<int64_t>()[static_cast<size_t>(i)] = value;
    if (dtype == dtype::int8_) t.values<int8_t>()[static_cast<size_t>(i)] = static_cast<int8_t>(value);
    if (dtype == dtype::bool_) t.values<bool>()[static_cast<size_t>(i)] = value > 0;
  }
  return t;
}

inline std::vector<Tensor> run(const loop::Function& f, const std::vector<loop::Tensor>& inputs,
                               const std::vector<loop::Tensor>& outputs, const std::map<std::string, int64_t>& symbols,
                               bool flat) {
  std::vector<Tensor> args;
  unsigned seed = 1;
  const auto shape_of = [&](const loop::Tensor& t) {
    std::vector<int64_t> shape;
    for (const loop::Expr& extent : t.shape()) shape.push_back(evaluate(extent, symbols));
    return shape;
  };
  for (const loop::Tensor& t : inputs) args.push_back(random_tensor(t.dtype(), shape_of(t), seed++));
  for (const loop::Tensor& t : outputs) args.push_back(Tensor::zeros(t.dtype(), shape_of(t)));
  std::vector<Tensor> given = args;
  if (flat) {
    for (Tensor& t : given) t = t.reshaped({t.size()});
  }
  std::vector<int64_t> scalars;
  for (const loop::Var& v : f.scalars) scalars.push_back(symbols.at(v.name()));
  loop::interpret(f, given, scalars);
  return {args.begin() + static_cast<ptrdiff_t>(inputs.size()), args.end()};
}

// `scheduled`: finished (flat buffers) or just lowered.
inline void expect_same(const loop::Function& scheduled, const std::vector<loop::Tensor>& inputs,
                        const std::vector<loop::Tensor>& outputs, const std::map<std::string, int64_t>& symbols = {},
                        bool flat = true, double tolerance = 0) {
  const loop::Function naive = loop::lower_naive("naive", inputs, outputs);
  const std::vector<Tensor> expected = run(naive, inputs, outputs, symbols, false);
  std::vector<Tensor> actual;
  try {
    if (flat) loop::verify(scheduled);  // before, marked loops may have extents that are not constant
    actual = run(scheduled, inputs, outputs, symbols, flat);
  } catch (const Error& error) {
    FAIL() << error.what() << "\n" << loop::to_string(scheduled);
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    for (int64_t j = 0; j < expected[i].size(); ++j) {
      const double e = expected[i].at(j), a = actual[i].at(j);
      const bool same = e == a || (std::isnan(e) && std::isnan(a)) || std::abs(e - a) <= tolerance * (1 + std::abs(e));
      ASSERT_TRUE(same) << "output " << i << " element " << j << ": " << e << " expected, " << a << "\n"
                        << loop::to_string(scheduled);
    }
  }
}

}  // namespace treadle::schedule::testing
