// SPDX-License-Identifier: Apache-2.0
#include "pass/work.h"

#include <limits>

#include "loop/tensor.h"

namespace treadle::pass {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kKernelWork = 32;  // per element: sorting takes about log n steps

int64_t sum(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_add_overflow(a, b, &result) ? kMost : result;
}

int64_t times(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_mul_overflow(a, b, &result) ? kMost : result;
}

int64_t elements_of(const TensorType& type) {
  int64_t elements = 1;
  for (const Dim& dim : type.shape) elements = times(elements, dim.value());
  return elements;
}

int64_t elements_of(const std::vector<loop::Expr>& extents) {
  int64_t elements = 1;
  for (const loop::Expr& extent : extents) {
    const int64_t* value = loop::as_int(extent);
    elements = value ? times(elements, *value) : kMost;
  }
  return elements;
}

int64_t work_of_definition(const ir::Call& call) {
  std::vector<loop::Tensor> inputs;
  for (const ir::Expr& arg : call.args) {
    for (const TensorType* type : flatten_tuple_type(arg.type()))
      inputs.push_back(loop::placeholder("x", loop::to_exprs(type->shape), type->dtype));
  }
  int64_t work = 0;
  for (const loop::Tensor& tensor : loop::topological_order(call.op()->compute(call, inputs))) {
    if (tensor->is_placeholder()) continue;
    const int64_t domain = tensor->reduction ? elements_of(tensor->reduction->extents) : 1;
    work = sum(work, times(elements_of(tensor.shape()), domain));
  }
  return work;
}

}  // namespace

int64_t static_bytes(const Type& type) {
  if (!as_tensor(type) && !as_tuple(type)) return -1;
  int64_t total = 0;
  for (const TensorType* tensor : flatten_tuple_type(type)) {
    if (!tensor || !is_static(tensor->shape)) return -1;
    total = sum(total, times(elements_of(*tensor), static_cast<int64_t>(tensor->dtype.bytes())));
  }
  return total;
}

int64_t work_of(const ir::Call& call) {
  if (call.op()->compute) return work_of_definition(call);
  int64_t elements = 0;
  for (const TensorType* type : flatten_tuple_type(call.type)) elements = sum(elements, elements_of(*type));
  for (const ir::Expr& arg : call.args) {
    for (const TensorType* type : flatten_tuple_type(arg.type())) elements = sum(elements, elements_of(*type));
  }
  return times(elements, kKernelWork);
}

}  // namespace treadle::pass
