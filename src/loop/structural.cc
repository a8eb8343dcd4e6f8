// SPDX-License-Identifier: Apache-2.0
// Structural equality and hash: both compare one canonical sequence of numbers. In it variables and buffers are
// numbered by binding, and equal subexpressions by value (so it does not matter which nodes two functions share, and
// time is linear in nodes).
#include <bit>
#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "loop/stmt.h"

namespace treadle::loop {
namespace {

using Sequence = std::vector<uint64_t>;

struct SequenceHash {
  size_t operator()(const Sequence& s) const { return hash_bytes(s.data(), s.size() * sizeof(uint64_t)); }
};

uint64_t code(DType dtype, int lanes) {
  return static_cast<uint64_t>(dtype.code) << 48 | static_cast<uint64_t>(dtype.bits) << 40 |
         static_cast<uint64_t>(lanes);
}

void append_text(Sequence& out, const std::string& text) {
  out.push_back(text.size());
  for (char c : text) out.push_back(static_cast<unsigned char>(c));
}

class Canonical {
 public:
  Sequence run(const Function& function) {
    out_ = {function.buffers.size(), function.num_outputs, function.scalars.size()};
    for (const Var& scalar : function.scalars) bind(scalar);
    for (const Buffer& buffer : function.buffers) bind(buffer);
    body(function.body);
    return std::move(out_);
  }

 private:
  // Larger than any number of a value, variable or buffer, so that the sequence can be read in one way only.
  enum Mark : uint64_t { End = uint64_t{1} << 62, Define, FreeVar, FreeBuffer };

  void bind(const Var& var) {
    vars_[var.var()] = next_var_++;
    out_.push_back(code(var.dtype(), var.lanes()));
    nodes_.clear();  // an expression that was numbered under another binding of the variable is not the same
  }

  void bind(const Buffer& buffer) {
    out_.push_back(code(buffer->dtype, static_cast<int>(buffer->shape.size())));
    out_.push_back(static_cast<uint64_t>(buffer->scope) << 32 | static_cast<uint64_t>(buffer->alignment));
    expressions(buffer->shape);
    out_.push_back(buffer->strides.size());
    expressions(buffer->strides);
    buffers_[buffer.get()] = next_buffer_++;
    nodes_.clear();
  }

  void buffer_number(Sequence& key, const Buffer& buffer) {
    if (auto it = buffers_.find(buffer.get()); it != buffers_.end())
      key.push_back(it->second);
    else
      key.insert(key.end(), {FreeBuffer, std::bit_cast<uintptr_t>(buffer.get())});
  }

  void expressions(const std::vector<Expr>& list) {
    for (const Expr& expr : list) out_.push_back(number(expr));
  }

  uint64_t number(const Expr& expr) {
    if (auto it = nodes_.find(expr.get()); it != nodes_.end()) return it->second;
    Sequence key = {static_cast<uint64_t>(expr.kind()), code(expr.dtype(), expr.lanes())};
    fields(key, expr);
    auto [it, added] = values_.try_emplace(std::move(key), values_.size());
    if (added) {
      out_.insert(out_.end(), {Define, it->first.size()});
      out_.insert(out_.end(), it->first.begin(), it->first.end());
    }
    return nodes_[expr.get()] = it->second;
  }

  void fields(Sequence& key, const Expr& expr) {
    auto operands = [&](std::initializer_list<Expr> list) {
      for (const Expr& operand : list) key.push_back(number(operand));
    };
    auto list = [&](const std::vector<Expr>& all) {
      for (const Expr& operand : all) key.push_back(number(operand));
    };
    switch (expr.kind()) {
      case ExprKind::IntImm:
        key.push_back(static_cast<uint64_t>(expr.as<IntImm>()->value));
        break;
      case ExprKind::FloatImm: {
        const double value = expr.as<FloatImm>()->value;
        key.push_back(std::isnan(value) ? ~uint64_t{0} : std::bit_cast<uint64_t>(value));
        break;
      }
      case ExprKind::Var: {
        auto it = vars_.find(expr.as<VarNode>());
        if (it != vars_.end())
          key.push_back(it->second);
        else
          key.insert(key.end(), {FreeVar, std::bit_cast<uintptr_t>(expr.get())});
        break;
      }
      case ExprKind::Binary:
        key.push_back(static_cast<uint64_t>(expr.as<Binary>()->op));
        operands({expr.as<Binary>()->a, expr.as<Binary>()->b});
        break;
      case ExprKind::Not:
        operands({expr.as<Not>()->a});
        break;
      case ExprKind::Select:
        operands({expr.as<Select>()->condition, expr.as<Select>()->a, expr.as<Select>()->b});
        break;
      case ExprKind::Cast:
        operands({expr.as<Cast>()->a});
        break;
      case ExprKind::Reinterpret:
        operands({expr.as<Reinterpret>()->a});
        break;
      case ExprKind::Intrinsic:
        key.push_back(static_cast<uint64_t>(expr.as<IntrinsicCall>()->function));
        list(expr.as<IntrinsicCall>()->args);
        break;
      case ExprKind::Load:
        buffer_number(key, expr.as<Load>()->buffer);
        list(expr.as<Load>()->indices);
        break;
      case ExprKind::Ramp:
        operands({expr.as<Ramp>()->base, expr.as<Ramp>()->stride});
        break;
      case ExprKind::Broadcast:
        operands({expr.as<Broadcast>()->a});
        break;
      case ExprKind::VectorReduce:
        key.push_back(static_cast<uint64_t>(expr.as<VectorReduce>()->op));
        operands({expr.as<VectorReduce>()->a});
        break;
      case ExprKind::Address:
        buffer_number(key, expr.as<Address>()->buffer);
        list(expr.as<Address>()->indices);
        break;
      case ExprKind::Extern:
        append_text(key, expr.as<Extern>()->name);
        key.push_back(expr.as<Extern>()->args.size());
        list(expr.as<Extern>()->args);
        break;
    }
  }

  // A body is a list of statements: how blocks nest in it does not matter.
  void body(const Stmt& stmt) {
    if (stmt.defined()) statement(stmt);
    out_.push_back(End);
  }

  void statement(const Stmt& stmt) {
    if (const auto* s = stmt.as<Block>()) {
      for (const Stmt& inner : s->stmts) statement(inner);
      return;
    }
    out_.push_back(static_cast<uint64_t>(stmt.kind()));
    switch (stmt.kind()) {
      case StmtKind::Store: {
        const auto* s = stmt.as<Store>();
        buffer_number(out_, s->buffer);
        expressions(s->indices);
        expressions({s->value});
        break;
      }
      case StmtKind::For: {
        const auto* s = stmt.as<For>();
        out_.push_back(static_cast<uint64_t>(s->for_kind));
        expressions({s->min, s->extent});
        bind(s->var);
        body(s->body);
        break;
      }
      case StmtKind::While:
        expressions({stmt.as<While>()->condition});
        body(stmt.as<While>()->body);
        break;
      case StmtKind::If:
        expressions({stmt.as<If>()->condition});
        body(stmt.as<If>()->then_body);
        body(stmt.as<If>()->else_body);
        break;
      case StmtKind::Let:
        expressions({stmt.as<Let>()->value});
        bind(stmt.as<Let>()->var);
        body(stmt.as<Let>()->body);
        break;
      case StmtKind::Allocate:
        bind(stmt.as<Allocate>()->buffer);
        body(stmt.as<Allocate>()->body);
        break;
      case StmtKind::Block:
        break;
      case StmtKind::Evaluate:
        expressions({stmt.as<Evaluate>()->value});
        break;
    }
  }

  Sequence out_;
  std::unordered_map<const VarNode*, uint64_t> vars_;
  std::unordered_map<const BufferNode*, uint64_t> buffers_;
  std::unordered_map<const ExprNode*, uint64_t> nodes_;
  std::unordered_map<Sequence, uint64_t, SequenceHash> values_;
  uint64_t next_var_ = 0, next_buffer_ = 0;
};

}  // namespace

bool structural_equal(const Function& a, const Function& b) { return Canonical().run(a) == Canonical().run(b); }

uint64_t structural_hash(const Function& function) { return SequenceHash()(Canonical().run(function)); }

}  // namespace treadle::loop
