// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/math.h"
#include "base/error.h"
namespace treadle::codegen {
Value* Math::call(loop::Intrinsic function, const std::vector<Value*>&) {
  fail(ErrorCode::CodegenUnsupported, "intrinsic {}", loop::name_of(function));
}
}  // namespace treadle::codegen
