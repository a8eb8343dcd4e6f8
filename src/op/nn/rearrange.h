// SPDX-License-Identifier: Apache-2.0
// Operators that move elements between channels, batch and space: nn.depth_to_space, nn.space_to_depth,
// nn.space_to_batch_nd, nn.batch_to_space_nd, nn.dilate, nn.fifo_buffer.
//
//   depth_to_space  (N, C, H, W) -> (N, C/b^2, H*b, W*b); from channel (b*(h%b) + w%b)*C' + c (DCR) or c*b^2 + b*(h%b)
//   + w%b (CDR) space_to_depth  (N, C, H, W) -> (N, C*b^2, H/b, W/b); channel (dy*b + dx)*C + c space_to_batch_nd,
//   batch_to_space_nd   the same between the batch and spatial axes 1 … M, block index outermost dilate strides[a]-1
//   fill values between elements along every axis a fifo_buffer     the newest elements of buffer followed by data, as
//   many as the buffer holds
// Source: Relay 0.16.
#pragma once

#include <string>

#include "ir/expr.h"

namespace treadle::op {

// Of depth_to_space and space_to_depth, as TVM's SubPixelAttrs.
struct SubPixelAttrs : ir::AttrsOf<SubPixelAttrs> {
  int64_t block_size;
  std::string layout, mode;

  template <typename F>
  static void fields(F& field) {
    field(&SubPixelAttrs::block_size, "block_size", 1, "factor b between depth and space").at_least(1);
    field(&SubPixelAttrs::layout, "layout", "NCHW", "order of the data's axes").one_of({"NCHW", "NHWC"});
    field(&SubPixelAttrs::mode, "mode", "DCR", "depth_to_space: order of the channels, DCR (depth, column, row) or CDR")
        .one_of({"DCR", "CDR", ""});
  }
};

struct SpaceToBatchAttrs : ir::AttrsOf<SpaceToBatchAttrs> {
  ir::Ints block_shape;
  ir::IntLists paddings;
  double pad_value;

  template <typename F>
  static void fields(F& field) {
    field(&SpaceToBatchAttrs::block_shape, "block_shape", ir::Required{}, "block extents of axes 1, 2, …").at_least(1);
    field(&SpaceToBatchAttrs::paddings, "paddings", ir::Required{},
          "elements before and after, a pair for each of these axes")
        .at_least(0);
    field(&SpaceToBatchAttrs::pad_value, "pad_value", 0.0, "value of the padding");
  }
};

struct BatchToSpaceAttrs : ir::AttrsOf<BatchToSpaceAttrs> {
  ir::Ints block_shape;
  ir::IntLists crops;

  template <typename F>
  static void fields(F& field) {
    field(&BatchToSpaceAttrs::block_shape, "block_shape", ir::Required{}, "block extents of axes 1, 2, …").at_least(1);
    field(&BatchToSpaceAttrs::crops, "crops", ir::Required{},
          "elements cut before and after, a pair for each of these axes")
        .at_least(0);
  }
};

struct DilateAttrs : ir::AttrsOf<DilateAttrs> {
  ir::Ints strides;
  double dilation_value;

  template <typename F>
  static void fields(F& field) {
    field(&DilateAttrs::strides, "strides", ir::Required{}, "distance between elements, for every axis").at_least(1);
    field(&DilateAttrs::dilation_value, "dilation_value", 0.0, "what stands between");
  }
};

struct FifoBufferAttrs : ir::AttrsOf<FifoBufferAttrs> {
  int64_t axis;

  template <typename F>
  static void fields(F& field) {
    field(&FifoBufferAttrs::axis, "axis", ir::Required{}, "axis along which the buffer moves");
  }
};

// Errors: TypeMismatch, TypeAttribute.
ir::Expr depth_to_space(ir::Expr data, int64_t block_size, std::string mode = "DCR", std::string layout = "NCHW",
                        Span span = nullptr);
ir::Expr space_to_depth(ir::Expr data, int64_t block_size, std::string layout = "NCHW", Span span = nullptr);

}  // namespace treadle::op
