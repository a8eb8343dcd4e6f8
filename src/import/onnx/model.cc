// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/model.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/unknown_field_set.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/error.h"

namespace treadle::onnx {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Nested messages; a subgraph costs three levels, so about thirty subgraphs may nest.
constexpr int kMaxNesting = 100;

// Fields that we do not read and that change no value: training information, annotations of quantisation, and how nodes
// were distributed over devices.
bool without_meaning(const std::string& message, int number) {
  return (message == "ModelProto" && (number == 20 || number == 26)) || (message == "GraphProto" && number == 14) ||
         (message == "NodeProto" && number == 10);
}

void check_unknown_fields(const Message& message) {
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const std::string& name = message.GetDescriptor()->name();
    if (without_meaning(name, unknown.field(i).number())) continue;
    fail(ErrorCode::ImportFormat, "message {} has the unknown field {}: the file is broken or of a newer format", name,
         unknown.field(i).number());
  }
}

// Calls check_unknown_fields on the message and all below it.
void check_tree(const Message& root) {
  std::vector<const Message*> stack = {&root};
  std::vector<const FieldDescriptor*> fields;
  while (!stack.empty()) {
    const Message& message = *stack.back();
    stack.pop_back();
    check_unknown_fields(message);
    const auto* reflection = message.GetReflection();
    fields.clear();
    reflection->ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
      if (!field->is_repeated()) {
        stack.push_back(&reflection->GetMessage(message, field));
        continue;
      }
      for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
        stack.push_back(&reflection->GetRepeatedMessage(message, field, i));
      }
    }
  }
}

void parse(google::protobuf::io::ZeroCopyInputStream& stream, Model& model) {
  google::protobuf::io::CodedInputStream input(&stream);
  input.SetTotalBytesLimit(INT_MAX);
  input.SetRecursionLimit(kMaxNesting);
  if (!model.proto.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage())
    fail(ErrorCode::ImportFormat, "the file is no ONNX model, or it is truncated, or it nests deeper than {} messages",
         kMaxNesting);
  check_tree(model.proto);
  if (!model.proto.has_graph()) fail(ErrorCode::ImportFormat, "the model has no graph");
}

}  // namespace

std::string printable(std::string_view name) {
  std::string result;
  for (const char c : name.substr(0, 200)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '"' || c == '\\')
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  if (name.size() > 200) result += "...";
  return result;
}

std::unique_ptr<Model> read_model_file(const std::string& path) {
  auto model = std::make_unique<Model>();
  model->source = path;
  // O_NONBLOCK: a FIFO must not block us.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail(ErrorCode::Io, "cannot open \"{}\": {}", printable(path), std::strerror(errno));
  google::protobuf::io::FileInputStream stream(fd, 1 << 20);
  stream.SetCloseOnDelete(true);
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    fail(ErrorCode::Io, "\"{}\" is no regular file", printable(path));
  try {
    if (info.st_size > INT_MAX)
      throw Error(ErrorCode::ImportFormat,
                  fmt::format("the file has {} bytes, an ONNX file may have {}", info.st_size, INT_MAX))
          .help("save the weights as external data");
    parse(stream, *model);
  } catch (Error& error) {
    error.at(printable(path));
    throw;
  }
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  model->folder.path = parent.empty() ? "." : parent.string();
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  if (!error) model->folder.target = target.parent_path().string();
  return model;
}

std::unique_ptr<Model> read_model(std::string_view bytes, const std::string& source, const std::string& folder) {
  auto model = std::make_unique<Model>();
  model->source = source;
  model->folder = {folder, ""};
  try {
    if (bytes.size() > INT_MAX)
      fail(ErrorCode::ImportFormat, "the model has {} bytes, an ONNX file may have {}", bytes.size(), INT_MAX);
    google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
    parse(stream, *model);
  } catch (Error& error) {
    error.at(printable(source));
    throw;
  }
  return model;
}

}  // namespace treadle::onnx
