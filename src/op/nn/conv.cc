// SPDX-License-Identifier: Apache-2.0
// Type, computation, layouts and scales of convolutions.
#include "op/nn/conv.h"

#include "op/nn/conv_shape.h"

namespace treadle::op {
namespace {

using loop::Expr;

template <int Rank>
const ConvFields& fields_of(const ir::Call& call) {
  return attrs_of<ConvAttrs<Rank>>(call);
}

// ---- Types ----

void conv_relation(ir::Relation& relation, const ConvFields& fields, size_t rank) {
  const TensorType* data = relation.tensor(0);
  if (!data) return;
  const TensorType* weight = relation.tensor(1);
  const std::optional<ConvShape> shape = conv_shape(fields, rank, *data, weight);
  if (!shape) return;
  const DType out_dtype = conv_out_dtype(fields.out_dtype, *data, weight);
  if (!weight) {
    relation.set_input(
        1,
        tensor_type(layout_shape(shape->kernel_layout, shape->kernel, shape->kernel_letters, "weight"), data->dtype));
  }
  relation.set_output(
      tensor_type(layout_shape(shape->out_layout, shape->out, shape->data_letters, "output"), out_dtype));
}

// ---- Computation ----

// How the channels that one output element sums over are walked: which factors split them into reduction axes.
std::vector<int64_t> channel_factors(const ConvShape& shape) {
  std::vector<int64_t> factors = inner_factors(shape.kernel_layout, 'I');
  if (factors.empty()) {
    factors = inner_factors(shape.data_layout, 'C');
    const Dim& channels = shape.kernel[1];
    if (!exact_divide(channels, factor_product(factors))) factors.clear();
  }
  return factors;
}

// The input channel that belongs to channel `i` of the group of output channel `o`.
SplitIndex input_channel(const ConvShape& shape, const SplitIndex& o, const SplitIndex& i) {
  if (shape.groups == 1) return i;
  const Dim out_per_group = floordiv(shape.out_channels(), shape.groups);
  if (shape.depthwise()) {
    if (out_per_group.is(1)) return o;
    return loop::floordiv(o.value(), loop::to_expr(out_per_group));
  }
  const int64_t out_block = factor_product(o.factors);
  const std::optional<Dim> blocks = exact_divide(out_per_group, out_block);
  const Expr group = blocks ? loop::floordiv(o.digits[0], loop::to_expr(*blocks))
                            : loop::floordiv(o.value(), loop::to_expr(out_per_group));
  SplitIndex channel = i;
  const Dim& in_per_group = shape.kernel[1];
  channel.digits[0] = group * loop::to_expr(floordiv(in_per_group, factor_product(i.factors))) + i.digits[0];
  return channel;
}

loop::Tensor conv_compute(const ConvFields& fields, size_t rank, const ir::Call& call,
                          const std::vector<loop::Tensor>& inputs) {
  const auto types = input_types(call);
  const ConvShape shape = *conv_shape(fields, rank, *types[0], types[1]);
  const DType out_dtype = conv_out_dtype(fields.out_dtype, *types[0], types[1]);
  const DType sum_dtype = accumulator_dtype(out_dtype);
  const loop::Tensor& weight = inputs[1];
  const loop::Tensor x =
      pad_spatial(inputs[0], shape.data_layout, shape.spatial, shape.padding, loop::constant(0, inputs[0].dtype()));
  const std::vector<int64_t> factors = channel_factors(shape);
  const bool sums_channels = !shape.depthwise();

  // Reduction axes: blocks of channels, taps, then channels inside a block.
  std::vector<Expr> extents;
  if (sums_channels) extents.push_back(loop::to_expr(floordiv(shape.kernel[1], factor_product(factors))));
  for (size_t s = 0; s < rank; ++s) extents.push_back(loop::to_expr(shape.kernel[2 + s]));
  if (sums_channels) {
    for (int64_t factor : factors) extents.emplace_back(factor);
  }
  const Shape out = layout_shape(shape.out_layout, shape.out, shape.data_letters, "output");
  loop::Tensor y = loop::reduce("conv", loop::to_exprs(out), loop::ReduceOp::Sum, extents,
                                [&](const std::vector<loop::Var>& axes, const std::vector<loop::Var>& k) {
                                  const Indices position = to_indices(axes);
                                  const SplitIndex o = split_index(shape.out_layout, 'C', position);
                                  SplitIndex i = Expr(0);
                                  if (sums_channels) {
                                    i.digits[0] = k[0];
                                    for (size_t f = 0; f < factors.size(); ++f) i.digits.push_back(k[1 + rank + f]);
                                    i.factors = factors;
                                  }
                                  std::map<char, SplitIndex> at_data, at_weight;
                                  at_data['N'] = split_index(shape.out_layout, 'N', position);
                                  at_data['C'] = input_channel(shape, o, i);
                                  at_weight['O'] = o;
                                  at_weight['I'] = i;
                                  if (shape.multiplier_weight) {
                                    at_weight['O'] = at_data['C'];
                                    at_weight['I'] = loop::floormod(o.value(), loop::to_expr(shape.kernel[1]));
                                  }
                                  for (size_t s = 0; s < rank; ++s) {
                                    const char letter = shape.spatial[s];
                                    const Expr& tap = k[(sums_channels ? 1 : 0) + s];
                                    at_data[letter] =
                                        split_index(shape.out_layout, letter, position).digits[0] * shape.strides[s] +
                                        tap * shape.dilation[s];
                                    at_weight[letter] = tap;
                                  }
                                  return loop::cast(x(layout_index(shape.data_layout, at_data)), sum_dtype) *
                                         loop::cast(weight(layout_index(shape.kernel_layout, at_weight)), sum_dtype);
                                });
  return cast_stage(y, out_dtype);
}

// ---- Layouts ----

ir::LayoutAnswer conv_layout(const ConvFields& fields, size_t rank, const ir::LayoutRequest& request) {
  const ConvShape shape = conv_attributes(fields, rank);
  return {{shape.data_layout, shape.kernel_layout}, {shape.out_layout}, request.call.attrs};
}

// The largest of the target's vector of `bytes`-byte elements, its half and its quarter that divides `extent`; 0 when
// none does.
int64_t block_for(const Target& target, size_t bytes, const Dim& extent) {
  const int64_t lanes = target.lanes(static_cast<int>(bytes));
  for (int64_t block : {lanes, lanes / 2, lanes / 4}) {
    if (block > 1 && extent.is_const() && extent.value() % block == 0) return block;
  }
  return 0;
}

// Activations in NCHW{b}c, weights in OIHW{i}i{o}o: one vector of output channels is contiguous, so that a kernel
// broadcasts an input element and multiplies it with a vector of weights.
//   groups = 1   data NCHW{bi}c (NCHW when no block divides C: first layers)  weight OIHW{bi}i{bo}o  output NCHW{bo}c
//   depthwise    all in one block: NCHW{b}c, OIHW{b}o
//   grouped      one block that divides the channels of a group on both sides
// Not: other data layouts than NCHW, weights that are computed while the model runs.
std::optional<ir::Alternative> conv2d_alter(const ir::Call& call, const Target& target) {
  const ConvFields& fields = fields_of<2>(call);
  const bool plain = fields.data_layout == "NCHW" && fields.kernel_layout == "OIHW" &&
                     (fields.out_layout.empty() || fields.out_layout == "NCHW");
  if (!plain || !is_constant_expression(call.args[1])) return std::nullopt;
  const auto types = input_types(call);
  if (!types[0]->dtype.is_float() || types[0]->dtype.bits > 32) return std::nullopt;
  const ConvShape shape = *conv_shape(fields, 2, *types[0], types[1]);
  if (shape.multiplier_weight) return std::nullopt;

  constexpr size_t kLaneBytes = 4;  // halves are summed in float32
  std::string data = "NCHW", kernel, out;
  if (shape.depthwise()) {
    const int64_t block = block_for(target, kLaneBytes, shape.in_channels());
    if (!block || !(shape.in_channels() == shape.out_channels())) return std::nullopt;
    data = out = fmt::format("NCHW{}c", block);
    kernel = fmt::format("OIHW{}o", block);
  } else if (shape.groups == 1) {
    const int64_t out_block = block_for(target, kLaneBytes, shape.out_channels());
    if (!out_block) return std::nullopt;
    const int64_t in_block = block_for(target, kLaneBytes, shape.in_channels());
    out = fmt::format("NCHW{}c", out_block);
    if (in_block) data = fmt::format("NCHW{}c", in_block);
    kernel = in_block ? fmt::format("OIHW{}i{}o", in_block, out_block) : fmt::format("OIHW{}o", out_block);
  } else {
    const int64_t in_block = block_for(target, kLaneBytes, shape.kernel[1]);
    const int64_t out_block = block_for(target, kLaneBytes, floordiv(shape.out_channels(), shape.groups));
    if (!in_block || !out_block) return std::nullopt;
    data = fmt::format("NCHW{}c", in_block);
    out = fmt::format("NCHW{}c", out_block);
    kernel = fmt::format("OIHW{}i{}o", in_block, out_block);
  }
  auto attrs = std::make_shared<Conv2DAttrs>(attrs_of<Conv2DAttrs>(call));
  attrs->data_layout = data;
  attrs->kernel_layout = kernel;
  attrs->out_layout = out;
  ir::Alternative result;
  result.op = call.op();
  result.attrs = attrs;
  result.inputs_old = {Layout("NCHW"), Layout("OIHW")};
  result.inputs = {Layout(data), Layout(kernel)};
  result.outputs_old = {Layout("NCHW")};
  result.outputs = {Layout(out)};
  return result;
}

// ---- Scales ----

// A factor of input channel c moves to axis I of the weight, one of output channel o to axis O; not into split axes.
template <int Rank>
ir::ScaleRule conv_scale() {
  const auto axis_of = [](const std::string& layout, char letter) {
    return static_cast<int>(unsplit_axis(Layout(layout), Layout(layout).primal().index_of(letter)));
  };
  ir::ScaleRule rule;
  rule.weight = 1;
  rule.data_axis = [=](const ir::Call& call) { return axis_of(fields_of<Rank>(call).data_layout, 'C'); };
  rule.weight_in_axis = [=](const ir::Call& call) {
    const ConvFields& fields = fields_of<Rank>(call);
    const auto types = input_types(call);
    const ConvShape shape = *conv_shape(fields, Rank, *types[0], types[1]);
    if (shape.groups == 1) return axis_of(fields.kernel_layout, 'I');
    // Depthwise: axis O counts input channels too, when there is one output channel for each.
    const bool one_to_one = shape.depthwise() && (shape.multiplier_weight || shape.kernel[0] == shape.in_channels());
    return one_to_one ? axis_of(fields.kernel_layout, 'O') : -1;
  };
  rule.out_axis = [=](const ir::Call& call) {
    const ConvFields& fields = fields_of<Rank>(call);
    return axis_of(fields.out_layout.empty() ? fields.data_layout : fields.out_layout, 'C');
  };
  rule.weight_out_axis = [=](const ir::Call& call) {
    const ConvFields& fields = fields_of<Rank>(call);
    const auto types = input_types(call);
    if (conv_shape(fields, Rank, *types[0], types[1])->multiplier_weight) return -1;
    return axis_of(fields.kernel_layout, 'O');
  };
  return rule;
}

// ---- Registration ----

template <int Rank>
ir::OpBuilder add_conv(ir::OpRegistry& registry, const std::string& name, const std::string& shapes) {
  ir::OpBuilder builder = registry.add<ConvAttrs<Rank>>(name, "nn/conv");
  builder
      .formula(
          "y[n, o, p] = sum over i, k of x[n, g*(C/G) + i, p*strides + k*dilation - padding] * w[o, i, k],  g = o / "
          "(O/G)")
      .source("Relay 0.16")
      .input("data", shapes.substr(0, shapes.find(';')))
      .input("weight", shapes.substr(shapes.find(';') + 2))
      .fusion(ir::FusionKind::OutFusable)
      .traits(ir::kReadsZeroOutside | ir::kLinearInData)
      .mixed_precision(ir::MixedPrecision::Always)
      .relation([](ir::Relation& relation) { conv_relation(relation, relation.attrs<ConvAttrs<Rank>>(), Rank); })
      .compute([](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
        return std::vector<loop::Tensor>{conv_compute(fields_of<Rank>(call), Rank, call, inputs)};
      })
      .layout(
          [](const ir::LayoutRequest& request) { return conv_layout(fields_of<Rank>(request.call), Rank, request); })
      .scale(conv_scale<Rank>());
  return builder;
}

template <int Rank>
ir::Expr make_conv(std::string_view name, ir::Expr data, ir::Expr weight, ir::AttrsRef attrs, Span span) {
  return ir::call(&ir::OpRegistry::instance().get(name), {std::move(data), std::move(weight)}, std::move(attrs),
                  std::move(span));
}

}  // namespace

ir::Expr conv1d(ir::Expr data, ir::Expr weight, std::shared_ptr<Conv1DAttrs> attrs, Span span) {
  return make_conv<1>("nn.conv1d", std::move(data), std::move(weight), std::move(attrs), std::move(span));
}
ir::Expr conv2d(ir::Expr data, ir::Expr weight, std::shared_ptr<Conv2DAttrs> attrs, Span span) {
  return make_conv<2>("nn.conv2d", std::move(data), std::move(weight), std::move(attrs), std::move(span));
}
ir::Expr conv3d(ir::Expr data, ir::Expr weight, std::shared_ptr<Conv3DAttrs> attrs, Span span) {
  return make_conv<3>("nn.conv3d", std::move(data), std::move(weight), std::move(attrs), std::move(span));
}

void register_nn_conv(ir::OpRegistry& registry) {
  add_conv<1>(registry, "nn.conv1d", "(N, C, W); (O, C/groups, kw)")
      .summary("1-D convolution, of any groups, dilation and layout.");
  add_conv<2>(registry, "nn.conv2d", "(N, C, H, W); (O, C/groups, kh, kw)")
      .summary("2-D convolution, of any groups, dilation and layout.")
      .alter(conv2d_alter);
  add_conv<3>(registry, "nn.conv3d", "(N, C, D, H, W); (O, C/groups, kd, kh, kw)")
      .summary("3-D convolution, of any groups, dilation and layout.");
  add_conv<2>(registry, "nn.contrib_conv2d_NCHWc", "(N, C/c, H, W, c); (O/o, C/groups/i, kh, kw, i, o)")
      .summary("2-D convolution of blocked tensors; the same as nn.conv2d with these layouts.");
  add_conv<2>(registry, "nn.contrib_depthwise_conv2d_NCHWc", "(N, C/c, H, W, c); (C/c, 1, kh, kw, 1, c)")
      .summary("Depthwise 2-D convolution of blocked tensors; the same as nn.conv2d with these layouts.");
}

}  // namespace treadle::op
