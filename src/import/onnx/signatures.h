// SPDX-License-Identifier: Apache-2.0
// What ONNX says of every version of every operator: how many inputs and outputs, and which attributes there are.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "import/onnx/model.h"

namespace treadle::onnx {

// The error of a node of domain ai.onnx whose inputs, outputs or attributes do not exist in its operator set; nullopt
// also for an unknown operator. What a rule does not support of them is the rule's to say.
std::optional<Error> signature_error(const onnxpb::NodeProto& node, int64_t opset);

}  // namespace treadle::onnx
