// SPDX-License-Identifier: Apache-2.0
#include "op/nn/activation.h"

#include "op/nn/window.h"

namespace treadle::op {
namespace {

using loop::Expr;

void require_float(const TensorType& x) {
  if (!x.dtype.is_float()) fail(ErrorCode::TypeMismatch, "data is {}, it must be of a float dtype", to_string(x.dtype));
}

void relu_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  if (x->dtype.is_bool()) fail(ErrorCode::TypeMismatch, "data is bool, it must be a number");
  relation.set_output(relation.input(0));
}

void leaky_relu_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  require_float(*x);
  relation.set_output(relation.input(0));
}

void prelu_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  require_float(*x);
  const auto axis = static_cast<size_t>(normalise_axis(relation.attrs<PReluAttrs>().axis, x->shape.size()));
  if (const TensorType* alpha = relation.tensor(1)) {
    require_rank(relation, 1, 1);
    require_same_dtype(relation, 0, 1);
    if (!assume_equal(alpha->shape[0], x->shape[axis])) {
      fail(ErrorCode::TypeMismatch, "alpha has {} elements but axis {} of the data has {}", to_string(alpha->shape[0]),
           axis, to_string(x->shape[axis]));
    }
  } else {
    relation.set_input(1, tensor_type({x->shape[axis]}, x->dtype));
  }
  relation.set_output(relation.input(0));
}

Expr leaky(const Expr& x, const Expr& alpha) { return loop::select(x > loop::constant(0, x.dtype()), x, alpha * x); }

std::vector<loop::Tensor> prelu_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto axis = static_cast<size_t>(normalise_axis(attrs_of<PReluAttrs>(call).axis, inputs[0].rank()));
  return {loop::compute("prelu", inputs[0].shape(), [&](const std::vector<loop::Var>& i) {
    return leaky(inputs[0](to_indices(i)), inputs[1](i[axis]));
  })};
}

// With alpha broadcast by plain operators, blocked layouts pass through.
ir::Expr prelu_canonicalise(const ir::Call& call) {
  const TensorType& x = call.args[0].tensor_type();
  const size_t rank = x.shape.size();
  const auto axis = static_cast<size_t>(normalise_axis(attrs_of<PReluAttrs>(call).axis, rank));
  ir::Expr alpha = call.args[1];
  if (axis + 1 < rank) {
    alpha = ir::call("expand_dims", {alpha},
                     {{"axis", int64_t{1}}, {"num_newaxis", static_cast<int64_t>(rank - 1 - axis)}}, call.span);
  }
  const ir::Expr positive = ir::call("greater", {call.args[0], scalar(0, x.dtype)}, {}, call.span);
  return ir::call("where", {positive, call.args[0], ir::call("multiply", {call.args[0], alpha}, {}, call.span)}, {},
                  call.span);
}

template <typename A>
ir::Expr make(std::string_view name, std::vector<ir::Expr> args, std::shared_ptr<A> attrs, Span span) {
  return ir::call(&ir::OpRegistry::instance().get(name), std::move(args), std::move(attrs), std::move(span));
}

}  // namespace

ir::Expr relu(ir::Expr x, Span span) {
  return make("nn.relu", {std::move(x)}, ir::NoAttrs::defaults(), std::move(span));
}

ir::Expr leaky_relu(ir::Expr x, double alpha, Span span) {
  auto attrs = LeakyReluAttrs::defaults();
  attrs->alpha = alpha;
  return make("nn.leaky_relu", {std::move(x)}, std::move(attrs), std::move(span));
}

ir::Expr prelu(ir::Expr x, ir::Expr alpha, int64_t axis, Span span) {
  auto attrs = PReluAttrs::defaults();
  attrs->axis = axis;
  return make("nn.prelu", {std::move(x), std::move(alpha)}, std::move(attrs), std::move(span));
}

void register_nn_activation(ir::OpRegistry& registry) {
  const std::string family = "nn/activation";
  registry.add("nn.relu", family)
      .summary("Negative values become 0.")
      .formula("y = max(x, 0)")
      .source("Relay 0.16; NaN stays NaN")
      .input("data", "any shape, number")
      .fusion(ir::FusionKind::Elementwise)
      .traits(ir::kPositiveScaleCommutes)
      .relation(relu_relation)
      .compute([](const ir::Call&, const std::vector<loop::Tensor>& inputs) {
        return std::vector<loop::Tensor>{
            elementwise("relu", inputs[0], [](const Expr& x) { return loop::max(x, loop::constant(0, x.dtype())); })};
      })
      .layout(same_layout);
  registry.add<LeakyReluAttrs>("nn.leaky_relu", family)
      .summary("Negative values are scaled by alpha.")
      .formula("y = x where x > 0, alpha*x elsewhere")
      .source("Relay 0.16")
      .input("data", "any shape, float")
      .fusion(ir::FusionKind::Elementwise)
      .traits(ir::kPositiveScaleCommutes)
      .relation(leaky_relu_relation)
      .compute([](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
        const double alpha = attrs_of<LeakyReluAttrs>(call).alpha;
        return std::vector<loop::Tensor>{elementwise(
            "leaky_relu", inputs[0], [&](const Expr& x) { return leaky(x, loop::constant(alpha, x.dtype())); })};
      })
      .layout(same_layout);
  registry.add<PReluAttrs>("nn.prelu", family)
      .summary("Negative values are scaled by a factor for each channel.")
      .formula("y = x where x > 0, alpha[c]*x elsewhere")
      .source("Relay 0.16; a negative axis counts from the end")
      .input("data", "any shape, float")
      .input("alpha", "(C), C the extent of `axis`")
      .fusion(ir::FusionKind::Broadcast)
      .relation(prelu_relation)
      .compute(prelu_compute)
      .layout(original_layout)
      .canonicalise(prelu_canonicalise);
}

}  // namespace treadle::op
