// SPDX-License-Identifier: Apache-2.0
// One primitive function (a fused group of operators) as tensor expressions and as a scheduled kernel.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/target.h"
#include "ir/expr.h"
#include "loop/stmt.h"

namespace treadle::lower {

// The tensor expressions of a primitive function.
struct TensorGraph {
  std::vector<loop::Tensor> inputs;   // one placeholder per tensor of the parameters, tuples flattened
  std::vector<loop::Tensor> outputs;  // likewise of the result
  std::string name;                   // operators of the group, "conv2d_add_relu"
  std::string source;                 // nodes of the model, for profiles
};

// Errors: Internal when an operator of the function has no compute.
TensorGraph tensor_graph(const ir::Function& function);

// A primitive function in which every symbolic extent of a type is one symbol of its own: "n.0", "n.1", … in the order
// of occurrence, equal extents the same. Schedules then work on plain symbols instead of the long expressions that deep
// nets of symbolic size give, and layers that differ in these expressions only become one kernel.
struct PlainExtents {
  ir::Expr function;
  std::map<std::string, Dim> values;  // what each symbol stands for
};
PlainExtents plain_extents(const ir::Expr& function);

// Floating-point operations: a reduction of a product counts two per combined element, every other operation of a
// definition one per element. `values`: what the graph's symbols stand for. 0 when the number is beyond all bounds.
Dim count_operations(const TensorGraph& graph, const std::map<std::string, Dim>& values);

// The tensors of a type in order, tuples flattened. Errors: CodegenUnsupported for functions and type variables.
std::vector<const TensorType*> tensors_of(const Type& type);

}  // namespace treadle::lower
