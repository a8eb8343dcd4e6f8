// SPDX-License-Identifier: Apache-2.0
// Normalisations: nn.batch_norm, nn.layer_norm, nn.instance_norm, nn.group_norm, nn.l2_normalize, nn.lrn; and
// nn.dropout.
//
//   batch_norm     y = (x - moving_mean[c]) / sqrt(moving_var[c] + epsilon) * gamma[c] + beta[c]; gives (y,
//   moving_mean, moving_var) layer_norm     the same with mean and (biased) variance of x along `axis` instance_norm  …
//   over all axes but 0 and `axis` group_norm     … over the channels of a group and all axes but 0 and `axis`; unlike
//   TVM also those before `axis` l2_normalize   y = x / sqrt(max(sum of x^2 over the axes, eps)) lrn            y = x /
//   (bias + alpha/size * sum of x^2 over `size` neighbouring channels)^beta, 0 outside
// center=False leaves beta out, scale=False gamma; both must be given. x float, any rank; sums of 16-bit floats are
// formed in float32. dropout gives (x, ones): at inference nothing is dropped. Source: Relay 0.16.
#pragma once

#include <optional>
#include <string>

#include "ir/expr.h"

namespace treadle::op {

// Of batch_norm, layer_norm (axis -1) and instance_norm.
template <int DefaultAxis>
struct NormAttrs : ir::AttrsOf<NormAttrs<DefaultAxis>> {
  int64_t axis;
  double epsilon;
  bool center, scale;

  template <typename F>
  static void fields(F& field) {
    field(&NormAttrs::axis, "axis", DefaultAxis, "axis of gamma and beta");
    field(&NormAttrs::epsilon, "epsilon", 1e-5, "added to the variance");
    field(&NormAttrs::center, "center", true, "add beta");
    field(&NormAttrs::scale, "scale", true, "multiply by gamma");
  }
};

using BatchNormAttrs = NormAttrs<1>;
using InstanceNormAttrs = NormAttrs<1>;
using LayerNormAttrs = NormAttrs<-1>;

struct GroupNormAttrs : ir::AttrsOf<GroupNormAttrs> {
  int64_t num_groups, axis;
  double epsilon;
  bool center, scale;

  template <typename F>
  static void fields(F& field) {
    field(&GroupNormAttrs::num_groups, "num_groups", ir::Required{},
          "number of groups that the channels are divided into")
        .at_least(1);
    field(&GroupNormAttrs::axis, "axis", 1, "axis of the channels");
    field(&GroupNormAttrs::epsilon, "epsilon", 1e-5, "added to the variance");
    field(&GroupNormAttrs::center, "center", true, "add beta");
    field(&GroupNormAttrs::scale, "scale", true, "multiply by gamma");
  }
};

struct L2NormalizeAttrs : ir::AttrsOf<L2NormalizeAttrs> {
  double eps;
  std::optional<ir::Ints> axis;

  template <typename F>
  static void fields(F& field) {
    field(&L2NormalizeAttrs::eps, "eps", ir::Required{}, "smallest sum of squares to divide by");
    field(&L2NormalizeAttrs::axis, "axis", std::nullopt, "axes of the sum; None: all");
  }
};

struct LrnAttrs : ir::AttrsOf<LrnAttrs> {
  int64_t size, axis;
  double bias, alpha, beta;

  template <typename F>
  static void fields(F& field) {
    field(&LrnAttrs::size, "size", 5, "number of channels in the window").at_least(1);
    field(&LrnAttrs::axis, "axis", 1, "axis of the channels");
    field(&LrnAttrs::bias, "bias", 2.0, "added to the scaled sum");
    field(&LrnAttrs::alpha, "alpha", 1e-4,
          "factor of the mean of squares; the default is the text's, that of Relay's Python function is 1e-5");
    field(&LrnAttrs::beta, "beta", 0.75, "exponent");
  }
};

struct DropoutAttrs : ir::AttrsOf<DropoutAttrs> {
  double rate;

  template <typename F>
  static void fields(F& field) {
    field(&DropoutAttrs::rate, "rate", 0.5, "share of elements dropped in training").at_least(0).at_most(1);
  }
};

// Errors of all: TypeMismatch, TypeAttribute as the type relations find.
// The whole tuple; element 0 is the normalised data.
ir::Expr batch_norm(ir::Expr data, ir::Expr gamma, ir::Expr beta, ir::Expr mean, ir::Expr variance, double epsilon,
                    int64_t axis = 1, Span span = nullptr);
ir::Expr layer_norm(ir::Expr data, ir::Expr gamma, ir::Expr beta, double epsilon, int64_t axis = -1,
                    Span span = nullptr);
ir::Expr instance_norm(ir::Expr data, ir::Expr gamma, ir::Expr beta, double epsilon, Span span = nullptr);
ir::Expr group_norm(ir::Expr data, ir::Expr gamma, ir::Expr beta, int64_t num_groups, double epsilon,
                    Span span = nullptr);
ir::Expr l2_normalize(ir::Expr data, double eps, std::optional<ir::Ints> axis, Span span = nullptr);

}  // namespace treadle::op
