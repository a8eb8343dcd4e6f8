// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample, axis by axis: each position of the output takes elements at and around a coordinate of the
// input, with weights. Where the extents are known, positions and weights are constants; nearest and linear also work
// with symbolic extents.
//   o output position, s scale, n input extent, m output extent (n*s where scales are given, before it is rounded
//   down): asymmetric o/s   half_pixel (o+.5)/s-.5   pytorch_half_pixel the same, 0 when m is 1   align_corners
//   o*(n-1)/(m-1) half_pixel_symmetric  half_pixel + n/2 * (1 - m/(n*s))   tf_crop_and_resize  begin*(n-1) +
//   o*(end-begin)*(n-1)/(m-1)
// Source: ONNX Resize, opsets 10 to 19; cubic: Keys 1981.
#include <algorithm>
#include <cmath>

#include "import/onnx/indices.h"
#include "op/tensor/binary.h"
#include "op/tensor/creation.h"
#include "op/tensor/gather.h"
#include "op/tensor/reshape.h"
#include "op/tensor/unary.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;

constexpr int64_t kMaxExtent = int64_t{1} << 24;  // of a resized axis: the largest that float32 counts

struct Options {
  std::string mode, coordinates, nearest;
  double cubic_a = -0.75;
  double extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};

struct Axis {
  int64_t axis = 0;
  Dim in, out;
  std::optional<double> scale;  // nullopt: out / in of symbolic extents
  double roi_begin = 0, roi_end = 1;
};

double coordinate(const Options& options, const Axis& axis, double o) {
  const double s = *axis.scale, n = static_cast<double>(axis.in.value()), m = static_cast<double>(axis.out.value());
  const double exact = n * s;  // m before it is rounded down
  const std::string& mode = options.coordinates;
  if (mode == "asymmetric") return o / s;
  if (mode == "align_corners") return m > 1 ? o * (n - 1) / (exact - 1) : 0;
  if (mode == "pytorch_half_pixel") return m > 1 ? (o + 0.5) / s - 0.5 : 0;
  if (mode == "half_pixel_symmetric") return n / 2 * (1 - m / exact) + (o + 0.5) / s - 0.5;
  if (mode == "tf_half_pixel_for_nn") return (o + 0.5) / s;
  if (mode == "tf_crop_and_resize") {
    const double begin = axis.roi_begin, end = axis.roi_end;
    return m > 1 ? begin * (n - 1) + o * (end - begin) * (n - 1) / (exact - 1) : 0.5 * (begin + end) * (n - 1);
  }
  return (o + 0.5) / s - 0.5;
}

double nearest_index(const std::string& mode, double x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
  return std::ceil(x - 0.5);
}

double kernel(const Options& options, double t) {
  t = std::abs(t);
  if (options.mode == "linear") return std::max(0.0, 1 - t);
  const double a = options.cubic_a;
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? a * (((t - 5) * t + 8) * t - 4) : 0;
}

// The elements of the input and their weights for one position of the output.
struct Taps {
  std::vector<int64_t> index;
  std::vector<double> weight;
};

Taps taps_at(const Options& options, const Axis& axis, int64_t o) {
  const int64_t n = axis.in.value();
  const double x = coordinate(options, axis, static_cast<double>(o));
  Taps taps;
  if (options.mode == "nearest") {
    taps.index = {static_cast<int64_t>(std::clamp(nearest_index(options.nearest, x), 0.0, static_cast<double>(n - 1)))};
    taps.weight = {1};
    return taps;
  }
  // Antialiasing widens the kernel by the factor by which the axis shrinks.
  const double stretch = options.antialias && *axis.scale < 1 ? 1 / *axis.scale : 1;
  const double radius = (options.mode == "linear" ? 1 : 2) * stretch;
  double total = 0;
  const bool normalise = options.exclude_outside || options.antialias;
  for (auto i = static_cast<int64_t>(std::floor(x - radius)) + 1; static_cast<double>(i) < x + radius; ++i) {
    const bool outside = i < 0 || i >= n;
    const double weight =
        outside && options.exclude_outside ? 0 : kernel(options, (static_cast<double>(i) - x) / stretch);
    taps.index.push_back(std::clamp<int64_t>(i, 0, n - 1));
    taps.weight.push_back(weight);
    total += weight;
  }
  if (normalise && total != 0) {
    for (double& weight : taps.weight) weight /= total;
  }
  return taps;
}

Expr broadcast_along(const Expr& vector, int64_t axis, size_t rank) {
  const int64_t behind = static_cast<int64_t>(rank) - 1 - axis;
  return behind > 0 ? op::expand_dims(vector, 1, behind) : vector;
}

Expr resize_constant(const Options& options, const Axis& axis, const Expr& x) {
  const int64_t m = axis.out.value();
  const size_t rank = x.tensor_type().shape.size();
  std::vector<Taps> taps;
  size_t most = 0;
  for (int64_t o = 0; o < m; ++o) {
    taps.push_back(taps_at(options, axis, o));
    most = std::max(most, taps.back().index.size());
  }
  const DType dtype = x.tensor_type().dtype;
  Expr result;
  for (size_t t = 0; t < most; ++t) {
    std::vector<int64_t> index;
    std::vector<double> weight;
    for (const Taps& at : taps) {
      index.push_back(t < at.index.size() ? at.index[t] : 0);
      weight.push_back(t < at.index.size() ? at.weight[t] : 0);
    }
    Expr part = op::take(x, ir::constant(Tensor::from<int64_t>(index)), axis.axis);
    if (options.mode == "nearest") return part;
    part = op::multiply(part,
                        broadcast_along(op::cast(ir::constant(Tensor::from<double>(weight)), dtype), axis.axis, rank));
    result = result.defined() ? op::add(result, part) : part;
  }
  return result.defined() ? result : x;
}

// tf_crop_and_resize: positions whose coordinate lies outside of the input take the extrapolation value.
Expr extrapolated(const Node& node, const Options& options, const std::vector<Axis>& axes, Expr result) {
  if (options.coordinates != "tf_crop_and_resize") return result;
  const TensorType type = result.tensor_type();
  for (const Axis& axis : axes) {
    std::vector<uint8_t> inside;
    for (int64_t o = 0; o < axis.out.value(); ++o) {
      const double x = coordinate(options, axis, static_cast<double>(o));
      inside.push_back(x >= 0 && x <= static_cast<double>(axis.in.value() - 1));
    }
    const Expr mask = broadcast_along(op::cast(ir::constant(Tensor::from<uint8_t>(inside)), dtype::bool_), axis.axis,
                                      type.shape.size());
    result = op::where(mask, result, node.number(options.extrapolation, type.dtype));
  }
  return result;
}

Expr as_float(const Dim& extent) { return op::cast(extent_value(extent, dtype::int64_), dtype::float32_); }

Expr symbolic_coordinate(const Node& node, const Options& options, const Axis& axis) {
  const Expr o = op::cast(op::arange(Dim(0), axis.out, 1, dtype::int64_), dtype::float32_);
  const Expr scale =
      axis.scale ? node.number(*axis.scale, dtype::float32_) : op::divide(as_float(axis.out), as_float(axis.in));
  const std::string& mode = options.coordinates;
  if (mode == "asymmetric") return op::divide(o, scale);
  if (mode == "align_corners") {
    const Expr exact = axis.scale ? op::multiply(as_float(axis.in), scale) : as_float(axis.out);
    const Expr steps = node.call("maximum", {op::add(exact, -1.0), node.number(1, dtype::float32_)});
    return op::divide(op::multiply(o, as_float(axis.in - 1)), steps);
  }
  const Expr half = op::add(op::divide(op::add(o, 0.5), scale), -0.5);
  if (mode == "half_pixel") return half;
  if (mode == "pytorch_half_pixel")
    return op::where(node.call("greater", {as_float(axis.out), node.number(1, dtype::float32_)}), half,
                     node.number(0, dtype::float32_));
  node.unsupported(
      fmt::format("coordinate_transformation_mode {} of the symbolic extent {}", mode, to_string(axis.in)));
}

Expr resize_symbolic(const Node& node, const Options& options, const Axis& axis, const Expr& x) {
  if (options.antialias || options.exclude_outside || options.mode == "cubic")
    node.unsupported(fmt::format("cubic interpolation, antialias and exclude_outside of the symbolic extent {}",
                                 to_string(axis.in)));
  const Expr at = symbolic_coordinate(node, options, axis);
  const auto place = [&](const Expr& value) { return op::take(x, op::cast(value, dtype::int64_), axis.axis); };
  if (options.mode == "nearest") {
    if (options.nearest == "floor") return place(node.call("floor", {at}));
    if (options.nearest == "ceil") return place(node.call("ceil", {at}));
    if (options.nearest == "round_prefer_ceil") return place(node.call("floor", {op::add(at, 0.5)}));
    return place(node.call("ceil", {op::add(at, -0.5)}));
  }
  const Expr below = node.call("floor", {at});
  const Expr weight = op::cast(broadcast_along(op::subtract(at, below), axis.axis, x.tensor_type().shape.size()),
                               x.tensor_type().dtype);
  const Expr a = place(below), b = place(op::add(below, 1.0));
  return op::add(a, op::multiply(op::subtract(b, a), weight));
}

// One operator where the spatial axes of an image are resized in a way that it knows; undefined where not.
Expr resize_image(const Node& node, const Options& options, const std::vector<Axis>& axes, const Expr& x) {
  const Shape& shape = x.tensor_type().shape;
  if (shape.size() < 3 || shape.size() > 5 || options.antialias || (options.exclude_outside && options.mode != "cubic"))
    return Expr();
  if (options.coordinates == "tf_crop_and_resize" || options.coordinates == "half_pixel_symmetric") return Expr();
  Shape size(shape.begin() + 2, shape.end());
  ir::Floats scales(size.size(), 1.0);
  bool exact = true;
  for (const Axis& axis : axes) {
    const bool same = axis.in == axis.out && axis.scale == 1.0;
    if (axis.axis < 2 && !same) return Expr();
    if (axis.axis < 2) continue;
    const auto at = static_cast<size_t>(axis.axis) - 2;
    size[at] = axis.out;
    if (axis.scale) scales[at] = *axis.scale;
    if (!axis.scale || same) continue;
    const double wanted = *axis.scale;
    const bool fits =
        axis.in.is_const()
            ? static_cast<double>(axis.out.value()) == wanted * static_cast<double>(axis.in.value())
            : wanted == std::floor(wanted) && wanted < 1e6 && axis.out == axis.in * static_cast<int64_t>(wanted);
    const bool from_sizes =
        axis.in.is_const() && wanted == static_cast<double>(axis.out.value()) / static_cast<double>(axis.in.value());
    exact &= fits || from_sizes;
  }
  if (!exact && options.coordinates == "align_corners") return Expr();
  ir::AttrMap attrs = {{"size", size},
                       {"layout", std::string(shape.size() == 3   ? "NCW"
                                              : shape.size() == 4 ? "NCHW"
                                                                  : "NCDHW")},
                       {"method", options.mode == "nearest" ? "nearest_neighbor" : options.mode},
                       {"coordinate_transformation_mode", options.coordinates},
                       {"rounding_method", options.mode == "nearest" ? options.nearest : "round"},
                       {"cubic_alpha", options.cubic_a},
                       {"cubic_exclude", static_cast<int64_t>(options.exclude_outside)}};
  if (!exact) attrs["scales"] = scales;
  return node.call(fmt::format("image.resize{}d", shape.size() - 2), {x}, attrs);
}

Expr resize(const Node& node, const Options& options, const std::vector<Axis>& axes, const Expr& data) {
  const DType dtype = data.tensor_type().dtype;
  // Integers and halves are interpolated in float32.
  const bool convert = options.mode != "nearest" && (!dtype.is_float() || dtype.is_half());
  Expr x = convert ? op::cast(data, dtype::float32_) : data;
  if (const Expr image = resize_image(node, options, axes, x); image.defined()) {
    const Expr rounded = convert && dtype.is_integer() ? node.call("round_even", {image}) : image;
    return convert ? op::cast(rounded, dtype) : rounded;
  }
  std::vector<Axis> changed;
  for (const Axis& axis : axes) {
    const bool whole = axis.roi_begin == 0 && axis.roi_end == 1;
    if (axis.in == axis.out && axis.scale == 1.0 && (whole || options.coordinates != "tf_crop_and_resize")) continue;
    changed.push_back(axis);
    const bool constant = axis.in.is_const() && axis.out.is_const() && axis.scale;
    if (!constant && options.coordinates == "tf_crop_and_resize")
      node.unsupported("tf_crop_and_resize of a symbolic extent");
    if (constant && (axis.in.is(0) || axis.out.value() > kMaxExtent))
      node.unsupported(fmt::format("an extent of {} becomes {}", axis.in.value(), axis.out.value()));
    x = constant ? resize_constant(options, axis, x) : resize_symbolic(node, options, axis, x);
  }
  x = extrapolated(node, options, changed, x);
  if (!convert) return x;
  return op::cast(dtype.is_integer() ? node.call("round_even", {x}) : x, dtype);
}

// floor(extent * scale); of a symbolic extent the scale must be a fraction of numbers that leave room for the product,
// as every float32 that is neither tiny nor huge is one of a power of two.
Dim scaled_extent(const Node& node, const Dim& extent, double scale) {
  if (!(scale > 0) || !std::isfinite(scale)) node.malformed(fmt::format("the scale is {}", scale));
  if (extent.is_const()) return static_cast<int64_t>(std::floor(static_cast<double>(extent.value()) * scale));
  for (int64_t denominator = 1; denominator <= int64_t{1} << 30; denominator += denominator < 64 ? 1 : denominator) {
    const double numerator = scale * static_cast<double>(denominator);
    if (numerator == std::floor(numerator) && numerator < 0x1p31)
      return floordiv(extent * static_cast<int64_t>(numerator), denominator);
  }
  node.unsupported(fmt::format("the scale {} of the symbolic extent {}", scale, to_string(extent)));
}

std::vector<double> numbers(Node& node, size_t i, const char* what) {
  const Known* known = node.known(i);
  if (!known || !known->is_const())
    node.unsupported(fmt::format("{} (input {}) are computed from data or from symbolic extents", what, i));
  std::vector<double> result;
  for (const Element& element : known->values) result.push_back(element.number());
  return result;
}

// An input counts as absent when it is empty (a tensor without elements) too.
bool given(Node& node, size_t i) {
  if (!node.has(i)) return false;
  const Type held = node.value(i).type();
  const TensorType* type = as_tensor(held);
  return !type || type->shape.size() != 1 || !type->shape[0].is(0);
}

Options read_options(Node& node) {
  Options options;
  options.mode = node.s("mode", "nearest");
  if (node.opset() < 11 && (options.mode == "bilinear" || options.mode == "linear")) options.mode = "linear";
  options.nearest = "floor";
  options.coordinates = "asymmetric";
  if (node.opset() >= 11) {
    options.nearest = node.s("nearest_mode", "round_prefer_floor");
    options.coordinates = node.s("coordinate_transformation_mode", "half_pixel");
    options.cubic_a = node.f("cubic_coeff_a", -0.75);
    options.exclude_outside = node.flag("exclude_outside");
    options.extrapolation = node.f("extrapolation_value", 0);
  }
  if (node.opset() >= 18) options.antialias = node.flag("antialias") && options.mode != "nearest";
  const auto check = [&](const std::string& value, std::initializer_list<const char*> allowed, const char* name) {
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      node.malformed(fmt::format("{} is \"{}\"", name, printable(value)));
  };
  check(options.mode, {"nearest", "linear", "cubic"}, "mode");
  check(options.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}, "nearest_mode");
  check(options.coordinates,
        {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
         "tf_crop_and_resize", "tf_half_pixel_for_nn"},
        "coordinate_transformation_mode");
  return options;
}

std::vector<Axis> axes_by_scale(Node& node, const std::vector<double>& scales, const ir::Ints& axes) {
  if (scales.size() != axes.size()) node.malformed(fmt::format("{} scales for {} axes", scales.size(), axes.size()));
  std::vector<Axis> result;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim& in = node.shape(0)[static_cast<size_t>(axes[i])];
    result.push_back({axes[i], in, scaled_extent(node, in, scales[i]), scales[i]});
  }
  return result;
}

// keep_aspect_ratio_policy not_larger and not_smaller: one scale for all axes, the extents rounded half up.
void keep_aspect_ratio(Node& node, const std::string& policy, std::vector<Axis>& axes) {
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller")
    node.malformed(fmt::format("keep_aspect_ratio_policy is \"{}\"", printable(policy)));
  double scale = policy == "not_larger" ? 1e30 : 0;
  for (const Axis& axis : axes) {
    if (!axis.scale) node.unsupported("keep_aspect_ratio_policy of a symbolic extent");
    scale = policy == "not_larger" ? std::min(scale, *axis.scale) : std::max(scale, *axis.scale);
  }
  for (Axis& axis : axes) {
    axis.scale = scale;
    axis.out = static_cast<int64_t>(std::floor(static_cast<double>(axis.in.value()) * scale + 0.5));
  }
}

std::vector<Axis> axes_by_size(Node& node, size_t input, const ir::Ints& axes) {
  const Shape sizes = node.dims_input(input, "the sizes");
  if (sizes.size() != axes.size()) node.malformed(fmt::format("{} sizes for {} axes", sizes.size(), axes.size()));
  std::vector<Axis> result;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim& in = node.shape(0)[static_cast<size_t>(axes[i])];
    if (sizes[i].is_const() && sizes[i].value() < 0) node.malformed(fmt::format("a size is {}", sizes[i].value()));
    Axis axis{axes[i], in, sizes[i], std::nullopt};
    if (in == sizes[i])
      axis.scale = 1;
    else if (in.is_const() && sizes[i].is_const() && in.value() > 0)
      axis.scale = static_cast<double>(sizes[i].value()) / static_cast<double>(in.value());
    result.push_back(std::move(axis));
  }
  return result;
}

// X, roi, scales, sizes.
Exprs resize_rule(Node& node) {
  const Options options = read_options(node);
  ir::Ints axes;
  for (size_t i = 0; i < node.rank(0); ++i) axes.push_back(static_cast<int64_t>(i));
  if (node.opset() >= 18) {
    if (const auto listed = node.optional_ints("axes")) axes = axes_of(node, *listed, node.rank(0));
  }
  const bool by_scale = given(node, 2), by_size = given(node, 3);
  if (by_scale == by_size) node.malformed("exactly one of scales and sizes must be given");
  std::vector<Axis> plan =
      by_scale ? axes_by_scale(node, numbers(node, 2, "the scales"), axes) : axes_by_size(node, 3, axes);
  if (node.opset() >= 18) {
    const std::string policy = node.s("keep_aspect_ratio_policy", "stretch");
    if (by_size) keep_aspect_ratio(node, policy, plan);
  }
  if (given(node, 1)) {
    if (options.coordinates == "tf_crop_and_resize") {
      const std::vector<double> roi = numbers(node, 1, "the region");
      if (roi.size() != 2 * axes.size())
        node.malformed(fmt::format("the region has {} numbers for {} axes", roi.size(), axes.size()));
      for (size_t i = 0; i < axes.size(); ++i) {
        plan[i].roi_begin = roi[i];
        plan[i].roi_end = roi[axes.size() + i];
      }
    }
  } else if (options.coordinates == "tf_crop_and_resize") {
    node.malformed("tf_crop_and_resize needs the region");
  }
  return {resize(node, options, plan, node.input(0))};
}

// Before opset 11 the operators had a mode and scales only. The nearest element is the one before where an axis grows
// and the one behind where it shrinks, as the tests of opset 10 have it.
Exprs resize_by_scales(Node& node, const std::vector<double>& scales) {
  Options options = read_options(node);
  ir::Ints axes;
  for (size_t i = 0; i < node.rank(0); ++i) axes.push_back(static_cast<int64_t>(i));
  std::vector<Axis> growing, shrinking;
  for (const Axis& axis : axes_by_scale(node, scales, axes)) {
    const bool shrinks = options.mode == "nearest" && *axis.scale < 1;
    (shrinks ? shrinking : growing).push_back(axis);
  }
  const Expr grown = resize(node, options, growing, node.input(0));
  if (shrinking.empty()) return {grown};
  options.nearest = "ceil";
  return {resize(node, options, shrinking, grown)};
}

Exprs resize_10_rule(Node& node) { return resize_by_scales(node, numbers(node, 1, "the scales")); }

Exprs upsample_rule(Node& node) {
  return resize_by_scales(node, node.opset() < 9 ? node.floats("scales") : numbers(node, 1, "the scales"));
}

}  // namespace

void add_resize_rules(RuleTable& table) {
  table.add("Resize", {10}, resize_10_rule);
  table.add("Resize", {11, 13, 18, 19}, resize_rule);
  table.add("Upsample", {7, 9}, upsample_rule);
}

}  // namespace treadle::onnx
