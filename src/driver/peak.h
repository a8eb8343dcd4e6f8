// SPDX-License-Identifier: Apache-2.0
// The machine's floating-point peak, measured by generated code.
#pragma once

namespace treadle {

// Fused multiply-adds per second of one core on the host's widest float32 vectors, in 1e9 floating-point operations per
// second (an FMA counts two): the best of several short runs of independent accumulators that stay in registers. Takes
// about 50 ms.
double measure_peak_gflops();

}  // namespace treadle
