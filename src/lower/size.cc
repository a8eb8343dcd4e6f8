// SPDX-License-Identifier: Apache-2.0
#include "lower/size.h"

namespace treadle::lower {
namespace {

constexpr int64_t kCall = 30;

class NodeCounter : public loop::ExprVisitor {
 public:
  int64_t count = 0;

 protected:
  void visit_expr(const loop::Expr& expr) override {
    count += expr.kind() == loop::ExprKind::Intrinsic ? kCall : 1;
    visit_children(expr);
  }
};

}  // namespace

int64_t code_size(const loop::Function& function) {
  int64_t size = 0;
  const auto add = [&](const loop::Expr& expr) {
    NodeCounter counter;
    counter.visit(expr);
    size += counter.count;
  };
  loop::for_each(function.body, [&](const loop::Stmt&) { ++size; }, add);
  return size;
}

}  // namespace treadle::lower
