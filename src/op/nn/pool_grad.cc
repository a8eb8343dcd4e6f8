// SPDX-License-Identifier: Apache-2.0
// nn.max_pool2d_grad and nn.avg_pool2d_grad: the gradient of a pool with respect to its data.
//
//   max  dx[h, w] = sum of dy[p, q] over the windows whose first maximal element (row-major) lies at (h, w)
//   avg  dx[h, w] = sum of dy[p, q] / (number of taps that count in window (p, q)) over the windows that have a tap at
//   (h, w) out_grad (N, C, H', W'), data (N, C, H, W)    gives (N, C, H, W); attributes of nn.max_pool2d, nn.avg_pool2d
// Every element gathers from the windows that can reach it; unlike TVM never from outside of out_grad, and with
// dilation. Source: Relay 0.16.
#include <limits>

#include "op/nn/pool_shape.h"

namespace treadle::op {
namespace {

using loop::Expr;

void grad_relation(ir::Relation& relation, const PoolFields& fields) {
  const TensorType* data = relation.tensor(1);
  if (!data) return;
  if (!data->dtype.is_float())
    fail(ErrorCode::TypeMismatch, "data is {}, it must be of a float dtype", to_string(data->dtype));
  const Type pooled = pooled_type(window_shape(fields, 2, *data), *data);
  if (!relation.tensor(0)) {
    relation.set_input(0, pooled);
  } else if (!assume_same(relation.input(0), pooled)) {
    fail(ErrorCode::TypeMismatch, "out_grad is {}, the pool of data gives {}", to_string(relation.input(0)),
         to_string(pooled));
  }
  relation.set_output(relation.input(1));
}

// dx at each element: the sum over taps k of f(window) for the window that has its tap k there, if there is one.
loop::Tensor gather_windows(
    const loop::Tensor& x, const loop::Tensor& dy, const WindowShape& shape, DType dtype,
    const std::function<Expr(const Indices& window, const std::vector<loop::Var>& element)>& f) {
  std::vector<Expr> taps(shape.kernel.begin(), shape.kernel.end());
  return loop::reduce("pool_grad", x.shape(), loop::ReduceOp::Sum, taps,
                      [&](const std::vector<loop::Var>& i, const std::vector<loop::Var>& k) {
                        Indices window = to_indices(i);
                        Expr exists = loop::bool_imm(true);
                        for (size_t s = 0; s < 2; ++s) {
                          const size_t axis = shape.axis(s);
                          const Expr stride = shape.strides[s],
                                     start = i[axis] + shape.padding.begin[s] - k[s] * shape.dilation[s];
                          window[axis] = loop::floordiv(start, stride);
                          exists = exists && loop::floormod(start, stride) == Expr(0) && start >= Expr(0) &&
                                   window[axis] < dy.shape(axis);
                        }
                        return loop::select(exists, f(window, i), loop::constant(0, dtype));
                      });
}

// Position of an element among height and width, row-major.
Expr flat(const WindowShape& shape, const Expr& h, const Expr& w) { return h * shape.in_extent(1) + w; }

std::vector<loop::Tensor> max_pool_grad(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const WindowShape shape = window_shape(attrs_of<MaxPoolAttrs<2>>(call), 2, *input_types(call)[1]);
  const loop::Tensor &dy = inputs[0], &x = inputs[1];
  std::vector<Expr> taps(shape.kernel.begin(), shape.kernel.end());
  // f(inside, element index of the tap) for every tap of the window at `p`.
  const auto at_tap = [&](const std::vector<loop::Var>& p, const std::vector<loop::Var>& k,
                          const std::function<Expr(const Expr&, const Indices&)>& f) {
    Indices index = to_indices(p);
    Expr inside = loop::bool_imm(true);
    for (size_t s = 0; s < 2; ++s) {
      Expr& position = index[shape.axis(s)];
      position = position * shape.strides[s] + k[s] * shape.dilation[s] - shape.padding.begin[s];
      inside = inside && position >= Expr(0) && position < shape.in_extent(s);
    }
    return f(inside, index);
  };
  const loop::Tensor most =
      loop::reduce("window_max", dy.shape(), loop::ReduceOp::Max, taps,
                   [&](const std::vector<loop::Var>& p, const std::vector<loop::Var>& k) {
                     return at_tap(p, k, [&](const Expr& inside, const Indices& index) {
                       return loop::select(inside, x(index), loop::reduce_identity(loop::ReduceOp::Max, x.dtype()));
                     });
                   });
  const loop::Tensor first = loop::reduce(
      "window_first", dy.shape(), loop::ReduceOp::Min, taps,
      [&](const std::vector<loop::Var>& p, const std::vector<loop::Var>& k) {
        return at_tap(p, k, [&](const Expr& inside, const Indices& index) {
          const Expr none = std::numeric_limits<int64_t>::max();
          const Expr found = loop::select(inside, x(index), loop::reduce_identity(loop::ReduceOp::Max, x.dtype())) ==
                             most(to_indices(p));
          return loop::select(inside && found, flat(shape, index[shape.axis(0)], index[shape.axis(1)]), none);
        });
      });
  const DType dtype = accumulator_dtype(x.dtype());
  const loop::Tensor sum =
      gather_windows(x, dy, shape, dtype, [&](const Indices& window, const std::vector<loop::Var>& i) {
        const Expr here = flat(shape, i[shape.axis(0)], i[shape.axis(1)]);
        return loop::select(first(window) == here, loop::cast(dy(window), dtype), loop::constant(0, dtype));
      });
  return {cast_stage(sum, x.dtype())};
}

std::vector<loop::Tensor> avg_pool_grad(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<AvgPoolAttrs<2>>(call);
  const WindowShape shape = window_shape(attrs, 2, *input_types(call)[1]);
  const loop::Tensor &dy = inputs[0], &x = inputs[1];
  const DType dtype = accumulator_dtype(x.dtype());
  const loop::Tensor sum =
      gather_windows(x, dy, shape, dtype, [&](const Indices& window, const std::vector<loop::Var>&) {
        Expr count(1);
        for (size_t s = 0; s < 2; ++s)
          count = count * tap_count(shape, s, attrs.count_include_pad, window[shape.axis(s)]);
        return loop::div(loop::cast(dy(window), dtype), loop::cast(loop::max(count, Expr(1)), dtype));
      });
  return {cast_stage(sum, x.dtype())};
}

template <typename A>
void add_grad(ir::OpRegistry& registry, const std::string& name, const std::string& summary, const std::string& formula,
              ir::ComputeFn compute) {
  registry.add<A>(name, "nn/pool_grad")
      .summary(summary)
      .formula(formula)
      .source("Relay 0.16, with dilation")
      .input("out_grad", "(N, C, H', W')")
      .input("data", "(N, C, H, W)")
      .fusion(ir::FusionKind::OutFusable)
      .relation([](ir::Relation& relation) { grad_relation(relation, relation.attrs<A>()); })
      .compute(std::move(compute))
      .layout([](const ir::LayoutRequest& request) -> ir::LayoutAnswer {
        const Layout own(attrs_of<A>(request.call).layout);
        return {{own, own}, {own}, request.call.attrs};
      });
}

}  // namespace

void register_nn_pool_grad(ir::OpRegistry& registry) {
  add_grad<MaxPoolAttrs<2>>(registry, "nn.max_pool2d_grad", "Gradient of nn.max_pool2d with respect to its data.",
                            "dx = sum of out_grad over the windows whose first maximum lies here", max_pool_grad);
  add_grad<AvgPoolAttrs<2>>(registry, "nn.avg_pool2d_grad", "Gradient of nn.avg_pool2d with respect to its data.",
                            "dx = sum of out_grad / count over the windows that have a tap here", avg_pool_grad);
}

}  // namespace treadle::op
