// SPDX-License-Identifier: Apache-2.0
// Operators on the order of elements along an axis, and running sums: kernels of the runtime.
//
//   sort argsort     stable; NaN last
//   topk             the k largest (is_ascend: smallest) in order, of equal ones the lower index first; k < 1: all
//   searchsorted     where each value would be inserted into the ascending last axis of the sequence (right: behind
//                    equal ones)
//   unique           of a vector: values, first indices, for each element its place in values, their number (1), with
//                    return_counts the counts; all but the number have the vector's extent, with 0 behind what counts
//   cumsum cumprod   y[i] = x[0] op … op x[i]; exclusive: without x[i]; reverse: from the other end; axis None: of the
//                    flattened x
// Source: Relay 0.16.
#pragma once

#include <optional>
#include <string>

#include "ir/expr.h"

namespace treadle::op {

struct SortAttrs : ir::AttrsOf<SortAttrs> {
  int64_t axis;
  bool is_ascend;
  DType dtype;

  template <typename F>
  static void fields(F& field) {
    field(&SortAttrs::axis, "axis", -1, "the axis to sort");
    field(&SortAttrs::is_ascend, "is_ascend", true, "smallest first");
    field(&SortAttrs::dtype, "dtype", dtype::int32_, "dtype of indices; sort does not use it");
  }
};

struct TopkAttrs : ir::AttrsOf<TopkAttrs> {
  int64_t k, axis;
  std::string ret_type;
  bool is_ascend;
  DType dtype;

  template <typename F>
  static void fields(F& field) {
    field(&TopkAttrs::k, "k", 1, "how many; below 1: all");
    field(&TopkAttrs::axis, "axis", -1, "the axis to search");
    field(&TopkAttrs::ret_type, "ret_type", "both", "what is given").one_of({"both", "values", "indices"});
    field(&TopkAttrs::is_ascend, "is_ascend", false, "the smallest instead of the largest");
    field(&TopkAttrs::dtype, "dtype", dtype::int32_, "dtype of the indices");
  }
};

struct SearchSortedAttrs : ir::AttrsOf<SearchSortedAttrs> {
  bool right;
  DType dtype;

  template <typename F>
  static void fields(F& field) {
    field(&SearchSortedAttrs::right, "right", false, "behind equal elements, not before them");
    field(&SearchSortedAttrs::dtype, "dtype", dtype::int32_, "dtype of the result");
  }
};

struct UniqueAttrs : ir::AttrsOf<UniqueAttrs> {
  bool sorted, return_counts;

  template <typename F>
  static void fields(F& field) {
    field(&UniqueAttrs::sorted, "sorted", true, "values ascending; otherwise in the order of their first appearance");
    field(&UniqueAttrs::return_counts, "return_counts", false, "a fifth output says how often each value occurs");
  }
};

struct ScanopAttrs : ir::AttrsOf<ScanopAttrs> {
  std::optional<int64_t> axis;
  std::optional<DType> dtype;
  std::optional<bool> exclusive;
  bool reverse;

  template <typename F>
  static void fields(F& field) {
    field(&ScanopAttrs::axis, "axis", std::nullopt, "the axis to run along; None: the flattened tensor");
    field(&ScanopAttrs::dtype, "dtype", std::nullopt, "dtype of the result; None: that of x");
    field(&ScanopAttrs::exclusive, "exclusive", std::nullopt, "an element is not part of its own result");
    field(&ScanopAttrs::reverse, "reverse", false, "run from the end to the front");
  }
};

ir::Expr sort(ir::Expr x, int64_t axis = -1, bool is_ascend = true);
ir::Expr argsort(ir::Expr x, int64_t axis = -1, bool is_ascend = true, DType dtype = dtype::int32_);
// ret_type "both": a tuple (values, indices).
ir::Expr topk(ir::Expr x, int64_t k, int64_t axis = -1, const std::string& ret_type = "both", bool is_ascend = false,
              DType dtype = dtype::int32_);
// "cumsum" or "cumprod".
ir::Expr scan(std::string_view name, ir::Expr x, std::optional<int64_t> axis, bool exclusive = false,
              bool reverse = false);

}  // namespace treadle::op
