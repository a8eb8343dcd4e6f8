// SPDX-License-Identifier: Apache-2.0
// How much memory and time the evaluation of one operator call takes; what folding is bounded by.
#pragma once

#include <cstdint>

#include "ir/op.h"

namespace treadle::pass {

// Bytes of a value, saturated at INT64_MAX; -1 when its type is not static.
int64_t static_bytes(const Type& type);

// Elements that the call's definition evaluates, each element of a reduction's domain counted, saturated at INT64_MAX;
// a runtime kernel counts as 32 of each element that it reads or writes. The call's type and its operands' must be
// static.
int64_t work_of(const ir::Call& call);

}  // namespace treadle::pass
