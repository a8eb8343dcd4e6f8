// SPDX-License-Identifier: Apache-2.0
// Models made message by message: forms of tensors, symbolic shapes, names, listing of unsupported nodes. Broken
// models: tests/onnx.
#include "import/onnx/onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "import/onnx/model.h"
#include "import/onnx/tensor.h"

namespace treadle::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

onnxpb::ModelProto empty_model(int64_t opset = 13) {
  onnxpb::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(opset);
  return model;
}

// A float input; a negative extent is the dimension "N".
void add_input(onnxpb::ModelProto& model, const std::string& name, const std::vector<int64_t>& shape, int type = 1) {
  auto* input = model.mutable_graph()->add_input();
  input->set_name(name);
  auto* tensor = input->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const int64_t extent : shape) {
    auto* dim = tensor->mutable_shape()->add_dim();
    if (extent < 0)
      dim->set_dim_param("N");
    else
      dim->set_dim_value(extent);
  }
}

onnxpb::NodeProto& add_node(onnxpb::ModelProto& model, const std::string& op, const std::vector<std::string>& inputs,
                            const std::string& output) {
  auto* node = model.mutable_graph()->add_node();
  node->set_op_type(op);
  node->set_name(op + "_node");
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(output);
  return *node;
}

void add_output(onnxpb::ModelProto& model, const std::string& name) {
  model.mutable_graph()->add_output()->set_name(name);
}

void add_ints(onnxpb::ModelProto& model, const std::string& name, const std::vector<int64_t>& values) {
  auto* tensor = model.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(7);
  tensor->add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor->add_int64_data(value);
}

Imported import(const onnxpb::ModelProto& model, const ImportOptions& options = {}) {
  return import_onnx(model.SerializeAsString(), "test.onnx", "", options);
}

std::string result_type(const Imported& imported) { return to_string(imported.module.main().body.type()); }

TEST(OnnxTensor, SixteenBitFloatsInInt32Data) {
  onnxpb::TensorProto proto;
  proto.set_data_type(10);
  proto.add_dims(2);
  proto.add_int32_data(15872);
  proto.add_int32_data(49152);
  const Tensor tensor = take_tensor(proto, {}, RawData());
  EXPECT_EQ(tensor.dtype(), dtype::float16_);
  EXPECT_EQ(tensor.at(0), 1.5);
  EXPECT_EQ(tensor.at(1), -2.0);
}

TEST(OnnxTensor, BytesOfBoolsBecomeZeroOrOne) {
  onnxpb::TensorProto proto;
  proto.set_data_type(9);
  proto.add_dims(3);
  proto.set_raw_data(std::string("\x02\x00\xff", 3));
  EXPECT_THAT(take_tensor(proto, {}, RawData()).to_ints(), ElementsAre(1, 0, 1));
}

TEST(OnnxTensor, ValuesOutsideOfTheDtypeAreRefused) {
  onnxpb::TensorProto proto;
  proto.set_data_type(3);
  proto.add_dims(1);
  proto.add_int32_data(300);
  EXPECT_THROW(take_tensor(proto, {}, RawData()), Error);
}

TEST(OnnxTensor, ExternalDataAreMappedOrRead) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / fmt::format("treadle_onnx_{}", getpid());
  std::filesystem::create_directories(folder);
  const std::vector<float> values(32768, 2.5f);
  std::ofstream(folder / "w.bin", std::ios::binary).write(reinterpret_cast<const char*>(values.data()), 4 * 32768);
  const DataFolder where{folder.string(), ""};
  EXPECT_EQ(external_tensor(where, "w.bin", 0, dtype::float32_, {32768}).at(32767), 2.5);  // mapped
  EXPECT_EQ(external_tensor(where, "w.bin", 4, dtype::float32_, {3}).at(2), 2.5);          // read
  EXPECT_THROW(external_tensor(where, "w.bin", 8, dtype::float32_, {32768}), Error);
  std::filesystem::remove_all(folder);
}

TEST(OnnxImport, ReshapeToComputedShapeStaysSymbolic) {
  onnxpb::ModelProto model = empty_model();
  add_input(model, "x", {-1, 3, 4});
  add_ints(model, "zero", {0});
  add_ints(model, "rest", {12});
  add_node(model, "Shape", {"x"}, "shape");
  add_node(model, "Gather", {"shape", "zero"}, "batch");
  add_node(model, "Concat", {"batch", "rest"}, "target").add_attribute();
  auto* axis = model.mutable_graph()->mutable_node(2)->mutable_attribute(0);
  axis->set_name("axis");
  axis->set_type(2);
  axis->set_i(0);
  add_node(model, "Reshape", {"x", "target"}, "y");
  add_output(model, "y");
  EXPECT_EQ(result_type(import(model)), "Tensor[(N, 12), float32]");
  ImportOptions options;
  options.input_shapes["x"] = {5, 3, 4};
  EXPECT_EQ(result_type(import(model, options)), "Tensor[(5, 12), float32]");
}

TEST(OnnxImport, NamesHoldAnyByte) {
  onnxpb::ModelProto model = empty_model();
  const std::string input = "a \"b\"\n\xff", output = "out/put:0";
  add_input(model, input, {2});
  add_node(model, "Relu", {input}, output);
  add_output(model, output);
  const Imported imported = import(model);
  EXPECT_THAT(imported.input_names, ElementsAre(input));
  EXPECT_THAT(imported.output_names, ElementsAre(output));
  EXPECT_EQ(std::get<ir::Strings>(imported.module.main().attrs.at("output_names")), imported.output_names);
}

TEST(OnnxImport, AnInitialiserThatIsAnInputIsNoParameter) {
  onnxpb::ModelProto model = empty_model();
  add_input(model, "x", {2}, 7);
  add_input(model, "w", {2}, 7);
  add_ints(model, "w", {1, 2});
  add_node(model, "Add", {"x", "w"}, "y");
  add_output(model, "y");
  EXPECT_THAT(import(model).input_names, ElementsAre("x"));
}

TEST(OnnxImport, NodesMayStandInAnyOrder) {
  onnxpb::ModelProto model = empty_model();
  add_input(model, "x", {2});
  add_node(model, "Exp", {"t"}, "y");
  add_node(model, "Relu", {"x"}, "t");
  add_output(model, "y");
  EXPECT_EQ(result_type(import(model)), "Tensor[(2), float32]");
}

TEST(OnnxImport, LongChains) {
  onnxpb::ModelProto model = empty_model();
  add_input(model, "x", {2});
  std::string last = "x";
  for (int i = 0; i < 20000; ++i) {
    const std::string next = fmt::format("t{}", i);
    add_node(model, "Add", {last, "x"}, next);
    last = next;
  }
  add_output(model, last);
  EXPECT_EQ(result_type(import(model)), "Tensor[(2), float32]");
}

TEST(OnnxCheck, ListsEveryUnsupportedNode) {
  onnxpb::ModelProto model = empty_model();
  add_input(model, "x", {2});
  add_node(model, "First", {"x"}, "a");
  add_node(model, "Relu", {"a"}, "b");
  add_node(model, "Second", {"b"}, "c");
  add_node(model, "Third", {"x"}, "d");
  add_output(model, "c");
  add_output(model, "d");
  const std::string path = testing::TempDir() + fmt::format("/treadle_check_{}.onnx", getpid());
  std::ofstream(path, std::ios::binary) << model.SerializeAsString();
  const std::vector<Unsupported> unsupported = check_onnx_file(path);
  ASSERT_EQ(unsupported.size(), 3u);
  EXPECT_EQ(unsupported[0].op_type, "First");
  EXPECT_THAT(unsupported[0].inputs, ElementsAre("Tensor[(2), float32]"));
  EXPECT_EQ(unsupported[1].op_type, "Second");
  EXPECT_EQ(unsupported[2].node, "Third_node");
  std::filesystem::remove(path);
}

TEST(OnnxImport, ErrorsNameNodeOperatorAndFile) {
  onnxpb::ModelProto model = empty_model();
  add_input(model, "x", {2});
  add_input(model, "z", {3});
  add_node(model, "Add", {"x", "z"}, "y");
  add_output(model, "y");
  try {
    import(model);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::TypeMismatch);
    EXPECT_THAT(error.what(), HasSubstr("node \"Add_node\" (Add, opset 13)"));
    EXPECT_THAT(error.what(), HasSubstr("test.onnx"));
    EXPECT_THAT(error.what(), HasSubstr("input 1 \"z\": Tensor[(3), float32]"));
  }
}

}  // namespace
}  // namespace treadle::onnx
