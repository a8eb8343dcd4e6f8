// SPDX-License-Identifier: Apache-2.0
#include "op/image/resize.h"

#include <cmath>
#include <numeric>

#include "op/relations.h"

namespace treadle::op {
namespace {

using loop::Expr;

Expr number(double value) { return loop::float_imm(value, dtype::float64_); }
Expr integer(int64_t value) { return loop::int_imm(value); }
Expr ceil_quotient(const Expr& a, const Expr& b) { return loop::floordiv(a + b - integer(1), b); }

// Where on one axis an element is read: the fraction numerator / denominator of integers, or a float64.
struct Position {
  Expr numerator, denominator;
  Expr value;

  bool exact() const { return numerator.defined(); }
  Expr floor() const {
    if (exact()) return loop::floordiv(numerator, denominator);
    return loop::cast(loop::intrinsic(loop::Intrinsic::Floor, {value}), dtype::int64_);
  }
  // What the position is above its floor, in 0 … 1.
  Expr fraction(DType dtype) const {
    if (!exact()) return loop::cast(value - loop::intrinsic(loop::Intrinsic::Floor, {value}), dtype);
    return loop::div(loop::cast(loop::floormod(numerator, denominator), dtype), loop::cast(denominator, dtype));
  }
  Expr nearest(const std::string& rounding) const {
    const bool up = rounding == "round" || rounding == "round_prefer_ceil";
    if (exact()) {
      const Expr two = integer(2);
      if (up) return loop::floordiv(two * numerator + denominator, two * denominator);
      if (rounding == "round_prefer_floor") return ceil_quotient(two * numerator - denominator, two * denominator);
      return rounding == "ceil" ? ceil_quotient(numerator, denominator) : floor();
    }
    const auto whole = [](loop::Intrinsic f, const Expr& x) {
      return loop::cast(loop::intrinsic(f, {x}), dtype::int64_);
    };
    if (up) return whole(loop::Intrinsic::Floor, value + number(0.5));
    if (rounding == "round_prefer_floor") return whole(loop::Intrinsic::Ceil, value - number(0.5));
    return whole(rounding == "ceil" ? loop::Intrinsic::Ceil : loop::Intrinsic::Floor, value);
  }
};

// One spatial axis: its extents and the mode's parameters.
struct Axis {
  size_t index;
  Dim in, out;
  std::optional<double> scale;
  double roi_begin = 0, roi_end = 1;
};

Expr as_double(const Expr& value) { return loop::cast(value, dtype::float64_); }

Position cropped_position(const Axis& axis, const Expr& o) {
  const Expr last = as_double(loop::to_expr(axis.in - Dim(1)));
  const Expr middle = number(0.5 * (axis.roi_begin + axis.roi_end)) * last;
  const Expr steps = as_double(loop::to_expr(max(axis.out - Dim(1), 1)));
  const Expr spread =
      number(axis.roi_begin) * last + as_double(o) * number(axis.roi_end - axis.roi_begin) * loop::div(last, steps);
  return {{}, {}, loop::select(loop::to_expr(axis.out) > integer(1), spread, middle)};
}

Position scaled_position(const std::string& mode, const Axis& axis, const Expr& o) {
  const double scale = *axis.scale;
  const Expr x = as_double(o), half = number(0.5);
  if (mode == "asymmetric") return {{}, {}, loop::div(x, number(scale))};
  if (mode == "tf_half_pixel_for_nn") return {{}, {}, loop::div(x + half, number(scale))};
  const Expr in = as_double(loop::to_expr(axis.in)), resized = in * number(scale);
  if (mode == "align_corners") {
    const Expr one = number(1);
    return {{}, {}, loop::select(resized == one, number(0), loop::div(x * (in - one), resized - one))};
  }
  Expr result = loop::div(x + half, number(scale)) - half;
  if (mode == "pytorch_half_pixel") result = loop::select(loop::to_expr(axis.out) > integer(1), result, number(0));
  if (mode == "half_pixel_symmetric") {
    const Expr adjustment = loop::div(as_double(loop::to_expr(axis.out)), resized);
    result = result + in * half * (number(1) - adjustment);
  }
  return {{}, {}, result};
}

// The extents of x and y in lowest terms, where they are known: most modes need their ratio only.
std::pair<Dim, Dim> ratio_of(const Axis& axis) {
  if (axis.in.is_const() && axis.out.is_const()) {
    const int64_t divisor = std::max<int64_t>(std::gcd(axis.in.value(), axis.out.value()), 1);
    return {axis.in.value() / divisor, axis.out.value() / divisor};
  }
  const std::optional<Dim> factor = axis.in.is_const() ? std::nullopt : exact_divide(axis.out, axis.in);
  return factor && factor->is_const() ? std::pair<Dim, Dim>(1, *factor) : std::pair(axis.in, axis.out);
}

Position position_of(const std::string& mode, const Axis& axis, const Expr& o) {
  if (mode == "tf_crop_and_resize") return cropped_position(axis, o);
  if (axis.scale) return scaled_position(mode, axis, o);
  const Expr one = integer(1), two = integer(2);
  if (mode == "align_corners") {
    const Expr steps = loop::max(loop::to_expr(axis.out) - one, one);
    return {o * (loop::to_expr(axis.in) - one), steps, {}};
  }
  const auto ratio = ratio_of(axis);
  const Expr in = loop::to_expr(ratio.first), out = loop::to_expr(ratio.second);
  if (mode == "asymmetric") return {o * in, out, {}};
  const Expr centre = (two * o + one) * in;
  if (mode == "tf_half_pixel_for_nn") return {centre, two * out, {}};
  if (mode == "pytorch_half_pixel")
    return {loop::select(loop::to_expr(axis.out) > one, centre - out, integer(0)), two * out, {}};
  return {centre - out, two * out, {}};
}

// The elements that one axis contributes, and their weights.
struct Taps {
  std::vector<Expr> indices, weights;
};

Taps linear_taps(const Position& position, const Axis& axis, DType dtype) {
  const Expr low = position.floor(), extent = loop::to_expr(axis.in), fraction = position.fraction(dtype);
  return {{clamp_index(low, extent), clamp_index(low + integer(1), extent)},
          {loop::constant(1, dtype) - fraction, fraction}};
}

// Keys' cubic convolution with coefficient a, at distance t from the tap before.
std::vector<Expr> cubic_weights(const Expr& t, double a) {
  const DType dtype = t.dtype();
  const auto c = [&](double value) { return loop::constant(value, dtype); };
  const auto near = [&](const Expr& d) { return ((c(a + 2) * d - c(a + 3)) * d) * d + c(1); };            // |d| <= 1
  const auto far = [&](const Expr& d) { return ((c(a) * d - c(5 * a)) * d + c(8 * a)) * d - c(4 * a); };  // 1 < |d| < 2
  const Expr rest = c(1) - t;
  return {far(t + c(1)), near(t), near(rest), far(rest + c(1))};
}

Taps cubic_taps(const Position& position, const Axis& axis, const ResizeAttrs& attrs, DType dtype) {
  const Expr low = position.floor(), extent = loop::to_expr(axis.in), zero = loop::constant(0, dtype);
  Taps taps{{}, cubic_weights(position.fraction(dtype), attrs.cubic_alpha)};
  Expr sum;
  for (int64_t i = 0; i < 4; ++i) {
    const Expr index = low + integer(i - 1);
    taps.indices.push_back(clamp_index(index, extent));
    if (attrs.cubic_exclude == 0) continue;
    taps.weights[i] = loop::select(index >= integer(0) && index < extent, taps.weights[i], zero);
    sum = sum.defined() ? sum + taps.weights[i] : taps.weights[i];
  }
  if (sum.defined()) {
    for (Expr& weight : taps.weights) weight = loop::div(weight, sum);
  }
  return taps;
}

// Sum over all combinations of taps, axis by axis.
Expr weigh(const loop::Tensor& x, Indices& index, const std::vector<Axis>& axes, const std::vector<Taps>& taps,
           size_t level, DType dtype) {
  if (level == axes.size()) return loop::cast(x(index), dtype);
  Expr sum;
  for (size_t i = 0; i < taps[level].indices.size(); ++i) {
    index[axes[level].index] = taps[level].indices[i];
    const Expr term = weigh(x, index, axes, taps, level + 1, dtype) * taps[level].weights[i];
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

std::string spatial_of(const ir::Op& op) {
  return op.name == "image.resize1d" ? "W" : op.name == "image.resize2d" ? "HW" : "DHW";
}

Layout layout_of(const ResizeAttrs& attrs, const std::string& spatial) {
  const Layout layout(attrs.layout.empty() ? "NC" + spatial : attrs.layout);
  for (char letter : spatial) {
    if (layout.index_of(letter) < 0 || layout.block_of(letter) != 1)
      fail(ErrorCode::TypeAttribute, "layout {} must have the axis {}, not split", layout.text(), letter);
  }
  return layout;
}

std::vector<Axis> axes_of(const Shape& from, const Shape& to, const Layout& layout, const std::string& spatial,
                          const ResizeAttrs& attrs) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const size_t index = layout.index_of(spatial[i]);
    Axis axis{index, from[index], to[index], std::nullopt};
    if (attrs.scales) axis.scale = (*attrs.scales)[i];
    if (attrs.roi && attrs.roi->size() == 2 * spatial.size()) {
      axis.roi_begin = (*attrs.roi)[i];
      axis.roi_end = (*attrs.roi)[spatial.size() + i];
    }
    axes.push_back(axis);
  }
  return axes;
}

void resize_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const auto& attrs = relation.attrs<ResizeAttrs>();
  const std::string spatial = spatial_of(relation.op);
  const Layout layout = layout_of(attrs, spatial);
  require_rank(relation, 0, layout.rank());
  const auto check_count = [&](size_t count, size_t wanted, const char* what) {
    if (count != wanted) fail(ErrorCode::TypeAttribute, "{} has {} entries, expected {}", what, count, wanted);
  };
  check_count(attrs.size.size(), spatial.size(), "size");
  if (attrs.roi && !attrs.roi->empty()) check_count(attrs.roi->size(), 2 * spatial.size(), "roi");
  if (attrs.scales) {
    check_count(attrs.scales->size(), spatial.size(), "scales");
    for (double scale : *attrs.scales) {
      if (!(scale > 0) || !std::isfinite(scale)) fail(ErrorCode::TypeAttribute, "scales has {}", scale);
    }
  }
  Shape shape = x->shape;
  for (size_t i = 0; i < spatial.size(); ++i) {
    Dim& extent = shape[layout.index_of(spatial[i])];
    if (!assume_some(extent, attrs.size[i]))
      fail(ErrorCode::TypeMismatch, "axis {} of {} is empty", spatial[i], to_string(x->shape));
    extent = attrs.size[i];
  }
  relation.set_output(tensor_type(shape, attrs.out_dtype.value_or(x->dtype)));
}

ir::LayoutAnswer resize_layout(const ir::LayoutRequest& request) {
  ir::LayoutAnswer answer = original_layout(request);
  const Layout& layout = request.wanted[0];
  const auto& attrs = attrs_of<ResizeAttrs>(request.call);
  const std::string spatial = spatial_of(*request.call.op());
  if (!layout.defined() || !layout.convertible_to(layout_of(attrs, spatial))) return answer;
  for (char letter : spatial) {
    if (layout.block_of(letter) != 1) return answer;
  }
  auto changed = std::make_shared<ResizeAttrs>(attrs);
  changed->layout = layout.text();
  answer.inputs = {layout};
  answer.outputs = {layout};
  answer.attrs = changed;
  return answer;
}

}  // namespace

loop::Tensor resize_compute(const loop::Tensor& x, const Shape& from, const Shape& to, const Layout& layout,
                            const std::string& spatial, const ResizeAttrs& attrs) {
  const std::vector<Axis> axes = axes_of(from, to, layout, spatial, attrs);
  const DType out = attrs.out_dtype.value_or(x.dtype());
  const DType dtype = x.dtype() == dtype::float64_ ? x.dtype() : dtype::float32_;
  const std::string& mode = attrs.coordinate_transformation_mode;
  const std::string rounding = !attrs.rounding_method.empty() ? attrs.rounding_method
                               : mode == "align_corners"      ? "round"
                                                              : "floor";
  return loop::compute("resize", loop::to_exprs(to), [&](const std::vector<loop::Var>& vars) {
    Indices index = to_indices(vars);
    std::vector<Taps> taps;
    Expr outside;
    for (const Axis& axis : axes) {
      const Position position = position_of(mode, axis, vars[axis.index]);
      if (mode == "tf_crop_and_resize") {
        const Expr out_here = position.value < number(0) || position.value > as_double(loop::to_expr(axis.in - Dim(1)));
        outside = outside.defined() ? outside || out_here : out_here;
      }
      if (attrs.method == "nearest_neighbor") {
        index[axis.index] = clamp_index(position.nearest(rounding), loop::to_expr(axis.in));
      } else {
        taps.push_back(attrs.method == "cubic" ? cubic_taps(position, axis, attrs, dtype)
                                               : linear_taps(position, axis, dtype));
      }
    }
    const Expr value =
        taps.empty() ? loop::cast(x(index), out) : loop::cast(weigh(x, index, axes, taps, 0, dtype), out);
    return outside.defined() ? loop::select(outside, saturated_constant(attrs.extrapolation_value, out), value) : value;
  });
}

ir::Expr resize(ir::Expr x, std::shared_ptr<ResizeAttrs> attrs) {
  const size_t rank = x.tensor_type().shape.size();
  const char* name = rank == 3 ? "image.resize1d" : rank == 4 ? "image.resize2d" : "image.resize3d";
  return call_op(name, {std::move(x)}, std::move(attrs));
}

void register_image_resize(ir::OpRegistry& registry) {
  for (const char* name : {"image.resize1d", "image.resize2d", "image.resize3d"}) {
    registry.add<ResizeAttrs>(name, "image/resize")
        .summary("An image resampled to other spatial extents.")
        .formula("y[o] = sum over taps t of weight(t) * x[position(o) + t]")
        .source("Relay 0.16; ONNX Resize, opset 19")
        .input("x", "an image in the layout")
        .fusion(ir::FusionKind::Injective)
        .relation(resize_relation)
        .layout(resize_layout)
        .compute([](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
          const auto& attrs = attrs_of<ResizeAttrs>(call);
          const std::string spatial = spatial_of(*call.op());
          return std::vector{resize_compute(inputs[0], input_types(call)[0]->shape, output_shape(call),
                                            layout_of(attrs, spatial), spatial, attrs)};
        });
  }
}

}  // namespace treadle::op
