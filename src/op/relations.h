// SPDX-License-Identifier: Apache-2.0
// What the type relations, computes and layout rules of many operators share: axes, broadcasting, elementwise maps.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"
#include "type/assume.h"

namespace treadle::op {

using Indices = std::vector<loop::Expr>;

inline Indices to_indices(const std::vector<loop::Var>& axes) { return Indices(axes.begin(), axes.end()); }

// The attributes of a call; A must be the operator's attribute struct.
template <typename A>
const A& attrs_of(const ir::Call& call) {
  return static_cast<const A&>(*call.attrs);
}

// The tensor types of a call's arguments (tuples flattened) and of its outputs. Errors: TypeUnresolved when one is not
// known.
std::vector<const TensorType*> input_types(const ir::Call& call);
std::vector<const TensorType*> output_types(const ir::Call& call);
// The shape of the call's one output.
const Shape& output_shape(const ir::Call& call);

// ---- Axes ----

// `axis` counted from the front. Errors: TypeAttribute when it is outside -rank … rank-1.
int64_t normalise_axis(int64_t axis, size_t rank, std::string_view what = "axis");
// Each axis counted from the front, in the order given. Errors: as above, and TypeAttribute for a repeated axis.
std::vector<int64_t> normalise_axes(const ir::Ints& axes, size_t rank, std::string_view what = "axis");
// The axes of a reduction, sorted: all when `axis` is None (or empty, as Relay reads it), those not listed when
// `exclude`. Errors: TypeAttribute for an axis out of range or repeated, or exclude without axis.
std::vector<int64_t> reduction_axes(const std::optional<ir::Ints>& axis, bool exclude, size_t rank);
// `shape` without the (sorted) axes; with `keepdims` they stay with extent 1.
Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keepdims);

// ---- Type relations ----

// The output has the type of input 0.
void identity_relation(ir::Relation& relation);
// Two inputs of one dtype broadcast as NumPy does; the output has that dtype. Errors: TypeMismatch.
void broadcast_relation(ir::Relation& relation);
// As broadcast_relation, giving bool.
void comparison_relation(ir::Relation& relation);
// Errors: TypeMismatch unless both dtypes are equal, naming the inputs.
void require_same_dtype(const ir::Relation& relation, size_t a, size_t b);
// Errors: TypeMismatch unless input i, when known, has this rank.
void require_rank(const ir::Relation& relation, size_t i, size_t rank);

// False when two shapes (or tensor types) cannot be the same; else what is not proven is assumed.
bool assume_same_shape(const Shape& a, const Shape& b);
bool assume_same(const Type& a, const Type& b);

// Whether an axis of this extent can serve `count` reads at computed places: it has an element unless there are no
// reads.
bool assume_some(const Dim& extent, const Dim& count);

// ---- Computes ----

// y[i…] = f(x[i…])
loop::Tensor elementwise(std::string name, const loop::Tensor& x, const std::function<loop::Expr(loop::Expr)>& f);
// Indices into a tensor of shape `from`, right-aligned with `to` to which it is broadcast, for the position `axes` in
// `to`. An axis of extent 1 is read at 0; one whose extent may be 1 or not (a symbol) at select(extent == 1, 0, i).
Indices broadcast_index(const Shape& from, const Shape& to, const Indices& axes);
// y[i…] = f(values of all inputs at i…), broadcast to `shape`.
loop::Tensor broadcast_compute(std::string name, const Shape& shape, const std::vector<const TensorType*>& types,
                               const std::vector<loop::Tensor>& inputs,
                               const std::function<loop::Expr(const std::vector<loop::Expr>&)>& f);
// The position in row-major order of `index` in a tensor of these extents.
loop::Expr flat_index(const Indices& index, const std::vector<loop::Expr>& extents);
// x with another shape of the same element count. Axes that only split or merge keep indices of few terms.
loop::Tensor reshaped(std::string name, const loop::Tensor& x, const Shape& from, const Shape& to);
// Index clamped to 0 … extent-1.
loop::Expr clamp_index(loop::Expr index, loop::Expr extent);
// The dtype in which values of `dtype` are added up: float32 for the 16-bit floats, else `dtype`.
DType accumulator_dtype(DType dtype);
// The dtype in which values of `dtype` are added up for their mean: no sum of integers wraps.
DType mean_accumulator(DType dtype);
// The number, cut to the dtype's range when that is an integer; truncated toward zero.
loop::Expr saturated_constant(double value, DType dtype);

// ---- Pieces ----

// Element offsets of tensors that lie one behind the other along `axis` in a tensor of shape `whole`, when each is
// contiguous there: all axes before `axis` have extent 1. Extents of `parts` other than along the axis are those of the
// whole.
std::optional<std::vector<Dim>> pieces_along(const std::vector<const TensorType*>& parts, const Shape& whole,
                                             int64_t axis);

// ---- Layout rules ----

// All inputs and outputs in one layout, the first that any input comes in: elementwise operators of one input, or of
// several of one shape.
ir::LayoutAnswer same_layout(const ir::LayoutRequest& request);
// Broadcasting operators: the layout of the input of highest rank decides; an input of lower rank takes the part of it
// that its right-aligned axes name, an axis of extent 1 the block factor 1. All undefined (the original order) when
// that cannot be said.
ir::LayoutAnswer broadcast_layout(const ir::LayoutRequest& request);
// All undefined: the call stays as it was.
ir::LayoutAnswer original_layout(const ir::LayoutRequest& request);
// Position in `layout` of the axis that is number `axis` of layout.primal(), when that axis is not split; -1 when it
// is.
int64_t unsplit_axis(const Layout& layout, int64_t axis);

// A call of an operator by name, whose attributes are already made.
ir::Expr call_op(std::string_view name, std::vector<ir::Expr> args, ir::AttrsRef attrs = nullptr);
// A constant 0-d tensor.
ir::Expr scalar(double value, DType dtype);

}  // namespace treadle::op
