// SPDX-License-Identifier: Apache-2.0
#include "op/nn/window.h"

#include <algorithm>

namespace treadle::op {

using loop::Expr;

bool Padding::any() const {
  const auto nonzero = [](int64_t value) { return value != 0; };
  return std::any_of(begin.begin(), begin.end(), nonzero) || std::any_of(end.begin(), end.end(), nonzero);
}

Padding normalise_padding(const ir::Ints& padding, size_t axes) {
  for (int64_t value : padding) {
    if (value < 0) fail(ErrorCode::TypeAttribute, "padding is {}, it must not be negative", value);
  }
  Padding result;
  if (padding.size() == 1) {
    result.begin = result.end = ir::Ints(axes, padding[0]);
  } else if (padding.size() == axes) {
    result.begin = result.end = padding;
  } else if (padding.size() == 2 * axes) {
    result.begin.assign(padding.begin(), padding.begin() + static_cast<ptrdiff_t>(axes));
    result.end.assign(padding.begin() + static_cast<ptrdiff_t>(axes), padding.end());
  } else {
    fail(ErrorCode::TypeAttribute, "padding has {} values, it must have 1, {} or {}", padding.size(), axes, 2 * axes);
  }
  return result;
}

ir::Ints normalise_per_axis(const ir::Ints& values, size_t axes, std::string_view what) {
  if (values.size() == axes) return values;
  if (values.size() == 1) return ir::Ints(axes, values[0]);
  fail(ErrorCode::TypeAttribute, "{} has {} values, it must have one for each of the {} spatial axes", what,
       values.size(), axes);
}

Dim dilated_extent(const Dim& kernel, int64_t dilation) { return (kernel - 1) * dilation + 1; }

Dim window_count(const Dim& in, int64_t begin, int64_t end, const Dim& span, int64_t stride, bool ceil_mode,
                 char axis) {
  const Dim room = in + begin + end - span;
  const Dim count = floordiv(ceil_mode ? room + (stride - 1) : room, stride) + 1;
  if (count.is_const() && (count.value() < 0 || (count.is(0) && !in.is(0)))) {
    fail(ErrorCode::TypeMismatch,
         "axis {}: the window spans {} elements but the padded input has only {} ({} + {} + {})", axis, to_string(span),
         to_string(in + begin + end), to_string(in), begin, end);
  }
  return count;
}

Layout parse_layout(std::string_view text, std::string_view letters, std::string_view what) {
  Layout layout;
  try {
    layout = Layout(text);
  } catch (const Error& error) {
    fail(ErrorCode::TypeAttribute, "{}: {}", what, error.message());
  }
  if (!layout.convertible_to(Layout(letters))) {
    fail(ErrorCode::TypeAttribute, "{} \"{}\" is no arrangement of the axes {}", what, text, letters);
  }
  for (char letter : letters.substr(2)) {
    if (layout.block_of(letter) != 1 || !inner_factors(layout, letter).empty()) {
      fail(ErrorCode::TypeAttribute, "{} \"{}\" splits the spatial axis {}", what, text, letter);
    }
  }
  return layout;
}

Shape primal_shape(const Layout& layout, const Shape& shape, std::string_view letters, std::string_view what) {
  if (shape.size() != layout.rank()) {
    fail(ErrorCode::TypeMismatch, "{} {} has rank {} but its layout {} has {} axes", what, to_string(shape),
         shape.size(), layout.text(), layout.rank());
  }
  try {
    return LayoutMap(layout, Layout(letters)).forward_shape(shape);
  } catch (const Error& error) {
    fail(ErrorCode::TypeMismatch, "{} {}: {}", what, to_string(shape), error.message());
  }
}

Shape layout_shape(const Layout& layout, const Shape& primal, std::string_view letters, std::string_view what) {
  const Layout plain(letters);
  for (size_t i = 0; i < letters.size(); ++i) {
    const int64_t block = layout.block_of(letters[i]);
    if (!assume_divides(block, primal[i])) {
      fail(ErrorCode::TypeMismatch, "{}: axis {} has extent {}, which the block of layout {} does not divide", what,
           letters[i], to_string(primal[i]), layout.text());
    }
  }
  return LayoutMap(plain, layout).forward_shape(primal);
}

Expr SplitIndex::value() const {
  Expr result = digits[0];
  for (size_t i = 1; i < digits.size(); ++i) result = result * factors[i - 1] + digits[i];
  return result;
}

std::vector<Expr> SplitIndex::as(const std::vector<int64_t>& wanted) const {
  if (wanted == factors) return digits;
  Expr rest = value();
  if (wanted.empty()) return {rest};
  std::vector<Expr> result;
  int64_t below = factor_product(wanted);
  result.push_back(loop::floordiv(rest, below));
  for (int64_t factor : wanted) {
    below /= factor;
    result.push_back(loop::floormod(loop::floordiv(rest, below), factor));
  }
  return result;
}

std::vector<int64_t> inner_factors(const Layout& layout, char primal) {
  std::vector<int64_t> factors;
  for (const Layout::Axis& axis : layout.axes()) {
    if (!axis.primal() && axis.primal_name() == primal) factors.push_back(axis.factor);
  }
  return factors;
}

int64_t factor_product(const std::vector<int64_t>& factors) {
  int64_t product = 1;
  for (int64_t factor : factors) product *= factor;
  return product;
}

SplitIndex split_index(const Layout& layout, char primal, const std::vector<Expr>& indices) {
  SplitIndex result;
  result.digits.emplace_back();
  for (size_t i = 0; i < layout.rank(); ++i) {
    const Layout::Axis& axis = layout.axes()[i];
    if (axis.primal_name() != primal) continue;
    if (axis.primal()) {
      result.digits[0] = indices[i];
    } else {
      result.digits.push_back(indices[i]);
      result.factors.push_back(axis.factor);
    }
  }
  TREADLE_CHECK(result.digits[0].defined(), "layout {} has no axis {}", layout.text(), primal);
  return result;
}

std::vector<Expr> layout_index(const Layout& layout, const std::map<char, SplitIndex>& position) {
  std::map<char, std::vector<Expr>> digits;
  for (const auto& [letter, index] : position) digits[letter] = index.as(inner_factors(layout, letter));
  std::map<char, size_t> used;
  std::vector<Expr> result;
  for (const Layout::Axis& axis : layout.axes()) {
    const char letter = axis.primal_name();
    result.push_back(digits.at(letter)[axis.primal() ? 0 : ++used[letter]]);
  }
  return result;
}

loop::Tensor pad_stage(const loop::Tensor& x, const ir::Ints& begin, const ir::Ints& end, const Expr& fill) {
  if (!Padding{begin, end}.any()) return x;
  std::vector<Expr> shape;
  for (size_t a = 0; a < x.rank(); ++a) shape.push_back(x.shape(a) + (begin[a] + end[a]));
  return loop::compute("pad", shape, [&](const std::vector<loop::Var>& i) {
    std::vector<Expr> source;
    Expr inside = loop::bool_imm(true);
    for (size_t a = 0; a < x.rank(); ++a) {
      source.push_back(i[a] - begin[a]);
      if (begin[a] != 0) inside = inside && i[a] >= Expr(begin[a]);
      if (end[a] != 0) inside = inside && i[a] < x.shape(a) + begin[a];
    }
    return loop::select(inside, x(source), fill);
  });
}

loop::Tensor pad_spatial(const loop::Tensor& x, const Layout& layout, std::string_view spatial, const Padding& padding,
                         const Expr& fill) {
  ir::Ints begin(x.rank(), 0), end(x.rank(), 0);
  for (size_t s = 0; s < spatial.size(); ++s) {
    const auto axis = static_cast<size_t>(layout.index_of(spatial[s]));
    begin[axis] = padding.begin[s];
    end[axis] = padding.end[s];
  }
  return pad_stage(x, begin, end, fill);
}

DType window_accumulator(DType dtype) {
  if (dtype.is_integer() && dtype.bits == 8) return dtype.is_int() ? dtype::int32_ : dtype::uint32_;
  return mean_accumulator(dtype);
}

bool is_constant_expression(const ir::Expr& expr) {
  constexpr size_t kLimit = 64;
  std::vector<ir::Expr> stack{expr};
  for (size_t visited = 0; !stack.empty(); ++visited) {
    if (visited == kLimit) return false;
    const ir::Expr node = stack.back();
    stack.pop_back();
    if (node.as<ir::Constant>()) continue;
    if (const auto* call = node.as<ir::Call>(); call && call->op() && call->op()->has(ir::kPure)) {
      stack.insert(stack.end(), call->args.begin(), call->args.end());
    } else if (const auto* tuple = node.as<ir::Tuple>()) {
      stack.insert(stack.end(), tuple->fields.begin(), tuple->fields.end());
    } else if (const auto* item = node.as<ir::TupleGetItem>()) {
      stack.push_back(item->tuple);
    } else {
      return false;
    }
  }
  return true;
}

loop::Tensor cast_stage(const loop::Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return elementwise("cast", x, [&](const Expr& value) { return loop::cast(value, dtype); });
}

}  // namespace treadle::op
