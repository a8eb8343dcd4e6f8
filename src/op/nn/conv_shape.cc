// SPDX-License-Identifier: Apache-2.0
#include "op/nn/conv_shape.h"

namespace treadle::op {
namespace {

void check_positive(const ir::Ints& values, std::string_view what) {
  for (int64_t value : values) {
    if (value < 1) fail(ErrorCode::TypeAttribute, "{} is {}, it must be at least 1", what, value);
  }
}

void check_divides(int64_t groups, const Dim& extent, std::string_view what) {
  if (!assume_divides(groups, extent)) {
    fail(ErrorCode::TypeMismatch, "groups={} does not divide the {} {}", groups, to_string(extent), what);
  }
}

// Extents of the weight in the order O, I, spatial as the attributes give them; nullopt when channels or kernel_size is
// missing.
std::optional<Shape> weight_from_attributes(const ConvFields& fields, const ConvShape& shape) {
  if (!fields.channels || !fields.kernel_size) return std::nullopt;
  Shape kernel;
  const Dim channels = *fields.channels;
  if (shape.depthwise()) {
    check_divides(shape.groups, channels, "output channels");
    kernel = {shape.in_channels(), floordiv(channels, shape.groups)};
  } else {
    kernel = {channels, floordiv(shape.in_channels(), shape.groups)};
  }
  for (int64_t extent : normalise_per_axis(*fields.kernel_size, shape.rank(), "kernel_size"))
    kernel.emplace_back(extent);
  return kernel;
}

void check_weight(const ConvFields& fields, const ConvShape& shape) {
  const Dim channels = shape.multiplier_weight ? shape.kernel[0] * shape.kernel[1] : shape.kernel[0];
  if (fields.channels && !assume_equal(channels, *fields.channels)) {
    fail(ErrorCode::TypeMismatch, "weight gives {} output channels but channels is {}", to_string(channels),
         *fields.channels);
  }
  if (fields.kernel_size) {
    const ir::Ints extents = normalise_per_axis(*fields.kernel_size, shape.rank(), "kernel_size");
    for (size_t s = 0; s < shape.rank(); ++s) {
      const Dim& extent = shape.kernel[2 + s];
      if (!assume_equal(extent, extents[s])) {
        fail(ErrorCode::TypeMismatch, "weight has extent {} along {} but kernel_size is {}", to_string(extent),
             shape.spatial[s], extents[s]);
      }
    }
  }
  if (shape.multiplier_weight) return;
  const Dim expected = shape.kernel[1] * shape.groups;
  if (!assume_equal(expected, shape.in_channels())) {
    Error error(ErrorCode::TypeMismatch,
                fmt::format("input has {} channels but weight expects {} (groups={})", to_string(shape.in_channels()),
                            to_string(expected), shape.groups));
    error.help("weight axis I times groups must equal the data's axis C");
    throw error;
  }
  check_divides(shape.groups, shape.kernel[0], "output channels");
}

}  // namespace

ConvShape conv_attributes(const ConvFields& fields, size_t rank) {
  ConvShape shape;
  shape.spatial = spatial_letters(static_cast<int>(rank));
  shape.data_letters = "NC" + shape.spatial;
  shape.kernel_letters = "OI" + shape.spatial;
  shape.data_layout = parse_layout(fields.data_layout, shape.data_letters, "data_layout");
  shape.kernel_layout = parse_layout(fields.kernel_layout, shape.kernel_letters, "kernel_layout");
  shape.out_layout =
      fields.out_layout.empty() ? shape.data_layout : parse_layout(fields.out_layout, shape.data_letters, "out_layout");
  if (shape.data_layout.block_of('N') != 1 || shape.out_layout.block_of('N') != 1) {
    fail(ErrorCode::TypeAttribute, "layout {} splits the batch axis", fields.data_layout);
  }
  shape.strides = normalise_per_axis(fields.strides, rank, "strides");
  shape.dilation = normalise_per_axis(fields.dilation, rank, "dilation");
  check_positive(shape.strides, "strides");
  check_positive(shape.dilation, "dilation");
  check_positive({fields.groups}, "groups");
  shape.padding = normalise_padding(fields.padding, rank);
  shape.groups = fields.groups;
  return shape;
}

std::optional<ConvShape> conv_shape(const ConvFields& fields, size_t rank, const TensorType& data,
                                    const TensorType* weight) {
  ConvShape shape = conv_attributes(fields, rank);
  shape.data = primal_shape(shape.data_layout, data.shape, shape.data_letters, "data");
  check_divides(shape.groups, shape.in_channels(), "input channels");
  if (weight) {
    shape.kernel = primal_shape(shape.kernel_layout, weight->shape, shape.kernel_letters, "weight");
  } else {
    const std::optional<Shape> kernel = weight_from_attributes(fields, shape);
    if (!kernel) return std::nullopt;
    shape.kernel = *kernel;
  }
  // (C, O/C) and (O, 1) are the same when O = C; otherwise axis O tells which of the two it is.
  shape.multiplier_weight = shape.depthwise() && shape.kernel[0].is(shape.groups) && !shape.kernel[1].is(1);
  check_weight(fields, shape);
  shape.out = {shape.data[0], shape.multiplier_weight ? shape.kernel[0] * shape.kernel[1] : shape.kernel[0]};
  for (size_t s = 0; s < rank; ++s) {
    const Dim span = dilated_extent(shape.kernel[2 + s], shape.dilation[s]);
    shape.out.push_back(window_count(shape.data[2 + s], shape.padding.begin[s], shape.padding.end[s], span,
                                     shape.strides[s], false, shape.spatial[s]));
  }
  return shape;
}

DType conv_out_dtype(const std::optional<DType>& wanted, const TensorType& data, const TensorType* weight) {
  if (weight && !(weight->dtype == data.dtype) && !(weight->dtype.is_integer() && data.dtype.is_integer())) {
    fail(ErrorCode::TypeMismatch, "data is {} but weight is {}", to_string(data.dtype), to_string(weight->dtype));
  }
  if (data.dtype.is_bool()) fail(ErrorCode::TypeMismatch, "data is bool, it must be a number");
  return wanted.value_or(data.dtype);
}

}  // namespace treadle::op
