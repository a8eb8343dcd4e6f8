// SPDX-License-Identifier: Apache-2.0
// The message tree of an ONNX file, read with care, and the folder in which its external data may lie.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "import/onnx/carve.h"
#include "import/onnx/file.h"
#include "onnx/onnx_model.pb.h"

namespace treadle::onnx {

// Where external data may lie. Empty paths: nowhere.
struct DataFolder {
  std::string path;  // the folder in which the model was opened
  std::string
      target;  // when the model is a symbolic link, the folder of its target: a store of files under other names
};

// The raw data that were taken out of the model's bytes, and where those are: in memory, or in a file.
struct RawData {
  std::vector<Span64> spans;
  std::string_view memory;
  File file;

  uint64_t size(uint64_t index) const { return spans.at(index).size; }
  // Copies them. Errors: Io.
  void read(uint64_t index, void* out) const;
};

struct Model {
  onnxpb::ModelProto proto;
  RawData raw;
  std::string source;  // for errors
  DataFolder folder;
};

// Errors: Io when the file cannot be read; ImportFormat when it is no message of this format, or has a field that we do
// not know.
std::unique_ptr<Model> read_model_file(const std::string& path);
// The bytes must live as long as the model.
std::unique_ptr<Model> read_model(std::string_view bytes, const std::string& source, const std::string& folder);

// A name as errors show it: without control characters and quotes, at most 200 bytes of it.
std::string printable(std::string_view name);

}  // namespace treadle::onnx
