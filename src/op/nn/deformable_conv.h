// SPDX-License-Identifier: Apache-2.0
// nn.deformable_conv2d: a convolution whose taps are moved by offsets that the network computes.
//
//   y[n, o, p, q] = sum over c, i, j of sample(x[n, c], p*sh + i*dh - pt + oy, q*sw + j*dw - pl + ox) * w[o, c, i, j]
//   oy, ox  = offset[n, 2*(kh*kw*d + kw*i + j)], offset[n, 2*(kh*kw*d + kw*i + j) + 1], d = c / (C / deformable_groups)
//   sample  bilinear; 0 at positions before 0 or from H (W) on; a neighbour behind the last element counts as 0
//   data (N, C, H, W)   offset (N, 2*kh*kw*deformable_groups, H', W')   weight (O, C/groups, kh, kw)   y (N, O, H', W')
// data_layout NCHW or NHWC (the offset's and the output's too). Source: Relay 0.16; Dai and others 2017.
#pragma once

#include "op/nn/conv.h"

namespace treadle::op {

struct DeformableConv2DAttrs : ir::AttrsOf<DeformableConv2DAttrs>, ConvFields {
  int64_t deformable_groups;

  template <typename F>
  static void fields(F& field) {
    using A = DeformableConv2DAttrs;
    field(member_of<A>(&A::strides), "strides", ir::Ints{1, 1}, "distance between windows, per spatial axis")
        .at_least(1);
    field(member_of<A>(&A::padding), "padding", ir::Ints{0, 0},
          "zeros around the data: all sides, per axis, or begins, then ends")
        .at_least(0);
    field(member_of<A>(&A::dilation), "dilation", ir::Ints{1, 1},
          "distance between taps of the kernel, per spatial axis")
        .at_least(1);
    field(&A::deformable_groups, "deformable_groups", 1, "number of groups of channels with offsets of their own")
        .at_least(1);
    field(member_of<A>(&A::groups), "groups", 1, "number of groups that channels are divided into").at_least(1);
    field(member_of<A>(&A::channels), "channels", std::nullopt, "number of output channels; None: as the weight has")
        .at_least(1);
    field(member_of<A>(&A::kernel_size), "kernel_size", std::nullopt, "extents of the kernel; None: as the weight has")
        .at_least(1);
    field(member_of<A>(&A::data_layout), "data_layout", "NCHW", "order of the axes of data, offset and output");
    field(member_of<A>(&A::kernel_layout), "kernel_layout", "OIHW", "order of the weight's axes");
    field(member_of<A>(&A::out_layout), "out_layout", "", "empty, or the same as data_layout");
    field(member_of<A>(&A::out_dtype), "out_dtype", std::nullopt, "dtype of sums and output; None: as the data's");
  }
};

}  // namespace treadle::op
