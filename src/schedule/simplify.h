// SPDX-License-Identifier: Apache-2.0
// Passes over whole statements that schedules are finished with. Each keeps the meaning; `finish` is their order.
#pragma once

#include "loop/stmt.h"
#include "schedule/analyzer.h"

namespace treadle::schedule {

// Simplifies index arithmetic under the ranges of loops and the conditions around; drops dead branches, loops of no
// iteration, buffers that nothing reads; loops of one iteration (but for those bound to an axis) and index Lets are
// substituted.
loop::Stmt simplify(const loop::Stmt& stmt, Analyzer& analyzer);
loop::Function simplify(const loop::Function& function);

// A copy with variables and buffers of its own, for passes that repeat a statement.
loop::Stmt fresh_copy(const loop::Stmt& stmt);

// Cuts the range of serial loops where a condition, minimum or maximum inside changes its answer, so that full tiles
// run without any guard; in parallel loops a branch at the top of the body does the same. Code grows at most threefold
// per loop.
loop::Function partition(const loop::Function& function);

// Gives every buffer one axis: the offset of an element. Afterwards strides are part of the index arithmetic.
loop::Function flatten(const loop::Function& function);

// Turns loops marked Vectorized into statements on vectors. A loop that cannot be (its extent is not constant, or lanes
// would take different branches) becomes serial.
loop::Function vectorize(const loop::Function& function);

// Repeats the bodies of loops marked Unrolled; a loop whose extent is not constant becomes serial.
loop::Function unroll(const loop::Function& function);

// simplify, partition, flatten, vectorize, unroll.
loop::Function finish(const loop::Function& function);

}  // namespace treadle::schedule
