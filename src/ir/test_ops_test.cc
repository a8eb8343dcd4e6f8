// SPDX-License-Identifier: Apache-2.0
#include "ir/test_ops.h"

#include <gtest/gtest.h>

#include <fstream>
#include <mutex>
#include <sstream>

namespace treadle::ir::test {
namespace {

void elementwise(Relation& relation, std::optional<DType> result = std::nullopt) {
  const TensorType *a = relation.tensor(0), *b = relation.tensor(1);
  if (!a || !b) return;
  if (a->dtype != b->dtype)
    fail(ErrorCode::TypeMismatch, "{}: dtypes {} and {}", relation.op.name, to_string(a->dtype), to_string(b->dtype));
  relation.set_output(tensor_type(broadcast(a->shape, b->shape), result.value_or(a->dtype)));
}

void dense(Relation& relation) {
  const auto& attrs = relation.attrs<DenseAttrs>();
  const TensorType* data = relation.tensor(0);
  if (!data) return;
  if (data->shape.size() != 2)
    fail(ErrorCode::TypeMismatch, "test.dense: data must have rank 2, but is {}", to_string(data->shape));
  if (attrs.units) relation.set_input(1, tensor_type({Dim(*attrs.units), data->shape[1]}, data->dtype));
  const TensorType* weight = relation.tensor(1);
  if (!weight) return;
  if (weight->shape.size() != 2) fail(ErrorCode::TypeMismatch, "test.dense: weight must have rank 2");
  if (!(weight->shape[1] == data->shape[1])) {
    fail(ErrorCode::TypeMismatch, "test.dense: data has {} columns but weight has {}", to_string(data->shape[1]),
         to_string(weight->shape[1]));
  }
  relation.set_output(tensor_type({data->shape[0], weight->shape[0]}, data->dtype));
}

void split(Relation& relation) {
  const auto& attrs = relation.attrs<SplitAttrs>();
  const TensorType* data = relation.tensor(0);
  if (!data) return;
  if (data->shape.empty()) fail(ErrorCode::TypeMismatch, "test.split: data is a scalar");
  Shape shape = data->shape;
  shape[0] = floordiv(shape[0], Dim(attrs.sections));
  relation.set_output(
      tuple_type(std::vector<Type>(static_cast<size_t>(attrs.sections), tensor_type(shape, data->dtype))));
}

}  // namespace

void register_test_ops() {
  static std::once_flag once;
  std::call_once(once, [] {
    OpRegistry& registry = OpRegistry::instance();
    for (const char* name : {"add", "subtract", "multiply"}) {
      registry.add(name, "test")
          .input("lhs", "any")
          .input("rhs", "any")
          .fusion(FusionKind::Broadcast)
          .relation([](Relation& r) { elementwise(r); });
    }
    registry.add("less_equal", "test").input("lhs", "any").input("rhs", "any").relation([](Relation& r) {
      elementwise(r, dtype::bool_);
    });
    registry.add("test.relu", "test").input("data", "any").relation([](Relation& r) { r.set_output(r.input(0)); });
    registry.add<DenseAttrs>("test.dense", "test").input("data", "(N, K)").input("weight", "(M, K)").relation(dense);
    registry.add<SplitAttrs>("test.split", "test").input("data", "any").outputs(0).relation(split);
    registry.add<FullAttrs>("test.full", "test").relation([](Relation& r) {
      const auto& attrs = r.attrs<FullAttrs>();
      r.set_output(tensor_type(attrs.shape, attrs.dtype.value_or(dtype::float32_)));
    });
    registry.add("test.select", "test").input("data", "(N)").relation([](Relation& r) {
      if (const TensorType* data = r.tensor(0)) r.set_output(tensor_type({Dim::any()}, data->dtype));
    });
  });
}

std::string read_file(const std::string& path) {
  std::ifstream file(std::string(TREADLE_SOURCE_DIR) + "/" + path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace treadle::ir::test
