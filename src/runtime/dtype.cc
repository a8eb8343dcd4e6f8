// SPDX-License-Identifier: Apache-2.0
#include "runtime/dtype.h"

namespace treadle {
namespace {

struct Entry {
  std::string_view name;
  DType dtype;
};

constexpr Entry kEntries[] = {
#define TREADLE_DTYPE(name, code, bits, storage) {#name, dtype::name##_},
#include "runtime/dtype.def"
#undef TREADLE_DTYPE
};

}  // namespace

std::string to_string(DType dtype) {
  for (const Entry& entry : kEntries) {
    if (entry.dtype == dtype) return std::string(entry.name);
  }
  return "code" + std::to_string(static_cast<int>(dtype.code)) + "_" + std::to_string(dtype.bits);
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> all = [] {
    std::vector<DType> list;
    for (const Entry& entry : kEntries) list.push_back(entry.dtype);
    return list;
  }();
  return all;
}

}  // namespace treadle
