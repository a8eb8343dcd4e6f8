// SPDX-License-Identifier: Apache-2.0
#include "schedule/abstract_constants.h"

namespace treadle::schedule {

Abstracted abstract_constants(const loop::Function& function) {
  return {function, std::vector<loop::Expr>(function.scalars.begin(), function.scalars.end())};
}

}  // namespace treadle::schedule
