// SPDX-License-Identifier: Apache-2.0
#include "lower/size.h"

namespace treadle::lower {

constexpr int64_t kIntrinsicSize = 30;

int64_t code_size(const loop::Function& function) {
  int64_t size = 0;
  loop::for_each(
      function.body, [&](const loop::Stmt&) { ++size; },
      [&](const loop::Expr& expr) { size += expr.kind() == loop::ExprKind::Intrinsic ? kIntrinsicSize : 1; });
  return size;
}

}  // namespace treadle::lower
