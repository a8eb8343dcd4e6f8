// SPDX-License-Identifier: Apache-2.0
// Matrix products against loops written here.
#include "op/nn/dense.h"

#include "op/nn/nn_test.h"

namespace treadle::op::test {
namespace {

Type f32(Shape shape) { return tensor_type(std::move(shape), dtype::float32_); }

// y[i, j] = sum over k of a[i, k] * b[j, k]
Tensor product(const Tensor& a, const Tensor& b, DType out = dtype::float32_) {
  return filled(
      {a.shape()[0], b.shape()[0]},
      [&](const std::vector<int64_t>& i) {
        double sum = 0;
        for (int64_t k = 0; k < a.shape()[1]; ++k) sum += a.at(at(a, {i[0], k})) * b.at(at(b, {i[1], k}));
        return sum;
      },
      out);
}

Tensor transposed(const Tensor& a) {
  return filled(
      {a.shape()[1], a.shape()[0]}, [&](const std::vector<int64_t>& i) { return a.at(at(a, {i[1], i[0]})); },
      a.dtype());
}

TEST(Dense, OverDtypes) {
  for (DType type : {dtype::float32_, dtype::float64_, dtype::float16_, dtype::bfloat16_, dtype::int32_}) {
    const Tensor x = pattern(type, {3, 17}), w = pattern(type, {5, 17}, 2);
    const double tolerance = type.is_half() ? 2e-2 : 1e-5;
    expect_close(run_op("nn.dense", {x, w}), product(x, w, type), tolerance, tolerance);
  }
  const Tensor x = pattern(dtype::uint8_, {3, 300}), w = pattern(dtype::int8_, {5, 300}, 2);
  expect_close(run_op("nn.dense", {x, w}, {{"out_dtype", std::string("int32")}}), product(x, w, dtype::int32_), 0, 0);
}

TEST(Dense, AnyRankAndNoRows) {
  const Tensor x = pattern(dtype::float32_, {2, 3, 4}), w = pattern(dtype::float32_, {5, 4}, 2);
  expect_close(run_op("nn.dense", {x, w}).reshaped({6, 5}), product(x.reshaped({6, 4}), w));
  expect_close(run_op("nn.dense", {x.reshaped({24}).reshaped({6, 4}), w}), product(x.reshaped({6, 4}), w));
  EXPECT_EQ(run_op("nn.dense", {Tensor(dtype::float32_, {0, 4}), w}).shape(), (std::vector<int64_t>{0, 5}));
  expect_close(run_op("nn.dense", {Tensor(dtype::float32_, {2, 0}), Tensor(dtype::float32_, {3, 0})}),
               Tensor::zeros(dtype::float32_, {2, 3}));
}

TEST(DensePack, PaddedLastBlock) {
  const Tensor x = pattern(dtype::float32_, {3, 6}), w = pattern(dtype::float32_, {5, 6}, 2);
  const Tensor packed = filled({2, 6, 4}, [&](const std::vector<int64_t>& i) {
    const int64_t row = i[0] * 4 + i[2];
    return row < 5 ? w.at(at(w, {row, i[1]})) : 99.0;
  });
  expect_close(
      run_op("nn.contrib_dense_pack", {x, packed}, {{"units", int64_t{5}}, {"weight_layout", std::string("NC4n")}}),
      product(x, w));
  EXPECT_THAT(error_of([&] {
                type_of("nn.contrib_dense_pack", {f32({3, 6}), f32({2, 6, 4})},
                        {{"units", int64_t{3}}, {"weight_layout", std::string("NC4n")}});
              }),
              ::testing::HasSubstr("weight has 8 rows in blocks of 4 but units is 3"));
}

TEST(Dense, AltersToPackedWeights) {
  Target target;
  target.vector_bytes = 32;
  const ir::Expr x = var("x", {Dim::symbol("N"), 6});
  const ir::Expr call = dense(x, ir::constant(Tensor::zeros(dtype::float32_, {20, 6})));
  const auto alternative = call.as<ir::Call>()->op()->alter(*call.as<ir::Call>(), target);
  ASSERT_TRUE(alternative);
  EXPECT_EQ(alternative->op->name, "nn.contrib_dense_pack");
  EXPECT_EQ(alternative->inputs[1].text(), "NC16n");
  const ir::Expr variable = dense(x, var("w", {20, 6}));
  EXPECT_FALSE(variable.as<ir::Call>()->op()->alter(*variable.as<ir::Call>(), target));
}

TEST(Matmul, AllTranspositions) {
  const Tensor a = pattern(dtype::float32_, {3, 4}), b = pattern(dtype::float32_, {5, 4}, 2), expected = product(a, b);
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      const std::vector<Tensor> inputs{ta ? transposed(a) : a, tb ? b : transposed(b)};
      expect_close(run_op("nn.matmul", inputs, {{"transpose_a", ta}, {"transpose_b", tb}}), expected);
      const std::vector<Tensor> batched{inputs[0].reshaped({1, inputs[0].shape()[0], inputs[0].shape()[1]}),
                                        inputs[1].reshaped({1, inputs[1].shape()[0], inputs[1].shape()[1]})};
      expect_close(run_op("nn.batch_matmul", batched, {{"transpose_a", ta}, {"transpose_b", tb}}).reshaped({3, 5}),
                   expected);
    }
  }
}

TEST(BatchMatmul, StretchesTheBatch) {
  const Tensor a = pattern(dtype::float32_, {2, 1, 3, 4}), b = pattern(dtype::float32_, {5, 5, 4}, 2);
  const Tensor y = run_op("nn.batch_matmul", {a, b}, {{"transpose_b", true}});
  ASSERT_EQ(y.shape(), (std::vector<int64_t>{2, 5, 3, 5}));
  expect_close(y, filled({2, 5, 3, 5}, [&](const std::vector<int64_t>& i) {
                 double sum = 0;
                 for (int64_t k = 0; k < 4; ++k) sum += a.at(at(a, {i[0], 0, i[2], k})) * b.at(at(b, {i[1], i[3], k}));
                 return sum;
               }));
}

// Two batch symbols: either may turn out to be 1.
TEST(BatchMatmul, SymbolicBatches) {
  const Tensor a = pattern(dtype::float32_, {1, 2, 4}), b = pattern(dtype::float32_, {3, 5, 4}, 2);
  const Tensor y = run({{f32({Dim::symbol("A"), 2, 4}), a}, {f32({Dim::symbol("B"), 5, 4}), b}},
                       [](const std::vector<ir::Expr>& x) { return batch_matmul(x[0], x[1], false, true); });
  expect_close(y, run_op("nn.batch_matmul", {a, b}, {{"transpose_b", true}}));
}

// Products with one constant weight become dense layers of the same type and value.
TEST(Matmul, CanonicalFormIsDense) {
  register_operators();
  const ir::Expr a = ir::constant(pattern(dtype::float32_, {2, 3, 4})),
                 b = ir::constant(pattern(dtype::float32_, {4, 5}, 2));
  const ir::Expr batched = ir::constant(pattern(dtype::float32_, {1, 4, 5}, 2));
  for (const ir::Expr& product :
       {matmul(a, b), batch_matmul(a, b, false, false), batch_matmul(a, batched, false, false)}) {
    const ir::Expr canonical = product.as<ir::Call>()->op()->canonicalise(*product.as<ir::Call>());
    ASSERT_TRUE(canonical.defined());
    EXPECT_EQ(canonical.as<ir::Call>()->op()->name, "nn.dense");
    EXPECT_EQ(to_string(canonical.type()), to_string(product.type()));
    expect_close(run(canonical), run(product));
  }
  const ir::Expr variable = matmul(a, var("b", {4, 5}));
  EXPECT_FALSE(variable.as<ir::Call>()->op()->canonicalise(*variable.as<ir::Call>()).defined());
}

TEST(Dense, RefusesWithNumbers) {
  EXPECT_THAT(error_of([] { type_of("nn.dense", {f32({2, 4}), f32({3, 5})}); }),
              ::testing::HasSubstr("data has 4 elements along the summed axis but weight has 5"));
  EXPECT_THAT(error_of([] { type_of("nn.dense", {f32({2, 4}), f32({3, 4})}, {{"units", int64_t{7}}}); }),
              ::testing::HasSubstr("3 output features but units is 7"));
  EXPECT_THAT(error_of([] { type_of("nn.batch_matmul", {f32({2, 3, 4}), f32({3, 4, 5})}); }),
              ::testing::HasSubstr("2"));
  EXPECT_THAT(error_of([] { type_of("nn.bias_add", {f32({2, 3}), f32({4})}); }),
              ::testing::HasSubstr("bias has 4 elements but axis 1 of the data has 3"));
  EXPECT_THAT(error_of([] { type_of("nn.matmul", {f32({2, 3}), tensor_type({3, 2}, dtype::float64_)}); }),
              ::testing::HasSubstr("float64"));
}

TEST(BiasAdd, EqualsItsCanonicalForm) {
  register_operators();
  for (int64_t axis : {0, 1, 2, -1}) {
    const Tensor x = pattern(dtype::float32_, {2, 3, 4}),
                 b = pattern(dtype::float32_, {x.shape()[static_cast<size_t>(axis < 0 ? axis + 3 : axis)]}, 2);
    const ir::Expr call = bias_add(ir::constant(x), ir::constant(b), axis);
    const ir::Expr canonical = call.as<ir::Call>()->op()->canonicalise(*call.as<ir::Call>());
    EXPECT_EQ(to_string(canonical.type()), to_string(call.type()));
    expect_close(run(canonical), run(call), 0, 0);
  }
}

TEST(BatchFlatten, KeepsTheOrder) {
  const Tensor x = pattern(dtype::float32_, {2, 3, 4});
  expect_close(run_op("nn.batch_flatten", {x}), x.reshaped({2, 12}), 0, 0);
  EXPECT_EQ(type_of("nn.batch_flatten", {f32({Dim::symbol("N"), 3, 4})}), "Tensor[(N, 12), float32]");
  expect_close(run_op("nn.batch_flatten", {pattern(dtype::float32_, {5})}), pattern(dtype::float32_, {5, 1}), 0, 0);
}

}  // namespace
}  // namespace treadle::op::test
