// SPDX-License-Identifier: Apache-2.0
// Operators that make a tensor from attributes or from a shape.
//
//   zeros ones                 of `shape` and `dtype`            zeros_like ones_like   of x's type
//   full(value), full_like     every element is the scalar
//   shape_of                   (rank) integers                   ndarray_size           a 0-d integer
//   arange                     y[i] = start + i * step, extent ceil((stop - start) / step), at least 0
//   meshgrid                   of n vectors n tensors with all of them as axes; "xy" swaps the first two axes
//   one_hot(x, on, off)        a new axis of extent depth: on where its index equals x, else off
// Source: Relay 0.16.
#pragma once

#include <optional>
#include <string>

#include "ir/expr.h"

namespace treadle::op {

struct InitAttrs : ir::AttrsOf<InitAttrs> {
  Shape shape;
  std::optional<DType> dtype;

  template <typename F>
  static void fields(F& field) {
    field(&InitAttrs::shape, "shape", ir::Required{}, "extents of the result").at_least(0);
    field(&InitAttrs::dtype, "dtype", std::nullopt, "dtype of the result; None: that of the value, or float32");
  }
};

struct ShapeOfAttrs : ir::AttrsOf<ShapeOfAttrs> {
  DType dtype;

  template <typename F>
  static void fields(F& field) {
    field(&ShapeOfAttrs::dtype, "dtype", dtype::int32_, "dtype of the result, an integer");
  }
};

// Either numbers, or for integers extents; or the three are the call's inputs.
struct ArangeAttrs : ir::AttrsOf<ArangeAttrs> {
  std::optional<double> start, stop, step;
  DType dtype;
  std::optional<Dim> first, last;

  template <typename F>
  static void fields(F& field) {
    field(&ArangeAttrs::start, "start", std::nullopt, "the first value; None: 0");
    field(&ArangeAttrs::stop, "stop", std::nullopt, "the bound, which is not reached");
    field(&ArangeAttrs::step, "step", std::nullopt, "distance of the values; None: 1");
    field(&ArangeAttrs::dtype, "dtype", dtype::float32_, "dtype of the result");
    field(&ArangeAttrs::first, "first", std::nullopt, "the first value as an integer expression, instead of start");
    field(&ArangeAttrs::last, "last", std::nullopt, "the bound as an integer expression, instead of stop");
  }
};

struct MeshgridAttrs : ir::AttrsOf<MeshgridAttrs> {
  std::string indexing;

  template <typename F>
  static void fields(F& field) {
    field(&MeshgridAttrs::indexing, "indexing", "ij", "ij: axes in the order of the inputs; xy: the first two swapped")
        .one_of({"ij", "xy"});
  }
};

struct OneHotAttrs : ir::AttrsOf<OneHotAttrs> {
  int64_t depth, axis;
  DType dtype;

  template <typename F>
  static void fields(F& field) {
    field(&OneHotAttrs::depth, "depth", ir::Required{}, "extent of the new axis").at_least(0);
    field(&OneHotAttrs::axis, "axis", -1, "where the new axis stands; -1: last");
    field(&OneHotAttrs::dtype, "dtype", dtype::float32_, "dtype of the result");
  }
};

ir::Expr zeros(const Shape& shape, DType dtype);
ir::Expr ones(const Shape& shape, DType dtype);
// value: a scalar.
ir::Expr full(ir::Expr value, const Shape& shape);
ir::Expr shape_of(ir::Expr x, DType dtype = dtype::int64_);
ir::Expr arange(double start, double stop, double step, DType dtype);
// Of integers from extents, symbolic or not.
ir::Expr arange(const Dim& first, const Dim& last, int64_t step, DType dtype);
ir::Expr one_hot(ir::Expr x, ir::Expr on, ir::Expr off, int64_t depth, int64_t axis, DType dtype);

}  // namespace treadle::op
