// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/signatures.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace treadle::onnx {
namespace {

struct Signature {
  int min_inputs, max_inputs, max_outputs;  // -1: any number
  std::string_view attributes;              // separated by commas

  bool has_attribute(std::string_view name) const {
    for (std::string_view rest = attributes; !rest.empty();) {
      const size_t comma = std::min(rest.find(','), rest.size());
      if (rest.substr(0, comma) == name) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return false;
  }
};

using Versions = std::map<int64_t, Signature>;  // by first operator set

const Versions* versions_of(std::string_view op_type) {
  static const std::map<std::string_view, Versions> all = [] {
    std::map<std::string_view, Versions> result;
#define TREADLE_ONNX_SIGNATURE(name, since, min_inputs, max_inputs, max_outputs, attributes) \
  result[name][since] = {min_inputs, max_inputs, max_outputs, attributes};
#include "import/onnx/signatures.def"
#undef TREADLE_ONNX_SIGNATURE
    return result;
  }();
  const auto found = all.find(op_type);
  return found == all.end() ? nullptr : &found->second;
}

// Trailing names that are empty count as absent.
int given(const google::protobuf::RepeatedPtrField<std::string>& names) {
  int count = names.size();
  while (count > 0 && names.Get(count - 1).empty()) --count;
  return count;
}

}  // namespace

std::optional<Error> signature_error(const onnxpb::NodeProto& node, int64_t opset) {
  const Versions* versions = versions_of(node.op_type());
  if (!versions) return std::nullopt;
  const auto newer = versions->upper_bound(opset);
  if (newer == versions->begin()) return std::nullopt;
  const Signature& signature = std::prev(newer)->second;
  const auto unknown = [&](const std::string& what) {
    return Error(ErrorCode::ImportUnsupported,
                 fmt::format("{} of {} is unknown in opset {}", what, printable(node.op_type()), opset));
  };
  const int inputs = given(node.input()), outputs = given(node.output());
  if (inputs < signature.min_inputs) return Error(ErrorCode::ImportFormat, fmt::format("input {} is missing", inputs));
  if (signature.max_inputs >= 0 && inputs > signature.max_inputs)
    return unknown(fmt::format("input {} (\"{}\")", signature.max_inputs, printable(node.input(signature.max_inputs))));
  if (signature.max_outputs >= 0 && outputs > signature.max_outputs)
    return unknown(
        fmt::format("output {} (\"{}\")", signature.max_outputs, printable(node.output(signature.max_outputs))));
  for (const auto& attribute : node.attribute()) {
    if (!signature.has_attribute(attribute.name()))
      return unknown(fmt::format("attribute \"{}\"", printable(attribute.name())));
  }
  return std::nullopt;
}

}  // namespace treadle::onnx
