// SPDX-License-Identifier: Apache-2.0
// One function per pass; what each does, and when not, heads its source file.
#pragma once

#include "pass/pass.h"

namespace treadle::pass {

#define TREADLE_PASS(function, name, opt_level, purpose) \
  ir::Module function(const ir::Module& module, PassContext& context);
#include "pass/passes.def"
#undef TREADLE_PASS

}  // namespace treadle::pass
