// SPDX-License-Identifier: Apache-2.0
// Losses: nn.nll_loss, nn.cross_entropy, nn.cross_entropy_with_logits.
//
//   nll_loss        l = -weights[t] * predictions[n, t, ...], t = targets[n, ...]; 0 where t is ignore_index
//                   reduction none: l; sum: sum of l; mean: sum of l / sum of weights[t] over what is not ignored
//   cross_entropy   -sum of log(p) * t / N;  with_logits: -sum of x * t / N, x being logarithms of probabilities
//   already
// predictions (N, C, d...), targets (N, d...) integer, weights (C); or predictions (C), targets a scalar. A target
// outside of 0 … C-1 reads the nearest class. Source: Relay 0.16.
#pragma once

#include <string>

#include "ir/expr.h"

namespace treadle::op {

struct NllLossAttrs : ir::AttrsOf<NllLossAttrs> {
  std::string reduction;
  int64_t ignore_index;

  template <typename F>
  static void fields(F& field) {
    field(&NllLossAttrs::reduction, "reduction", "mean", "how the losses of all positions are combined")
        .one_of({"mean", "sum", "none"});
    field(&NllLossAttrs::ignore_index, "ignore_index", -100, "targets of this value do not count");
  }
};

// Errors: TypeMismatch, TypeAttribute.
ir::Expr nll_loss(ir::Expr predictions, ir::Expr targets, ir::Expr weights, std::string reduction = "mean",
                  int64_t ignore_index = -100, Span span = nullptr);

}  // namespace treadle::op
