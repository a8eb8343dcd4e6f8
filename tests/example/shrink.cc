// SPDX-License-Identifier: Apache-2.0
#include "shrink.h"

#include "op/relations.h"

namespace treadle::op {
namespace {

void shrink_type(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;  // not known yet: inference comes back
  if (!x->dtype.is_float()) fail(ErrorCode::TypeMismatch, "input is {}, it must be a float", to_string(x->dtype));
  relation.set_output(relation.input(0));
}

std::vector<loop::Tensor> shrink_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<ShrinkAttrs>(call);
  const auto number = [&](double value) { return loop::constant(value, inputs[0].dtype()); };
  return {elementwise("shrink", inputs[0], [&](const loop::Expr& x) {
    return loop::select(x > number(attrs.lambd), x - number(attrs.bias),
                        loop::select(x < number(-attrs.lambd), x + number(attrs.bias), number(0)));
  })};
}

}  // namespace

ir::Expr shrink(ir::Expr x, double lambd, double bias) {
  auto attrs = ShrinkAttrs::defaults();
  attrs->lambd = lambd;
  attrs->bias = bias;
  return call_op("example.shrink", {std::move(x)}, std::move(attrs));
}

void register_example_shrink(ir::OpRegistry& registry) {
  registry.add<ShrinkAttrs>("example.shrink", "example/shrink")
      .summary("Shrinkage: a band around 0 becomes 0, the rest moves towards it.")
      .formula("y = x - bias where x > lambd, x + bias where x < -lambd, 0 elsewhere")
      .source("ONNX Shrink, opset 9")
      .input("x", "any shape, float")
      .fusion(ir::FusionKind::Elementwise)
      .layout(same_layout)
      .relation(shrink_type)
      .compute(shrink_compute);
}

}  // namespace treadle::op
