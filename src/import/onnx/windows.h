// SPDX-License-Identifier: Apache-2.0
// Attributes of ONNX's windowed operators: kernel_shape, strides, dilations, pads, auto_pad.
#pragma once

#include "import/onnx/rules.h"

namespace treadle::onnx {

struct Window {
  ir::Ints kernel, strides, dilations;
  ir::Ints pad_begin, pad_end;
  size_t rank() const { return kernel.size(); }
  ir::Ints padding() const;  // all begins, then all ends
  // Elements that the kernel spans along an axis.
  int64_t span(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

// Of input 0, (N, C, spatial…). `kernel` is what the weight says; empty: kernel_shape is required.
// auto_pad SAME_UPPER and SAME_LOWER: ceil(in / stride) windows, an odd element of padding at the end or the beginning.
// Errors: ImportFormat for attributes that do not fit; ImportUnsupported for SAME of a symbolic extent with a stride
// above 1.
Window read_window(Node& node, const Shape& spatial, const ir::Ints& kernel = {});

// One value per spatial axis, or the default. Errors: ImportFormat for another count or a value below `least`.
ir::Ints per_axis(Node& node, const char* name, size_t rank, int64_t default_value, int64_t least);

// Spatial extents of input 0. Errors: ImportFormat for fewer than 3 axes.
Shape spatial_shape(Node& node);
// "nn.conv2d" of ("nn.conv", 2, ""). Errors: ImportUnsupported for more than 3 spatial axes.
std::string by_rank(const Node& node, const std::string& stem, size_t rank, const std::string& tail);

}  // namespace treadle::onnx
