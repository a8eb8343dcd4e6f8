// SPDX-License-Identifier: Apache-2.0
// Structural equality and hash of expressions, variables and buffers by pointer.
#include <bit>
#include <functional>

#include "base/hash.h"
#include "schedule/analyzer.h"

namespace treadle::schedule {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it

namespace {

uint64_t hash_list(const std::vector<Expr>& list, uint64_t seed) {
  for (const Expr& e : list) seed = hash_combine(seed, structure_hash(e));
  return seed;
}

bool same_list(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_structure(a[i], b[i])) return false;
  }
  return true;
}

uint64_t pointer_hash(const void* pointer) { return std::hash<const void*>()(pointer); }

}  // namespace

uint64_t structure_hash(const Expr& expr) {
  uint64_t h = hash_combine(static_cast<uint64_t>(expr.kind()), static_cast<uint64_t>(expr.lanes()));
  h = hash_combine(h, static_cast<uint64_t>(expr.dtype().code) * 256 + expr.dtype().bits);
  switch (expr.kind()) {
    case ExprKind::IntImm:
      return hash_combine(h, static_cast<uint64_t>(expr.as<IntImm>()->value));
    case ExprKind::FloatImm:
      return hash_combine(h, std::bit_cast<uint64_t>(expr.as<FloatImm>()->value));
    case ExprKind::Var:
      return hash_combine(h, pointer_hash(expr.get()));
    case ExprKind::Binary: {
      const auto* e = expr.as<Binary>();
      h = hash_combine(h, static_cast<uint64_t>(e->op));
      return hash_combine(hash_combine(h, structure_hash(e->a)), structure_hash(e->b));
    }
    case ExprKind::Not:
      return hash_combine(h, structure_hash(expr.as<Not>()->a));
    case ExprKind::Select: {
      const auto* e = expr.as<Select>();
      return hash_list({e->condition, e->a, e->b}, h);
    }
    case ExprKind::Cast:
      return hash_combine(h, structure_hash(expr.as<Cast>()->a));
    case ExprKind::Reinterpret:
      return hash_combine(h, structure_hash(expr.as<Reinterpret>()->a));
    case ExprKind::Intrinsic: {
      const auto* e = expr.as<IntrinsicCall>();
      return hash_list(e->args, hash_combine(h, static_cast<uint64_t>(e->function)));
    }
    case ExprKind::Load: {
      const auto* e = expr.as<Load>();
      return hash_list(e->indices, hash_combine(h, pointer_hash(e->buffer.get())));
    }
    case ExprKind::Ramp:
      return hash_list({expr.as<Ramp>()->base, expr.as<Ramp>()->stride}, h);
    case ExprKind::Broadcast:
      return hash_combine(h, structure_hash(expr.as<Broadcast>()->a));
    case ExprKind::VectorReduce: {
      const auto* e = expr.as<VectorReduce>();
      return hash_combine(hash_combine(h, static_cast<uint64_t>(e->op)), structure_hash(e->a));
    }
    case ExprKind::Address: {
      const auto* e = expr.as<Address>();
      return hash_list(e->indices, hash_combine(h, pointer_hash(e->buffer.get())));
    }
    case ExprKind::Extern:
      return hash_list(expr.as<Extern>()->args, hash_combine(h, hash_string(expr.as<Extern>()->name)));
  }
  return h;
}

bool same_structure(const Expr& x, const Expr& y) {
  if (x.same_as(y)) return true;
  if (x.kind() != y.kind() || x.lanes() != y.lanes() || x.dtype() != y.dtype()) return false;
  switch (x.kind()) {
    case ExprKind::IntImm:
      return x.as<IntImm>()->value == y.as<IntImm>()->value;
    case ExprKind::FloatImm:
      return std::bit_cast<uint64_t>(x.as<FloatImm>()->value) == std::bit_cast<uint64_t>(y.as<FloatImm>()->value);
    case ExprKind::Var:
      return false;
    case ExprKind::Binary: {
      const auto *a = x.as<Binary>(), *b = y.as<Binary>();
      return a->op == b->op && same_structure(a->a, b->a) && same_structure(a->b, b->b);
    }
    case ExprKind::Not:
      return same_structure(x.as<Not>()->a, y.as<Not>()->a);
    case ExprKind::Select: {
      const auto *a = x.as<Select>(), *b = y.as<Select>();
      return same_structure(a->condition, b->condition) && same_structure(a->a, b->a) && same_structure(a->b, b->b);
    }
    case ExprKind::Cast:
      return same_structure(x.as<Cast>()->a, y.as<Cast>()->a);
    case ExprKind::Reinterpret:
      return same_structure(x.as<Reinterpret>()->a, y.as<Reinterpret>()->a);
    case ExprKind::Intrinsic: {
      const auto *a = x.as<IntrinsicCall>(), *b = y.as<IntrinsicCall>();
      return a->function == b->function && same_list(a->args, b->args);
    }
    case ExprKind::Load: {
      const auto *a = x.as<Load>(), *b = y.as<Load>();
      return a->buffer == b->buffer && same_list(a->indices, b->indices);
    }
    case ExprKind::Ramp: {
      const auto *a = x.as<Ramp>(), *b = y.as<Ramp>();
      return same_structure(a->base, b->base) && same_structure(a->stride, b->stride);
    }
    case ExprKind::Broadcast:
      return same_structure(x.as<Broadcast>()->a, y.as<Broadcast>()->a);
    case ExprKind::VectorReduce: {
      const auto *a = x.as<VectorReduce>(), *b = y.as<VectorReduce>();
      return a->op == b->op && same_structure(a->a, b->a);
    }
    case ExprKind::Address: {
      const auto *a = x.as<Address>(), *b = y.as<Address>();
      return a->buffer == b->buffer && same_list(a->indices, b->indices);
    }
    case ExprKind::Extern:
      return x.as<Extern>()->name == y.as<Extern>()->name && same_list(x.as<Extern>()->args, y.as<Extern>()->args);
  }
  return false;
}

}  // namespace treadle::schedule
