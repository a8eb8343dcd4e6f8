// SPDX-License-Identifier: Apache-2.0
// nn.conv1d, nn.conv2d, nn.conv3d and the packed forms nn.contrib_conv2d_NCHWc, nn.contrib_depthwise_conv2d_NCHWc.
//
//   y[n, o, p] = sum over i, k of x[n, g*(C/G) + i, p*strides + k*dilation - padding] * w[o, i, k],  g = o / (O/G)
//   x  (N, C, spatial…)    w  (O, C/G, kernel…)    y  (N, O, spatial'…)     in the order and split of data_layout,
//   kernel_layout,
//                                                                         out_layout; elements outside of x are 0
//   spatial' = floor((spatial + pad_begin + pad_end - dilation*(kernel-1) - 1) / stride) + 1
// Depthwise with Relay's weight (C, O/C, kernel…), when G = C and axis O of the weight is C: y[c*m + j] uses w[c, j].
// Sums are formed in out_dtype, for 16-bit floats in float32. Source: Relay 0.16.
#pragma once

#include <optional>
#include <string>

#include "ir/expr.h"

namespace treadle::op {

// The fields of every convolution; rank-free, so that code for all ranks can take them.
struct ConvFields {
  ir::Ints strides, padding, dilation;
  int64_t groups;
  std::optional<int64_t> channels;
  std::optional<ir::Ints> kernel_size;
  std::string data_layout, kernel_layout, out_layout;
  std::optional<DType> out_dtype;
};

// A member of a base as a member of the derived struct, as attribute reflection needs it.
template <typename A, typename B, typename T>
constexpr T A::* member_of(T B::* member) {
  return member;
}

// The letters of the spatial axes: "W", "HW", "DHW".
constexpr const char* spatial_letters(int rank) { return rank == 1 ? "W" : rank == 2 ? "HW" : "DHW"; }

template <typename A, typename F>
void conv_fields(F& field, size_t rank, const std::string& data_layout, const std::string& kernel_layout) {
  field(member_of<A>(&A::strides), "strides", ir::Ints(rank, 1), "distance between windows, per spatial axis")
      .at_least(1);
  field(member_of<A>(&A::padding), "padding", ir::Ints(rank, 0),
        "zeros around the data: all sides, per axis, or begins, then ends")
      .at_least(0);
  field(member_of<A>(&A::dilation), "dilation", ir::Ints(rank, 1),
        "distance between taps of the kernel, per spatial axis")
      .at_least(1);
  field(member_of<A>(&A::groups), "groups", 1, "number of groups that channels are divided into").at_least(1);
  field(member_of<A>(&A::channels), "channels", std::nullopt, "number of output channels; None: as the weight has")
      .at_least(1);
  field(member_of<A>(&A::kernel_size), "kernel_size", std::nullopt, "extents of the kernel; None: as the weight has")
      .at_least(1);
  field(member_of<A>(&A::data_layout), "data_layout", data_layout, "order and split of the data's axes");
  field(member_of<A>(&A::kernel_layout), "kernel_layout", kernel_layout, "order and split of the weight's axes");
  field(member_of<A>(&A::out_layout), "out_layout", "", "order and split of the output's axes; empty: as data_layout");
  field(member_of<A>(&A::out_dtype), "out_dtype", std::nullopt, "dtype of sums and output; None: as the data's");
}

// Of nn.conv{Rank}d; ConvAttrs<2> also of the packed forms.
template <int Rank>
struct ConvAttrs : ir::AttrsOf<ConvAttrs<Rank>>, ConvFields {
  template <typename F>
  static void fields(F& field) {
    const std::string spatial = spatial_letters(Rank);
    conv_fields<ConvAttrs>(field, Rank, "NC" + spatial, "OI" + spatial);
  }
};

using Conv1DAttrs = ConvAttrs<1>;
using Conv2DAttrs = ConvAttrs<2>;
using Conv3DAttrs = ConvAttrs<3>;

// Errors: TypeMismatch, TypeAttribute as the type relation finds.
ir::Expr conv1d(ir::Expr data, ir::Expr weight, std::shared_ptr<Conv1DAttrs> attrs, Span span = nullptr);
ir::Expr conv2d(ir::Expr data, ir::Expr weight, std::shared_ptr<Conv2DAttrs> attrs, Span span = nullptr);
ir::Expr conv3d(ir::Expr data, ir::Expr weight, std::shared_ptr<Conv3DAttrs> attrs, Span span = nullptr);

}  // namespace treadle::op
