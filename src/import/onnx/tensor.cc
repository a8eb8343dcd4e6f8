// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/tensor.h"

#include <charconv>
#include <cstring>
#include <limits>
#include <memory>

#include "type/dim.h"

namespace treadle::onnx {
namespace {

struct CodeInfo {
  int64_t code;
  const char* name;
};
constexpr CodeInfo kCodes[] = {
    {1, "FLOAT"},         {2, "UINT8"},           {3, "INT8"},        {4, "UINT16"},
    {5, "INT16"},         {6, "INT32"},           {7, "INT64"},       {8, "STRING"},
    {9, "BOOL"},          {10, "FLOAT16"},        {11, "DOUBLE"},     {12, "UINT32"},
    {13, "UINT64"},       {14, "COMPLEX64"},      {15, "COMPLEX128"}, {16, "BFLOAT16"},
    {17, "FLOAT8E4M3FN"}, {18, "FLOAT8E4M3FNUZ"}, {19, "FLOAT8E5M2"}, {20, "FLOAT8E5M2FNUZ"},
    {21, "UINT4"},        {22, "INT4"},           {23, "FLOAT4E2M1"}, {24, "FLOAT8E8M0"},
    {25, "UINT2"},        {26, "INT2"},           {27, "FLOAT6E2M3"}, {28, "FLOAT6E3M2"},
};

int64_t parse_number(const std::string& text, const char* what) {
  int64_t value = -1;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size() || value < 0)
    fail(ErrorCode::ImportFormat, "{} of the external data is \"{}\", it must be a number", what, printable(text));
  return value;
}

Tensor take_external(const onnxpb::TensorProto& proto, const DataFolder& folder, DType dtype,
                     const std::vector<int64_t>& dims) {
  std::string location;
  int64_t offset = 0, length = -1;
  bool has_location = false;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
      has_location = true;
    } else if (entry.key() == "offset") {
      offset = parse_number(entry.value(), "the offset");
    } else if (entry.key() == "length") {
      length = parse_number(entry.value(), "the length");
    } else if (entry.key() != "checksum" && entry.key() != "basepath") {
      fail(ErrorCode::ImportFormat, "external data have the unknown key \"{}\"", printable(entry.key()));
    }
  }
  if (!has_location) fail(ErrorCode::ImportFormat, "external data have no location");
  const auto bytes = static_cast<uint64_t>(element_count(dims)) * dtype.bytes();
  if (length >= 0 && static_cast<uint64_t>(length) != bytes)
    fail(ErrorCode::ImportFormat, "external data have length {}, the tensor has {} bytes", length, bytes);
  return external_tensor(folder, location, offset, dtype, dims);
}

// Copies a typed field; each element holds one of the tensor.
template <typename Stored, typename Field>
void copy_field(const Field& field, Tensor& tensor, const char* name) {
  if (field.size() != tensor.size())
    fail(ErrorCode::ImportFormat, "{} has {} values, the dims ask for {}", name, field.size(), tensor.size());
  auto* out = static_cast<Stored*>(tensor.data());
  for (int i = 0; i < field.size(); ++i) {
    const auto value = field.Get(i);
    if constexpr (std::is_integral_v<Stored> && !std::is_same_v<Stored, bool>) {
      if (value < static_cast<decltype(value)>(std::numeric_limits<Stored>::min()) ||
          value > static_cast<decltype(value)>(std::numeric_limits<Stored>::max()))
        fail(ErrorCode::ImportFormat, "{} holds {}, which is no {}", name, value, to_string(tensor.dtype()));
    }
    out[i] = static_cast<Stored>(value);
  }
}

void copy_bool(const google::protobuf::RepeatedField<int32_t>& field, Tensor& tensor) {
  if (field.size() != tensor.size())
    fail(ErrorCode::ImportFormat, "int32_data has {} values, the dims ask for {}", field.size(), tensor.size());
  auto* out = static_cast<uint8_t*>(tensor.data());
  for (int i = 0; i < field.size(); ++i) out[i] = field.Get(i) != 0;
}

// Typed fields: which one holds a dtype is in onnx.proto, TensorProto.
void copy_typed(const onnxpb::TensorProto& proto, Tensor& tensor) {
  const DType dtype = tensor.dtype();
  if (dtype == dtype::float32_) return copy_field<float>(proto.float_data(), tensor, "float_data");
  if (dtype == dtype::float64_) return copy_field<double>(proto.double_data(), tensor, "double_data");
  if (dtype == dtype::int64_) return copy_field<int64_t>(proto.int64_data(), tensor, "int64_data");
  if (dtype == dtype::uint64_) return copy_field<uint64_t>(proto.uint64_data(), tensor, "uint64_data");
  if (dtype == dtype::uint32_) return copy_field<uint32_t>(proto.uint64_data(), tensor, "uint64_data");
  if (dtype.is_bool()) return copy_bool(proto.int32_data(), tensor);
  if (dtype.is_half() || dtype == dtype::uint16_) return copy_field<uint16_t>(proto.int32_data(), tensor, "int32_data");
  if (dtype == dtype::int32_) return copy_field<int32_t>(proto.int32_data(), tensor, "int32_data");
  if (dtype == dtype::int16_) return copy_field<int16_t>(proto.int32_data(), tensor, "int32_data");
  if (dtype == dtype::int8_) return copy_field<int8_t>(proto.int32_data(), tensor, "int32_data");
  if (dtype == dtype::uint8_) return copy_field<uint8_t>(proto.int32_data(), tensor, "int32_data");
  fail(ErrorCode::Internal, "dtype {} has no storage form", to_string(dtype));
}

// How many values stand in typed fields, and in which number of fields.
std::pair<int64_t, int> typed_values(const onnxpb::TensorProto& proto) {
  const int64_t sizes[] = {proto.float_data_size(), proto.int32_data_size(),  proto.string_data_size(),
                           proto.int64_data_size(), proto.double_data_size(), proto.uint64_data_size()};
  int64_t total = 0;
  int fields = 0;
  for (const int64_t size : sizes) {
    total += size;
    fields += size > 0;
  }
  return {total, fields};
}

// Gives back the memory of the typed fields; Clear would keep it.
void release_typed(onnxpb::TensorProto& proto) {
  onnxpb::TensorProto bare;
  bare.set_name(proto.name());
  proto.Swap(&bare);
}

}  // namespace

std::string code_name(int64_t code) {
  for (const CodeInfo& info : kCodes) {
    if (info.code == code) return fmt::format("{} ({})", info.name, code);
  }
  return fmt::format("{}", code);
}

DType dtype_of_code(int64_t code) {
  switch (code) {
    case 1:
      return dtype::float32_;
    case 2:
      return dtype::uint8_;
    case 3:
      return dtype::int8_;
    case 4:
      return dtype::uint16_;
    case 5:
      return dtype::int16_;
    case 6:
      return dtype::int32_;
    case 7:
      return dtype::int64_;
    case 9:
      return dtype::bool_;
    case 10:
      return dtype::float16_;
    case 11:
      return dtype::float64_;
    case 12:
      return dtype::uint32_;
    case 13:
      return dtype::uint64_;
    case 16:
      return dtype::bfloat16_;
    default:
      break;
  }
  if (code == 0) fail(ErrorCode::ImportFormat, "the element type is not set");
  if (code >= 1 && code <= 28) fail(ErrorCode::ImportUnsupported, "element type {} is not supported", code_name(code));
  fail(ErrorCode::ImportFormat, "element type {} is unknown", code);
}

Tensor take_tensor(onnxpb::TensorProto& proto, const DataFolder& folder, const RawData& raw) {
  const DType dtype = dtype_of_code(proto.data_type());
  if (proto.has_segment()) fail(ErrorCode::ImportUnsupported, "the tensor is stored in segments");
  const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  for (const int64_t dim : dims) {
    if (dim < 0) fail(ErrorCode::ImportFormat, "the tensor has the extent {}", dim);
  }
  const int64_t count = element_count(dims);
  const auto [typed, fields] = typed_values(proto);
  if (proto.data_location() == 1) {
    if (typed > 0 || proto.has_raw_data() || proto.has_carved())
      fail(ErrorCode::ImportFormat, "the tensor has both external and inline data");
    return take_external(proto, folder, dtype, dims);
  }
  if (proto.data_location() != 0) fail(ErrorCode::ImportFormat, "data_location {} is unknown", proto.data_location());
  if (proto.external_data_size() > 0)
    fail(ErrorCode::ImportFormat, "the tensor lists external data, but its data_location says that it has none");
  const uint64_t raw_bytes = proto.raw_data().size() + (proto.has_carved() ? raw.size(proto.carved()) : 0);
  if (fields > 1 || (fields == 1 && raw_bytes > 0) || (proto.has_carved() && !proto.raw_data().empty()))
    fail(ErrorCode::ImportFormat, "the tensor has data in several fields");
  // The size is compared before memory is taken: dims of a hostile file may be anything.
  const int64_t have = fields ? typed : static_cast<int64_t>(raw_bytes / dtype.bytes());
  if (have != count || (!fields && raw_bytes % dtype.bytes() != 0)) {
    const std::string what = fields ? fmt::format("{} values", typed) : fmt::format("{} bytes", raw_bytes);
    fail(ErrorCode::ImportFormat, "the tensor holds {}, its dims {} and {} ask for {} elements", what,
         to_string(to_shape(dims)), to_string(dtype), count);
  }
  Tensor tensor(dtype, dims);
  if (fields) {
    copy_typed(proto, tensor);
    release_typed(proto);
    return tensor;
  }
  if (proto.has_carved()) {
    raw.read(proto.carved(), tensor.data());
  } else {
    const std::unique_ptr<std::string> bytes(proto.release_raw_data());
    if (!bytes || bytes->empty()) return tensor;
    std::memcpy(tensor.data(), bytes->data(), bytes->size());
  }
  if (dtype.is_bool()) {
    auto* bytes = static_cast<uint8_t*>(tensor.data());
    for (int64_t i = 0; i < count; ++i) bytes[i] = bytes[i] != 0;
  }
  return tensor;
}

}  // namespace treadle::onnx
