// SPDX-License-Identifier: Apache-2.0
// Takes the raw data of large tensors out of a model's bytes before protobuf parses them, so that weights are not held
// twice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::onnx {

// Where raw data stand in the bytes.
struct Span64 {
  uint64_t offset, size;
};

struct Carved {
  std::string skeleton;       // the message without what was taken out
  std::vector<Span64> spans;  // what was taken out; the tensor has the index as its field `carved`
};

// Raw data of less than this stay where they are.
inline constexpr size_t kCarveFrom = 4096;  // bytes

// `bytes` as a ModelProto: raw_data of initialisers and of tensor attributes, in subgraphs and functions too, become
// the field `carved`. What does not follow the wire format is copied as it is, for protobuf to refuse. Takes time and
// memory in proportion to the skeleton's size.
Carved carve_raw_data(std::string_view bytes);

}  // namespace treadle::onnx
