// SPDX-License-Identifier: Apache-2.0
// Types, computations and layouts of pools.
#include "op/nn/pool.h"

#include <algorithm>

#include "op/nn/pool_shape.h"

namespace treadle::op {
namespace {

using loop::Expr;

// ---- Shared ----

Expr lowest_finite(DType dtype) {
  if (!dtype.is_float()) return loop::reduce_identity(loop::ReduceOp::Max, dtype);
  double value = -3.4028234663852886e38;
  if (dtype == dtype::float64_) value = std::numeric_limits<double>::lowest();
  if (dtype == dtype::float16_) value = -65504;
  if (dtype == dtype::bfloat16_) value = -3.3895313892515355e38;
  return loop::constant(value, dtype);
}

// A layout in which the channel axis may be split, but no other.
bool splits_channels_only(const Layout& layout, const std::string& letters) {
  if (!layout.convertible_to(Layout(letters))) return false;
  return std::all_of(layout.axes().begin(), layout.axes().end(),
                     [](const Layout::Axis& axis) { return axis.primal() || axis.name == 'c'; });
}

// Pools run in whatever layout their data comes in, when only its channels are split.
template <typename A>
ir::LayoutAnswer pool_layout(const ir::LayoutRequest& request, size_t rank) {
  const A& attrs = attrs_of<A>(request.call);
  const std::string letters = std::string("NC") + spatial_letters(static_cast<int>(rank));
  const Layout& wanted = request.wanted[0];
  if (!wanted.defined() || !splits_channels_only(wanted, letters)) {
    const Layout own(attrs.layout);
    return {{own}, {own}, request.call.attrs};
  }
  auto changed = std::make_shared<A>(attrs);
  changed->layout = wanted.text();
  changed->out_layout = "";
  return {{wanted}, {wanted}, changed};
}

// ---- Windows ----

void window_relation(ir::Relation& relation, const PoolFields& fields, size_t rank) {
  if (const TensorType* data = relation.tensor(0))
    relation.set_output(pooled_type(window_shape(fields, rank, *data), *data));
}

// Combines, in `dtype`, the taps of every window of `x`, which holds the padding already.
loop::Tensor reduce_windows(const std::string& name, loop::ReduceOp op, const loop::Tensor& x, DType dtype,
                            const WindowShape& shape, const Shape& out) {
  std::vector<Expr> taps(shape.kernel.begin(), shape.kernel.end());
  return loop::reduce(name, loop::to_exprs(out), op, taps,
                      [&](const std::vector<loop::Var>& axes, const std::vector<loop::Var>& k) {
                        Indices index = to_indices(axes);
                        for (size_t s = 0; s < k.size(); ++s)
                          index[shape.axis(s)] = index[shape.axis(s)] * shape.strides[s] + k[s] * shape.dilation[s];
                        return loop::cast(x(index), dtype);
                      });
}

loop::Tensor max_pool_compute(const PoolFields& fields, size_t rank, const ir::Call& call, const loop::Tensor& x) {
  const WindowShape shape = window_shape(fields, rank, *input_types(call)[0]);
  const Expr fill = shape.may_miss ? lowest_finite(x.dtype()) : loop::reduce_identity(loop::ReduceOp::Max, x.dtype());
  const loop::Tensor padded = pad_spatial(x, shape.layout, shape.spatial, shape.filled, fill);
  return reduce_windows("max_pool", loop::ReduceOp::Max, padded, x.dtype(), shape, output_shape(call));
}

// sum / count, where integers truncate.
Expr average(const Expr& sum, const Expr& count) { return loop::div(sum, loop::cast(count, sum.dtype())); }

loop::Tensor avg_pool_compute(const PoolFields& fields, size_t rank, const ir::Call& call, const loop::Tensor& x) {
  const WindowShape shape = window_shape(fields, rank, *input_types(call)[0]);
  const DType sum_dtype = window_accumulator(x.dtype());
  const loop::Tensor padded = pad_spatial(x, shape.layout, shape.spatial, shape.filled, loop::constant(0, x.dtype()));
  const Shape& out = output_shape(call);
  const loop::Tensor sums = reduce_windows("pool_sum", loop::ReduceOp::Sum, padded, sum_dtype, shape, out);
  return loop::compute("avg_pool", loop::to_exprs(out), [&](const std::vector<loop::Var>& axes) {
    Expr count(1);
    for (size_t s = 0; s < rank; ++s)
      count = count * tap_count(shape, s, fields.count_include_pad, axes[shape.axis(s)]);
    return loop::cast(average(sums(to_indices(axes)), loop::max(count, Expr(1))), x.dtype());
  });
}

// ---- Adaptive and global pools ----

PoolShape adaptive_shape(const AdaptiveFields& fields, size_t rank, const TensorType& data) {
  PoolShape shape = pool_data(fields.layout, fields.out_layout, rank, data);
  shape.out = shape.data;
  if (!fields.output_size || fields.output_size->empty()) return shape;
  const ir::Ints sizes = normalise_per_axis(*fields.output_size, rank, "output_size");
  for (size_t s = 0; s < rank; ++s) {
    if (sizes[s] < 1) fail(ErrorCode::TypeAttribute, "output_size is {}, it must be at least 1", sizes[s]);
    shape.out[2 + s] = sizes[s];
  }
  return shape;
}

PoolShape global_shape(const GlobalPoolAttrs& attrs, const TensorType& data) {
  PoolShape shape = pool_data(attrs.layout, attrs.out_layout, 2, data);
  shape.out = {shape.data[0], shape.data[1], 1, 1};
  return shape;
}

// The window of output position p along one axis, in elements of the input.
struct AdaptiveWindow {
  Expr start, count;
  Dim most;           // largest count of all positions
  bool equal = true;  // every window has `most` elements
};

AdaptiveWindow adaptive_window(const Dim& in, const Dim& out, const Expr& p) {
  AdaptiveWindow window;
  if (const auto quotient = exact_divide(in, out); quotient && !out.is(0)) {
    window.most = *quotient;
    window.start = p * loop::to_expr(*quotient);
    window.count = loop::to_expr(*quotient);
    return window;
  }
  const Expr n = loop::to_expr(in), m = loop::to_expr(out);
  window.equal = false;
  window.start = loop::floordiv(p * n, m);
  window.count = loop::floordiv((p + Expr(1)) * n + m - Expr(1), m) - window.start;
  window.most = floordiv(in, out) + 2;
  if (in.is_const() && out.is_const()) window.most = (in.value() + out.value() - 1) / out.value() + 1;
  return window;
}

loop::Tensor adaptive_compute(const std::string& name, loop::ReduceOp op, const PoolShape& shape, const Shape& out,
                              const loop::Tensor& x) {
  const size_t rank = shape.spatial.size();
  std::vector<Expr> taps;
  for (size_t s = 0; s < rank; ++s)
    taps.push_back(loop::to_expr(adaptive_window(shape.data[2 + s], shape.out[2 + s], Expr(0)).most));
  const bool average_of = op == loop::ReduceOp::Sum;
  const DType sum_dtype = average_of ? window_accumulator(x.dtype()) : x.dtype();
  const loop::Tensor combined =
      loop::reduce(average_of ? "pool_sum" : name, loop::to_exprs(out), op, taps,
                   [&](const std::vector<loop::Var>& axes, const std::vector<loop::Var>& k) {
                     Indices index = to_indices(axes);
                     Expr inside = loop::bool_imm(true);
                     for (size_t s = 0; s < rank; ++s) {
                       Expr& at = index[shape.axis(s)];
                       const AdaptiveWindow window = adaptive_window(shape.data[2 + s], shape.out[2 + s], at);
                       if (!window.equal) inside = inside && k[s] < window.count;
                       at = window.start + k[s];
                     }
                     return loop::select(inside, loop::cast(x(index), sum_dtype), loop::reduce_identity(op, sum_dtype));
                   });
  if (!average_of) return combined;
  return loop::compute(name, loop::to_exprs(out), [&](const std::vector<loop::Var>& axes) {
    Expr count(1);
    for (size_t s = 0; s < rank; ++s)
      count = count * adaptive_window(shape.data[2 + s], shape.out[2 + s], axes[shape.axis(s)]).count;
    return loop::cast(average(combined(to_indices(axes)), count), x.dtype());
  });
}

// ---- Registration ----

template <typename A, int Rank>
ir::OpBuilder add_window_pool(ir::OpRegistry& registry, const std::string& name) {
  ir::OpBuilder builder = registry.add<A>(name, "nn/pool");
  builder.source("Relay 0.16")
      .input("data", std::string("(N, C, ") + (Rank == 1   ? "W)"
                                               : Rank == 2 ? "H, W)"
                                                           : "D, H, W)"))
      .fusion(ir::FusionKind::OutFusable)
      .relation([](ir::Relation& relation) { window_relation(relation, relation.attrs<A>(), Rank); })
      .layout([](const ir::LayoutRequest& request) { return pool_layout<A>(request, Rank); });
  return builder;
}

template <int Rank>
void add_adaptive(ir::OpRegistry& registry, const std::string& name, loop::ReduceOp op) {
  using A = AdaptivePoolAttrs<Rank>;
  const bool is_max = op == loop::ReduceOp::Max;
  registry.add<A>(name, "nn/pool")
      .summary(fmt::format("{} over {}-D windows that divide the input evenly into output_size parts.",
                           is_max ? "Maximum" : "Average", Rank))
      .formula("window i of an axis covers floor(i*in/out) to ceil((i+1)*in/out) - 1")
      .source("Relay 0.16")
      .input("data", std::string("(N, C, ") + (Rank == 1   ? "W)"
                                               : Rank == 2 ? "H, W)"
                                                           : "D, H, W)"))
      .fusion(ir::FusionKind::OutFusable)
      .traits(is_max ? ir::kPositiveScaleCommutes : ir::kScaleCommutes)
      .mixed_precision(is_max ? ir::MixedPrecision::Follow : ir::MixedPrecision::Never)
      .relation([](ir::Relation& relation) {
        if (const TensorType* data = relation.tensor(0))
          relation.set_output(pooled_type(adaptive_shape(relation.attrs<A>(), Rank, *data), *data));
      })
      .compute([op, is_max](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
        const PoolShape shape = adaptive_shape(attrs_of<A>(call), Rank, *input_types(call)[0]);
        return std::vector<loop::Tensor>{adaptive_compute(is_max ? "adaptive_max_pool" : "adaptive_avg_pool", op, shape,
                                                          output_shape(call), inputs[0])};
      })
      .layout([](const ir::LayoutRequest& request) { return pool_layout<A>(request, Rank); });
}

void add_global(ir::OpRegistry& registry, const std::string& name, loop::ReduceOp op) {
  const bool is_max = op == loop::ReduceOp::Max;
  registry.add<GlobalPoolAttrs>(name, "nn/pool")
      .summary(fmt::format("{} over the whole height and width.", is_max ? "Maximum" : "Average"))
      .formula(is_max ? "y[n, c, 0, 0] = max over h, w of x[n, c, h, w]"
                      : "y[n, c, 0, 0] = sum over h, w of x[n, c, h, w] / (H*W)")
      .source("Relay 0.16")
      .input("data", "(N, C, H, W)")
      .fusion(ir::FusionKind::OutFusable)
      .traits(is_max ? ir::kPositiveScaleCommutes : ir::kScaleCommutes)
      .mixed_precision(is_max ? ir::MixedPrecision::Follow : ir::MixedPrecision::Never)
      .relation([](ir::Relation& relation) {
        if (const TensorType* data = relation.tensor(0))
          relation.set_output(pooled_type(global_shape(relation.attrs<GlobalPoolAttrs>(), *data), *data));
      })
      .compute([op, is_max](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
        const PoolShape shape = global_shape(attrs_of<GlobalPoolAttrs>(call), *input_types(call)[0]);
        return std::vector<loop::Tensor>{
            adaptive_compute(is_max ? "global_max_pool" : "global_avg_pool", op, shape, output_shape(call), inputs[0])};
      })
      .layout([](const ir::LayoutRequest& request) { return pool_layout<GlobalPoolAttrs>(request, 2); });
}

template <int Rank>
void add_pools(ir::OpRegistry& registry) {
  add_window_pool<MaxPoolAttrs<Rank>, Rank>(registry, fmt::format("nn.max_pool{}d", Rank))
      .summary(fmt::format("Maximum over {}-D windows.", Rank))
      .formula("y[n, c, p] = max over k of x[n, c, p*strides + k*dilation - padding]")
      .traits(ir::kPositiveScaleCommutes)
      .compute([](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
        return std::vector<loop::Tensor>{max_pool_compute(attrs_of<MaxPoolAttrs<Rank>>(call), Rank, call, inputs[0])};
      });
  add_window_pool<AvgPoolAttrs<Rank>, Rank>(registry, fmt::format("nn.avg_pool{}d", Rank))
      .summary(fmt::format("Average over {}-D windows.", Rank))
      .formula("y[n, c, p] = sum over k of x[n, c, p*strides + k*dilation - padding] / (number of taps that count)")
      .traits(ir::kScaleCommutes)
      .compute([](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
        return std::vector<loop::Tensor>{avg_pool_compute(attrs_of<AvgPoolAttrs<Rank>>(call), Rank, call, inputs[0])};
      });
  add_adaptive<Rank>(registry, fmt::format("nn.adaptive_max_pool{}d", Rank), loop::ReduceOp::Max);
  add_adaptive<Rank>(registry, fmt::format("nn.adaptive_avg_pool{}d", Rank), loop::ReduceOp::Sum);
}

template <int Rank>
ir::Expr adaptive_one(std::string_view kind, ir::Expr data, Span span) {
  auto attrs = AdaptivePoolAttrs<Rank>::defaults();
  attrs->output_size = ir::Ints(Rank, 1);
  return ir::call(&ir::OpRegistry::instance().get(fmt::format("nn.adaptive_{}_pool{}d", kind, Rank)), {std::move(data)},
                  std::move(attrs), std::move(span));
}

ir::Expr global_pool(std::string_view kind, ir::Expr data, int rank, Span span) {
  if (rank == 1) return adaptive_one<1>(kind, std::move(data), std::move(span));
  if (rank == 3) return adaptive_one<3>(kind, std::move(data), std::move(span));
  return ir::call(&ir::OpRegistry::instance().get(fmt::format("nn.global_{}_pool2d", kind)), {std::move(data)},
                  GlobalPoolAttrs::defaults(), std::move(span));
}

}  // namespace

template <int Rank>
ir::Expr max_pool(ir::Expr data, std::shared_ptr<MaxPoolAttrs<Rank>> attrs, Span span) {
  return ir::call(&ir::OpRegistry::instance().get(fmt::format("nn.max_pool{}d", Rank)), {std::move(data)},
                  std::move(attrs), std::move(span));
}
template <int Rank>
ir::Expr avg_pool(ir::Expr data, std::shared_ptr<AvgPoolAttrs<Rank>> attrs, Span span) {
  return ir::call(&ir::OpRegistry::instance().get(fmt::format("nn.avg_pool{}d", Rank)), {std::move(data)},
                  std::move(attrs), std::move(span));
}
template ir::Expr max_pool<1>(ir::Expr, std::shared_ptr<MaxPoolAttrs<1>>, Span);
template ir::Expr max_pool<2>(ir::Expr, std::shared_ptr<MaxPoolAttrs<2>>, Span);
template ir::Expr max_pool<3>(ir::Expr, std::shared_ptr<MaxPoolAttrs<3>>, Span);
template ir::Expr avg_pool<1>(ir::Expr, std::shared_ptr<AvgPoolAttrs<1>>, Span);
template ir::Expr avg_pool<2>(ir::Expr, std::shared_ptr<AvgPoolAttrs<2>>, Span);
template ir::Expr avg_pool<3>(ir::Expr, std::shared_ptr<AvgPoolAttrs<3>>, Span);

ir::Expr global_max_pool(ir::Expr data, int rank, Span span) {
  return global_pool("max", std::move(data), rank, std::move(span));
}
ir::Expr global_avg_pool(ir::Expr data, int rank, Span span) {
  return global_pool("avg", std::move(data), rank, std::move(span));
}

void register_nn_pool(ir::OpRegistry& registry) {
  add_pools<1>(registry);
  add_pools<2>(registry);
  add_pools<3>(registry);
  add_global(registry, "nn.global_max_pool2d", loop::ReduceOp::Max);
  add_global(registry, "nn.global_avg_pool2d", loop::ReduceOp::Sum);
}

}  // namespace treadle::op
