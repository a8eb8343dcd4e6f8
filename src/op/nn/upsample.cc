// SPDX-License-Identifier: Apache-2.0
#include "op/nn/upsample.h"

#include <cmath>

#include "op/nn/window.h"

namespace treadle::op {
namespace {

using loop::Expr;

enum class Coordinates { Asymmetric, AlignCorners, HalfPixel };
enum class Method { Nearest, Linear, Cubic };

struct Upsample {
  std::string spatial, letters;
  Layout layout;
  std::vector<double> scales;
  Method method;
  Coordinates coordinates;
};

Upsample upsample_of(const UpsamplingAttrs& attrs) {
  return {"HW",
          "NCHW",
          parse_layout(attrs.layout, "NCHW", "layout"),
          {attrs.scale_h, attrs.scale_w},
          attrs.method == "bicubic"    ? Method::Cubic
          : attrs.method == "bilinear" ? Method::Linear
                                       : Method::Nearest,
          attrs.align_corners ? Coordinates::AlignCorners : Coordinates::Asymmetric};
}

Upsample upsample_of(const Upsampling3DAttrs& attrs) {
  const std::string& mode = attrs.coordinate_transformation_mode;
  return {"DHW",
          "NCDHW",
          parse_layout(attrs.layout, "NCDHW", "layout"),
          {attrs.scale_d, attrs.scale_h, attrs.scale_w},
          attrs.method == "trilinear" ? Method::Linear : Method::Nearest,
          mode == "align_corners" ? Coordinates::AlignCorners
          : mode == "asymmetric"  ? Coordinates::Asymmetric
                                  : Coordinates::HalfPixel};
}

// round(extent * scale), halves up; of a symbolic extent when the scale is a multiple of 1/64.
Dim scaled_extent(const Dim& extent, double scale, char axis) {
  if (extent.is_const()) {
    const double result = std::floor(static_cast<double>(extent.value()) * scale + 0.5);
    if (!(result < 9e15)) fail(ErrorCode::Limit, "axis {} becomes {} elements long", axis, result);
    return static_cast<int64_t>(result);
  }
  for (int64_t denominator : {1, 2, 4, 8, 16, 32, 64, 3, 5, 10}) {
    const double numerator = scale * static_cast<double>(denominator);
    if (numerator == std::floor(numerator) && numerator < 1e9) {
      return floordiv(extent * (2 * static_cast<int64_t>(numerator)) + denominator, 2 * denominator);
    }
  }
  fail(ErrorCode::TypeAttribute, "axis {}: the extent {} is symbolic and the scale {} is no simple fraction", axis,
       to_string(extent), scale);
}

template <typename A>
void upsample_relation(ir::Relation& relation) {
  const TensorType* data = relation.tensor(0);
  if (!data) return;
  const Upsample up = upsample_of(relation.attrs<A>());
  const Shape in = primal_shape(up.layout, data->shape, up.letters, "data");
  if (up.method != Method::Nearest && !data->dtype.is_float()) {
    fail(ErrorCode::TypeMismatch, "data is {}, interpolation needs a float dtype", to_string(data->dtype));
  }
  Shape out = data->shape;
  for (size_t s = 0; s < up.spatial.size(); ++s) {
    if (!(up.scales[s] > 0) || !std::isfinite(up.scales[s]))
      fail(ErrorCode::TypeAttribute, "the scale of axis {} is {}, it must be positive", up.spatial[s], up.scales[s]);
    out[static_cast<size_t>(up.layout.index_of(up.spatial[s]))] = scaled_extent(in[2 + s], up.scales[s], up.spatial[s]);
  }
  relation.set_output(tensor_type(std::move(out), data->dtype));
}

// One tap of an interpolation along an axis: where, and with which weight (undefined: 1).
struct Tap {
  Expr index, weight;
};

// The coordinate in the input, in `dtype`.
Expr source_coordinate(const Upsample& up, double scale, const Expr& o, const Expr& in, const Expr& out, DType dtype) {
  const auto number = [&](double value) { return loop::constant(value, dtype); };
  if (up.coordinates == Coordinates::AlignCorners) {
    const Expr steps = loop::max(out - Expr(1), Expr(1));
    return loop::div(loop::cast(o * (in - Expr(1)), dtype), loop::cast(steps, dtype));
  }
  if (up.coordinates == Coordinates::HalfPixel)
    return loop::div(loop::cast(o, dtype) + number(0.5), number(scale)) - number(0.5);
  return loop::div(loop::cast(o, dtype), number(scale));
}

// Keys' cubic convolution kernel with a = -0.5 for the four taps around a position `t` behind the second.
std::vector<Expr> cubic_weights(const Expr& t) {
  const auto number = [&](double value) { return loop::constant(value, t.dtype()); };
  const double a = -0.5;
  const auto near = [&](const Expr& d) { return (number(a + 2) * d - number(a + 3)) * d * d + number(1); };
  const auto far = [&](const Expr& d) {
    return ((number(a) * d - number(5 * a)) * d + number(8 * a)) * d - number(4 * a);
  };
  return {far(t + number(1)), near(t), near(number(1) - t), far(number(2) - t)};
}

std::vector<Tap> taps(const Upsample& up, size_t s, const Expr& o, const Expr& in, const Expr& out, DType dtype) {
  const double scale = up.scales[s];
  const bool whole = scale == std::floor(scale) && scale < 1e9;
  if (up.method == Method::Nearest && up.coordinates == Coordinates::Asymmetric && whole) {
    return {{loop::floordiv(o, Expr(static_cast<int64_t>(scale))), Expr()}};
  }
  const Expr x = source_coordinate(up, scale, o, in, out, dtype);
  if (up.method == Method::Nearest) {
    // Relay adds a little so that a quotient just below a whole number is not rounded down.
    const Expr nearest = up.coordinates == Coordinates::AlignCorners
                             ? loop::intrinsic(loop::Intrinsic::RoundAway, {x})
                             : loop::intrinsic(loop::Intrinsic::Floor, {x + loop::constant(1e-5, dtype)});
    return {{clamp_index(loop::cast(nearest, dtype::int64_), in), Expr()}};
  }
  const Expr base = loop::intrinsic(loop::Intrinsic::Floor, {x});
  const Expr first = loop::cast(base, dtype::int64_), t = x - base;
  const auto at = [&](int64_t step) { return clamp_index(first + Expr(step), in); };
  if (up.method == Method::Linear) return {{at(0), loop::constant(1, dtype) - t}, {at(1), t}};
  const std::vector<Expr> weights = cubic_weights(t);
  return {{at(-1), weights[0]}, {at(0), weights[1]}, {at(1), weights[2]}, {at(2), weights[3]}};
}

// sum over the taps of spatial axes s and behind of weights * x(index).
Expr interpolate(const loop::Tensor& x, const std::vector<std::vector<Tap>>& all, const std::vector<size_t>& axes,
                 size_t s, Indices index, DType dtype) {
  if (s == all.size()) return loop::cast(x(index), dtype);
  Expr sum;
  for (const Tap& tap : all[s]) {
    index[axes[s]] = tap.index;
    const Expr inner = interpolate(x, all, axes, s + 1, index, dtype);
    const Expr term = tap.weight.defined() ? tap.weight * inner : inner;
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

template <typename A>
std::vector<loop::Tensor> upsample_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const Upsample up = upsample_of(attrs_of<A>(call));
  const loop::Tensor& x = inputs[0];
  const Shape& out = output_shape(call);
  const DType coordinate_dtype = x.dtype() == dtype::float64_ ? dtype::float64_ : dtype::float32_;
  const DType value_dtype = up.method == Method::Nearest ? x.dtype() : accumulator_dtype(x.dtype());
  std::vector<size_t> axes;
  for (char letter : up.spatial) axes.push_back(static_cast<size_t>(up.layout.index_of(letter)));
  return {loop::compute("upsampling", loop::to_exprs(out), [&](const std::vector<loop::Var>& i) {
    std::vector<std::vector<Tap>> all;
    for (size_t s = 0; s < axes.size(); ++s)
      all.push_back(taps(up, s, i[axes[s]], x.shape(axes[s]), loop::to_expr(out[axes[s]]), coordinate_dtype));
    return loop::cast(interpolate(x, all, axes, 0, to_indices(i), value_dtype), x.dtype());
  })};
}

// Runs in whatever layout the data comes in, when only its channels are split.
template <typename A>
ir::LayoutAnswer upsample_layout(const ir::LayoutRequest& request) {
  const A& attrs = attrs_of<A>(request.call);
  const Layout& wanted = request.wanted[0];
  const Layout own(attrs.layout);
  if (!wanted.defined() || !wanted.convertible_to(own)) return {{own}, {own}, request.call.attrs};
  for (const Layout::Axis& axis : wanted.axes()) {
    if (!axis.primal() && axis.name != 'c') return {{own}, {own}, request.call.attrs};
  }
  auto changed = std::make_shared<A>(attrs);
  changed->layout = wanted.text();
  return {{wanted}, {wanted}, changed};
}

template <typename A>
void add_upsampling(ir::OpRegistry& registry, const std::string& name, const std::string& summary,
                    const std::string& shape) {
  registry.add<A>(name, "nn/upsample")
      .summary(summary)
      .formula("y[o] = x interpolated at o/scale, o*(in-1)/(out-1) or (o + 0.5)/scale - 0.5")
      .source("Relay 0.16")
      .input("data", shape)
      .fusion(ir::FusionKind::Injective)
      .traits(ir::kScaleCommutes)
      .relation(upsample_relation<A>)
      .compute(upsample_compute<A>)
      .layout(upsample_layout<A>);
}

}  // namespace

ir::Expr upsampling(ir::Expr data, double scale_h, double scale_w, std::string method, std::string layout,
                    bool align_corners, Span span) {
  auto attrs = UpsamplingAttrs::defaults();
  attrs->scale_h = scale_h;
  attrs->scale_w = scale_w;
  attrs->method = std::move(method);
  attrs->layout = std::move(layout);
  attrs->align_corners = align_corners;
  return ir::call(&ir::OpRegistry::instance().get("nn.upsampling"), {std::move(data)}, std::move(attrs),
                  std::move(span));
}

void register_nn_upsample(ir::OpRegistry& registry) {
  add_upsampling<UpsamplingAttrs>(registry, "nn.upsampling", "Enlarges height and width by interpolation.",
                                  "(N, C, H, W)");
  add_upsampling<Upsampling3DAttrs>(registry, "nn.upsampling3d", "Enlarges depth, height and width by interpolation.",
                                    "(N, C, D, H, W)");
}

}  // namespace treadle::op
