// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/model.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/unknown_field_set.h>
#include <sys/mman.h>
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

// Counts the tensors whose raw data were taken out: each piece must have found its own. A file that has the field
// itself breaks that.
class CarvedCheck {
 public:
  explicit CarvedCheck(size_t pieces) : seen_(pieces) {}
  void add(const Message& message) {
    const auto* tensor = dynamic_cast<const onnxpb::TensorProto*>(&message);
    if (!tensor || !tensor->has_carved()) return;
    if (tensor->carved() >= seen_.size() || seen_[tensor->carved()]) refuse();
    seen_[tensor->carved()] = true;
    ++count_;
  }
  void finish() const {
    if (count_ != seen_.size()) refuse();
  }

 private:
  [[noreturn]] static void refuse() {
    fail(ErrorCode::ImportFormat, "a tensor has raw data twice, or an unknown field: the file is broken");
  }
  std::vector<bool> seen_;
  size_t count_ = 0;
};

// Calls check_unknown_fields on the message and all below it.
void check_tree(const Message& root, size_t carved_pieces) {
  CarvedCheck carved(carved_pieces);
  std::vector<const Message*> stack = {&root};
  std::vector<const FieldDescriptor*> fields;
  while (!stack.empty()) {
    const Message& message = *stack.back();
    stack.pop_back();
    check_unknown_fields(message);
    carved.add(message);
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
  carved.finish();
}

void parse(std::string_view bytes, Model& model) {
  if (bytes.size() > INT_MAX)
    throw Error(ErrorCode::ImportFormat,
                fmt::format("the file has {} bytes, an ONNX file may have {}", bytes.size(), INT_MAX))
        .help("save the weights as external data");
  Carved carved = carve_raw_data(bytes);
  model.raw.spans = std::move(carved.spans);
  google::protobuf::io::ArrayInputStream stream(carved.skeleton.data(), static_cast<int>(carved.skeleton.size()));
  google::protobuf::io::CodedInputStream input(&stream);
  input.SetTotalBytesLimit(INT_MAX);
  input.SetRecursionLimit(kMaxNesting);
  if (!model.proto.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage())
    fail(ErrorCode::ImportFormat, "the file is no ONNX model, or it is truncated, or it nests deeper than {} messages",
         kMaxNesting);
  check_tree(model.proto, model.raw.spans.size());
  if (!model.proto.has_graph()) fail(ErrorCode::ImportFormat, "the model has no graph");
}

// A file's bytes, mapped while they are parsed.
class Mapping {
 public:
  Mapping(const File& file, size_t size) : size_(size) {
    if (size_ > 0) address_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd(), 0);
    if (address_ == MAP_FAILED) fail(ErrorCode::Io, "the file cannot be read: {}", std::strerror(errno));
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (size_ > 0) munmap(address_, size_);
  }
  std::string_view bytes() const { return {static_cast<const char*>(address_), size_}; }

 private:
  void* address_ = nullptr;
  size_t size_;
};

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

void RawData::read(uint64_t index, void* out) const {
  const Span64& span = spans.at(index);
  if (file.fd() < 0) {
    std::memcpy(out, memory.data() + span.offset, span.size);
  } else {
    file.read(out, span.size, static_cast<int64_t>(span.offset), "the model");
  }
}

std::unique_ptr<Model> read_model_file(const std::string& path) {
  auto model = std::make_unique<Model>();
  model->source = path;
  // O_NONBLOCK: a FIFO must not block us.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail(ErrorCode::Io, "cannot open \"{}\": {}", printable(path), std::strerror(errno));
  model->raw.file = File(fd);
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    fail(ErrorCode::Io, "\"{}\" is no regular file", printable(path));
  try {
    const Mapping mapping(model->raw.file, static_cast<size_t>(info.st_size));
    parse(mapping.bytes(), *model);
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
    model->raw.memory = bytes;
    parse(bytes, *model);
  } catch (Error& error) {
    error.at(printable(source));
    throw;
  }
  return model;
}

}  // namespace treadle::onnx
