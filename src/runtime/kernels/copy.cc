// SPDX-License-Identifier: Apache-2.0
// copy: the bytes of one tensor to another. What main uses where a value must lie in memory that is given: an input
// that is an output too, the results of branches and loops.
//   inputs: x; outputs: y, of as many bytes, not overlapping x; params: none
#include "runtime/kernels/kernel.h"

namespace treadle::kernels {

TREADLE_DEFINE_RUNTIME_KERNEL(copy) {
  const TensorArg from = call.input(0), to = call.output(0);
  TREADLE_KERNEL_REQUIRE(from.bytes() == to.bytes(), "{} bytes do not fill {}", from.bytes(), to.bytes());
  if (from.bytes() > 0) std::memcpy(to.data<char>(), from.data<char>(), from.bytes());
}

}  // namespace treadle::kernels
