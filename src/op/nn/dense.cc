// SPDX-License-Identifier: Apache-2.0
// Types, computations and layouts of matrix products, and of the small operators that stand around them.
#include "op/nn/dense.h"

#include "op/nn/window.h"

namespace treadle::op {
namespace {

using loop::Expr;

// ---- Shared ----

DType product_dtype(const std::optional<DType>& wanted, const TensorType& a, const TensorType* b) {
  if (b && !(a.dtype == b->dtype) && !(a.dtype.is_integer() && b->dtype.is_integer())) {
    fail(ErrorCode::TypeMismatch, "operands are {} and {}", to_string(a.dtype), to_string(b->dtype));
  }
  return wanted.value_or(a.dtype);
}

void check_inner(const Dim& a, const Dim& b, std::string_view where_a, std::string_view where_b) {
  if (!assume_equal(a, b)) {
    fail(ErrorCode::TypeMismatch, "{} has {} elements along the summed axis but {} has {}", where_a, to_string(a),
         where_b, to_string(b));
  }
}

void check_units(const std::optional<int64_t>& units, const Dim& rows) {
  if (units && !assume_equal(rows, *units)) {
    fail(ErrorCode::TypeMismatch, "weight gives {} output features but units is {}", to_string(rows), *units);
  }
}

void check_min_rank(const TensorType& type, size_t rank, std::string_view what) {
  if (type.shape.size() < rank) {
    fail(ErrorCode::TypeMismatch, "{} {} has rank {}, it must be at least {}", what, to_string(type.shape),
         type.shape.size(), rank);
  }
}

// sum over k of a(position, k) * b(position, k), formed in the accumulator of `out_dtype`.
loop::Tensor product(const std::string& name, const Shape& out, const Dim& inner, DType out_dtype,
                     const std::function<Expr(const Indices&, const Expr&)>& a,
                     const std::function<Expr(const Indices&, const Expr&)>& b) {
  const DType sum_dtype = accumulator_dtype(out_dtype);
  loop::Tensor y =
      loop::reduce(name, loop::to_exprs(out), loop::ReduceOp::Sum, {loop::to_expr(inner)},
                   [&](const std::vector<loop::Var>& axes, const std::vector<loop::Var>& k) {
                     const Indices position = to_indices(axes);
                     return loop::cast(a(position, k[0]), sum_dtype) * loop::cast(b(position, k[0]), sum_dtype);
                   });
  return cast_stage(y, out_dtype);
}

// The position with its last index replaced.
Indices with_last(Indices position, Expr last) {
  position.back() = std::move(last);
  return position;
}

// ---- dense ----

void dense_relation(ir::Relation& relation) {
  const auto& attrs = relation.attrs<DenseAttrs>();
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  check_min_rank(*x, 1, "data");
  const TensorType* w = relation.tensor(1);
  Dim units;
  if (w) {
    require_rank(relation, 1, 2);
    check_inner(x->shape.back(), w->shape[1], "data", "weight");
    check_units(attrs.units, w->shape[0]);
    units = w->shape[0];
  } else {
    if (!attrs.units) return;
    units = *attrs.units;
    relation.set_input(1, tensor_type({units, x->shape.back()}, x->dtype));
  }
  Shape out = x->shape;
  out.back() = units;
  relation.set_output(tensor_type(std::move(out), product_dtype(attrs.out_dtype, *x, w)));
}

std::vector<loop::Tensor> dense_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto types = input_types(call);
  const DType out_dtype = product_dtype(attrs_of<DenseAttrs>(call).out_dtype, *types[0], types[1]);
  return {product(
      "dense", output_shape(call), types[0]->shape.back(), out_dtype,
      [&](const Indices& p, const Expr& k) { return inputs[0](with_last(p, k)); },
      [&](const Indices& p, const Expr& k) { return inputs[1](p.back(), k); })};
}

// Weights known at compile time are packed in blocks of two vectors (one when U is small), so that a kernel loads them
// in order.
std::optional<ir::Alternative> dense_alter(const ir::Call& call, const Target& target) {
  if (!is_constant_expression(call.args[1])) return std::nullopt;
  const auto types = input_types(call);
  const Shape& weight = types[1]->shape;
  if (!types[0]->dtype.is_float() || types[0]->dtype.bits > 32 || !is_static(weight) || weight[0].value() == 0)
    return std::nullopt;
  const int64_t lanes = target.lanes(4);
  const int64_t block = weight[0].value() > lanes ? 2 * lanes : lanes;
  auto attrs = DensePackAttrs::defaults();
  attrs->units = weight[0].value();
  attrs->out_dtype = attrs_of<DenseAttrs>(call).out_dtype;
  attrs->weight_layout = fmt::format("NC{}n", block);
  ir::Alternative result;
  result.op = &ir::OpRegistry::instance().get("nn.contrib_dense_pack");
  result.inputs_old = {Layout(), Layout("NC")};
  result.inputs = {Layout(), Layout(attrs->weight_layout)};
  result.outputs_old = {Layout()};
  result.outputs = {Layout()};
  result.attrs = std::move(attrs);
  return result;
}

ir::ScaleRule dense_scale() {
  ir::ScaleRule rule;
  rule.weight = 1;
  const auto last = [](const ir::Call& call) { return static_cast<int>(input_types(call)[0]->shape.size()) - 1; };
  rule.data_axis = last;
  rule.weight_in_axis = [](const ir::Call&) { return 1; };
  rule.out_axis = last;
  rule.weight_out_axis = [](const ir::Call&) { return 0; };
  return rule;
}

// ---- contrib_dense_pack ----

struct PackedWeight {
  Layout layout;
  Dim units, inner;
};

// Errors: TypeMismatch, TypeAttribute.
PackedWeight packed_weight(const DensePackAttrs& attrs, const TensorType& w) {
  PackedWeight result;
  result.layout = parse_layout(attrs.weight_layout, "NC", "weight_layout");
  const Shape shape = primal_shape(result.layout, w.shape, "NC", "weight");
  result.units = shape[0];
  result.inner = shape[1];
  if (!attrs.units) return result;
  const int64_t block = result.layout.block_of('N');
  const Dim blocks = ceildiv(Dim(*attrs.units), block);
  if (!assume_equal(blocks * block, shape[0])) {
    fail(ErrorCode::TypeMismatch, "weight has {} rows in blocks of {} but units is {}", to_string(shape[0]), block,
         *attrs.units);
  }
  result.units = *attrs.units;
  return result;
}

void dense_pack_relation(ir::Relation& relation) {
  const auto& attrs = relation.attrs<DensePackAttrs>();
  const TensorType* x = relation.tensor(0);
  const TensorType* w = relation.tensor(1);
  if (!x || !w) return;
  check_min_rank(*x, 1, "data");
  const PackedWeight weight = packed_weight(attrs, *w);
  check_inner(x->shape.back(), weight.inner, "data", "weight");
  Shape out = x->shape;
  out.back() = weight.units;
  relation.set_output(tensor_type(std::move(out), product_dtype(attrs.out_dtype, *x, w)));
}

std::vector<loop::Tensor> dense_pack_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto types = input_types(call);
  const auto& attrs = attrs_of<DensePackAttrs>(call);
  const PackedWeight weight = packed_weight(attrs, *types[1]);
  const DType out_dtype = product_dtype(attrs.out_dtype, *types[0], types[1]);
  return {product(
      "dense", output_shape(call), types[0]->shape.back(), out_dtype,
      [&](const Indices& p, const Expr& k) { return inputs[0](with_last(p, k)); },
      [&](const Indices& p, const Expr& k) {
        return inputs[1](layout_index(weight.layout, {{'N', SplitIndex(p.back())}, {'C', SplitIndex(k)}}));
      })};
}

ir::LayoutAnswer dense_pack_layout(const ir::LayoutRequest& request) {
  return {{Layout(), Layout(attrs_of<DensePackAttrs>(request.call).weight_layout)}, {Layout()}, request.call.attrs};
}

// ---- matmul ----

// Rows and columns of a matrix type; both are the last two axes.
struct MatrixExtents {
  Dim rows, columns;
};

MatrixExtents matrix_extents(const Shape& shape, bool transposed) {
  const Dim& a = shape[shape.size() - 2];
  const Dim& b = shape[shape.size() - 1];
  return transposed ? MatrixExtents{b, a} : MatrixExtents{a, b};
}

void matmul_relation(ir::Relation& relation) {
  const auto& attrs = relation.attrs<MatmulAttrs>();
  const TensorType* a = relation.tensor(0);
  if (!a) return;
  check_min_rank(*a, attrs.transpose_a ? 2 : 1, "tensor_a");
  const size_t rank = a->shape.size();
  const Dim inner = attrs.transpose_a ? a->shape[rank - 2] : a->shape[rank - 1];
  const TensorType* b = relation.tensor(1);
  Dim units;
  if (b) {
    require_rank(relation, 1, 2);
    const MatrixExtents extents = matrix_extents(b->shape, attrs.transpose_b);
    check_inner(inner, extents.rows, "tensor_a", "tensor_b");
    check_units(attrs.units, extents.columns);
    units = extents.columns;
  } else {
    if (!attrs.units) return;
    units = *attrs.units;
    relation.set_input(1, tensor_type(attrs.transpose_b ? Shape{units, inner} : Shape{inner, units}, a->dtype));
  }
  Shape out = a->shape;
  if (attrs.transpose_a) out[rank - 2] = out[rank - 1];
  out.back() = units;
  relation.set_output(tensor_type(std::move(out), product_dtype(attrs.out_dtype, *a, b)));
}

std::vector<loop::Tensor> matmul_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<MatmulAttrs>(call);
  const auto types = input_types(call);
  const size_t rank = types[0]->shape.size();
  const Dim& inner = types[0]->shape[attrs.transpose_a ? rank - 2 : rank - 1];
  return {product(
      "matmul", output_shape(call), inner, product_dtype(attrs.out_dtype, *types[0], types[1]),
      [&](const Indices& p, const Expr& k) {
        Indices index = with_last(p, k);
        if (attrs.transpose_a) std::swap(index[rank - 2], index[rank - 1]);
        return inputs[0](index);
      },
      [&](const Indices& p, const Expr& k) {
        return attrs.transpose_b ? inputs[1](p.back(), k) : inputs[1](k, p.back());
      })};
}

// A product with a 2-D weight is a dense layer, which has packed kernels. A weight that must be transposed first is
// left alone unless it is constant. `weight` is (K, U), or (U, K) when `transposed`.
ir::Expr as_dense(const ir::Expr& data, const ir::Expr& weight, bool transposed, const std::optional<DType>& out_dtype,
                  const Span& span) {
  if (transposed) return dense(data, weight, std::nullopt, out_dtype, span);
  if (!is_constant_expression(weight)) return {};
  return dense(data, ir::call("transpose", {weight}, {{"axes", ir::Ints{1, 0}}}, span), std::nullopt, out_dtype, span);
}

ir::Expr matmul_canonicalise(const ir::Call& call) {
  const auto& attrs = attrs_of<MatmulAttrs>(call);
  if (attrs.transpose_a) return {};
  return as_dense(call.args[0], call.args[1], attrs.transpose_b, attrs.out_dtype, call.span);
}

// ---- batch_matmul ----

void batch_matmul_relation(ir::Relation& relation) {
  const auto& attrs = relation.attrs<BatchMatmulAttrs>();
  const TensorType* a = relation.tensor(0);
  const TensorType* b = relation.tensor(1);
  if (!a || !b) return;
  check_min_rank(*a, 2, "tensor_a");
  check_min_rank(*b, 2, "tensor_b");
  const MatrixExtents left = matrix_extents(a->shape, attrs.transpose_a),
                      right = matrix_extents(b->shape, attrs.transpose_b);
  check_inner(left.columns, right.rows, "tensor_a", "tensor_b");
  Shape out = broadcast(Shape(a->shape.begin(), a->shape.end() - 2), Shape(b->shape.begin(), b->shape.end() - 2));
  out.push_back(left.rows);
  out.push_back(right.columns);
  relation.set_output(tensor_type(std::move(out), product_dtype(attrs.out_dtype, *a, b)));
}

std::vector<loop::Tensor> batch_matmul_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<BatchMatmulAttrs>(call);
  const auto types = input_types(call);
  const Shape& out = output_shape(call);
  const size_t batch = out.size() - 2;
  const Shape out_batch(out.begin(), out.begin() + static_cast<ptrdiff_t>(batch));
  const auto element = [&](size_t i, const Indices& p, Expr row, Expr column, bool transposed) {
    const Shape from(types[i]->shape.begin(), types[i]->shape.end() - 2);
    Indices index = broadcast_index(from, out_batch, Indices(p.begin(), p.begin() + static_cast<ptrdiff_t>(batch)));
    if (transposed) std::swap(row, column);
    index.push_back(std::move(row));
    index.push_back(std::move(column));
    return inputs[i](index);
  };
  const Dim inner = matrix_extents(types[0]->shape, attrs.transpose_a).columns;
  return {product(
      "batch_matmul", out, inner, product_dtype(attrs.out_dtype, *types[0], types[1]),
      [&](const Indices& p, const Expr& k) { return element(0, p, p[batch], k, attrs.transpose_a); },
      [&](const Indices& p, const Expr& k) { return element(1, p, k, p[batch + 1], attrs.transpose_b); })};
}

// The same weight for every element of the batch: a dense layer.
ir::Expr batch_matmul_canonicalise(const ir::Call& call) {
  const auto& attrs = attrs_of<BatchMatmulAttrs>(call);
  const Shape &a = call.args[0].tensor_type().shape, &b = call.args[1].tensor_type().shape;
  if (attrs.transpose_a || b.size() > a.size() || !is_static(b) || !is_constant_expression(call.args[1])) return {};
  if (!product(Shape(b.begin(), b.end() - 2)).is(1)) return {};
  ir::Expr weight = call.args[1];
  if (b.size() > 2) {
    const ir::Ints matrix{b[b.size() - 2].value(), b[b.size() - 1].value()};
    weight = ir::call("reshape", {weight}, {{"newshape", matrix}, {"allowzero", true}}, call.span);
  }
  return as_dense(call.args[0], weight, attrs.transpose_b, attrs.out_dtype, call.span);
}

// ---- bias_add, batch_flatten ----

void bias_add_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const auto axis = static_cast<size_t>(normalise_axis(relation.attrs<BiasAddAttrs>().axis, x->shape.size()));
  const TensorType* bias = relation.tensor(1);
  if (!bias) {
    relation.set_input(1, tensor_type({x->shape[axis]}, x->dtype));
  } else {
    require_rank(relation, 1, 1);
    require_same_dtype(relation, 0, 1);
    const Dim& extent = bias->shape[0];
    if (!assume_equal(extent, x->shape[axis])) {
      fail(ErrorCode::TypeMismatch, "bias has {} elements but axis {} of the data has {}", to_string(extent), axis,
           to_string(x->shape[axis]));
    }
  }
  relation.set_output(relation.input(0));
}

std::vector<loop::Tensor> bias_add_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto axis = static_cast<size_t>(normalise_axis(attrs_of<BiasAddAttrs>(call).axis, inputs[0].rank()));
  return {loop::compute("bias_add", inputs[0].shape(), [&](const std::vector<loop::Var>& i) {
    return inputs[0](to_indices(i)) + inputs[1](i[axis]);
  })};
}

// bias_add(x, b) = x + expand_dims(b) over the axes behind `axis`, which broadcasting aligns.
ir::Expr bias_add_canonicalise(const ir::Call& call) {
  const size_t rank = call.args[0].tensor_type().shape.size();
  const auto axis = static_cast<size_t>(normalise_axis(attrs_of<BiasAddAttrs>(call).axis, rank));
  ir::Expr bias = call.args[1];
  if (axis + 1 < rank) {
    bias = ir::call("expand_dims", {bias},
                    {{"axis", int64_t{1}}, {"num_newaxis", static_cast<int64_t>(rank - 1 - axis)}}, call.span);
  }
  return ir::call("add", {call.args[0], bias}, {}, call.span);
}

Shape flattened(const Shape& shape) { return {shape[0], product(Shape(shape.begin() + 1, shape.end()))}; }

void batch_flatten_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  check_min_rank(*x, 1, "data");
  relation.set_output(tensor_type(flattened(x->shape), x->dtype));
}

template <typename A>
ir::Expr make(std::string_view name, std::vector<ir::Expr> args, std::shared_ptr<A> attrs, Span span) {
  return ir::call(&ir::OpRegistry::instance().get(name), std::move(args), std::move(attrs), std::move(span));
}

}  // namespace

ir::Expr dense(ir::Expr data, ir::Expr weight, std::optional<int64_t> units, std::optional<DType> out_dtype,
               Span span) {
  auto attrs = DenseAttrs::defaults();
  attrs->units = units;
  attrs->out_dtype = out_dtype;
  return make("nn.dense", {std::move(data), std::move(weight)}, std::move(attrs), std::move(span));
}

ir::Expr matmul(ir::Expr a, ir::Expr b, bool transpose_a, bool transpose_b, Span span) {
  auto attrs = MatmulAttrs::defaults();
  attrs->transpose_a = transpose_a;
  attrs->transpose_b = transpose_b;
  return make("nn.matmul", {std::move(a), std::move(b)}, std::move(attrs), std::move(span));
}

ir::Expr batch_matmul(ir::Expr a, ir::Expr b, bool transpose_a, bool transpose_b, Span span) {
  auto attrs = BatchMatmulAttrs::defaults();
  attrs->transpose_a = transpose_a;
  attrs->transpose_b = transpose_b;
  return make("nn.batch_matmul", {std::move(a), std::move(b)}, std::move(attrs), std::move(span));
}

ir::Expr bias_add(ir::Expr data, ir::Expr bias, int64_t axis, Span span) {
  auto attrs = BiasAddAttrs::defaults();
  attrs->axis = axis;
  return make("nn.bias_add", {std::move(data), std::move(bias)}, std::move(attrs), std::move(span));
}

ir::Expr batch_flatten(ir::Expr data, Span span) {
  return make("nn.batch_flatten", {std::move(data)}, ir::NoAttrs::defaults(), std::move(span));
}

void register_nn_dense(ir::OpRegistry& registry) {
  using ir::FusionKind;
  const std::string family = "nn/dense";
  registry.add<DenseAttrs>("nn.dense", family)
      .summary("Dense layer: data times the transposed weight.")
      .formula("y[..., u] = sum over k of x[..., k] * w[u, k]")
      .source("Relay 0.16; data of any rank")
      .input("data", "(..., K)")
      .input("weight", "(U, K)")
      .fusion(FusionKind::OutFusable)
      .traits(ir::kLinearInData)
      .mixed_precision(ir::MixedPrecision::Always)
      .relation(dense_relation)
      .compute(dense_compute)
      .layout(original_layout)
      .alter(dense_alter)
      .scale(dense_scale());
  registry.add<DensePackAttrs>("nn.contrib_dense_pack", family)
      .summary("Dense layer with a weight packed in blocks of rows; rows behind `units` are padding.")
      .formula("y[..., u] = sum over k of x[..., k] * w[u / t, k, u mod t]")
      .source("Relay 0.16; data of any rank, a padded last block")
      .input("data", "(..., K)")
      .input("weight", "(ceil(U/t), K, t)")
      .fusion(FusionKind::OutFusable)
      .traits(ir::kLinearInData)
      .relation(dense_pack_relation)
      .compute(dense_pack_compute)
      .layout(dense_pack_layout);
  registry.add<MatmulAttrs>("nn.matmul", family)
      .summary("Product of matrices, either of which may be transposed.")
      .formula("y = op(a) * op(b), op swaps the last two axes or not")
      .source("Relay 0.16")
      .input("tensor_a", "(..., M, K)")
      .input("tensor_b", "(K, U)")
      .fusion(FusionKind::OutFusable)
      .mixed_precision(ir::MixedPrecision::Always)
      .relation(matmul_relation)
      .compute(matmul_compute)
      .layout(original_layout)
      .canonicalise(matmul_canonicalise);
  registry.add<BatchMatmulAttrs>("nn.batch_matmul", family)
      .summary("Product of matrices for every element of a batch, with broadcasting of the batch axes.")
      .formula("y[b, i, j] = sum over k of op(a)[b, i, k] * op(b)[b, k, j]")
      .source("Relay 0.16; any number of batch axes")
      .input("tensor_a", "(B..., M, K)")
      .input("tensor_b", "(B..., K, N)")
      .fusion(FusionKind::OutFusable)
      .mixed_precision(ir::MixedPrecision::Always)
      .relation(batch_matmul_relation)
      .compute(batch_matmul_compute)
      .layout(original_layout)
      .canonicalise(batch_matmul_canonicalise);
  registry.add<BiasAddAttrs>("nn.bias_add", family)
      .summary("Adds a vector along one axis.")
      .formula("y[..., c, ...] = x[..., c, ...] + bias[c]")
      .source("Relay 0.16")
      .input("data", "any shape")
      .input("bias", "(C), C the extent of `axis`")
      .fusion(FusionKind::Broadcast)
      .relation(bias_add_relation)
      .compute(bias_add_compute)
      .layout(original_layout)
      .canonicalise(bias_add_canonicalise);
  registry.add<>("nn.batch_flatten", family)
      .summary("Flattens all axes but the first.")
      .formula("(N, d1, ..., dk) -> (N, d1*...*dk)")
      .source("Relay 0.16")
      .input("data", "(N, ...)")
      .fusion(FusionKind::Injective)
      .traits(ir::kShapeOnly)
      .relation(batch_flatten_relation)
      .compute([](const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
        return std::vector<loop::Tensor>{
            reshaped("batch_flatten", inputs[0], input_types(call)[0]->shape, output_shape(call))};
      })
      .layout(original_layout);
}

}  // namespace treadle::op
