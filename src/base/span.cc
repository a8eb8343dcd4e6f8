// SPDX-License-Identifier: Apache-2.0
#include "base/span.h"

#include <fmt/format.h>

namespace treadle {

std::string to_string(const Span& span) {
  if (!span) return "";
  if (!span->node.empty()) return span->node;
  return fmt::format("{}:{}:{}", span->source, span->line, span->column);
}

}  // namespace treadle
