// SPDX-License-Identifier: Apache-2.0
//   for i in 0…56: Y[i*896 + 36864] = …   =>   for i in 0…c0: Y[i*c1 + c2] = …     with arguments 56, 896, 36864
//
// One scalar per size and place: an extent has its own; a stride or offset has one per buffer and value, so that the
// copies of an unrolled body agree. Offsets at most kNear apart share one scalar and keep their difference. A buffer
// with many different large offsets (rows of a register tile that lie far apart) keeps them all: as displacements they
// cost nothing, as scalars a register each.
#include "schedule/abstract_constants.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace treadle::schedule {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it

namespace {

constexpr int64_t kExtent = 8;   // larger extents and bounds become scalars
constexpr int64_t kStride = 64;  // in elements
constexpr int64_t kOffset = 512;
constexpr int64_t kNear = 512;
constexpr size_t kOffsets = 4;  // of one buffer
constexpr int64_t kSmallBuffer = 1024;

bool is_index(const Expr& e) { return e.dtype() == dtype::int64_ && e.lanes() == 1; }

using Offsets = std::map<const BufferNode*, std::set<int64_t>>;

// Constants that are added in the indices of each buffer.
class OffsetCollector {
 public:
  Offsets found;

  void run(const Function& function) {
    for_each(
        function.body,
        [&](const Stmt& s) {
          if (const auto* store = s.as<Store>()) collect(store->indices[0], store->buffer.get());
        },
        [&](const Expr& e) {
          if (const auto* l = e.as<Load>()) collect(l->indices[0], l->buffer.get());
        });
  }

 private:
  void collect(const Expr& e, const BufferNode* buffer) {
    if (const auto* r = e.as<Ramp>()) return collect(r->base, buffer);
    const auto* b = e.as<Binary>();
    if (!b || !is_index(e) || (b->op != BinaryOp::Add && b->op != BinaryOp::Sub)) return;
    for (const Expr& side : {b->a, b->b}) {
      if (const int64_t* c = as_int(side)) {
        if (*c > kOffset) found[buffer].insert(*c);
      } else {
        collect(side, buffer);
      }
    }
  }
};

class Abstracter : public Mutator {
 public:
  Abstracter(Offsets offsets, Abstracted& result) : offsets_(std::move(offsets)), result_(result) {
    for (auto& [buffer, values] : offsets_) {
      std::set<int64_t> bases;  // of groups of near offsets
      for (int64_t value : values) {
        if (bases.empty() || value - *bases.rbegin() > kNear) bases.insert(value);
      }
      values = bases.size() > kOffsets ? std::set<int64_t>() : bases;
    }
  }

  Buffer size_of_parameter(const Buffer& buffer) {
    auto copy = std::make_shared<BufferNode>(*buffer);
    for (Expr& extent : copy->shape) extent = own_scalar(extent, kExtent);
    buffers_[buffer.get()] = copy;
    return copy;
  }

 protected:
  Buffer mutate_buffer(const Buffer& buffer) override {
    const auto found = buffers_.find(buffer.get());
    return found == buffers_.end() ? buffer : found->second;
  }

  Expr mutate_expr(const Expr& e) override {
    if (const auto* l = e.as<Load>()) return load(mutate_buffer(l->buffer), {index(l->indices[0], l->buffer.get())});
    if (const auto* b = e.as<Binary>(); b && is_index(b->a) && b->op >= BinaryOp::Eq)
      return binary(b->op, bound(b->a), bound(b->b));
    return mutate_children(e);
  }

  Stmt mutate_stmt(const Stmt& stmt) override {
    if (const auto* s = stmt.as<Store>()) {
      const Expr at = index(s->indices[0], s->buffer.get());
      return store(mutate_buffer(s->buffer), {at}, mutate(s->value));
    }
    if (const auto* s = stmt.as<For>()) {
      const Expr min = bound(s->min);
      const int64_t* extent = as_int(s->extent);
      const Expr count = extent ? own_scalar(s->extent, kExtent) : bound(s->extent);
      return for_loop(s->var, min, count, mutate(s->body), s->for_kind);
    }
    if (const auto* s = stmt.as<Allocate>()) {
      const int64_t* size = as_int(s->buffer->shape[0]);
      if (s->buffer->scope != Scope::Local && (!size || *size > kSmallBuffer)) size_of_parameter(s->buffer);
      return allocate(mutate_buffer(s->buffer), mutate(s->body));
    }
    return mutate_children(stmt);
  }

 private:
  Expr new_scalar(int64_t value) {
    const Var var("c" + std::to_string(count_++));
    result_.function.scalars.push_back(var);
    result_.arguments.push_back(int_imm(value));
    return var;
  }

  Expr own_scalar(const Expr& e, int64_t limit) {
    const int64_t* value = as_int(e);
    if (!value || *value <= limit) return value ? e : bound(e);
    return new_scalar(*value);
  }

  Expr shared_scalar(int64_t value, const BufferNode* buffer) {
    Expr& scalar = shared_[{buffer, value}];
    if (!scalar.defined()) scalar = new_scalar(value);
    return scalar;
  }

  Expr index(const Expr& e, const BufferNode* buffer) {
    const auto key = std::make_pair(e.get(), buffer);
    const auto found = done_.find(key);
    if (found != done_.end()) return found->second.second;
    const Expr result = make_index(e, buffer);
    done_.emplace(key, std::make_pair(e, result));
    return result;
  }

  Expr make_index(const Expr& e, const BufferNode* buffer) {
    if (const auto* r = e.as<Ramp>()) {
      const Expr stride = as_int(r->stride) ? r->stride : index(r->stride, buffer);
      return ramp(index(r->base, buffer), stride, e.lanes());
    }
    const auto* b = e.as<Binary>();
    if (!b || !is_index(e)) return mutate_children(e);
    if (b->op == BinaryOp::Mul) {
      const int64_t* c = as_int(b->b);
      if (c && *c > kStride) return index(b->a, buffer) * shared_scalar(*c, buffer);
    }
    if (b->op == BinaryOp::Add || b->op == BinaryOp::Sub) {
      const int64_t* c = as_int(b->b);
      const auto& bases = offsets_[buffer];
      if (c && *c > kOffset && !bases.empty()) {
        const int64_t base = *std::prev(bases.upper_bound(*c));
        const Expr offset = shared_scalar(base, buffer) + int_imm(*c - base);
        return binary(b->op, index(b->a, buffer), offset);
      }
      return binary(b->op, index(b->a, buffer), index(b->b, buffer));
    }
    if (b->op == BinaryOp::Min || b->op == BinaryOp::Max || b->op == BinaryOp::Mul) {
      return binary(b->op, index(b->a, buffer), index(b->b, buffer));
    }
    return mutate_children(e);
  }

  // Bounds of loops and sides of comparisons: constants that are added, or compared with.
  Expr bound(const Expr& e) {
    if (const int64_t* c = as_int(e)) return *c > kExtent ? shared_scalar(*c, nullptr) : e;
    const auto* b = e.as<Binary>();
    if (!b || !is_index(e)) return mutate(e);
    switch (b->op) {
      case BinaryOp::Add:
      case BinaryOp::Sub:
      case BinaryOp::Min:
      case BinaryOp::Max:
        return binary(b->op, bound(b->a), bound(b->b));
      default:
        return mutate(e);
    }
  }

  Offsets offsets_;
  Abstracted& result_;
  int count_ = 0;
  std::map<std::pair<const BufferNode*, int64_t>, Expr> shared_;
  std::map<std::pair<const ExprNode*, const BufferNode*>, std::pair<Expr, Expr>> done_;
  std::map<const BufferNode*, Buffer> buffers_;
};

}  // namespace

Abstracted abstract_constants(const Function& function) {
  Abstracted result;
  result.function = function;
  result.arguments.assign(function.scalars.begin(), function.scalars.end());
  OffsetCollector collector;
  collector.run(function);
  Abstracter abstracter(collector.found, result);
  for (Buffer& buffer : result.function.buffers) buffer = abstracter.size_of_parameter(buffer);
  result.function.body = abstracter.mutate(function.body);
  return result;
}

}  // namespace treadle::schedule
