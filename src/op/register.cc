// SPDX-License-Identifier: Apache-2.0
#include "op/register.h"

#include <mutex>

namespace treadle::op {

#define TREADLE_FAMILY(name) void register_##name(ir::OpRegistry& registry);
#include "op/families.def"
#undef TREADLE_FAMILY

void register_operators() {
  static std::once_flag once;
  std::call_once(once, [] {
    [[maybe_unused]] ir::OpRegistry& registry = ir::OpRegistry::instance();
#define TREADLE_FAMILY(name) register_##name(registry);
#include "op/families.def"
#undef TREADLE_FAMILY
  });
}

}  // namespace treadle::op
