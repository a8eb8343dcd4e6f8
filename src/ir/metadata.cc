// SPDX-License-Identifier: Apache-2.0
#include "ir/metadata.h"

#include <array>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

namespace treadle::ir {
namespace {

constexpr uint64_t kArrayMagic = 0xDD5E40F096B4A13Full;
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr int kMaxNesting = 8;  // of lists in attributes
constexpr size_t kMaxRank = 64;

// dtype as the array format writes it; bool is an unsigned integer of one bit there.
DType dtype_of_header(uint8_t code, uint8_t bits) {
  if ((code == static_cast<uint8_t>(TypeCode::UInt) && bits == 1) || code == static_cast<uint8_t>(TypeCode::Bool))
    return dtype::bool_;
  const DType wanted{static_cast<TypeCode>(code), bits};
  for (DType known : all_dtypes()) {
    if (known == wanted) return known;
  }
  fail(ErrorCode::ImportFormat, "an array has an unknown dtype (code {}, {} bits)", code, bits);
}

// Reads little-endian numbers; never beyond the end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view take(size_t count) {
    if (count > bytes_.size())
      fail(ErrorCode::ImportFormat, "an array ends after {} of {} bytes", bytes_.size(), count);
    const std::string_view result = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return result;
  }

 private:
  std::string_view bytes_;
};

template <typename T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string result;
  result.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) result += i + j <= bytes.size() ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return result;
}

std::string base64_decode(std::string_view text) {
  static const std::array<int8_t, 256> values = [] {
    std::array<int8_t, 256> table;
    table.fill(-1);
    for (size_t i = 0; i < kDigits.size(); ++i) table[static_cast<unsigned char>(kDigits[i])] = static_cast<int8_t>(i);
    return table;
  }();
  std::string result;
  result.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    if (c == '=') break;
    if (c == '\n' || c == '\r' || c == ' ') continue;
    const int8_t value = values[static_cast<unsigned char>(c)];
    if (value < 0)
      fail(ErrorCode::ImportFormat, "base64 data contains the byte {}",
           static_cast<int>(static_cast<unsigned char>(c)));
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      result += static_cast<char>(bits >> count & 0xff);
    }
  }
  return result;
}

std::string array_bytes(const Tensor& tensor) {
  std::string out;
  append(out, kArrayMagic);
  append<uint64_t>(out, 0);
  append<int32_t>(out, 1);  // device: CPU 0
  append<int32_t>(out, 0);
  append(out, static_cast<int32_t>(tensor.shape().size()));
  const bool is_bool = tensor.dtype().is_bool();
  append(out, static_cast<uint8_t>(is_bool ? TypeCode::UInt : tensor.dtype().code));
  append(out, static_cast<uint8_t>(is_bool ? 1 : tensor.dtype().bits));
  append<uint16_t>(out, 1);
  for (int64_t extent : tensor.shape()) append(out, extent);
  append(out, static_cast<int64_t>(tensor.bytes()));
  out.append(static_cast<const char*>(tensor.data()), tensor.bytes());
  return out;
}

Tensor array_from_bytes(std::string_view bytes) {
  Reader reader(bytes);
  if (reader.number<uint64_t>() != kArrayMagic)
    fail(ErrorCode::ImportFormat, "an array does not begin with the magic number");
  reader.take(8 + 8);  // reserved, device
  const auto rank = reader.number<uint32_t>();
  if (rank > kMaxRank) fail(ErrorCode::ImportFormat, "an array has rank {}", rank);
  const auto code = reader.number<uint8_t>();
  const auto bits = reader.number<uint8_t>();
  if (const auto lanes = reader.number<uint16_t>(); lanes != 1)
    fail(ErrorCode::ImportFormat, "an array's elements have {} lanes", lanes);
  const DType dtype = dtype_of_header(code, bits);
  std::vector<int64_t> shape;
  for (uint32_t i = 0; i < rank; ++i) shape.push_back(reader.number<int64_t>());
  const auto size = reader.number<int64_t>();
  const int64_t count = element_count(shape);
  // Compared before anything is allocated, so that a short text cannot ask for much memory.
  if (size < 0 || static_cast<uint64_t>(size) / dtype.bytes() != static_cast<uint64_t>(count) ||
      size % static_cast<int64_t>(dtype.bytes())) {
    fail(ErrorCode::ImportFormat, "an array of {} elements of {} has {} bytes", count, to_string(dtype), size);
  }
  const std::string_view data = reader.take(static_cast<size_t>(size));
  Tensor tensor(dtype, std::move(shape));
  if (size > 0) std::memcpy(tensor.data(), data.data(), data.size());
  if (dtype.is_bool()) {
    auto* values = static_cast<unsigned char*>(tensor.data());
    for (int64_t i = 0; i < count; ++i) values[i] = values[i] != 0;
  }
  return tensor;
}

Metadata::Metadata(std::string_view text) {
  // The reader of the library recurses; it is bounded by a filter that refuses deep nesting.
  const auto bounded = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > 16) fail(ErrorCode::Limit, "the JSON of the metadata is nested deeper than 16");
    return true;
  };
  nlohmann::json root;
  try {
    root = nlohmann::json::parse(text, bounded);
    for (const auto& json : root.at("nodes")) {
      Node node;
      node.type_key = json.value("type_key", "");
      node.repr = json.value("repr_str", "");
      if (json.contains("attrs")) node.attrs = json["attrs"].get<std::map<std::string, std::string>>();
      if (json.contains("keys")) node.keys = json["keys"].get<std::vector<std::string>>();
      if (json.contains("data")) node.data = json["data"].get<std::vector<size_t>>();
      nodes_.push_back(std::move(node));
    }
    if (root.contains("b64ndarrays")) arrays_ = root["b64ndarrays"].get<std::vector<std::string>>();
    const size_t start = root.at("root").get<size_t>();
    for (Node& node : nodes_) {
      for (size_t index : node.data) {
        if (index >= nodes_.size())
          fail(ErrorCode::Parse, "the metadata refers to node {} of {}", index, nodes_.size());
        nodes_[index].listed = true;
      }
    }
    if (start >= nodes_.size())
      fail(ErrorCode::Parse, "the root of the metadata is node {} of {}", start, nodes_.size());
    const Node& map = nodes_[start];
    for (size_t i = 0; i < map.keys.size() && i < map.data.size(); ++i)
      entries_[map.keys[i]] = nodes_[map.data[i]].data;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::Parse, "the metadata is no valid JSON: {}", error.what());
  }
}

const Metadata::Node& Metadata::entry(const std::string& key, size_t index) const {
  const auto found = entries_.find(key);
  if (found == entries_.end() || index >= found->second.size()) {
    fail(ErrorCode::InvalidArgument, "the metadata section has no meta[{}][{}]", key, index);
  }
  return nodes_[found->second[index]];
}

Tensor Metadata::constant(size_t index) const {
  const Node& node = entry("relay.Constant", index);
  const auto data = node.attrs.find("data");
  const std::optional<size_t> array = data == node.attrs.end() ? std::nullopt : parse_number<size_t>(data->second);
  if (!array || *array >= arrays_.size()) fail(ErrorCode::ImportFormat, "meta[relay.Constant][{}] has no data", index);
  return array_from_bytes(base64_decode(arrays_[*array]));
}

AttrValue Metadata::value_of(const Node& node, int depth) const {
  if (depth > kMaxNesting) fail(ErrorCode::Limit, "lists in the metadata are nested deeper than {}", kMaxNesting);
  const auto attr = [&](const char* name) {
    const auto found = node.attrs.find(name);
    return found == node.attrs.end() ? std::string() : found->second;
  };
  if (node.type_key.empty()) return AttrValue();
  if (node.type_key == "runtime.String") return node.repr;
  if (node.type_key == "IntImm") {
    const std::optional<int64_t> value = parse_number<int64_t>(attr("value"));
    if (!value) fail(ErrorCode::Parse, "the metadata has an IntImm without value");
    return attr("dtype") == "bool" ? AttrValue(*value != 0) : AttrValue(*value);
  }
  if (node.type_key == "FloatImm") {
    const std::optional<double> value = parse_number<double>(attr("value"));
    if (!value) fail(ErrorCode::Parse, "the metadata has a FloatImm without value");
    return *value;
  }
  if (node.type_key == "tir.Any") return Dim::any();
  if (node.type_key == "Array") {
    std::vector<AttrValue> items;
    for (size_t index : node.data) items.push_back(value_of(nodes_[index], depth + 1));
    return list_value(items);
  }
  fail(ErrorCode::ImportUnsupported, "the metadata has an attribute of type {}", node.type_key);
}

// A field's text is a value or the index of the node that holds it. It is an index when it is the number of a node that
// no list holds and whose type fits the field: a plain number that is by chance such an index would have to stand
// beside the true reference.
AttrValue Metadata::field_value(const FieldInfo* field, const std::string& text) const {
  const std::optional<int64_t> number = parse_number<int64_t>(text);
  if (!number) {
    const std::optional<double> real = parse_number<double>(text);
    return real ? AttrValue(*real) : AttrValue(text);
  }
  if (*number == 0 && field && field->optional) return AttrValue();  // node 0 is null
  if (*number > 0 && static_cast<size_t>(*number) < nodes_.size()) {
    const Node& node = nodes_[static_cast<size_t>(*number)];
    const bool plausible = node.type_key == "IntImm" || node.type_key == "FloatImm" ||
                           node.type_key == "runtime.String" || node.type_key == "Array" || node.type_key == "tir.Any";
    if (!node.listed && plausible) {
      AttrValue value = value_of(node, 0);
      if (!field) return value;
      try {
        return coerce(*field, value, "");
      } catch (const Error&) {  // does not fit: it was a number
      }
    }
  }
  return *number;
}

AttrMap Metadata::attributes(const std::string& key, size_t index, const AttrSchema& schema) const {
  AttrMap result;
  for (const auto& [name, text] : entry(key, index).attrs) {
    const FieldInfo* field = nullptr;
    for (const FieldInfo& candidate : schema) {
      if (candidate.name == name) field = &candidate;
    }
    AttrValue value = field_value(field, text);
    // TVM leaves a list that it does not use empty: the default then.
    const auto* list = std::get_if<Ints>(&value);
    if (field && !field->required && list && list->empty()) continue;
    result[name] = std::move(value);
  }
  return result;
}

std::string metadata_text(const std::vector<Tensor>& constants) {
  if (constants.empty()) return "";
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  nodes.push_back({{"type_key", ""}});
  nodes.push_back({{"type_key", "Map"}, {"keys", {"relay.Constant"}}, {"data", {2}}});
  std::vector<size_t> indices;
  for (size_t i = 0; i < constants.size(); ++i) indices.push_back(3 + i);
  nodes.push_back({{"type_key", "Array"}, {"data", indices}});
  std::vector<std::string> arrays;
  for (size_t i = 0; i < constants.size(); ++i) {
    nodes.push_back({{"type_key", "relay.Constant"}, {"attrs", {{"data", std::to_string(i)}, {"span", "0"}}}});
    arrays.push_back(base64_encode(array_bytes(constants[i])));
  }
  const nlohmann::ordered_json root = {{"root", 1}, {"nodes", nodes}, {"b64ndarrays", arrays}};
  return "#[metadata]\n" + root.dump(2) + "\n";
}

}  // namespace treadle::ir
