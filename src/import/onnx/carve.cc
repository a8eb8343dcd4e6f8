// SPDX-License-Identifier: Apache-2.0
// A walk over protobuf's wire format: a field is a varint of 8 * number + wire type, then a varint (type 0), eight
// bytes (1), a length and so many bytes (2), or four bytes (5).
#include "import/onnx/carve.h"

#include <iterator>

#include "onnx/onnx_model.pb.h"

namespace treadle::onnx {
namespace {

enum class Kind { Model, Graph, Node, Attribute, Function, Tensor };

constexpr uint64_t kBytesType = 2;

struct Child {
  Kind parent;
  int field;
  Kind kind;
};
constexpr Child kChildren[] = {
    {Kind::Model, onnxpb::ModelProto::kGraphFieldNumber, Kind::Graph},
    {Kind::Model, onnxpb::ModelProto::kFunctionsFieldNumber, Kind::Function},
    {Kind::Graph, onnxpb::GraphProto::kNodeFieldNumber, Kind::Node},
    {Kind::Graph, onnxpb::GraphProto::kInitializerFieldNumber, Kind::Tensor},
    {Kind::Function, onnxpb::FunctionProto::kNodeFieldNumber, Kind::Node},
    {Kind::Function, onnxpb::FunctionProto::kAttributeProtoFieldNumber, Kind::Attribute},
    {Kind::Node, onnxpb::NodeProto::kAttributeFieldNumber, Kind::Attribute},
    {Kind::Attribute, onnxpb::AttributeProto::kTFieldNumber, Kind::Tensor},
    {Kind::Attribute, onnxpb::AttributeProto::kTensorsFieldNumber, Kind::Tensor},
    {Kind::Attribute, onnxpb::AttributeProto::kGFieldNumber, Kind::Graph},
    {Kind::Attribute, onnxpb::AttributeProto::kGraphsFieldNumber, Kind::Graph},
};

const Child* child_of(Kind parent, uint64_t field) {
  for (const Child& child : kChildren) {
    if (child.parent == parent && static_cast<uint64_t>(child.field) == field) return &child;
  }
  return nullptr;
}

bool read_varint(std::string_view bytes, size_t& at, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

void write_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// One field: where it begins, where its payload does, and where it ends.
struct Field {
  uint64_t number, type;
  size_t begin, payload, end;
};

// False at the end of the bytes and where they are no field.
bool read_field(std::string_view bytes, size_t at, Field& field) {
  uint64_t tag = 0, length = 0;
  field.begin = at;
  if (!read_varint(bytes, at, tag)) return false;
  field.number = tag >> 3;
  field.type = tag & 7;
  field.payload = at;
  switch (field.type) {
    case 0:
      if (!read_varint(bytes, at, length)) return false;
      length = 0;
      break;
    case 1:
      length = 8;
      break;
    case kBytesType:
      if (!read_varint(bytes, at, length)) return false;
      field.payload = at;
      break;
    case 5:
      length = 4;
      break;
    default:
      return false;
  }
  if (length > bytes.size() - at) return false;
  field.end = at + length;
  return true;
}

// A message on the way from the root to where the walk is.
struct Level {
  Kind kind;
  uint64_t field;  // of the message around it
  size_t at, end;
  std::string out;
};

// Protobuf refuses deeper ones.
constexpr size_t kMaxLevels = 110;

}  // namespace

Carved carve_raw_data(std::string_view bytes) {
  Carved result;
  std::vector<Level> levels;
  levels.push_back({Kind::Model, 0, 0, bytes.size(), ""});
  for (;;) {
    Level& level = levels.back();
    Field field{};
    if (!read_field(bytes.substr(0, level.end), level.at, field)) {
      level.out.append(bytes.substr(level.at, level.end - level.at));
      if (levels.size() == 1) break;
      Level done = std::move(levels.back());
      levels.pop_back();
      std::string& out = levels.back().out;
      write_varint(out, done.field << 3 | kBytesType);
      write_varint(out, done.out.size());
      out += done.out;
      continue;
    }
    level.at = field.end;
    if (field.type == kBytesType && field.end - field.payload >= kCarveFrom) {
      if (level.kind == Kind::Tensor && field.number == onnxpb::TensorProto::kRawDataFieldNumber) {
        write_varint(level.out, uint64_t{onnxpb::TensorProto::kCarvedFieldNumber} << 3);
        write_varint(level.out, result.spans.size());
        result.spans.push_back({field.payload, field.end - field.payload});
        continue;
      }
      const Child* child = child_of(level.kind, field.number);
      if (child && levels.size() < kMaxLevels) {
        levels.push_back({child->kind, field.number, field.payload, field.end, ""});
        continue;
      }
    }
    level.out.append(bytes.substr(field.begin, field.end - field.begin));
  }
  result.skeleton = std::move(levels.front().out);
  return result;
}

}  // namespace treadle::onnx
