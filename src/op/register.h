// SPDX-License-Identifier: Apache-2.0
// Fills the operator registry.
#pragma once

#include "ir/op.h"

namespace treadle::op {

// Registers every family of families.def, once; call it before anything looks up operators. Thread safe.
void register_operators();

}  // namespace treadle::op
