// SPDX-License-Identifier: Apache-2.0
// Type and computation of transposed convolutions.
//
// The computation gathers: the input is spread out (strides - 1 zeros between elements) and framed, and a convolution
// of stride 1 with the kernel read backwards runs over it.
#include "op/nn/conv_transpose.h"

#include "op/nn/conv_shape.h"

namespace treadle::op {
namespace {

using loop::Expr;

struct TransposeShape {
  ConvShape base;  // strides, padding, layouts; kernel is (C, O/G, spatial…) and out the result
  ir::Ints output_padding;
  std::string kernel_letters;
};

TransposeShape transpose_attributes(const ConvTransposeFields& fields, size_t rank) {
  TransposeShape result;
  result.base = conv_attributes(fields, rank);
  result.kernel_letters = "IO" + result.base.spatial;
  result.output_padding = normalise_per_axis(fields.output_padding, rank, "output_padding");
  for (size_t s = 0; s < rank; ++s) {
    if (result.output_padding[s] < 0 ||
        result.output_padding[s] >= std::max(result.base.strides[s], result.base.dilation[s])) {
      fail(ErrorCode::TypeAttribute,
           "output_padding {} along {} must lie between 0 and the stride {} (or dilation {}), exclusive",
           result.output_padding[s], result.base.spatial[s], result.base.strides[s], result.base.dilation[s]);
    }
  }
  return result;
}

// nullopt when the weight is not known and cannot be derived.
std::optional<TransposeShape> transpose_shape(const ConvTransposeFields& fields, size_t rank, const TensorType& data,
                                              const TensorType* weight) {
  TransposeShape result = transpose_attributes(fields, rank);
  ConvShape& shape = result.base;
  shape.data = primal_shape(shape.data_layout, data.shape, shape.data_letters, "data");
  const Dim& channels = shape.data[1];
  if (!assume_divides(shape.groups, channels)) {
    fail(ErrorCode::TypeMismatch, "groups={} does not divide the {} input channels", shape.groups, to_string(channels));
  }
  if (weight) {
    shape.kernel = primal_shape(shape.kernel_layout, weight->shape, result.kernel_letters, "weight");
  } else {
    if (!fields.channels || !fields.kernel_size) return std::nullopt;
    if (*fields.channels % shape.groups != 0) {
      fail(ErrorCode::TypeMismatch, "groups={} does not divide the {} output channels", shape.groups, *fields.channels);
    }
    shape.kernel = {channels, *fields.channels / shape.groups};
    for (int64_t extent : normalise_per_axis(*fields.kernel_size, rank, "kernel_size"))
      shape.kernel.emplace_back(extent);
  }
  if (!assume_equal(channels, shape.kernel[0])) {
    fail(ErrorCode::TypeMismatch, "input has {} channels but axis I of the weight has extent {}", to_string(channels),
         to_string(shape.kernel[0]));
  }
  const Dim out_channels = shape.kernel[1] * shape.groups;
  if (fields.channels && !assume_equal(out_channels, *fields.channels)) {
    fail(ErrorCode::TypeMismatch, "weight gives {} output channels (groups={}) but channels is {}",
         to_string(out_channels), shape.groups, *fields.channels);
  }
  shape.out = {shape.data[0], out_channels};
  const ir::Ints sizes = fields.kernel_size ? normalise_per_axis(*fields.kernel_size, rank, "kernel_size") : ir::Ints();
  for (size_t s = 0; s < rank; ++s) {
    const Dim& kernel = shape.kernel[2 + s];
    if (!sizes.empty() && !assume_equal(kernel, sizes[s])) {
      fail(ErrorCode::TypeMismatch, "weight has extent {} along {} but kernel_size is {}", to_string(kernel),
           shape.spatial[s], sizes[s]);
    }
    const Dim extent = (shape.data[2 + s] - 1) * shape.strides[s] + dilated_extent(kernel, shape.dilation[s]) -
                       shape.padding.begin[s] - shape.padding.end[s] + result.output_padding[s];
    if (extent.is_const() && extent.value() < 0) {
      fail(ErrorCode::TypeMismatch,
           "axis {}: the output extent is {} (input {}, stride {}, kernel {}, padding {} and {})", shape.spatial[s],
           extent.value(), to_string(shape.data[2 + s]), shape.strides[s], to_string(kernel), shape.padding.begin[s],
           shape.padding.end[s]);
    }
    shape.out.push_back(extent);
  }
  return result;
}

void transpose_relation(ir::Relation& relation, const ConvTransposeFields& fields, size_t rank) {
  const TensorType* data = relation.tensor(0);
  if (!data) return;
  const TensorType* weight = relation.tensor(1);
  const std::optional<TransposeShape> result = transpose_shape(fields, rank, *data, weight);
  if (!result) return;
  const ConvShape& shape = result->base;
  const DType out_dtype = conv_out_dtype(fields.out_dtype, *data, weight);
  if (!weight) {
    relation.set_input(
        1, tensor_type(layout_shape(shape.kernel_layout, shape.kernel, result->kernel_letters, "weight"), data->dtype));
  }
  relation.set_output(tensor_type(layout_shape(shape.out_layout, shape.out, shape.data_letters, "output"), out_dtype));
}

// The input spread by the strides and framed so that a stride-1 window over it gives the output: extent out + span - 1
// per axis.
loop::Tensor spread(const loop::Tensor& x, const ConvShape& shape) {
  const size_t rank = shape.rank();
  std::vector<Expr> extents = x.shape();
  std::vector<Dim> lead;  // zeros in front; negative when the padding cuts into the input
  for (size_t s = 0; s < rank; ++s) {
    const Dim span = dilated_extent(shape.kernel[2 + s], shape.dilation[s]);
    extents[static_cast<size_t>(shape.data_layout.index_of(shape.spatial[s]))] =
        loop::to_expr(shape.out[2 + s] + span - 1);
    lead.push_back(span - 1 - shape.padding.begin[s]);
  }
  return loop::compute("spread", extents, [&](const std::vector<loop::Var>& axes) {
    Indices source = to_indices(axes);
    Expr inside = loop::bool_imm(true);
    for (size_t s = 0; s < rank; ++s) {
      Expr& index = source[static_cast<size_t>(shape.data_layout.index_of(shape.spatial[s]))];
      const Expr offset = index - loop::to_expr(lead[s]);
      const Expr stride = shape.strides[s];
      inside = inside && offset >= Expr(0) && offset < (loop::to_expr(shape.data[2 + s]) - Expr(1)) * stride + Expr(1);
      if (shape.strides[s] != 1) inside = inside && loop::floormod(offset, stride) == Expr(0);
      index = loop::floordiv(offset, stride);
    }
    return loop::select(inside, x(source), loop::constant(0, x.dtype()));
  });
}

loop::Tensor transpose_compute(const ConvTransposeFields& fields, size_t rank, const ir::Call& call,
                               const std::vector<loop::Tensor>& inputs) {
  const auto types = input_types(call);
  const ConvShape shape = transpose_shape(fields, rank, *types[0], types[1])->base;
  const DType out_dtype = conv_out_dtype(fields.out_dtype, *types[0], types[1]);
  const DType sum_dtype = accumulator_dtype(out_dtype);
  const loop::Tensor x = spread(inputs[0], shape);
  const loop::Tensor& weight = inputs[1];
  const Dim in_per_group = floordiv(shape.data[1], shape.groups);
  std::vector<int64_t> factors = inner_factors(shape.data_layout, 'C');
  if (!exact_divide(in_per_group, factor_product(factors))) factors.clear();

  std::vector<Expr> extents{loop::to_expr(floordiv(in_per_group, factor_product(factors)))};
  for (size_t s = 0; s < rank; ++s) extents.push_back(loop::to_expr(shape.kernel[2 + s]));
  for (int64_t factor : factors) extents.emplace_back(factor);
  const Shape out = layout_shape(shape.out_layout, shape.out, shape.data_letters, "output");
  loop::Tensor y = loop::reduce(
      "conv_transpose", loop::to_exprs(out), loop::ReduceOp::Sum, extents,
      [&](const std::vector<loop::Var>& axes, const std::vector<loop::Var>& k) {
        const Indices position = to_indices(axes);
        const SplitIndex o = split_index(shape.out_layout, 'C', position);
        SplitIndex i = Expr(k[0]);
        for (size_t f = 0; f < factors.size(); ++f) i.digits.push_back(k[1 + rank + f]);
        i.factors = factors;
        SplitIndex out_in_group = o;
        if (shape.groups != 1) {
          const Expr per_group = loop::to_expr(shape.kernel[1]);
          const Expr group = loop::floordiv(o.value(), per_group);
          out_in_group = loop::floormod(o.value(), per_group);
          i.digits[0] = group * extents[0] + i.digits[0];
        }
        std::map<char, SplitIndex> at_data{{'N', split_index(shape.out_layout, 'N', position)}, {'C', i}};
        std::map<char, SplitIndex> at_weight{{'I', i}, {'O', out_in_group}};
        for (size_t s = 0; s < rank; ++s) {
          const char letter = shape.spatial[s];
          const Expr& tap = k[1 + s];
          at_data[letter] = split_index(shape.out_layout, letter, position).digits[0] + tap * shape.dilation[s];
          at_weight[letter] = extents[1 + s] - Expr(1) - tap;
        }
        return loop::cast(x(layout_index(shape.data_layout, at_data)), sum_dtype) *
               loop::cast(weight(layout_index(shape.kernel_layout, at_weight)), sum_dtype);
      });
  return cast_stage(y, out_dtype);
}

template <int Rank>
const ConvTransposeFields& fields_of(const ir::Call& call) {
  return attrs_of<ConvTransposeAttrs<Rank>>(call);
}

template <int Rank>
void add_transpose(ir::OpRegistry& registry, const std::string& name, const std::string& data,
                   const std::string& weight) {
  registry.add<ConvTransposeAttrs<Rank>>(name, "nn/conv_transpose")
      .summary(
          fmt::format("{}-D transposed convolution (fractionally strided), of any groups, dilation and layout.", Rank))
      .formula(
          "y[n, o, q] = sum of x[n, c, p] * w[c, o mod (O/G), k] over c in the group of o and p, k with q = p*strides "
          "+ k*dilation - padding")
      .source("Relay 0.16")
      .input("data", data)
      .input("weight", weight)
      .fusion(ir::FusionKind::OutFusable)
      .traits(ir::kLinearInData)
      .mixed_precision(ir::MixedPrecision::Always)
      .relation([](ir::Relation& relation) {
        transpose_relation(relation, relation.attrs<ConvTransposeAttrs<Rank>>(), Rank);
      })
      .compute([](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
        return std::vector<loop::Tensor>{transpose_compute(fields_of<Rank>(call), Rank, call, inputs)};
      })
      .layout([](const ir::LayoutRequest& request) -> ir::LayoutAnswer {
        const ConvShape shape = conv_attributes(fields_of<Rank>(request.call), Rank);
        return {{shape.data_layout, shape.kernel_layout}, {shape.out_layout}, request.call.attrs};
      });
}

}  // namespace

template <int Rank>
ir::Expr conv_transpose(ir::Expr data, ir::Expr weight, std::shared_ptr<ConvTransposeAttrs<Rank>> attrs, Span span) {
  static const ir::Op& op = ir::OpRegistry::instance().get(fmt::format("nn.conv{}d_transpose", Rank));
  return ir::call(&op, {std::move(data), std::move(weight)}, std::move(attrs), std::move(span));
}
template ir::Expr conv_transpose<1>(ir::Expr, ir::Expr, std::shared_ptr<ConvTransposeAttrs<1>>, Span);
template ir::Expr conv_transpose<2>(ir::Expr, ir::Expr, std::shared_ptr<ConvTransposeAttrs<2>>, Span);
template ir::Expr conv_transpose<3>(ir::Expr, ir::Expr, std::shared_ptr<ConvTransposeAttrs<3>>, Span);

void register_nn_conv_transpose(ir::OpRegistry& registry) {
  add_transpose<1>(registry, "nn.conv1d_transpose", "(N, C, W)", "(C, O/groups, kw)");
  add_transpose<2>(registry, "nn.conv2d_transpose", "(N, C, H, W)", "(C, O/groups, kh, kw)");
  add_transpose<3>(registry, "nn.conv3d_transpose", "(N, C, D, H, W)", "(C, O/groups, kd, kh, kw)");
}

}  // namespace treadle::op
