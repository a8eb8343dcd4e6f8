// SPDX-License-Identifier: Apache-2.0
// Reductions over axes of one tensor.
//
//   sum prod mean max min   numbers, y of x's dtype: integers wrap, a mean of integers truncates, 16-bit floats add up
//                           in float32
//   all any                 bool
//   argmax argmin           y int32: the index of the extreme value, of several axes that in row-major order of them;
//                           the first of equal values (select_last_index: the last); a NaN counts as the extreme value
//   variance(x, mean)       mean((x - mean)^2), where mean keeps the reduced axes with extent 1
// max and min give NaN when any value is; of no values -inf and +inf (integers: the extreme numbers). Nothing to
// reduce: y is x.
// Source: Relay 0.16.
#pragma once

#include <optional>

#include "ir/expr.h"

namespace treadle::op {

struct ReduceAttrs : ir::AttrsOf<ReduceAttrs> {
  std::optional<ir::Ints> axis;
  bool keepdims, exclude;

  template <typename F>
  static void fields(F& field) {
    field(&ReduceAttrs::axis, "axis", std::nullopt, "the axes to reduce; negative from the end; None: all");
    field(&ReduceAttrs::keepdims, "keepdims", false, "reduced axes stay with extent 1");
    field(&ReduceAttrs::exclude, "exclude", false, "reduce every axis but the listed ones");
  }
};

struct ArgReduceAttrs : ir::AttrsOf<ArgReduceAttrs> {
  std::optional<ir::Ints> axis;
  bool keepdims, select_last_index, exclude;

  template <typename F>
  static void fields(F& field) {
    field(&ArgReduceAttrs::axis, "axis", std::nullopt, "the axes to reduce; negative from the end; None: all");
    field(&ArgReduceAttrs::keepdims, "keepdims", false, "reduced axes stay with extent 1");
    field(&ArgReduceAttrs::select_last_index, "select_last_index", false, "of equal values the last counts");
    field(&ArgReduceAttrs::exclude, "exclude", false, "reduce every axis but the listed ones");
  }
};

struct VarianceAttrs : ir::AttrsOf<VarianceAttrs> {
  std::optional<ir::Ints> axis;
  bool keepdims, exclude, unbiased;

  template <typename F>
  static void fields(F& field) {
    field(&VarianceAttrs::axis, "axis", std::nullopt, "the axes to reduce; negative from the end; None: all");
    field(&VarianceAttrs::keepdims, "keepdims", false, "reduced axes stay with extent 1");
    field(&VarianceAttrs::exclude, "exclude", false, "reduce every axis but the listed ones");
    field(&VarianceAttrs::unbiased, "unbiased", false, "divide by one less than the number of values");
  }
};

// One of the reductions above that have ReduceAttrs, by name. An empty list of axes means all, as nullopt.
ir::Expr reduce(std::string_view name, ir::Expr x, const std::optional<ir::Ints>& axis = {}, bool keepdims = false,
                bool exclude = false);
ir::Expr sum(ir::Expr x, const std::optional<ir::Ints>& axis = {}, bool keepdims = false);
ir::Expr mean(ir::Expr x, const std::optional<ir::Ints>& axis = {}, bool keepdims = false);
// argmax or argmin.
ir::Expr arg_reduce(std::string_view name, ir::Expr x, const std::optional<ir::Ints>& axis, bool keepdims,
                    bool select_last_index);
// `with_mean` undefined: the mean of x.
ir::Expr variance(ir::Expr x, const std::optional<ir::Ints>& axis = {}, bool keepdims = false, bool exclude = false,
                  bool unbiased = false, ir::Expr with_mean = {});
// The square root of the variance.
ir::Expr standard_deviation(ir::Expr x, const std::optional<ir::Ints>& axis = {}, bool keepdims = false,
                            bool exclude = false, bool unbiased = false);
// log(sum(exp(x))), shifted by the maximum so that nothing overflows.
ir::Expr logsumexp(ir::Expr x, const std::optional<ir::Ints>& axis = {}, bool keepdims = false);

}  // namespace treadle::op
