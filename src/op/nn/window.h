// SPDX-License-Identifier: Apache-2.0
// What the windowed operators (convolutions, pools) share: padding, output extents, positions in split layouts, the
// padding stage.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "op/relations.h"
#include "type/layout.h"

namespace treadle::op {

// Elements added before and behind, one pair per spatial axis.
struct Padding {
  ir::Ints begin, end;
  bool any() const;
};

// Relay's short forms: of `axes` spatial axes 1 value (all sides), one per axis (both sides), or all begins and then
// all ends. Errors: TypeAttribute for another count or a negative value.
Padding normalise_padding(const ir::Ints& padding, size_t axes);
// One value per spatial axis; a single value stands for all. Errors: TypeAttribute for another count.
ir::Ints normalise_per_axis(const ir::Ints& values, size_t axes, std::string_view what);

// Elements that a kernel of `kernel` taps spans: (kernel - 1) * dilation + 1.
Dim dilated_extent(const Dim& kernel, int64_t dilation);
// Windows of `span` elements at distance `stride` that fit into `in` elements with the given padding:
//   floor((in + begin + end - span) / stride) + 1, and with `ceil_mode` the quotient is rounded up.
// Errors: TypeMismatch when no window fits although the input is not empty.
Dim window_count(const Dim& in, int64_t begin, int64_t end, const Dim& span, int64_t stride, bool ceil_mode, char axis);

// The layout that `text` names, which must be a rearrangement of `letters` ("NCHW") whose spatial axes (all but the
// first two) are not split. Errors: TypeAttribute naming the attribute `what`.
Layout parse_layout(std::string_view text, std::string_view letters, std::string_view what);
// Extents of the axes `letters`, in that order, of a tensor of `shape` in `layout`. Errors: TypeMismatch for a wrong
// rank or inner extent.
Shape primal_shape(const Layout& layout, const Shape& shape, std::string_view letters, std::string_view what);
// The shape in `layout` of a tensor whose axes `letters` have the extents `primal`. Errors: TypeMismatch when a block
// does not divide its (constant) extent.
Shape layout_shape(const Layout& layout, const Shape& primal, std::string_view letters, std::string_view what);

// A position along a primal axis in mixed radix: the number of the block, then one digit for each inner part.
struct SplitIndex {
  std::vector<loop::Expr> digits;
  std::vector<int64_t> factors;  // of digits 1, 2, …

  SplitIndex() = default;
  SplitIndex(loop::Expr value) : digits{std::move(value)} {}  // NOLINT(google-explicit-constructor): not split
  SplitIndex(std::vector<loop::Expr> digits, std::vector<int64_t> factors)
      : digits(std::move(digits)), factors(std::move(factors)) {}
  loop::Expr value() const;
  // The same position split by other factors; without division when they are equal or `wanted` is empty.
  std::vector<loop::Expr> as(const std::vector<int64_t>& wanted) const;
};

// Factors of the inner parts of a primal axis, outermost first; empty when it is not split.
std::vector<int64_t> inner_factors(const Layout& layout, char primal);
int64_t factor_product(const std::vector<int64_t>& factors);
// The position along `primal` that the indices of a tensor in `layout` mean.
SplitIndex split_index(const Layout& layout, char primal, const std::vector<loop::Expr>& indices);
// Indices in `layout` of the element at these positions, one for each primal axis of the layout.
std::vector<loop::Expr> layout_index(const Layout& layout, const std::map<char, SplitIndex>& position);

// x with begin[a] elements `fill` in front and end[a] behind along every axis a; x itself when all are 0.
loop::Tensor pad_stage(const loop::Tensor& x, const ir::Ints& begin, const ir::Ints& end, const loop::Expr& fill);
// The same for the spatial axes of a tensor in `layout`; padding per letter of `spatial`.
loop::Tensor pad_spatial(const loop::Tensor& x, const Layout& layout, std::string_view spatial, const Padding& padding,
                         const loop::Expr& fill);

// The dtype in which a window's values of `dtype` are added up: 32 bits for integers of 8, so that their vectors stay
// short, else mean_accumulator.
DType window_accumulator(DType dtype);
// True when the expression is made of constants and operators on them only (so that folding turns it into a constant);
// looks at up to 64 nodes.
bool is_constant_expression(const ir::Expr& expr);
// x in another dtype, as a stage of its own; x itself when it has that dtype.
loop::Tensor cast_stage(const loop::Tensor& x, DType dtype);

}  // namespace treadle::op
