// SPDX-License-Identifier: Apache-2.0
#include "op/nn/loss.h"

#include "op/nn/window.h"

namespace treadle::op {
namespace {

using loop::Expr;

void nll_loss_relation(ir::Relation& relation) {
  const TensorType* p = relation.tensor(0);
  const TensorType* t = relation.tensor(1);
  if (!p || !t) return;
  if (!p->dtype.is_float())
    fail(ErrorCode::TypeMismatch, "predictions are {}, they must be of a float dtype", to_string(p->dtype));
  if (!t->dtype.is_integer())
    fail(ErrorCode::TypeMismatch, "targets are {}, they must be integers", to_string(t->dtype));
  if (p->shape.empty()) fail(ErrorCode::TypeMismatch, "predictions are a scalar, they must have at least one axis");
  Shape expected = p->shape;
  const size_t channel = p->shape.size() == 1 ? 0 : 1;
  const Dim classes = expected[channel];
  expected.erase(expected.begin() + static_cast<ptrdiff_t>(channel));
  if (!assume_same(tensor_type(expected, t->dtype), relation.input(1))) {
    fail(ErrorCode::TypeMismatch, "targets have shape {} but the predictions {} need {}", to_string(t->shape),
         to_string(p->shape), to_string(expected));
  }
  if (!assume_some(classes, product(t->shape)))
    fail(ErrorCode::TypeMismatch, "the predictions {} have no class", to_string(p->shape));
  if (const TensorType* w = relation.tensor(2)) {
    require_rank(relation, 2, 1);
    require_same_dtype(relation, 0, 2);
    if (!assume_equal(w->shape[0], classes)) {
      fail(ErrorCode::TypeMismatch, "weights have {} elements but the predictions {} classes", to_string(w->shape[0]),
           to_string(classes));
    }
  } else {
    relation.set_input(2, tensor_type({classes}, p->dtype));
  }
  relation.set_output(tensor_type(relation.attrs<NllLossAttrs>().reduction == "none" ? t->shape : Shape{}, p->dtype));
}

// Sum over all elements of f(index), over a tensor of shape `extents`.
loop::Tensor total(const std::string& name, const std::vector<Expr>& extents,
                   const std::function<Expr(const std::vector<loop::Var>&)>& f) {
  return loop::reduce(name, {}, loop::ReduceOp::Sum, extents,
                      [&](const std::vector<loop::Var>&, const std::vector<loop::Var>& k) { return f(k); });
}

std::vector<loop::Tensor> nll_loss_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<NllLossAttrs>(call);
  const loop::Tensor &p = inputs[0], &t = inputs[1], &w = inputs[2];
  const DType dtype = accumulator_dtype(p.dtype());
  const Expr classes = w.shape(0), zero = loop::constant(0, dtype);
  const auto counts = [&](const Indices& i) { return t(i) != loop::int_imm(attrs.ignore_index, t.dtype()); };
  const auto target = [&](const Indices& i) { return clamp_index(loop::cast(t(i), dtype::int64_), classes); };
  const auto weight = [&](const Indices& i) { return loop::select(counts(i), loop::cast(w(target(i)), dtype), zero); };
  const auto loss = [&](const Indices& i) {
    Indices index = i;
    index.insert(index.begin() + (i.empty() ? 0 : 1), target(i));
    return loop::select(counts(i), -(loop::cast(w(target(i)), dtype) * loop::cast(p(index), dtype)), zero);
  };
  if (attrs.reduction == "none") {
    return {loop::compute("nll_loss", t.shape(),
                          [&](const std::vector<loop::Var>& i) { return loop::cast(loss(to_indices(i)), p.dtype()); })};
  }
  if (t.rank() == 0) {  // one sample: sum is the loss, mean is the loss divided by its own weight
    return {loop::compute("nll_loss", {}, [&](const std::vector<loop::Var>&) {
      const Expr value = loss({});
      return loop::cast(attrs.reduction == "sum" ? value : loop::div(value, weight({})), p.dtype());
    })};
  }
  const loop::Tensor sum =
      total("loss_sum", t.shape(), [&](const std::vector<loop::Var>& k) { return loss(to_indices(k)); });
  if (attrs.reduction == "sum") return {cast_stage(sum, p.dtype())};
  const loop::Tensor weights =
      total("weight_sum", t.shape(), [&](const std::vector<loop::Var>& k) { return weight(to_indices(k)); });
  return {loop::compute("nll_loss", {}, [&](const std::vector<loop::Var>&) {
    return loop::cast(loop::div(sum(Indices{}), weights(Indices{})), p.dtype());
  })};
}

void cross_entropy_relation(ir::Relation& relation) {
  const TensorType* p = relation.tensor(0);
  if (!p) return;
  if (!p->dtype.is_float())
    fail(ErrorCode::TypeMismatch, "predictions are {}, they must be of a float dtype", to_string(p->dtype));
  require_rank(relation, 0, 2);
  if (relation.tensor(1)) {
    require_same_dtype(relation, 0, 1);
    if (!assume_same(relation.input(0), relation.input(1))) {
      fail(ErrorCode::TypeMismatch, "predictions have shape {}, targets {}", to_string(p->shape),
           to_string(relation.tensor(1)->shape));
    }
  } else {
    relation.set_input(1, relation.input(0));
  }
  relation.set_output(tensor_type({}, p->dtype));
}

std::vector<loop::Tensor> cross_entropy_compute(const std::vector<loop::Tensor>& inputs, bool logarithm) {
  const loop::Tensor &p = inputs[0], &t = inputs[1];
  const DType dtype = accumulator_dtype(p.dtype());
  const loop::Tensor sum = total("loss_sum", p.shape(), [&](const std::vector<loop::Var>& k) {
    const Expr value = loop::cast(p(to_indices(k)), dtype);
    return (logarithm ? loop::intrinsic(loop::Intrinsic::Log, {value}) : value) * loop::cast(t(to_indices(k)), dtype);
  });
  return {loop::compute("cross_entropy", {}, [&](const std::vector<loop::Var>&) {
    return loop::cast(loop::div(-sum(Indices{}), loop::cast(p.shape(0), dtype)), p.dtype());
  })};
}

void add_cross_entropy(ir::OpRegistry& registry, const std::string& name, bool logarithm) {
  registry.add(name, "nn/loss")
      .summary(logarithm ? "Cross entropy of probabilities."
                         : "Cross entropy of logarithms of probabilities; no softmax inside.")
      .formula(logarithm ? "y = -sum of log(p) * t / N" : "y = -sum of x * t / N")
      .source("Relay 0.16")
      .input("predictions", "(N, C)")
      .input("targets", "(N, C)")
      .fusion(ir::FusionKind::Opaque)
      .mixed_precision(ir::MixedPrecision::Never)
      .relation(cross_entropy_relation)
      .compute([logarithm](const ir::Call&, const std::vector<loop::Tensor>& inputs) {
        return cross_entropy_compute(inputs, logarithm);
      })
      .layout(original_layout);
}

}  // namespace

ir::Expr nll_loss(ir::Expr predictions, ir::Expr targets, ir::Expr weights, std::string reduction, int64_t ignore_index,
                  Span span) {
  auto attrs = NllLossAttrs::defaults();
  attrs->reduction = std::move(reduction);
  attrs->ignore_index = ignore_index;
  return ir::call(&ir::OpRegistry::instance().get("nn.nll_loss"),
                  {std::move(predictions), std::move(targets), std::move(weights)}, std::move(attrs), std::move(span));
}

void register_nn_loss(ir::OpRegistry& registry) {
  registry.add<NllLossAttrs>("nn.nll_loss", "nn/loss")
      .summary("Negative log likelihood of the target classes.")
      .formula("l = -weights[t] * predictions[n, t, ...]; mean divides by the sum of the weights that count")
      .source("Relay 0.16")
      .input("predictions", "(N, C, d...) or (C), logarithms of probabilities")
      .input("targets", "(N, d...) or a scalar, integer")
      .input("weights", "(C)")
      .fusion(ir::FusionKind::OutFusable)
      .relation(nll_loss_relation)
      .compute(nll_loss_compute)
      .layout(original_layout);
  add_cross_entropy(registry, "nn.cross_entropy", true);
  add_cross_entropy(registry, "nn.cross_entropy_with_logits", false);
}

}  // namespace treadle::op
