// SPDX-License-Identifier: Apache-2.0
// Taking raw data out of a model's bytes: what is parsed afterwards is the same model, and broken bytes stay broken.
#include "import/onnx/carve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "import/onnx/model.h"
#include "import/onnx/tensor.h"

namespace treadle::onnx {
namespace {

onnxpb::TensorProto tensor(int64_t elements, char fill) {
  onnxpb::TensorProto proto;
  proto.set_data_type(2);
  proto.add_dims(elements);
  proto.set_raw_data(std::string(static_cast<size_t>(elements), fill));
  return proto;
}

// One large initialiser, one small, and a large tensor in a branch of a node.
onnxpb::ModelProto model() {
  onnxpb::ModelProto proto;
  auto& graph = *proto.mutable_graph();
  *graph.add_initializer() = tensor(5000, 'a');
  *graph.add_initializer() = tensor(10, 'b');
  auto& branch = *graph.add_node()->add_attribute();
  *branch.mutable_g()->add_node()->add_attribute()->mutable_t() = tensor(kCarveFrom, 'c');
  return proto;
}

TEST(Carve, TakesLargeRawDataEverywhere) {
  const std::string bytes = model().SerializeAsString();
  const Carved carved = carve_raw_data(bytes);
  ASSERT_EQ(carved.spans.size(), 2U);
  EXPECT_LT(carved.skeleton.size(), 200U);
  EXPECT_EQ(bytes.substr(carved.spans[1].offset, carved.spans[1].size), std::string(5000, 'a'));
  EXPECT_EQ(bytes.substr(carved.spans[0].offset, carved.spans[0].size), std::string(kCarveFrom, 'c'));
  onnxpb::ModelProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(carved.skeleton));
  EXPECT_EQ(parsed.graph().initializer(0).carved(), 1U);
  EXPECT_FALSE(parsed.graph().initializer(0).has_raw_data());
  EXPECT_EQ(parsed.graph().initializer(1).raw_data(), std::string(10, 'b'));
  EXPECT_EQ(parsed.graph().node(0).attribute(0).g().node(0).attribute(0).t().carved(), 0U);
}

TEST(Carve, TensorReadsWhatWasTakenOut) {
  const std::string bytes = model().SerializeAsString();
  const std::unique_ptr<Model> read = read_model(bytes, "test", "");
  const Tensor large = take_tensor(*read->proto.mutable_graph()->mutable_initializer(0), read->folder, read->raw);
  EXPECT_EQ(large.size(), 5000);
  EXPECT_EQ(large.int_at(4999), 'a');
}

TEST(Carve, CutBytesStayBroken) {
  const std::string bytes = model().SerializeAsString();
  for (size_t size = 1; size < bytes.size(); size += 97) {
    onnxpb::ModelProto whole, carved;
    const bool good = whole.ParseFromString(bytes.substr(0, size));
    EXPECT_EQ(carved.ParseFromString(carve_raw_data(std::string_view(bytes).substr(0, size)).skeleton), good) << size;
  }
}

// A file that has the field itself, or raw data twice.
TEST(Carve, RefusesForgedFields) {
  onnxpb::ModelProto forged = model();
  forged.mutable_graph()->mutable_initializer(1)->clear_raw_data();
  forged.mutable_graph()->mutable_initializer(1)->set_carved(0);
  EXPECT_THROW(read_model(forged.SerializeAsString(), "test", ""), Error);
  forged.mutable_graph()->mutable_initializer(1)->set_carved(7);
  EXPECT_THROW(read_model(forged.SerializeAsString(), "test", ""), Error);

  onnxpb::ModelProto twice;
  auto& attribute = *twice.mutable_graph()->add_node()->add_attribute();
  *attribute.mutable_t() = tensor(5000, 'a');
  std::string bytes = attribute.SerializeAsString();
  bytes += bytes;  // two fields `t` merge
  auto field = [](int number, const std::string& payload) {
    std::string out(1, static_cast<char>(number * 8 + 2));
    for (size_t length = payload.size();; length >>= 7) {
      out += static_cast<char>(length < 128 ? length : (length & 127) | 128);
      if (length < 128) break;
    }
    return out + payload;
  };
  EXPECT_THROW(read_model(field(7, field(1, field(5, bytes))), "test", ""), Error);
}

}  // namespace
}  // namespace treadle::onnx
