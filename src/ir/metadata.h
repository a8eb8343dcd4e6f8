// SPDX-License-Identifier: Apache-2.0
// The #[metadata] section of a text: constants and attributes that do not stand inline, as the JSON node graph that TVM
// writes.
//   {"root": 1, "nodes": [{"type_key": "Map", "keys": ["relay.Constant"], "data": [2]}, …], "b64ndarrays": ["…"],
//   "attrs": {…}}
// A number in a node's "attrs" is either a value or the index of a node; the array format is that of Relay's .params
// files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attrs.h"
#include "runtime/tensor.h"

namespace treadle::ir {

class Metadata {
 public:
  Metadata() = default;
  // Errors: Parse when the JSON is broken or its nodes refer to nothing; Limit.
  explicit Metadata(std::string_view json);
  // Constant `index` of meta[relay.Constant]. Errors: InvalidArgument when absent; ImportFormat when its bytes are
  // broken.
  Tensor constant(size_t index) const;
  // The values of meta[KEY][index], KEY being "relay.attrs.…", by the names of `schema`; fields that the schema lacks
  // stay plain text. Errors: InvalidArgument when absent.
  AttrMap attributes(const std::string& key, size_t index, const AttrSchema& schema) const;

 private:
  struct Node {
    std::string type_key, repr;
    std::map<std::string, std::string> attrs;
    std::vector<std::string> keys;
    std::vector<size_t> data;
    bool listed = false;  // an element of an array or map: no attribute refers to it
  };
  const Node& entry(const std::string& key, size_t index) const;
  AttrValue value_of(const Node& node, int depth) const;
  AttrValue field_value(const FieldInfo* field, const std::string& text) const;

  std::vector<Node> nodes_;
  std::vector<std::string> arrays_;
  std::map<std::string, std::vector<size_t>> entries_;
};

// The section for these constants, "#[metadata]\n{…}\n"; meta[relay.Constant][i] is constants[i].
std::string metadata_text(const std::vector<Tensor>& constants);

// Relay's array format (a header with dtype and shape, then the elements, little endian), and base64.
std::string array_bytes(const Tensor& tensor);
// Errors: ImportFormat when the bytes are no array or too short; Limit.
Tensor array_from_bytes(std::string_view bytes);
std::string base64_encode(std::string_view bytes);
// Errors: ImportFormat.
std::string base64_decode(std::string_view text);

}  // namespace treadle::ir
