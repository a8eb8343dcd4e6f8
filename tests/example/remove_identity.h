// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pass/pass.h"

namespace treadle::pass {

ir::Module remove_identity(const ir::Module& module, PassContext& context);

}  // namespace treadle::pass
