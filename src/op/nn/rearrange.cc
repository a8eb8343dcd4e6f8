// SPDX-License-Identifier: Apache-2.0
#include "op/nn/rearrange.h"

#include "op/nn/window.h"

namespace treadle::op {
namespace {

using loop::Expr;

Dim divide_exactly(const Dim& extent, int64_t divisor, std::string_view what) {
  if (!assume_divides(divisor, extent)) {
    fail(ErrorCode::TypeMismatch, "{} has extent {}, which {} does not divide", what, to_string(extent), divisor);
  }
  return floordiv(extent, divisor);
}

// ---- depth_to_space, space_to_depth ----

struct SubPixel {
  size_t c, h, w;  // positions of the axes
  int64_t block;
};

SubPixel sub_pixel(const SubPixelAttrs& attrs) {
  constexpr int64_t kMost = 1 << 20;
  if (attrs.block_size < 1 || attrs.block_size > kMost) {
    fail(ErrorCode::TypeAttribute, "block_size is {}, it must lie between 1 and {}", attrs.block_size, kMost);
  }
  const Layout layout = parse_layout(attrs.layout, "NCHW", "layout");
  if (layout.rank() != 4) fail(ErrorCode::TypeAttribute, "layout {} has split axes", attrs.layout);
  const auto axis = [&](char letter) { return static_cast<size_t>(layout.index_of(letter)); };
  return {axis('C'), axis('H'), axis('W'), attrs.block_size};
}

void depth_to_space_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  require_rank(relation, 0, 4);
  const SubPixel p = sub_pixel(relation.attrs<SubPixelAttrs>());
  Shape out = x->shape;
  out[p.c] = divide_exactly(out[p.c], p.block * p.block, "the channel axis");
  out[p.h] = out[p.h] * p.block;
  out[p.w] = out[p.w] * p.block;
  relation.set_output(tensor_type(std::move(out), x->dtype));
}

std::vector<loop::Tensor> depth_to_space_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<SubPixelAttrs>(call);
  const SubPixel p = sub_pixel(attrs);
  const Shape& out = output_shape(call);
  const Expr b = p.block, channels = loop::to_expr(out[p.c]);
  return {loop::compute("depth_to_space", loop::to_exprs(out), [&](const std::vector<loop::Var>& i) {
    Indices index = to_indices(i);
    const Expr offset = loop::floormod(i[p.h], b) * b + loop::floormod(i[p.w], b);
    index[p.c] = attrs.mode == "CDR" ? i[p.c] * (b * b) + offset : offset * channels + i[p.c];
    index[p.h] = loop::floordiv(i[p.h], b);
    index[p.w] = loop::floordiv(i[p.w], b);
    return inputs[0](index);
  })};
}

void space_to_depth_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  require_rank(relation, 0, 4);
  const SubPixel p = sub_pixel(relation.attrs<SubPixelAttrs>());
  Shape out = x->shape;
  out[p.c] = out[p.c] * (p.block * p.block);
  out[p.h] = divide_exactly(out[p.h], p.block, "the height");
  out[p.w] = divide_exactly(out[p.w], p.block, "the width");
  relation.set_output(tensor_type(std::move(out), x->dtype));
}

std::vector<loop::Tensor> space_to_depth_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const SubPixel p = sub_pixel(attrs_of<SubPixelAttrs>(call));
  const Expr b = p.block, channels = inputs[0].shape(p.c);
  return {loop::compute("space_to_depth", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& i) {
    Indices index = to_indices(i);
    const Expr offset = loop::floordiv(i[p.c], channels);
    index[p.c] = loop::floormod(i[p.c], channels);
    index[p.h] = i[p.h] * b + loop::floordiv(offset, b);
    index[p.w] = i[p.w] * b + loop::floormod(offset, b);
    return inputs[0](index);
  })};
}

// ---- space_to_batch_nd, batch_to_space_nd ----

int64_t block_count(const ir::Ints& block) {
  int64_t count = 1;
  for (int64_t extent : block) {
    if (extent < 1 || count > (int64_t{1} << 40) / extent)
      fail(ErrorCode::TypeAttribute, "block_shape {} is out of range", extent);
    count *= extent;
  }
  return count;
}

// Pairs of block_shape.size() spatial axes. Errors: TypeAttribute, TypeMismatch.
void check_blocks(const TensorType& x, const ir::Ints& block, const ir::IntLists& pairs, std::string_view what) {
  if (pairs.size() != block.size())
    fail(ErrorCode::TypeAttribute, "{} has {} pairs but block_shape {} values", what, pairs.size(), block.size());
  for (const ir::Ints& pair : pairs) {
    if (pair.size() != 2)
      fail(ErrorCode::TypeAttribute, "{} has an entry of {} values, it must have 2", what, pair.size());
  }
  if (x.shape.size() < block.size() + 1) {
    fail(ErrorCode::TypeMismatch, "data {} has rank {}, with block_shape of {} values it must be at least {}",
         to_string(x.shape), x.shape.size(), block.size(), block.size() + 1);
  }
}

void space_to_batch_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const auto& attrs = relation.attrs<SpaceToBatchAttrs>();
  check_blocks(*x, attrs.block_shape, attrs.paddings, "paddings");
  Shape out = x->shape;
  out[0] = out[0] * block_count(attrs.block_shape);
  for (size_t s = 0; s < attrs.block_shape.size(); ++s) {
    out[1 + s] = divide_exactly(out[1 + s] + attrs.paddings[s][0] + attrs.paddings[s][1], attrs.block_shape[s],
                                fmt::format("padded axis {}", 1 + s));
  }
  relation.set_output(tensor_type(std::move(out), x->dtype));
}

std::vector<loop::Tensor> space_to_batch_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<SpaceToBatchAttrs>(call);
  const loop::Tensor& x = inputs[0];
  ir::Ints begin(x.rank(), 0), end(x.rank(), 0);
  for (size_t s = 0; s < attrs.paddings.size(); ++s)
    begin[1 + s] = attrs.paddings[s][0], end[1 + s] = attrs.paddings[s][1];
  const loop::Tensor padded = pad_stage(x, begin, end, saturated_constant(attrs.pad_value, x.dtype()));
  return {loop::compute("space_to_batch", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& i) {
    Indices index = to_indices(i);
    Expr block = loop::floordiv(i[0], x.shape(0));
    index[0] = loop::floormod(i[0], x.shape(0));
    for (size_t s = attrs.block_shape.size(); s-- > 0;) {
      const Expr extent = attrs.block_shape[s];
      index[1 + s] = i[1 + s] * extent + (s == 0 ? block : loop::floormod(block, extent));
      block = loop::floordiv(block, extent);
    }
    return padded(index);
  })};
}

void batch_to_space_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const auto& attrs = relation.attrs<BatchToSpaceAttrs>();
  check_blocks(*x, attrs.block_shape, attrs.crops, "crops");
  Shape out = x->shape;
  out[0] = divide_exactly(out[0], block_count(attrs.block_shape), "the batch axis");
  for (size_t s = 0; s < attrs.block_shape.size(); ++s) {
    out[1 + s] = out[1 + s] * attrs.block_shape[s] - attrs.crops[s][0] - attrs.crops[s][1];
    if (out[1 + s].is_const() && out[1 + s].value() < 0)
      fail(ErrorCode::TypeMismatch, "axis {} is cropped to {} elements", 1 + s, out[1 + s].value());
  }
  relation.set_output(tensor_type(std::move(out), x->dtype));
}

std::vector<loop::Tensor> batch_to_space_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<BatchToSpaceAttrs>(call);
  const Shape& out = output_shape(call);
  return {loop::compute("batch_to_space", loop::to_exprs(out), [&](const std::vector<loop::Var>& i) {
    Indices index = to_indices(i);
    Expr block(0);
    for (size_t s = 0; s < attrs.block_shape.size(); ++s) {
      const Expr extent = attrs.block_shape[s], position = i[1 + s] + attrs.crops[s][0];
      block = block * extent + loop::floormod(position, extent);
      index[1 + s] = loop::floordiv(position, extent);
    }
    index[0] = block * loop::to_expr(out[0]) + i[0];
    return inputs[0](index);
  })};
}

// ---- dilate, fifo_buffer ----

void dilate_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const ir::Ints& strides = relation.attrs<DilateAttrs>().strides;
  if (strides.size() != x->shape.size()) {
    fail(ErrorCode::TypeAttribute, "strides has {} values but the data {} has rank {}", strides.size(),
         to_string(x->shape), x->shape.size());
  }
  Shape out;
  for (size_t a = 0; a < strides.size(); ++a) {
    if (strides[a] < 1)
      fail(ErrorCode::TypeAttribute, "strides of axis {} is {}, it must be at least 1", a, strides[a]);
    out.push_back(x->shape[a].is(0) ? Dim(0) : (x->shape[a] - 1) * strides[a] + 1);
  }
  relation.set_output(tensor_type(std::move(out), x->dtype));
}

std::vector<loop::Tensor> dilate_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<DilateAttrs>(call);
  return {loop::compute("dilate", loop::to_exprs(output_shape(call)), [&](const std::vector<loop::Var>& i) {
    Indices index;
    Expr inside = loop::bool_imm(true);
    for (size_t a = 0; a < i.size(); ++a) {
      const Expr stride = attrs.strides[a];
      if (attrs.strides[a] != 1) inside = inside && loop::floormod(i[a], stride) == Expr(0);
      index.push_back(loop::floordiv(i[a], stride));
    }
    return loop::select(inside, inputs[0](index), saturated_constant(attrs.dilation_value, inputs[0].dtype()));
  })};
}

void fifo_buffer_relation(ir::Relation& relation) {
  const TensorType* data = relation.tensor(0);
  const TensorType* buffer = relation.tensor(1);
  if (!data || !buffer) return;
  require_same_dtype(relation, 0, 1);
  require_rank(relation, 1, data->shape.size());
  const auto axis = static_cast<size_t>(normalise_axis(relation.attrs<FifoBufferAttrs>().axis, data->shape.size()));
  for (size_t a = 0; a < data->shape.size(); ++a) {
    const Dim &d = data->shape[a], &b = buffer->shape[a];
    if (a == axis ? !assume_at_most(d, b) : !assume_equal(d, b)) {
      fail(ErrorCode::TypeMismatch, "axis {}: data has {} elements, the buffer {}", a, to_string(d), to_string(b));
    }
  }
  relation.set_output(relation.input(1));
}

std::vector<loop::Tensor> fifo_buffer_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto axis = static_cast<size_t>(normalise_axis(attrs_of<FifoBufferAttrs>(call).axis, inputs[0].rank()));
  const Expr fresh = inputs[0].shape(axis), kept = inputs[1].shape(axis) - fresh;
  return {loop::compute("fifo_buffer", inputs[1].shape(), [&](const std::vector<loop::Var>& i) {
    Indices old = to_indices(i), added = to_indices(i);
    old[axis] = old[axis] + fresh;
    added[axis] = added[axis] - kept;
    return loop::select(i[axis] < kept, inputs[1](old), inputs[0](added));
  })};
}

ir::Expr make_sub_pixel(std::string_view name, ir::Expr data, int64_t block_size, std::string mode, std::string layout,
                        Span span) {
  auto attrs = SubPixelAttrs::defaults();
  attrs->block_size = block_size;
  attrs->mode = std::move(mode);
  attrs->layout = std::move(layout);
  return ir::call(&ir::OpRegistry::instance().get(name), {std::move(data)}, std::move(attrs), std::move(span));
}

template <typename A>
ir::OpBuilder add_rearrange(ir::OpRegistry& registry, const std::string& name, ir::RelationFn relation,
                            ir::ComputeFn compute) {
  ir::OpBuilder builder = registry.add<A>(name, "nn/rearrange");
  builder.source("Relay 0.16")
      .fusion(ir::FusionKind::Injective)
      .relation(std::move(relation))
      .compute(std::move(compute))
      .layout(original_layout);
  return builder;
}

}  // namespace

ir::Expr depth_to_space(ir::Expr data, int64_t block_size, std::string mode, std::string layout, Span span) {
  return make_sub_pixel("nn.depth_to_space", std::move(data), block_size, std::move(mode), std::move(layout),
                        std::move(span));
}

ir::Expr space_to_depth(ir::Expr data, int64_t block_size, std::string layout, Span span) {
  return make_sub_pixel("nn.space_to_depth", std::move(data), block_size, "", std::move(layout), std::move(span));
}

void register_nn_rearrange(ir::OpRegistry& registry) {
  add_rearrange<SubPixelAttrs>(registry, "nn.depth_to_space", depth_to_space_relation, depth_to_space_compute)
      .summary("Moves channels into blocks of height and width.")
      .formula("y[n, c, h, w] = x[n, d, h / b, w / b], d = (b*(h%b) + w%b)*C' + c (DCR) or c*b^2 + b*(h%b) + w%b (CDR)")
      .input("data", "(N, C, H, W)");
  add_rearrange<SubPixelAttrs>(registry, "nn.space_to_depth", space_to_depth_relation, space_to_depth_compute)
      .summary("Moves blocks of height and width into channels.")
      .formula("y[n, (dy*b + dx)*C + c, h, w] = x[n, c, h*b + dy, w*b + dx]")
      .input("data", "(N, C, H, W)");
  add_rearrange<SpaceToBatchAttrs>(registry, "nn.space_to_batch_nd", space_to_batch_relation, space_to_batch_compute)
      .summary("Pads, then moves blocks of the spatial axes into the batch.")
      .formula("y[block*N + n, s, ...] = padded x[n, s*block_shape + offset(block), ...]")
      .input("data", "(N, spatial..., rest...)");
  add_rearrange<BatchToSpaceAttrs>(registry, "nn.batch_to_space_nd", batch_to_space_relation, batch_to_space_compute)
      .summary("Moves the batch into blocks of the spatial axes, then crops.")
      .formula("y[n, s, ...] = x[block*N' + n, (s + crop) / block_shape, ...], block from the remainders")
      .input("data", "(N, spatial..., rest...)");
  add_rearrange<DilateAttrs>(registry, "nn.dilate", dilate_relation, dilate_compute)
      .summary("Puts fill values between elements.")
      .formula("y[i*strides] = x[i], the fill value elsewhere")
      .input("data", "any shape");
  add_rearrange<FifoBufferAttrs>(registry, "nn.fifo_buffer", fifo_buffer_relation, fifo_buffer_compute)
      .summary("Appends data to a buffer and keeps the newest elements.")
      .formula("y = the last B elements along axis of concatenate(buffer, data)")
      .input("data", "new elements, no more than the buffer has")
      .input("buffer", "older elements");
}

}  // namespace treadle::op
