// SPDX-License-Identifier: Apache-2.0
#include "shrink.h"

#include "ir/op.h"

namespace treadle::op {
namespace {

void shrink_type(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;  // not known yet: inference comes back
  if (!x->dtype.is_float())
    fail(ErrorCode::TypeMismatch, "input is {}, it must be of a float dtype", to_string(x->dtype));
  relation.set_output(relation.input(0));
}

std::vector<loop::Tensor> shrink_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = static_cast<const ShrinkAttrs&>(*call.attrs);
  const loop::Tensor& x = inputs[0];
  const auto number = [&](double value) { return loop::constant(value, x.dtype()); };
  return {loop::compute("shrink", x.shape(), [&](const std::vector<loop::Var>& axes) {
    const loop::Expr value = x(std::vector<loop::Expr>(axes.begin(), axes.end()));
    return loop::select(value > number(attrs.lambd), value - number(attrs.bias),
                        loop::select(value < number(-attrs.lambd), value + number(attrs.bias), number(0)));
  })};
}

}  // namespace

ir::Expr shrink(ir::Expr x, double lambd, double bias) {
  auto attrs = ShrinkAttrs::defaults();
  attrs->lambd = lambd;
  attrs->bias = bias;
  static const ir::Op& op = ir::OpRegistry::instance().get("example.shrink");
  return ir::call(&op, {std::move(x)}, std::move(attrs));
}

void register_shrink() {
  ir::OpRegistry::instance()
      .add<ShrinkAttrs>("example.shrink", "example/shrink")
      .summary("Soft or hard shrinkage: a band around 0 becomes 0.")
      .formula("y = x - bias where x > lambd, x + bias where x < -lambd, 0 elsewhere")
      .source("ONNX Shrink, opset 9")
      .input("x", "any shape, float")
      .fusion(ir::FusionKind::Elementwise)
      .relation(shrink_type)
      .compute(shrink_compute);
}

}  // namespace treadle::op
