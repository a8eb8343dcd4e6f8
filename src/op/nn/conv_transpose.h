// SPDX-License-Identifier: Apache-2.0
// nn.conv1d_transpose, nn.conv2d_transpose, nn.conv3d_transpose: the gradient of a convolution with respect to its
// input.
//
//   y[n, o, q] = sum over c of the group of o, p, k with q = p*strides + k*dilation - padding of x[n, c, p] * w[c, o
//   mod (O/G), k] x  (N, C, spatial…)    w  (C, O/G, kernel…): the first letter of kernel_layout "IOHW" counts input
//   channels spatial' = strides*(spatial - 1) + dilation*(kernel-1) + 1 - pad_begin - pad_end + output_padding
// output_padding extends the output at its end by elements that still receive contributions.
// Unlike TVM: without `channels` the output has O/G of the weight times groups channels. Source: Relay 0.16; Dumoulin
// and Visin 2016.
#pragma once

#include "op/nn/conv.h"

namespace treadle::op {

struct ConvTransposeFields : ConvFields {
  ir::Ints output_padding;
};

// Of nn.conv{Rank}d_transpose.
template <int Rank>
struct ConvTransposeAttrs : ir::AttrsOf<ConvTransposeAttrs<Rank>>, ConvTransposeFields {
  template <typename F>
  static void fields(F& field) {
    using A = ConvTransposeAttrs;
    const std::string spatial = spatial_letters(Rank);
    field(member_of<A>(&A::channels), "channels", std::nullopt, "number of output channels; None: as the weight has")
        .at_least(1);
    field(member_of<A>(&A::kernel_size), "kernel_size", std::nullopt, "extents of the kernel; None: as the weight has")
        .at_least(1);
    field(member_of<A>(&A::strides), "strides", ir::Ints(Rank, 1),
          "distance in the output between inputs, per spatial axis")
        .at_least(1);
    field(member_of<A>(&A::output_padding), "output_padding", ir::Ints(Rank, 0),
          "extra extent at the end, below the stride")
        .at_least(0);
    field(member_of<A>(&A::padding), "padding", ir::Ints(Rank, 0),
          "elements cut from the output: all sides, per axis, or begins, then ends")
        .at_least(0);
    field(member_of<A>(&A::dilation), "dilation", ir::Ints(Rank, 1),
          "distance between taps of the kernel, per spatial axis")
        .at_least(1);
    field(member_of<A>(&A::groups), "groups", 1, "number of groups that channels are divided into").at_least(1);
    field(member_of<A>(&A::data_layout), "data_layout", "NC" + spatial, "order and split of the data's axes");
    field(member_of<A>(&A::kernel_layout), "kernel_layout", "IO" + spatial,
          "order and split of the weight's axes; I counts input channels");
    field(member_of<A>(&A::out_layout), "out_layout", "",
          "order and split of the output's axes; empty: as data_layout");
    field(member_of<A>(&A::out_dtype), "out_dtype", std::nullopt, "dtype of sums and output; None: as the data's");
  }
};

// Errors: TypeMismatch, TypeAttribute as the type relation finds.
template <int Rank>
ir::Expr conv_transpose(ir::Expr data, ir::Expr weight, std::shared_ptr<ConvTransposeAttrs<Rank>> attrs,
                        Span span = nullptr);

}  // namespace treadle::op
