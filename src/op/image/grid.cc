// SPDX-License-Identifier: Apache-2.0
#include "op/image/grid.h"

#include "op/relations.h"

namespace treadle::op {
namespace {

using loop::Expr;

void affine_relation(ir::Relation& relation) {
  const TensorType* theta = relation.tensor(0);
  const Shape& target = relation.attrs<AffineGridAttrs>().target_shape;
  if (target.size() != 2) fail(ErrorCode::TypeAttribute, "target_shape has {} entries, expected 2", target.size());
  if (!theta) return;
  if (theta->shape.size() != 3 || !theta->shape[1].is(2) || !theta->shape[2].is(3) || !theta->dtype.is_float())
    fail(ErrorCode::TypeMismatch, "theta is {} of {}, it must be (N, 2, 3) of floats", to_string(theta->shape),
         to_string(theta->dtype));
  relation.set_output(tensor_type({theta->shape[0], 2, target[0], target[1]}, theta->dtype));
}

std::vector<loop::Tensor> affine_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const loop::Tensor& theta = inputs[0];
  const DType dtype = theta.dtype();
  const Shape& target = attrs_of<AffineGridAttrs>(call).target_shape;
  return {loop::compute("affine_grid", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& i) {
    // -1 … 1 in equal steps.
    const auto coordinate = [&](const Expr& position, const Dim& extent) {
      const Expr steps = loop::cast(loop::to_expr(max(extent - Dim(1), 1)), dtype);
      return loop::div(loop::cast(position, dtype) * loop::constant(2, dtype), steps) - loop::constant(1, dtype);
    };
    const auto entry = [&](int64_t k) { return theta(Indices{i[0], i[1], loop::int_imm(k)}); };
    return entry(0) * coordinate(i[3], target[1]) + entry(1) * coordinate(i[2], target[0]) + entry(2);
  })};
}

void sample_relation(ir::Relation& relation) {
  const auto& attrs = relation.attrs<GridSampleAttrs>();
  const size_t rank = attrs.layout.size();
  require_rank(relation, 0, rank);
  require_rank(relation, 1, rank);
  const TensorType *x = relation.tensor(0), *grid = relation.tensor(1);
  if (attrs.method == "bicubic" && rank != 4) fail(ErrorCode::TypeAttribute, "bicubic is for layout NCHW only");
  if (!x || !grid) return;
  if (!x->dtype.is_float() || !grid->dtype.is_float())
    fail(ErrorCode::TypeMismatch, "the image and the grid must be floats");
  if (!grid->shape[1].is(static_cast<int64_t>(rank - 2)))
    fail(ErrorCode::TypeMismatch, "the grid has shape {}, its axis 1 must hold {} coordinates", to_string(grid->shape),
         rank - 2);
  Shape shape = grid->shape;
  shape[0] = broadcast({x->shape[0]}, {grid->shape[0]})[0];
  shape[1] = x->shape[1];
  for (size_t axis = 2; axis < rank; ++axis) {
    if (!assume_some(x->shape[axis], product(shape)))
      fail(ErrorCode::TypeMismatch, "axis {} of {} has no element to sample", axis, to_string(x->shape));
  }
  relation.set_output(tensor_type(shape, x->dtype));
}

// One spatial axis of the image.
struct Axis {
  Expr extent;
  const GridSampleAttrs& attrs;

  // The pixel position of a coordinate -1 … 1.
  Expr position(const Expr& coordinate) const {
    const DType dtype = coordinate.dtype();
    const auto c = [&](double value) { return loop::constant(value, dtype); };
    const Expr size = loop::cast(extent, dtype);
    if (attrs.align_corners) return (coordinate + c(1)) * c(0.5) * (size - c(1));
    return ((coordinate + c(1)) * size - c(1)) * c(0.5);
  }
  Expr inside(const Expr& index) const { return index >= loop::int_imm(0) && index < extent; }
  // The pixel that stands for `index` outside of the image.
  Expr pixel(const Expr& index) const {
    if (attrs.padding_mode != "reflection") return clamp_index(index, extent);
    const Expr one = loop::int_imm(1), two = loop::int_imm(2);
    if (attrs.align_corners) {  // reflected at the corner pixels
      const Expr last = extent - one, period = loop::max(two * last, one), place = loop::floormod(index, period);
      return clamp_index(loop::select(place > last, period - place, place), extent);
    }
    const Expr period = two * extent, place = loop::floormod(index, period);
    return clamp_index(loop::select(place >= extent, period - one - place, place), extent);
  }
};

struct Tap {
  Expr index, weight;  // an undefined weight is 1
};

std::vector<Tap> taps_of(const Expr& position, const std::string& method) {
  const DType dtype = position.dtype();
  const auto c = [&](double value) { return loop::constant(value, dtype); };
  const auto whole = [](loop::Intrinsic f, const Expr& x) {
    return loop::cast(loop::intrinsic(f, {x}), dtype::int64_);
  };
  if (method == "nearest") return {{whole(loop::Intrinsic::RoundEven, position), {}}};
  const Expr low = whole(loop::Intrinsic::Floor, position);
  const Expr t = position - loop::intrinsic(loop::Intrinsic::Floor, {position}), rest = c(1) - t;
  if (method == "bilinear") return {{low, rest}, {low + loop::int_imm(1), t}};
  constexpr double a = -0.75;  // as PyTorch and ONNX
  const auto near = [&](const Expr& d) { return ((c(a + 2) * d - c(a + 3)) * d) * d + c(1); };
  const auto far = [&](const Expr& d) { return ((c(a) * d - c(5 * a)) * d + c(8 * a)) * d - c(4 * a); };
  return {{low - loop::int_imm(1), far(t + c(1))},
          {low, near(t)},
          {low + loop::int_imm(1), near(rest)},
          {low + loop::int_imm(2), far(rest + c(1))}};
}

std::vector<loop::Tensor> sample_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<GridSampleAttrs>(call);
  const loop::Tensor &x = inputs[0], &grid = inputs[1];
  const std::vector<const TensorType*> types = input_types(call);
  const Shape& output = output_shape(call);
  const size_t spatial = x.rank() - 2;
  const DType dtype = x.dtype() == dtype::float64_ ? x.dtype() : dtype::float32_;
  return {loop::compute("grid_sample", loop::to_exprs(output), [&](const std::vector<loop::Var>& i) {
    const auto batch = [&](size_t input) { return broadcast_index({types[input]->shape[0]}, {output[0]}, {i[0]})[0]; };
    std::vector<Axis> axes;
    std::vector<std::vector<Tap>> taps;
    for (size_t a = 0; a < spatial; ++a) {
      axes.push_back({x.shape(2 + a), attrs});
      Indices place{batch(1), loop::int_imm(static_cast<int64_t>(spatial - 1 - a))};  // x is the last axis
      place.insert(place.end(), i.begin() + 2, i.end());
      taps.push_back(taps_of(axes[a].position(loop::cast(grid(place), dtype)), attrs.method));
    }
    const std::function<Expr(Indices, Expr, size_t)> weigh = [&](Indices index, Expr inside, size_t level) {
      if (level == spatial) {
        const Expr value = loop::cast(x(index), dtype);
        return inside.defined() ? loop::select(inside, value, loop::constant(0, dtype)) : value;
      }
      Expr sum;
      for (const Tap& tap : taps[level]) {
        Indices next = index;
        next.push_back(axes[level].pixel(tap.index));
        Expr here = inside;
        if (attrs.padding_mode == "zeros")
          here = here.defined() ? here && axes[level].inside(tap.index) : axes[level].inside(tap.index);
        const Expr value = weigh(next, here, level + 1);
        const Expr term = tap.weight.defined() ? value * tap.weight : value;
        sum = sum.defined() ? sum + term : term;
      }
      return sum;
    };
    return loop::cast(weigh({batch(0), i[1]}, {}, 0), x.dtype());
  })};
}

}  // namespace

ir::Expr grid_sample(ir::Expr x, ir::Expr grid, const std::string& method, const std::string& padding_mode,
                     bool align_corners) {
  auto attrs = GridSampleAttrs::defaults();
  attrs->method = method;
  attrs->layout = x.tensor_type().shape.size() == 5 ? "NCDHW" : "NCHW";
  attrs->padding_mode = padding_mode;
  attrs->align_corners = align_corners;
  return call_op("image.grid_sample", {std::move(x), std::move(grid)}, std::move(attrs));
}

void register_image_grid(ir::OpRegistry& registry) {
  registry.add<AffineGridAttrs>("image.affine_grid", "image/grid")
      .summary("The sampling grid of an affine map.")
      .formula("y[n, :, i, j] = theta[n] (x_j, y_i, 1)")
      .source("Relay 0.16")
      .input("theta", "(N, 2, 3) floats")
      .fusion(ir::FusionKind::Injective)
      .relation(affine_relation)
      .compute(affine_compute);
  registry.add<GridSampleAttrs>("image.grid_sample", "image/grid")
      .summary("An image sampled at the positions of a grid.")
      .source("Relay 0.16; ONNX GridSample, opset 20")
      .input("x", "(N, C, H, W) or (N, C, D, H, W), floats")
      .input("grid", "(N, 2, H', W') or (N, 3, D', H', W'), coordinates -1 … 1")
      .fusion(ir::FusionKind::Injective)
      .relation(sample_relation)
      .compute(sample_compute);
}

}  // namespace treadle::op
