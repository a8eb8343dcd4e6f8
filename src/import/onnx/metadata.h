// SPDX-License-Identifier: Apache-2.0
// What an ONNX model says of itself, beside its graph: read without reading the graph.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace treadle::onnx {

// Texts may hold any byte. Fields that the model lacks are empty or 0.
struct Metadata {
  std::string producer_name, domain, description, graph_name, graph_description;
  int64_t version = 0;
  std::vector<std::pair<std::string, std::string>> properties;  // in the order of the file
};

// Errors: ImportFormat for what is no ONNX model.
Metadata read_metadata(std::string_view bytes, const std::string& source_name);
// The same of a file, of which it reads only the parts that it needs. Errors: also Io.
Metadata read_metadata_file(const std::string& path);

}  // namespace treadle::onnx
