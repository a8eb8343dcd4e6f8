// SPDX-License-Identifier: Apache-2.0
#include "op/nn/deformable_conv.h"

#include "op/nn/conv_shape.h"

namespace treadle::op {
namespace {

using loop::Expr;

struct DeformableShape {
  ConvShape conv;
  Shape offset;  // in the order NCHW
};

std::optional<DeformableShape> deformable_shape(const DeformableConv2DAttrs& attrs, const TensorType& data,
                                                const TensorType* weight) {
  const std::optional<ConvShape> conv = conv_shape(attrs, 2, data, weight);
  if (!conv) return std::nullopt;
  if (!(conv->out_layout == conv->data_layout))
    fail(ErrorCode::TypeAttribute, "out_layout {} differs from data_layout {}", attrs.out_layout, attrs.data_layout);
  if (conv->data_layout.rank() != 4 || conv->kernel_layout.rank() != 4)
    fail(ErrorCode::TypeAttribute, "split layouts are not supported");
  const Dim& channels = conv->in_channels();
  if (attrs.deformable_groups < 1 || !assume_divides(attrs.deformable_groups, channels)) {
    fail(ErrorCode::TypeMismatch, "deformable_groups={} does not divide the {} input channels", attrs.deformable_groups,
         to_string(channels));
  }
  if (conv->multiplier_weight)
    fail(ErrorCode::TypeMismatch, "a depthwise weight must have axis I of extent 1, not {}",
         to_string(conv->kernel[1]));
  DeformableShape shape{*conv,
                        {conv->data[0], conv->kernel[2] * conv->kernel[3] * Dim(2) * Dim(attrs.deformable_groups),
                         conv->out[2], conv->out[3]}};
  return shape;
}

void deformable_relation(ir::Relation& relation) {
  const auto& attrs = relation.attrs<DeformableConv2DAttrs>();
  const TensorType* data = relation.tensor(0);
  if (!data) return;
  const TensorType* weight = relation.tensor(2);
  const std::optional<DeformableShape> shape = deformable_shape(attrs, *data, weight);
  if (!shape) return;
  const ConvShape& conv = shape->conv;
  const DType out_dtype = conv_out_dtype(attrs.out_dtype, *data, weight);
  if (!data->dtype.is_float())
    fail(ErrorCode::TypeMismatch, "data is {}, it must be of a float dtype", to_string(data->dtype));
  if (!weight)
    relation.set_input(
        2, tensor_type(layout_shape(conv.kernel_layout, conv.kernel, conv.kernel_letters, "weight"), data->dtype));
  const Type offset =
      tensor_type(layout_shape(conv.data_layout, shape->offset, conv.data_letters, "offset"), data->dtype);
  if (!relation.tensor(1)) {
    relation.set_input(1, offset);
  } else if (!assume_same(relation.input(1), offset)) {
    fail(ErrorCode::TypeMismatch, "offset is {}, it must be {}", to_string(relation.input(1)), to_string(offset));
  }
  relation.set_output(tensor_type(layout_shape(conv.out_layout, conv.out, conv.data_letters, "output"), out_dtype));
}

// The element of a 4-D tensor in `layout` at (n, c, h, w).
Expr element(const loop::Tensor& x, const Layout& layout, const Expr& n, const Expr& c, const Expr& h, const Expr& w) {
  return x(layout_index(layout, {{'N', n}, {'C', c}, {'H', h}, {'W', w}}));
}

// x[n, c] between elements, at (h, w); both of the coordinates' dtype.
Expr sample(const loop::Tensor& x, const ConvShape& shape, const Expr& n, const Expr& c, const Expr& h, const Expr& w) {
  const DType dtype = h.dtype();
  const Expr height = loop::to_expr(shape.data[2]), width = loop::to_expr(shape.data[3]),
             zero = loop::constant(0, dtype);
  const Expr inside = h >= zero && h < loop::cast(height, dtype) && w >= zero && w < loop::cast(width, dtype);
  const Expr h_floor = loop::intrinsic(loop::Intrinsic::Floor, {h}),
             w_floor = loop::intrinsic(loop::Intrinsic::Floor, {w});
  const Expr dh = h - h_floor, dw = w - w_floor, one = loop::constant(1, dtype);
  const Expr row = loop::cast(h_floor, dtype::int64_), column = loop::cast(w_floor, dtype::int64_);
  // `inside` bounds the upper left corner; the others may lie behind the end.
  const auto corner = [&](int64_t i, int64_t j) {
    Expr exists = loop::bool_imm(true);
    if (i != 0) exists = exists && row + i < height;
    if (j != 0) exists = exists && column + j < width;
    return loop::select(exists, loop::cast(element(x, shape.data_layout, n, c, row + i, column + j), dtype), zero);
  };
  const Expr top = corner(0, 0) * (one - dw) + corner(0, 1) * dw,
             bottom = corner(1, 0) * (one - dw) + corner(1, 1) * dw;
  return loop::select(inside, top * (one - dh) + bottom * dh, zero);
}

std::vector<loop::Tensor> deformable_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<DeformableConv2DAttrs>(call);
  const auto types = input_types(call);
  const ConvShape shape = deformable_shape(attrs, *types[0], types[2])->conv;
  const DType out_dtype = conv_out_dtype(attrs.out_dtype, *types[0], types[2]),
              sum_dtype = accumulator_dtype(out_dtype);
  const DType coordinates = accumulator_dtype(types[0]->dtype);
  const loop::Tensor &x = inputs[0], &offset = inputs[1], &weight = inputs[2];
  const Expr kh = loop::to_expr(shape.kernel[2]), kw = loop::to_expr(shape.kernel[3]);
  const Expr channels = loop::to_expr(shape.in_channels()),
             per_offset = loop::to_expr(floordiv(shape.in_channels(), attrs.deformable_groups));
  // Every tap of every output position, sampled: (N, C, kh, kw, H', W').
  const std::vector<Expr> extents{loop::to_expr(shape.data[0]), channels, kh, kw, loop::to_expr(shape.out[2]),
                                  loop::to_expr(shape.out[3])};
  const loop::Tensor sampled = loop::compute("sampled", extents, [&](const std::vector<loop::Var>& i) {
    const Expr channel = Expr(2) * (loop::floordiv(i[1], per_offset) * kh * kw + i[2] * kw + i[3]);
    const auto moved = [&](size_t s, const Expr& which) {
      const Expr base = i[4 + s] * shape.strides[s] + i[2 + s] * shape.dilation[s] - shape.padding.begin[s];
      return loop::cast(base, coordinates) +
             loop::cast(element(offset, shape.data_layout, i[0], which, i[4], i[5]), coordinates);
    };
    return sample(x, shape, i[0], i[1], moved(0, channel), moved(1, channel + Expr(1)));
  });
  const Expr out_per_group = loop::to_expr(floordiv(shape.out_channels(), shape.groups)),
             in_per_group = loop::to_expr(shape.kernel[1]);
  const loop::Tensor y = loop::reduce(
      "conv", loop::to_exprs(output_shape(call)), loop::ReduceOp::Sum, {in_per_group, kh, kw},
      [&](const std::vector<loop::Var>& axes, const std::vector<loop::Var>& k) {
        const Indices p = to_indices(axes);
        const auto at = [&](char letter) { return split_index(shape.out_layout, letter, p).digits[0]; };
        const Expr o = at('C'),
                   c = shape.groups == 1 ? Expr(k[0]) : loop::floordiv(o, out_per_group) * in_per_group + k[0];
        const Expr w = weight(
            layout_index(shape.kernel_layout, {{'O', o}, {'I', Expr(k[0])}, {'H', Expr(k[1])}, {'W', Expr(k[2])}}));
        return loop::cast(sampled(at('N'), c, k[1], k[2], at('H'), at('W')), sum_dtype) * loop::cast(w, sum_dtype);
      });
  return {cast_stage(y, out_dtype)};
}

}  // namespace

void register_nn_deformable_conv(ir::OpRegistry& registry) {
  registry.add<DeformableConv2DAttrs>("nn.deformable_conv2d", "nn/deformable_conv")
      .summary("2-D convolution whose taps are moved by offsets, sampled bilinearly.")
      .formula(
          "y[n, o, p, q] = sum over c, i, j of sample(x[n, c], p*sh + i*dh - pt + oy, q*sw + j*dw - pl + ox) * w[o, c, "
          "i, j]")
      .source("Relay 0.16, with groups; Dai and others 2017")
      .input("data", "(N, C, H, W)")
      .input("offset", "(N, 2*kh*kw*deformable_groups, H', W')")
      .input("weight", "(O, C/groups, kh, kw)")
      .fusion(ir::FusionKind::OutFusable)
      .relation(deformable_relation)
      .compute(deformable_compute)
      .layout([](const ir::LayoutRequest& request) -> ir::LayoutAnswer {
        const ConvShape shape = conv_attributes(attrs_of<DeformableConv2DAttrs>(request.call), 2);
        return {{shape.data_layout, shape.data_layout, shape.kernel_layout}, {shape.data_layout}, request.call.attrs};
      });
}

}  // namespace treadle::op
