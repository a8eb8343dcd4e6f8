// SPDX-License-Identifier: Apache-2.0
#include "op/nn/upsample.h"

#include <cmath>

#include "op/image/resize.h"
#include "op/nn/window.h"

namespace treadle::op {
namespace {

struct Upsample {
  std::string spatial, letters;
  Layout layout;
  std::vector<double> scales;
  std::string method, coordinates;  // as image.resize names them
};

std::string resize_method(const std::string& method) {
  if (method == "bicubic") return "cubic";
  return method == "bilinear" || method == "trilinear" ? "linear" : method;
}

Upsample upsample_of(const UpsamplingAttrs& attrs) {
  return {"HW",
          "NCHW",
          parse_layout(attrs.layout, "NCHW", "layout"),
          {attrs.scale_h, attrs.scale_w},
          resize_method(attrs.method),
          attrs.align_corners ? "align_corners" : "asymmetric"};
}

Upsample upsample_of(const Upsampling3DAttrs& attrs) {
  return {"DHW",
          "NCDHW",
          parse_layout(attrs.layout, "NCDHW", "layout"),
          {attrs.scale_d, attrs.scale_h, attrs.scale_w},
          resize_method(attrs.method),
          attrs.coordinate_transformation_mode};
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
  if (up.method != "nearest_neighbor" && !data->dtype.is_float()) {
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

template <typename A>
std::vector<loop::Tensor> upsample_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const Upsample up = upsample_of(attrs_of<A>(call));
  const auto resize = ResizeAttrs::defaults();
  resize->method = up.method;
  resize->coordinate_transformation_mode = up.coordinates;
  resize->rounding_method = "";
  return {resize_compute(inputs[0], input_types(call)[0]->shape, output_shape(call), up.layout, up.spatial, *resize)};
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
      .formula("y[o] = x interpolated at o*in/out, o*(in-1)/(out-1) or (o + 0.5)*in/out - 0.5")
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
