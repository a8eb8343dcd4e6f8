// SPDX-License-Identifier: Apache-2.0
// A few operators for the tests of this folder: what one needs of arithmetic, one with attributes and a weight whose
// shape follows, one with several outputs, one whose extent is known when it ran.
#pragma once

#include <string>

#include "ir/op.h"

namespace treadle::ir::test {

struct DenseAttrs : AttrsOf<DenseAttrs> {
  std::optional<int64_t> units;
  double scale;
  std::string layout;
  template <typename F>
  static void fields(F& field) {
    field(&DenseAttrs::units, "units", std::nullopt, "rows of the weight").at_least(1);
    field(&DenseAttrs::scale, "scale", 1.0, "factor of the result");
    field(&DenseAttrs::layout, "layout", "NC", "order of the weight's axes").one_of({"NC", "CN"});
  }
};

struct SplitAttrs : AttrsOf<SplitAttrs> {
  int64_t sections;
  Ints axes;
  template <typename F>
  static void fields(F& field) {
    field(&SplitAttrs::sections, "sections", Required(), "number of outputs").at_least(1);
    field(&SplitAttrs::axes, "axes", Ints{0}, "axes, not used");
  }
};

struct FullAttrs : AttrsOf<FullAttrs> {
  Shape shape;
  std::optional<DType> dtype;
  IntLists pads;
  template <typename F>
  static void fields(F& field) {
    field(&FullAttrs::shape, "shape", Required(), "shape of the result");
    field(&FullAttrs::dtype, "dtype", std::nullopt, "dtype of the result; float32 when absent");
    field(&FullAttrs::pads, "pads", IntLists{}, "not used");
  }
};

// Registers add, subtract, multiply, less_equal, test.relu, test.dense, test.split, test.full, test.select; once.
void register_test_ops();

// The text of a file below the repository's root.
std::string read_file(const std::string& path);

}  // namespace treadle::ir::test
