// SPDX-License-Identifier: Apache-2.0
// Walks over the fields of ModelProto and of its GraphProto and skips those that are long; the field numbers stand in
// onnx_model.proto.
#include "import/onnx/metadata.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/wire_format_lite.h>
#include <unistd.h>

#include <optional>

#include "base/error.h"
#include "onnx/onnx_model.pb.h"

namespace treadle::onnx {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using onnxpb::GraphProto;
using onnxpb::ModelProto;

constexpr uint32_t text_tag(int number) {
  return (static_cast<uint32_t>(number) << 3) | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
}

// Calls `read(tag)` for each field of a message: whether it could be read, or nullopt for a field to skip. False for a
// broken message.
template <typename F>
bool walk(CodedInputStream& input, F read) {
  while (const uint32_t tag = input.ReadTag()) {
    const std::optional<bool> good = read(tag);
    if (good ? !*good : !WireFormatLite::SkipField(&input, tag)) return false;
  }
  return input.ConsumedEntireMessage();
}

bool read_graph(CodedInputStream& input, Metadata& metadata) {
  int length = 0;
  if (!input.ReadVarintSizeAsInt(&length)) return false;
  const auto limit = input.PushLimit(length);
  const bool good = walk(input, [&](uint32_t tag) -> std::optional<bool> {
    switch (tag) {
      case text_tag(GraphProto::kNameFieldNumber):
        return WireFormatLite::ReadBytes(&input, &metadata.graph_name);
      case text_tag(GraphProto::kDocStringFieldNumber):
        return WireFormatLite::ReadBytes(&input, &metadata.graph_description);
      default:
        return std::nullopt;
    }
  });
  input.PopLimit(limit);
  return good;
}

bool read_version(CodedInputStream& input, int64_t& version) {
  uint64_t value = 0;
  const bool good = input.ReadVarint64(&value);
  version = static_cast<int64_t>(value);
  return good;
}

bool read_property(CodedInputStream& input, Metadata& metadata) {
  std::string bytes;
  onnxpb::StringStringEntryProto entry;
  if (!WireFormatLite::ReadBytes(&input, &bytes) || !entry.ParseFromString(bytes)) return false;
  metadata.properties.emplace_back(entry.key(), entry.value());
  return true;
}

Metadata read(CodedInputStream& input, const std::string& source_name) {
  Metadata metadata;
  const bool good = walk(input, [&](uint32_t tag) -> std::optional<bool> {
    switch (tag) {
      case text_tag(ModelProto::kProducerNameFieldNumber):
        return WireFormatLite::ReadBytes(&input, &metadata.producer_name);
      case text_tag(ModelProto::kDomainFieldNumber):
        return WireFormatLite::ReadBytes(&input, &metadata.domain);
      case text_tag(ModelProto::kDocStringFieldNumber):
        return WireFormatLite::ReadBytes(&input, &metadata.description);
      case text_tag(ModelProto::kMetadataPropsFieldNumber):
        return read_property(input, metadata);
      case text_tag(ModelProto::kGraphFieldNumber):
        return read_graph(input, metadata);
      case ModelProto::kModelVersionFieldNumber << 3:
        return read_version(input, metadata.version);  // wire type 0: a varint
      default:
        return std::nullopt;
    }
  });
  if (!good) fail(ErrorCode::ImportFormat, "{} is no ONNX model, or is cut off", source_name);
  return metadata;
}

}  // namespace

Metadata read_metadata(std::string_view bytes, const std::string& source_name) {
  if (bytes.size() > INT32_MAX)
    fail(ErrorCode::ImportFormat, "{} has {} bytes; an ONNX model has at most 2 GiB", source_name, bytes.size());
  CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  return read(input, source_name);
}

Metadata read_metadata_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(ErrorCode::Io, "cannot read {}", path);
  google::protobuf::io::FileInputStream stream(file);
  stream.SetCloseOnDelete(true);
  CodedInputStream input(&stream);
  return read(input, path);
}

}  // namespace treadle::onnx
