// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/kernel_harness.h"

namespace treadle::kernels {
namespace {

TEST(Copy, CopiesEveryByte) {
  for (DType dtype : all_dtypes()) {
    const Tensor from = small_numbers(dtype, {3, 5}, 1);
    Tensor to = Tensor::zeros(dtype, {5, 3});
    ASSERT_EQ(call_kernel("copy", {from}, {to}, {}).code, 0);
    EXPECT_TRUE(to.reshaped({3, 5}).identical(from));
  }
  Tensor empty(dtype::float32_, {0, 4});
  EXPECT_EQ(call_kernel("copy", {empty}, {empty}, {}).code, 0);
}

TEST(Copy, RefusesAnotherSize) {
  const Outcome outcome = call_kernel("copy", {Tensor(dtype::int8_, {3})}, {Tensor(dtype::int8_, {4})}, {});
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.message.find("3 bytes do not fill 4"), std::string::npos) << outcome.message;
}

}  // namespace
}  // namespace treadle::kernels
