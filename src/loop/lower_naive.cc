// SPDX-License-Identifier: Apache-2.0
// Tensor expressions to straightforward loop nests:
//
//   for i0 in 0…n0:                     for i0 in 0…n0:
//     T[i0] = value                       T[i0] = init
//                                         for k0 in 0…m0:
//                                           T[i0] = combine(T[i0], value)
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "loop/stmt.h"

namespace treadle::loop {
namespace {

// Moves a body from the tensors' buffers to those of the function.
class Rebind : public Mutator {
 public:
  std::unordered_map<const BufferNode*, Buffer> buffers;

 protected:
  Buffer mutate_buffer(const Buffer& buffer) override {
    auto it = buffers.find(buffer.get());
    return it == buffers.end() ? buffer : it->second;
  }
};

Buffer scratch_copy(const Buffer& buffer) {
  auto copy = std::make_shared<BufferNode>(*buffer);
  copy->scope = Scope::Scratch;
  return copy;
}

Tensor copy_of(const Tensor& tensor) {
  return compute(tensor->buffer->name + "_copy", tensor.shape(),
                 [&](const std::vector<Var>& i) { return tensor(std::vector<Expr>(i.begin(), i.end())); });
}

// What must be computed for `results` when `given` are at hand, inputs before users.
std::vector<Tensor> needed_order(const std::vector<Tensor>& results,
                                 const std::unordered_set<const TensorNode*>& given) {
  std::unordered_set<const TensorNode*> needed;
  for (const Tensor& result : results) needed.insert(result.get());
  std::vector<Tensor> order = topological_order(results);
  for (size_t i = order.size(); i-- > 0;) {
    if (!needed.count(order[i].get())) continue;
    for (const Tensor& input : order[i]->inputs) {
      if (!given.count(input.get())) needed.insert(input.get());
    }
  }
  std::erase_if(order, [&](const Tensor& tensor) { return !needed.count(tensor.get()); });
  return order;
}

}  // namespace

Stmt lower_stage(const Tensor& tensor) {
  TREADLE_CHECK(!tensor->is_placeholder(), "input {} has no nest", tensor->buffer->name);
  const TensorNode& node = *tensor.get();
  std::vector<Expr> place(node.axes.begin(), node.axes.end());
  Stmt body;
  if (node.reduction) {
    const Reduction& r = *node.reduction;
    body = store(node.buffer, place, combine(r.op, load(node.buffer, place), node.value));
    for (size_t k = r.axes.size(); k-- > 0;) body = for_loop(r.axes[k], 0, r.extents[k], body);
    Expr init = r.init.defined() ? r.init : reduce_identity(r.op, node.buffer->dtype);
    body = block({store(node.buffer, place, init), body});
  } else {
    body = store(node.buffer, place, node.value);
  }
  for (size_t i = node.axes.size(); i-- > 0;) body = for_loop(node.axes[i], 0, node.buffer->shape[i], body);
  return body;
}

Function lower_naive(std::string name, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  // An output that is an input too, or stands twice, is a copy of its own.
  std::unordered_set<const TensorNode*> params;
  for (const Tensor& input : inputs) {
    TREADLE_CHECK(params.insert(input.get()).second, "{} is twice an input", input->buffer->name);
  }
  const std::unordered_set<const TensorNode*> given = params;
  std::vector<Tensor> results;
  for (const Tensor& output : outputs) {
    results.push_back(params.insert(output.get()).second ? output : copy_of(output));
    params.insert(results.back().get());
  }

  Function function;
  function.name = std::move(name);
  for (const Tensor& input : inputs) function.buffers.push_back(input->buffer);
  for (const Tensor& result : results) function.buffers.push_back(result->buffer);
  function.num_outputs = results.size();

  std::vector<Stmt> nests;
  std::vector<Buffer> between;
  Rebind rebind;
  for (const Tensor& tensor : needed_order(results, given)) {
    TREADLE_CHECK(!tensor->is_placeholder(), "{} is used but is no input of {}", tensor->buffer->name, function.name);
    nests.push_back(lower_stage(tensor));
    if (params.count(tensor.get())) continue;
    between.push_back(scratch_copy(tensor->buffer));
    rebind.buffers[tensor->buffer.get()] = between.back();
  }
  Stmt body = rebind.mutate(block(std::move(nests)));
  for (size_t i = between.size(); i-- > 0;) body = allocate(between[i], body);
  function.body = body;
  function.scalars = free_symbols(function);
  return function;
}

}  // namespace treadle::loop
