// SPDX-License-Identifier: Apache-2.0
// Moves a per-channel scale into the weights of the convolution or dense layer beside it.
//
//   backward   multiply(nn.conv2d(%x, w), s)            =>   nn.conv2d(%x, w * s)          s along the output's
//   channels
//              multiply(add(nn.conv2d(%x, w), b), s)    =>   add(nn.conv2d(%x, w * s), b * s)
//              multiply(nn.relu(nn.conv2d(%x, w)), s)   =>   nn.relu(nn.conv2d(%x, w * s))  only if every element of s
//              > 0
//   forward    nn.conv2d(multiply(%x, s), w)            =>   nn.conv2d(%x, w * s)          s along the data's channels
//
// When:   scale and weight are constants, the scaled value has one user, and the operator has a ScaleRule that names
// the axes. Not:    grouped convolutions forward (their rule says so); a scale along other axes. Values: products are
// rounded once in the weight instead of once in the result: at most 1 ULP per term.
#include "op/tensor/binary.h"
#include "op/tensor/reshape.h"
#include "pass/passes.h"
#include "pass/rewriter.h"

namespace treadle::pass {
namespace {

using ir::Expr;

constexpr int kMaxChain = 8;  // operators between the scale and the layer that takes it

// A constant that varies along one axis (counted from the front of a tensor of `rank` axes), as a vector; or a single
// number (axis -1).
struct ChannelScale {
  int axis;
  Tensor values;  // 1-d
};

std::optional<ChannelScale> channel_scale(const Expr& expr, size_t rank) {
  const auto* constant = expr.as<ir::Constant>();
  if (!constant || !constant->value.dtype().is_float() || constant->value.shape().size() > rank) return std::nullopt;
  const std::vector<int64_t>& shape = constant->value.shape();
  int axis = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (axis >= 0) return std::nullopt;
    axis = static_cast<int>(i + rank - shape.size());
  }
  return ChannelScale{axis, constant->value.reshaped({constant->value.size()})};
}

bool all_positive(const Tensor& values) {
  for (int64_t i = 0; i < values.size(); ++i) {
    if (!(values.at(i) > 0)) return false;
  }
  return true;
}

// The scale's values along `axis` of a tensor of `rank` axes.
Expr along_axis(const ChannelScale& scale, int axis, size_t rank) {
  std::vector<int64_t> shape(rank, 1);
  if (scale.axis >= 0) shape[axis] = scale.values.size();
  return ir::constant(scale.values.reshaped(std::move(shape)));
}

class Folder {
 public:
  explicit Folder(const RewriteInfo& info) : info_(info) {}

  Expr backward(const ir::Call& multiply, const Expr& expr) {
    if (!multiply.op()->has(ir::kMultiplyLike) || !as_tensor(expr.type())) return Expr();
    const int scale_arg = multiply.args[1].as<ir::Constant>() ? 1 : multiply.args[0].as<ir::Constant>() ? 0 : -1;
    if (scale_arg < 0) return Expr();
    const Expr& data = multiply.args[1 - scale_arg];
    if (!as_tensor(data.type()) || !equal(data.type(), expr.type())) return Expr();
    std::optional<ChannelScale> scale = channel_scale(multiply.args[scale_arg], data.tensor_type().shape.size());
    return scale ? push_backward(data, *scale, 0) : Expr();
  }

  Expr forward(const ir::Call& layer) {
    if (!layer.op()->scale || !info_.single_use(layer.args[0])) return Expr();
    const ir::ScaleRule& rule = *layer.op()->scale;
    const ir::Call* multiply = op_call(layer.args[0]);
    if (!multiply || !multiply->op()->has(ir::kMultiplyLike)) return Expr();
    const int scale_arg = multiply->args[1].as<ir::Constant>() ? 1 : multiply->args[0].as<ir::Constant>() ? 0 : -1;
    if (scale_arg < 0 || !equal(multiply->args[1 - scale_arg].type(), layer.args[0].type())) return Expr();
    std::optional<ChannelScale> scale =
        channel_scale(multiply->args[scale_arg], layer.args[0].tensor_type().shape.size());
    if (!scale) return Expr();
    const int weight_axis = rule.weight_in_axis(layer);
    if (scale->axis >= 0 && (weight_axis < 0 || scale->axis != rule.data_axis(layer))) return Expr();
    Expr scaled = scaled_weight(layer, *scale, weight_axis);
    if (!scaled.defined()) return Expr();
    std::vector<Expr> args = layer.args;
    args[0] = multiply->args[1 - scale_arg];
    args[rule.weight] = scaled;
    return ir::call(layer.op(), std::move(args), layer.attrs, layer.span);
  }

 private:
  // `value` with every channel multiplied by the scale, moved into a layer's weight; undefined when it cannot move.
  Expr push_backward(const Expr& value, const ChannelScale& scale, int depth) {
    const ir::Call* call = op_call(value);
    if (!call || depth > kMaxChain || !info_.single_use(value)) return Expr();
    const ir::Op& op = *call->op();
    if (op.scale) return into_layer(*call, scale);
    if (op.has(ir::kAddLike)) return through_addition(*call, value, scale, depth);
    const bool commutes = op.has(ir::kPositiveScaleCommutes) && call->args.size() == 1 && all_positive(scale.values);
    if (!commutes || !as_tensor(call->args[0].type()) ||
        as_tensor(call->args[0].type())->shape.size() != value.tensor_type().shape.size())
      return Expr();
    Expr inner = push_backward(call->args[0], scale, depth + 1);
    return inner.defined() ? ir::call(call->op(), {inner}, call->attrs, call->span) : Expr();
  }

  Expr into_layer(const ir::Call& layer, const ChannelScale& scale) {
    const ir::ScaleRule& rule = *layer.op()->scale;
    const int weight_axis = rule.weight_out_axis(layer);
    if (weight_axis < 0 || (scale.axis >= 0 && scale.axis != rule.out_axis(layer))) return Expr();
    Expr scaled = scaled_weight(layer, scale, weight_axis);
    if (!scaled.defined()) return Expr();
    std::vector<Expr> args = layer.args;
    args[rule.weight] = scaled;
    return ir::call(layer.op(), std::move(args), layer.attrs, layer.span);
  }

  Expr through_addition(const ir::Call& add, const Expr& value, const ChannelScale& scale, int depth) {
    for (int data = 0; data < 2; ++data) {
      const auto* constant = add.args[1 - data].as<ir::Constant>();
      if (!constant || !equal(add.args[data].type(), value.type())) continue;
      Expr inner = push_backward(add.args[data], scale, depth + 1);
      if (!inner.defined()) continue;
      const size_t rank = value.tensor_type().shape.size();
      return op::add(inner, op::multiply(add.args[1 - data], along_axis(scale, std::max(scale.axis, 0), rank)));
    }
    return Expr();
  }

  // The weight times the scale along its axis; folded to a constant by FoldConstant afterwards.
  static Expr scaled_weight(const ir::Call& layer, const ChannelScale& scale, int axis) {
    const Expr& weight = layer.args[layer.op()->scale->weight];
    if (!weight.as<ir::Constant>() && !op_call(weight)) return Expr();
    const TensorType* type = as_tensor(weight.type());
    if (!type || !is_static(type->shape) || type->dtype != scale.values.dtype()) return Expr();
    if (scale.axis >= 0 && (axis < 0 || !type->shape[axis].is(scale.values.size()))) return Expr();
    return op::multiply(weight, along_axis(scale, std::max(axis, 0), type->shape.size()));
  }

  const RewriteInfo& info_;
};

}  // namespace

ir::Module fold_scale_axis(const ir::Module& module, PassContext& context) {
  return rewrite_calls(module, context, [](const ir::Call& call, const Expr& expr, const RewriteInfo& info) {
    Folder folder(info);
    Expr backward = folder.backward(call, expr);
    return backward.defined() ? backward : folder.forward(call);
  });
}

}  // namespace treadle::pass
