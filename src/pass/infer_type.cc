// SPDX-License-Identifier: Apache-2.0
// Gives every expression its type; see ir/infer.h.
#include "ir/infer.h"

#include "pass/passes.h"

namespace treadle::pass {

ir::Module infer_type(const ir::Module& module, PassContext&) { return ir::infer_types(module); }

}  // namespace treadle::pass
