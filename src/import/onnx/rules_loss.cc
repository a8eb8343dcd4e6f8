// SPDX-License-Identifier: Apache-2.0
// Losses of classifiers: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss.
#include "import/onnx/rules.h"
#include "op/nn/loss.h"
#include "op/nn/softmax.h"
#include "op/tensor/creation.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

Expr loss(Node& node, const Expr& log_probabilities) {
  const Shape& shape = node.shape(0);
  if (shape.size() < 2) node.malformed(fmt::format("the data have {} axes, at least 2 are needed", shape.size()));
  const std::string reduction = node.s("reduction", "mean");
  const Expr weights = node.has(2) ? node.input(2) : op::ones({shape[1]}, node.dtype(0));
  // Without ignore_index every target counts; the one chosen here is no class.
  const int64_t ignored = node.has_attr("ignore_index") ? node.i("ignore_index", 0) : INT32_MIN;
  return op::nll_loss(log_probabilities, node.input(1), weights, reduction, ignored, node.span());
}

Exprs nll_rule(Node& node) { return {loss(node, node.input(0))}; }

Exprs cross_entropy_rule(Node& node) {
  const Expr log_probabilities = op::log_softmax(node.input(0), 1, node.span());
  return {loss(node, log_probabilities), log_probabilities};
}

}  // namespace

void add_loss_rules(RuleTable& table) {
  table.add("NegativeLogLikelihoodLoss", {12, 13, 22}, nll_rule);
  table.add("SoftmaxCrossEntropyLoss", {12, 13}, cross_entropy_rule);
}

}  // namespace treadle::onnx
