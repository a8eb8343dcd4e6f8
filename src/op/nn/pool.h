// SPDX-License-Identifier: Apache-2.0
// Pooling: nn.max_pool{1,2,3}d, nn.avg_pool{1,2,3}d, nn.global_*_pool2d, nn.adaptive_*_pool{1,2,3}d, nn.*_pool2d_grad.
//
//   max_pool   y[n, c, p] = max over k of x[n, c, p*strides + k*dilation - padding]; elements outside of x do not count
//   avg_pool   the sum of the same window divided by the number of taps inside of x (count_include_pad: inside of x and
//   its
//              declared padding), at least 1
//   adaptive   window i of an axis covers floor(i*in/out) … ceil((i+1)*in/out) - 1
//   spatial' = floor((spatial + pad_begin + pad_end - dilation*(kernel-1) - 1) / stride) + 1; ceil_mode rounds the
//   quotient up
// The channel axis may lie anywhere and be split (NCHW16c). NaN survives both. In ceil mode a last window that starts
// behind the data is kept, as in TVM: max gives the lowest finite value there, avg 0. Integers are summed in at least
// 32 bits and the quotient is truncated. Source: Relay 0.16.
#pragma once

#include <optional>

#include "op/nn/conv.h"

namespace treadle::op {

struct PoolFields {
  ir::Ints pool_size, strides, dilation, padding;
  std::string layout, out_layout;
  bool ceil_mode;
  bool count_include_pad = false;  // of average pools
};

template <typename A, typename F>
void pool_fields(F& field, size_t rank) {
  field(member_of<A>(&A::pool_size), "pool_size", ir::Required{}, "extents of the window, per spatial axis")
      .at_least(1);
  field(member_of<A>(&A::strides), "strides", ir::Ints(rank, 1), "distance between windows, per spatial axis")
      .at_least(1);
  field(member_of<A>(&A::dilation), "dilation", ir::Ints(rank, 1),
        "distance between taps of the window, per spatial axis")
      .at_least(1);
  field(member_of<A>(&A::padding), "padding", ir::Ints(rank, 0),
        "elements around the data: all sides, per axis, or begins, then ends")
      .at_least(0);
  field(member_of<A>(&A::layout), "layout", std::string("NC") + spatial_letters(static_cast<int>(rank)),
        "order and split of the data's axes");
  field(member_of<A>(&A::out_layout), "out_layout", "", "empty, or the same as layout");
  field(member_of<A>(&A::ceil_mode), "ceil_mode", false, "round the output extent up instead of down");
}

template <int Rank>
struct MaxPoolAttrs : ir::AttrsOf<MaxPoolAttrs<Rank>>, PoolFields {
  template <typename F>
  static void fields(F& field) {
    pool_fields<MaxPoolAttrs>(field, Rank);
  }
};

template <int Rank>
struct AvgPoolAttrs : ir::AttrsOf<AvgPoolAttrs<Rank>>, PoolFields {
  template <typename F>
  static void fields(F& field) {
    using A = AvgPoolAttrs;
    pool_fields<A>(field, Rank);
    field(member_of<A>(&A::count_include_pad), "count_include_pad", false, "taps in the padding count in the divisor");
  }
};

struct GlobalPoolAttrs : ir::AttrsOf<GlobalPoolAttrs> {
  std::string layout, out_layout;

  template <typename F>
  static void fields(F& field) {
    field(&GlobalPoolAttrs::layout, "layout", "NCHW", "order and split of the data's axes");
    field(&GlobalPoolAttrs::out_layout, "out_layout", "", "empty, or the same as layout");
  }
};

struct AdaptiveFields {
  std::optional<ir::Ints> output_size;
  std::string layout, out_layout;
};

template <int Rank>
struct AdaptivePoolAttrs : ir::AttrsOf<AdaptivePoolAttrs<Rank>>, AdaptiveFields {
  template <typename F>
  static void fields(F& field) {
    using A = AdaptivePoolAttrs;
    field(member_of<A>(&A::output_size), "output_size", std::nullopt,
          "output extents, one value for all axes; None: as the data")
        .at_least(1);
    field(member_of<A>(&A::layout), "layout", std::string("NC") + spatial_letters(Rank),
          "order and split of the data's axes");
    field(member_of<A>(&A::out_layout), "out_layout", "", "empty, or the same as layout");
  }
};

// Errors of all: TypeMismatch, TypeAttribute as the type relations find.
template <int Rank>
ir::Expr max_pool(ir::Expr data, std::shared_ptr<MaxPoolAttrs<Rank>> attrs, Span span = nullptr);
template <int Rank>
ir::Expr avg_pool(ir::Expr data, std::shared_ptr<AvgPoolAttrs<Rank>> attrs, Span span = nullptr);
// Over all spatial axes of data in "NC" + spatial layout; `rank` counts these axes.
ir::Expr global_max_pool(ir::Expr data, int rank, Span span = nullptr);
ir::Expr global_avg_pool(ir::Expr data, int rank, Span span = nullptr);

}  // namespace treadle::op
