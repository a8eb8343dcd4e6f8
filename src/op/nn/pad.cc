// SPDX-License-Identifier: Apache-2.0
#include "op/nn/pad.h"

#include <algorithm>

#include "op/nn/window.h"

namespace treadle::op {
namespace {

using loop::Expr;

enum class Mode { Constant, Edge, Reflect, Symmetric };

Mode mode_of(const std::string& text) {
  if (text == "constant") return Mode::Constant;
  if (text == "edge") return Mode::Edge;
  if (text == "reflect" || text == "REFLECT") return Mode::Reflect;
  if (text == "SYMMETRIC") return Mode::Symmetric;
  fail(ErrorCode::TypeAttribute, "pad mode \"{}\" is not known", text);
}

Type padded_type(const TensorType& data, const ir::IntLists& widths, Mode mode) {
  if (widths.size() != data.shape.size()) {
    fail(ErrorCode::TypeAttribute, "pad_width has {} pairs but the data {} has rank {}", widths.size(),
         to_string(data.shape), data.shape.size());
  }
  Shape shape;
  for (size_t a = 0; a < widths.size(); ++a) {
    if (widths[a].size() != 2)
      fail(ErrorCode::TypeAttribute, "pad_width of axis {} has {} values, it must have 2", a, widths[a].size());
    shape.push_back(data.shape[a] + widths[a][0] + widths[a][1]);
    if (shape.back().is_const() && shape.back().value() < 0) {
      fail(ErrorCode::TypeMismatch, "axis {} of extent {} with pad_width {} and {} has {} elements left", a,
           to_string(data.shape[a]), widths[a][0], widths[a][1], shape.back().value());
    }
    if (mode != Mode::Constant && !assume_some(data.shape[a], shape.back())) {
      fail(ErrorCode::TypeMismatch, "axis {} is empty: it has no element to repeat", a);
    }
  }
  return tensor_type(std::move(shape), data.dtype);
}

// Position in 0 … extent-1 that `index`, which may lie outside by up to `before` and `after`, is filled from.
Expr source_position(Mode mode, const Expr& index, const Dim& extent, int64_t before, int64_t after) {
  if (before <= 0 && after <= 0) return index;
  if (extent.is(1)) return Expr(0);
  const Expr n = loop::to_expr(extent), last = n - Expr(1);
  if (mode == Mode::Edge) return clamp_index(index, n);
  const int64_t shift = mode == Mode::Reflect ? 0 : 1;  // the mirror lies between elements, or on one
  const int64_t reach = std::max(before, after);
  if (extent.is_const() && reach <= extent.value() - 1 + shift) {
    const Expr folded = loop::select(index < Expr(0), Expr(-shift) - index, index);
    return loop::select(folded > last, Expr(2) * last + Expr(shift) - folded, folded);
  }
  // Back and forth with the period of two passes; an axis of one element has period 0, and the remainder of 0 is 0.
  const Expr period = Expr(2) * last + Expr(2 * shift);
  const Expr phase = loop::floormod(index, period);
  return loop::min(phase, period - Expr(shift) - phase);
}

loop::Tensor padded(const loop::Tensor& x, const TensorType& type, const Shape& out, const ir::IntLists& widths,
                    Mode mode, const Expr& fill) {
  return loop::compute("pad", loop::to_exprs(out), [&](const std::vector<loop::Var>& i) {
    Indices source;
    Expr inside = loop::bool_imm(true);
    for (size_t a = 0; a < x.rank(); ++a) {
      const Expr index = i[a] - Expr(widths[a][0]);
      if (mode != Mode::Constant) {
        source.push_back(source_position(mode, index, type.shape[a], widths[a][0], widths[a][1]));
        continue;
      }
      source.push_back(index);
      if (widths[a][0] > 0) inside = inside && i[a] >= Expr(widths[a][0]);
      if (widths[a][1] > 0) inside = inside && index < x.shape(a);
    }
    return mode == Mode::Constant ? loop::select(inside, x(source), fill) : x(source);
  });
}

// ---- nn.pad ----

void pad_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const auto& attrs = relation.attrs<PadAttrs>();
  if (relation.tensor(1))
    require_rank(relation, 1, 0);
  else
    relation.set_input(1, tensor_type({}, x->dtype));
  relation.set_output(padded_type(*x, attrs.pad_width, mode_of(attrs.pad_mode)));
}

std::vector<loop::Tensor> pad_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<PadAttrs>(call);
  const Expr fill = loop::cast(inputs[1](Indices{}), inputs[0].dtype());
  return {padded(inputs[0], *input_types(call)[0], output_shape(call), attrs.pad_width, mode_of(attrs.pad_mode), fill)};
}

// Blocked layouts pass when the padding along the split axis is whole blocks of constants.
ir::LayoutAnswer pad_layout(const ir::LayoutRequest& request) {
  const auto& attrs = attrs_of<PadAttrs>(request.call);
  const Layout& wanted = request.wanted[0];
  const ir::LayoutAnswer unchanged = original_layout(request);
  // Of a pure reordering it is not known which axis is which.
  if (!wanted.defined() || wanted.text() == wanted.primal().text() || wanted.primal().rank() != attrs.pad_width.size())
    return unchanged;
  ir::IntLists widths;
  for (const Layout::Axis& axis : wanted.axes()) {
    if (!axis.primal()) {
      widths.push_back({0, 0});
      continue;
    }
    ir::Ints pair = attrs.pad_width[static_cast<size_t>(wanted.primal().index_of(axis.name))];
    const int64_t block = wanted.block_of(axis.name);
    for (int64_t& width : pair) {
      if (width % block != 0 || (block != 1 && width != 0 && attrs.pad_mode != "constant")) return unchanged;
      width /= block;
    }
    widths.push_back(std::move(pair));
  }
  auto changed = std::make_shared<PadAttrs>(attrs);
  changed->pad_width = std::move(widths);
  return {{wanted, Layout()}, {wanted}, changed};
}

// ---- nn.mirror_pad ----

void mirror_pad_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const auto& attrs = relation.attrs<MirrorPadAttrs>();
  relation.set_output(padded_type(*x, attrs.pad_width, mode_of(attrs.mode)));
}

std::vector<loop::Tensor> mirror_pad_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<MirrorPadAttrs>(call);
  return {padded(inputs[0], *input_types(call)[0], output_shape(call), attrs.pad_width, mode_of(attrs.mode), Expr())};
}

}  // namespace

ir::Expr pad(ir::Expr data, ir::Expr value, ir::IntLists pad_width, std::string mode, Span span) {
  auto attrs = PadAttrs::defaults();
  attrs->pad_width = std::move(pad_width);
  attrs->pad_mode = std::move(mode);
  return ir::call(&ir::OpRegistry::instance().get("nn.pad"), {std::move(data), std::move(value)}, std::move(attrs),
                  std::move(span));
}

ir::Expr mirror_pad(ir::Expr data, ir::IntLists pad_width, std::string mode, Span span) {
  auto attrs = MirrorPadAttrs::defaults();
  attrs->pad_width = std::move(pad_width);
  attrs->mode = std::move(mode);
  return ir::call(&ir::OpRegistry::instance().get("nn.mirror_pad"), {std::move(data)}, std::move(attrs),
                  std::move(span));
}

void register_nn_pad(ir::OpRegistry& registry) {
  registry.add<PadAttrs>("nn.pad", "nn/pad")
      .summary("Adds elements around the data, or crops it where a width is negative.")
      .formula("y[i] = x[i - before] inside, else the value, the border element, or the mirrored element")
      .source("Relay 0.16")
      .input("data", "any shape")
      .input("pad_value", "a scalar, converted to the data's dtype")
      .fusion(ir::FusionKind::Injective)
      .relation(pad_relation)
      .compute(pad_compute)
      .layout(pad_layout);
  registry.add<MirrorPadAttrs>("nn.mirror_pad", "nn/pad")
      .summary("Adds mirrored elements around the data.")
      .formula("SYMMETRIC: b a | a b c | c b; REFLECT: c b | a b c | b a")
      .source("Relay 0.16")
      .input("data", "any shape")
      .fusion(ir::FusionKind::Injective)
      .relation(mirror_pad_relation)
      .compute(mirror_pad_compute)
      .layout(original_layout);
}

}  // namespace treadle::op
