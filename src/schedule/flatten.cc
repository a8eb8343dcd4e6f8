// SPDX-License-Identifier: Apache-2.0
// buffer[i, j, k]  =>  buffer[i*stride0 + j*stride1 + k*stride2]
#include <algorithm>

#include "schedule/simplify.h"

namespace treadle::schedule {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it

namespace {

class Flattener : public Mutator {
 public:
  Buffer flat(const Buffer& buffer) {
    auto& result = flat_[buffer.get()];
    if (!result) {
      auto copy = std::make_shared<BufferNode>(*buffer);
      Expr size = int_imm(1);
      for (const Expr& extent : buffer->shape) size = size * extent;
      if (!buffer->strides.empty()) {  // the last element that may be touched, and one
        size = int_imm(1);
        for (size_t i = 0; i < buffer->shape.size(); ++i)
          size = size + (buffer->shape[i] - int_imm(1)) * buffer->strides[i];
      }
      copy->shape = {size};
      copy->strides.clear();
      result = copy;
      keep_.push_back(buffer);
    }
    return result;
  }

 protected:
  Expr mutate_expr(const Expr& e) override {
    if (const auto* l = e.as<Load>()) return load(flat(l->buffer), {offset(l->buffer, l->indices)});
    if (const auto* a = e.as<Address>()) return address(flat(a->buffer), {offset(a->buffer, a->indices)});
    return mutate_children(e);
  }
  Stmt mutate_stmt(const Stmt& stmt) override {
    if (const auto* s = stmt.as<Store>())
      return store(flat(s->buffer), {offset(s->buffer, s->indices)}, mutate(s->value));
    if (const auto* s = stmt.as<Allocate>()) return allocate(flat(s->buffer), mutate(s->body));
    return mutate_children(stmt);
  }

 private:
  Expr offset(const Buffer& buffer, const std::vector<Expr>& indices) {
    Expr sum = int_imm(0), stride = int_imm(1);
    for (size_t i = indices.size(); i-- > 0;) {
      const Expr& own = buffer->strides.empty() ? stride : buffer->strides[i];
      Expr index = mutate(indices[i]);
      const int lanes = std::max(sum.lanes(), index.lanes());
      if (sum.lanes() < lanes) sum = broadcast(sum, lanes);
      if (index.lanes() < lanes) index = broadcast(index, lanes);
      sum = sum + scaled(index, own);
      stride = stride * buffer->shape[i];
    }
    return sum;
  }

  // A ramp stays one, so that contiguous vectors are seen.
  static Expr scaled(const Expr& index, const Expr& stride) {
    if (const auto* r = index.as<Ramp>()) return ramp(r->base * stride, r->stride * stride, index.lanes());
    return index * broadcast(stride, index.lanes());
  }

  std::map<const BufferNode*, Buffer> flat_;
  std::vector<Buffer> keep_;
};

}  // namespace

Function flatten(const Function& function) {
  Function result = function;
  Flattener flattener;
  for (Buffer& buffer : result.buffers) buffer = flattener.flat(buffer);
  result.body = flattener.mutate(function.body);
  return result;
}

}  // namespace treadle::schedule
