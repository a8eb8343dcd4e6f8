// SPDX-License-Identifier: Apache-2.0
#include "driver/tensor_file.h"

#include <zip.h>

#include <cstring>
#include <filesystem>
#include <memory>

#include "base/file.h"

namespace treadle {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

struct TypeName {
  const char* text;
  DType dtype;
};

// NumPy's type strings without the byte order.
constexpr TypeName kTypeNames[] = {
    {"b1", dtype::bool_},   {"i1", dtype::int8_},    {"i2", dtype::int16_},   {"i4", dtype::int32_},
    {"i8", dtype::int64_},  {"u1", dtype::uint8_},   {"u2", dtype::uint16_},  {"u4", dtype::uint32_},
    {"u8", dtype::uint64_}, {"f2", dtype::float16_}, {"f4", dtype::float32_}, {"f8", dtype::float64_},
};

// The value of a key in the header, which is the text of a Python dictionary.
std::string_view header_value(std::string_view header, const std::string& key, const std::string& source) {
  const size_t at = header.find("'" + key + "':");
  if (at == std::string_view::npos)
    fail(ErrorCode::ImportFormat, "{}: the header of the array has no '{}'", source, key);
  std::string_view value = header.substr(at + key.size() + 3);
  const size_t start = value.find_first_not_of(' ');
  return start == std::string_view::npos ? std::string_view() : value.substr(start);
}

DType parse_descr(std::string_view value, const std::string& source) {
  const size_t close = value.size() > 1 && value[0] == '\'' ? value.find('\'', 1) : std::string_view::npos;
  const std::string_view descr = close == std::string_view::npos ? value.substr(0, 40) : value.substr(1, close - 1);
  for (const TypeName& name : kTypeNames) {
    if (descr.size() == 3 && descr.substr(1) == name.text &&
        (descr[0] == '<' || descr[0] == '|' || name.dtype.bits == 8))
      return name.dtype;
  }
  fail(ErrorCode::ImportUnsupported, "{}: arrays of type {} cannot be read", source, descr);
}

std::vector<int64_t> parse_shape(std::string_view value, const std::string& source) {
  std::vector<int64_t> shape;
  const size_t close = value.find(')');
  if (value.empty() || value[0] != '(' || close == std::string_view::npos)
    fail(ErrorCode::ImportFormat, "{}: the header of the array has no shape", source);
  int64_t number = -1;
  for (char c : value.substr(1, close)) {
    if (c >= '0' && c <= '9') {
      if (__builtin_mul_overflow(std::max<int64_t>(number, 0), 10, &number) ||
          __builtin_add_overflow(number, c - '0', &number)) {
        fail(ErrorCode::Limit, "{}: an extent of the array is too large", source);
      }
    } else if (c == ',' || c == ')') {
      if (number >= 0) shape.push_back(number);
      number = -1;
    } else if (c != ' ') {
      fail(ErrorCode::ImportFormat, "{}: the shape in the header of the array is broken", source);
    }
  }
  return shape;
}

// Fortran order: the first axis varies fastest.
Tensor to_row_major(const Tensor& columns, const std::vector<int64_t>& shape) {
  Tensor rows(columns.dtype(), shape);
  const size_t width = columns.dtype().bytes();
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0; i < rows.size(); ++i) {
    int64_t from = 0;
    for (size_t axis = shape.size(); axis-- > 0;) from = from * shape[axis] + index[axis];
    std::memcpy(static_cast<char*>(rows.data()) + i * width, static_cast<const char*>(columns.data()) + from * width,
                width);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
  return rows;
}

struct ZipClose {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct ZipFileClose {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

}  // namespace

Tensor parse_npy(std::string_view bytes, const std::string& source) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != kMagic) fail(ErrorCode::ImportFormat, "{} is no NumPy array", source);
  const int major = static_cast<unsigned char>(bytes[6]);
  const size_t length_bytes = major == 1 ? 2 : 4;
  size_t length = 0;
  for (size_t i = 0; i < length_bytes && 8 + i < bytes.size(); ++i)
    length |= static_cast<size_t>(static_cast<unsigned char>(bytes[8 + i])) << (8 * i);
  const size_t start = 8 + length_bytes + length;
  if (major < 1 || major > 3 || start > bytes.size())
    fail(ErrorCode::ImportFormat, "{}: the header of the array is broken", source);
  const std::string_view header = bytes.substr(8 + length_bytes, length);
  const DType dtype = parse_descr(header_value(header, "descr", source), source);
  const bool fortran = header_value(header, "fortran_order", source).starts_with("True");
  const std::vector<int64_t> shape = parse_shape(header_value(header, "shape", source), source);
  int64_t expected = 0;
  if (__builtin_mul_overflow(element_count(shape), static_cast<int64_t>(dtype.bytes()), &expected) ||
      static_cast<uint64_t>(expected) != bytes.size() - start) {
    fail(ErrorCode::ImportFormat, "{}: the array has {} bytes of data, its header says otherwise", source,
         bytes.size() - start);
  }
  Tensor tensor(dtype, shape);
  std::memcpy(tensor.data(), bytes.data() + start, tensor.bytes());
  return fortran && shape.size() > 1 ? to_row_major(tensor, shape) : tensor;
}

std::string format_npy(const Tensor& tensor) {
  const char* name = "u2";
  for (const TypeName& entry : kTypeNames) {
    if (entry.dtype == tensor.dtype()) name = entry.text;
  }
  std::string shape;
  for (int64_t extent : tensor.shape()) shape += fmt::format("{}, ", extent);
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   tensor.dtype().bytes() == 1 ? "|" : "<", name, shape);
  // Data begin at a multiple of 64.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += std::string("\x01\x00", 2);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(static_cast<const char*>(tensor.data()), tensor.bytes());
  return bytes;
}

Tensor read_npy(const std::string& path) { return parse_npy(read_file(path), path); }

std::map<std::string, Tensor> read_npz(const std::string& path) {
  int code = 0;
  std::unique_ptr<zip_t, ZipClose> archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive)
    fail(std::filesystem::exists(path) ? ErrorCode::ImportFormat : ErrorCode::Io,
         "cannot read {} as an archive of arrays", path);
  std::map<std::string, Tensor> arrays;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive.get(), 0); ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive.get(), i, 0, &stat) != 0)
      fail(ErrorCode::ImportFormat, "{}: entry {} is broken", path, i);
    std::string name = stat.name;
    std::unique_ptr<zip_file_t, ZipFileClose> file(zip_fopen_index(archive.get(), i, 0));
    if (!file) fail(ErrorCode::ImportFormat, "{}: cannot read {}", path, name);
    std::string bytes;
    // The declared size may lie: memory grows with what is really there.
    char block[1 << 16];
    for (zip_int64_t read; (read = zip_fread(file.get(), block, sizeof block)) != 0;) {
      if (read < 0) fail(ErrorCode::ImportFormat, "{}: {} is broken", path, name);
      bytes.append(block, static_cast<size_t>(read));
    }
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    arrays[name] = parse_npy(bytes, path + ":" + stat.name);
  }
  return arrays;
}

void write_npz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays) {
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (!archive) fail(ErrorCode::Io, "cannot write {}", path);
  std::vector<std::string> contents;  // alive until the archive is closed
  contents.reserve(arrays.size());
  for (const auto& [name, tensor] : arrays) {
    contents.push_back(format_npy(tensor));
    zip_source_t* source = zip_source_buffer(archive, contents.back().data(), contents.back().size(), 0);
    const zip_int64_t entry =
        zip_file_add(archive, (name + ".npy").c_str(), source, ZIP_FL_OVERWRITE | ZIP_FL_ENC_UTF_8);
    if (entry < 0) {
      zip_source_free(source);
      zip_discard(archive);
      fail(ErrorCode::Io, "cannot add {} to {}", name, path);
    }
    zip_file_set_mtime(archive, static_cast<zip_uint64_t>(entry), 315532800, 0);  // 1980-01-01, the earliest there is
  }
  if (zip_close(archive) != 0) {
    zip_discard(archive);
    fail(ErrorCode::Io, "cannot write {}", path);
  }
}

}  // namespace treadle
