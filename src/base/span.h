// SPDX-License-Identifier: Apache-2.0
// Where a value came from: a place in a text, or a node of a model file.
#pragma once

#include <memory>
#include <string>

namespace treadle {

// Shared by all values that one node made; null when unknown.
struct SpanInfo {
  std::string source;  // file or text, for example "model.onnx"
  int line = 0;        // 1-based in a text; 0 for a node of a model file
  int column = 0;
  std::string node;  // the node's name, for example "layer1.0.conv1 (Conv, opset 13)"
};

using Span = std::shared_ptr<const SpanInfo>;

// "layer1.0.conv1 (Conv, opset 13)" or "net.relay:3:14"; empty for null.
std::string to_string(const Span& span);

}  // namespace treadle
