// SPDX-License-Identifier: Apache-2.0
// The geometry of one convolution, from attributes and argument types: what type relation, compute and layout choice
// share.
#pragma once

#include "op/nn/conv.h"
#include "op/nn/window.h"

namespace treadle::op {

struct ConvShape {
  std::string spatial;                       // letters of the spatial axes, "HW"
  std::string data_letters, kernel_letters;  // "NCHW", "OIHW"
  Layout data_layout, kernel_layout, out_layout;
  ir::Ints strides, dilation;
  Padding padding;
  int64_t groups = 1;
  Shape data, kernel, out;  // extents in the order of the letters
  // The weight is (C, O/C, kernel…): output channel c*m + j has its weights at [c, j].
  bool multiplier_weight = false;

  size_t rank() const { return spatial.size(); }
  const Dim& in_channels() const { return data[1]; }
  const Dim& out_channels() const { return out[1]; }
  // Every output channel reads exactly one input channel.
  bool depthwise() const { return groups > 1 && data[1].is(groups); }
};

// Attributes and layouts only; shapes are empty. Errors: TypeAttribute.
ConvShape conv_attributes(const ConvFields& fields, size_t rank);
// The whole geometry; a null weight is derived from channels and kernel_size. nullopt when these are missing too.
// Errors: TypeMismatch, TypeAttribute.
std::optional<ConvShape> conv_shape(const ConvFields& fields, size_t rank, const TensorType& data,
                                    const TensorType* weight);
// dtype of the output. Errors: TypeMismatch when the dtypes of data and weight do not go together.
DType conv_out_dtype(const std::optional<DType>& wanted, const TensorType& data, const TensorType* weight);

}  // namespace treadle::op
