// SPDX-License-Identifier: Apache-2.0
// The message tree of an ONNX file, read with care, and the folder in which its external data may lie.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "onnx/onnx_model.pb.h"

namespace treadle::onnx {

// Where external data may lie. Empty paths: nowhere.
struct DataFolder {
  std::string path;  // the folder in which the model was opened
  std::string
      target;  // when the model is a symbolic link, the folder of its target: a store of files under other names
};

struct Model {
  onnxpb::ModelProto proto;
  std::string source;  // for errors
  DataFolder folder;
};

// Errors: Io when the file cannot be read; ImportFormat when it is no message of this format, or has a field that we do
// not know.
std::unique_ptr<Model> read_model_file(const std::string& path);
std::unique_ptr<Model> read_model(std::string_view bytes, const std::string& source, const std::string& folder);

// A name as errors show it: without control characters and quotes, at most 200 bytes of it.
std::string printable(std::string_view name);

}  // namespace treadle::onnx
