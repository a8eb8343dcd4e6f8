// SPDX-License-Identifier: Apache-2.0
// Arguments and results of the operators on shapes, which rules and the evaluation of known values (rules_fold.cc)
// share.
#pragma once

#include "import/onnx/rules.h"

namespace treadle::onnx {

// True when input i is a vector of integers whose values are data, and whose length is known.
bool computed_vector(Node& node, size_t i);
// The axes of Squeeze and Unsqueeze: an attribute before opset 13, then input 1.
std::optional<ir::Ints> axes_argument(Node& node);
// Errors of all: ImportFormat when shape and arguments do not fit; ImportUnsupported when that cannot be told.
Shape squeezed_shape(const Node& node, const Shape& shape, const std::optional<ir::Ints>& axes);
Shape unsqueezed_shape(const Node& node, const Shape& shape, const ir::Ints& axes);
Shape reshaped_shape(const Node& node, const Shape& shape, const Shape& target, bool allowzero);

// Of Slice: attributes before opset 10, then inputs. One value per listed axis; the axes count from the front.
struct SliceArguments {
  Shape starts, ends;
  ir::Ints steps, axes;
};
SliceArguments slice_arguments(Node& node);

// pads of `axes`: begins, then ends (Pad): attribute before opset 11, then inputs 1 and 3.
struct PadArguments {
  ir::Ints begin, end;  // one per axis of the data; may be negative
};
PadArguments pad_arguments(Node& node);

}  // namespace treadle::onnx
