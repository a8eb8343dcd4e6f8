// SPDX-License-Identifier: Apache-2.0
// Compiles a function for the interpreter. A scope is a block under construction (or the part of it inside a Let);
// every value knows the scope in which it was made. A pure expression (no load) is placed in the innermost scope of its
// operands, so that loops do not repeat index arithmetic; no operation can trap, so running it early is harmless. An
// expression with a load stays where its statement is, and is shared only inside that statement.
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "loop/interpret_program.h"
#include "loop/scalar_storage.h"

namespace treadle::loop {
namespace {

struct Value {
  int32_t reg = -1;
  int32_t scope = 0;
  bool pure = true;
};

struct Key {
  const ExprNode* node;
  int lane;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    return hash_combine(reinterpret_cast<uintptr_t>(key.node), static_cast<uint64_t>(key.lane));
  }
};

struct ScopeState {
  int32_t block;
  std::unordered_map<Key, Value, KeyHash> pure, impure;
};

Op fast_op(BinaryOp op, DType dtype) {
  if (dtype == dtype::int64_) {
    if (op == BinaryOp::Add) return Op::AddI64;
    if (op == BinaryOp::Sub) return Op::SubI64;
    if (op == BinaryOp::Mul) return Op::MulI64;
    if (op == BinaryOp::Lt) return Op::LtI64;
  } else if (dtype == dtype::float32_) {
    if (op == BinaryOp::Add) return Op::AddF32;
    if (op == BinaryOp::Sub) return Op::SubF32;
    if (op == BinaryOp::Mul) return Op::MulF32;
    if (op == BinaryOp::Div) return Op::DivF32;
  } else if (dtype == dtype::float64_) {
    if (op == BinaryOp::Add) return Op::AddF64;
    if (op == BinaryOp::Mul) return Op::MulF64;
  } else if (dtype.is_bool() && op == BinaryOp::And) {
    return Op::AndBool;
  }
  return Op::Call;
}

class Compiler {
 public:
  explicit Compiler(const Function& function) : function_(function) {}

  Program run() {
    program_.blocks.resize(2);
    scopes_.push_back({0, {}, {}});
    for (const Var& scalar : function_.scalars) {
      program_.scalars.push_back(new_register());
      vars_[scalar.var()] = {{program_.scalars.back(), 0, true}};
    }
    // Extents are computed before the arguments are looked at, so they must not depend on memory.
    scopes_.back().block = 1;
    for (const Buffer& buffer : function_.buffers) add_buffer(buffer);
    scopes_.back().block = 0;
    scopes_.back().pure.clear();
    if (function_.body.defined()) stmt(function_.body);
    return std::move(program_);
  }

 private:
  int32_t new_register(Scalar initial = int_scalar(0)) {
    program_.registers.push_back(initial);
    return static_cast<int32_t>(program_.registers.size()) - 1;
  }
  int32_t current() const { return static_cast<int32_t>(scopes_.size()) - 1; }
  void emit(int32_t scope, Instruction instruction) { program_.blocks[scopes_[scope].block].push_back(instruction); }

  // Compiles into a new block and gives its number.
  template <typename F>
  int32_t in_new_block(F&& f) {
    auto number = static_cast<int32_t>(program_.blocks.size());
    program_.blocks.emplace_back();
    scopes_.push_back({number, {}, {}});
    f();
    scopes_.pop_back();
    return number;
  }

  int32_t add_buffer(const Buffer& buffer) {
    BufferSlot slot;
    slot.buffer = buffer;
    for (const Expr& extent : buffer->shape) slot.extents.push_back(value(extent, 0).reg);
    for (const Expr& stride : buffer->strides) slot.strides.push_back(value(stride, 0).reg);
    auto number = static_cast<int32_t>(program_.buffers.size());
    program_.buffers.push_back(std::move(slot));
    slots_[buffer.get()] = number;
    return number;
  }

  int32_t add_access(const Buffer& buffer, const std::vector<Expr>& indices, int lane) {
    auto it = slots_.find(buffer.get());
    if (it == slots_.end())
      fail(ErrorCode::LoopInvalid, "{}: buffer {} is neither parameter nor allocated", function_.name, buffer->name);
    Access access;
    access.buffer = it->second;
    for (const Expr& index : indices) access.indices.push_back(value(index, lane).reg);
    access.read = visit(buffer->dtype, []<typename T>() -> ReadFn { return &read_as<T>; });
    access.write = visit(buffer->dtype, []<typename T>() -> WriteFn { return &write_as<T>; });
    program_.accesses.push_back(std::move(access));
    return static_cast<int32_t>(program_.accesses.size()) - 1;
  }

  bool has_load(const Expr& expr) {
    auto it = has_load_.find(expr.get());
    if (it != has_load_.end()) return it->second;
    class Finder : public ExprVisitor {
     public:
      bool found = false;

     protected:
      void visit_expr(const Expr& e) override {
        found |= e.kind() == ExprKind::Load;
        if (!found) visit_children(e);
      }
    } finder;
    finder.visit(expr);
    has_load_[expr.get()] = finder.found;
    return finder.found;
  }

  // One lane of an expression, in a register.
  Value value(const Expr& expr, int lane) {
    if (expr.lanes() == 1) lane = 0;
    const Key key{expr.get(), lane};
    for (size_t i = scopes_.size(); i-- > 0;) {
      if (auto it = scopes_[i].pure.find(key); it != scopes_[i].pure.end()) return it->second;
      if (auto it = scopes_[i].impure.find(key); it != scopes_[i].impure.end()) return it->second;
    }
    Value result = make(expr, lane);
    if (result.pure)
      scopes_[result.scope].pure[key] = result;
    else
      scopes_[current()].impure[key] = result;
    return result;
  }

  // dst = op(operands), placed as far out as the operands allow.
  Value apply(Instruction instruction, std::initializer_list<Value> operands) {
    Value result;
    for (const Value& v : operands) {
      result.pure &= v.pure;
      result.scope = std::max(result.scope, v.scope);
    }
    if (!result.pure) result.scope = current();
    result.reg = instruction.dst = new_register();
    const Value* v = operands.begin();
    if (operands.size() > 0) instruction.a = v[0].reg;
    if (operands.size() > 1) instruction.b = v[1].reg;
    if (operands.size() > 2) instruction.c = v[2].reg;
    emit(result.scope, instruction);
    return result;
  }

  Value call(ScalarFn function, std::initializer_list<Value> operands) {
    Instruction instruction{Op::Call};
    instruction.function = function;
    return apply(instruction, operands);
  }

  Value binary_value(BinaryOp op, DType dtype, const Value& a, const Value& b) {
    Instruction instruction{fast_op(op, dtype)};
    instruction.function = binary_function(op, dtype);
    return apply(instruction, {a, b});
  }

  Value make(const Expr& expr, int lane) {
    switch (expr.kind()) {
      case ExprKind::IntImm:
        return {new_register(int_scalar(expr.as<IntImm>()->value)), 0, true};
      case ExprKind::FloatImm:
        return {new_register(float_scalar(expr.as<FloatImm>()->value)), 0, true};
      case ExprKind::Var: {
        auto it = vars_.find(expr.as<VarNode>());
        if (it == vars_.end())
          fail(ErrorCode::LoopInvalid, "{}: variable {} is not bound", function_.name, expr.as<VarNode>()->name);
        return it->second[lane];
      }
      case ExprKind::Binary: {
        const auto* e = expr.as<Binary>();
        Value a = value(e->a, lane), b = value(e->b, lane);
        return binary_value(e->op, e->a.dtype(), a, b);
      }
      case ExprKind::Not:
        return call(not_function(expr.dtype()), {value(expr.as<Not>()->a, lane)});
      case ExprKind::Select:
        return make_select(*expr.as<Select>(), lane);
      case ExprKind::Cast: {
        const Expr& a = expr.as<Cast>()->a;
        return call(cast_function(a.dtype(), expr.dtype()), {value(a, lane)});
      }
      case ExprKind::Reinterpret: {
        const Expr& a = expr.as<Reinterpret>()->a;
        return call(reinterpret_function(a.dtype(), expr.dtype()), {value(a, lane)});
      }
      case ExprKind::Intrinsic: {
        const auto* e = expr.as<IntrinsicCall>();
        ScalarFn function = intrinsic_function(e->function, e->args[0].dtype());
        if (e->args.size() == 1) return call(function, {value(e->args[0], lane)});
        Value a = value(e->args[0], lane), b = value(e->args[1], lane);
        if (e->args.size() == 2) return call(function, {a, b});
        return call(function, {a, b, value(e->args[2], lane)});
      }
      case ExprKind::Load: {
        const auto* e = expr.as<loop::Load>();
        Instruction instruction{Op::Load};
        instruction.a = add_access(e->buffer, e->indices, lane);
        instruction.dst = new_register();
        emit(current(), instruction);
        return {instruction.dst, current(), false};
      }
      case ExprKind::Ramp: {
        const auto* e = expr.as<Ramp>();
        Value base = value(e->base, 0);
        if (lane == 0) return base;
        kept_.push_back(e->stride * int_imm(lane, expr.dtype()));
        Value steps = value(kept_.back(), 0);
        return binary_value(BinaryOp::Add, expr.dtype(), base, steps);
      }
      case ExprKind::Broadcast:
        return value(expr.as<Broadcast>()->a, 0);
      case ExprKind::VectorReduce:
        return make_reduce(*expr.as<VectorReduce>());
      case ExprKind::Address:
      case ExprKind::Extern:
        break;
    }
    fail(ErrorCode::InvalidArgument, "{}: a call that leaves the function cannot be interpreted", function_.name);
  }

  Value make_select(const loop::Select& e, int lane) {
    Value condition = value(e.condition, lane);
    if (!has_load(e.a) && !has_load(e.b)) {
      Value a = value(e.a, lane), b = value(e.b, lane);
      return apply({Op::Select}, {condition, a, b});
    }
    const int32_t dst = new_register();
    auto side = [&](const Expr& expr) {
      return in_new_block([&] {
        Instruction move{Op::Move};
        move.a = value(expr, lane).reg;
        move.dst = dst;
        emit(current(), move);
      });
    };
    Instruction branch{Op::If};
    branch.a = condition.reg;
    branch.b = side(e.a);
    branch.c = side(e.b);
    emit(current(), branch);
    return {dst, current(), false};
  }

  // Halves are combined until one lane is left: ((0+2) + (1+3)).
  Value make_reduce(const VectorReduce& e) {
    std::vector<Value> lanes;
    for (int lane = 0; lane < e.a.lanes(); ++lane) lanes.push_back(value(e.a, lane));
    while (lanes.size() > 1) {
      const size_t half = (lanes.size() + 1) / 2;
      for (size_t i = 0; i + half < lanes.size(); ++i)
        lanes[i] = binary_value(combiner(e.op), e.dtype, lanes[i], lanes[i + half]);
      lanes.resize(half);
    }
    return lanes[0];
  }

  void stmt(const Stmt& s) {
    for (ScopeState& scope : scopes_) scope.impure.clear();
    switch (s.kind()) {
      case StmtKind::Store:
        return store_stmt(*s.as<loop::Store>());
      case StmtKind::For:
        return for_stmt(*s.as<For>());
      case StmtKind::While:
        return while_stmt(*s.as<loop::While>());
      case StmtKind::If: {
        const auto* e = s.as<loop::If>();
        Instruction branch{Op::If};
        branch.a = value(e->condition, 0).reg;
        branch.b = in_new_block([&] { stmt(e->then_body); });
        branch.c = e->else_body.defined() ? in_new_block([&] { stmt(e->else_body); }) : -1;
        emit(current(), branch);
        break;
      }
      case StmtKind::Let: {
        const auto* e = s.as<Let>();
        // A scope of its own in the same block: what depends on the variable must be forgotten with it.
        scopes_.push_back({scopes_.back().block, {}, {}});
        std::vector<Value> lanes;
        for (int lane = 0; lane < e->value.lanes(); ++lane) {
          Value v = value(e->value, lane);
          lanes.push_back({v.reg, current(), true});
        }
        vars_[e->var.var()] = std::move(lanes);
        stmt(e->body);
        scopes_.pop_back();
        break;
      }
      case StmtKind::Allocate: {
        const auto* e = s.as<loop::Allocate>();
        Instruction instruction{Op::Allocate};
        instruction.a = add_buffer(e->buffer);
        instruction.c = in_new_block([&] { stmt(e->body); });
        emit(current(), instruction);
        break;
      }
      case StmtKind::Block:
        for (const Stmt& inner : s.as<Block>()->stmts) stmt(inner);
        break;
      case StmtKind::Evaluate:
        value(s.as<Evaluate>()->value, 0);
        break;
    }
    for (ScopeState& scope : scopes_) scope.impure.clear();
  }

  void store_stmt(const loop::Store& s) {
    int lanes = s.value.lanes();
    std::vector<Instruction> stores;  // after all lanes of the value are known
    for (int lane = 0; lane < lanes; ++lane) {
      Instruction instruction{Op::Store};
      instruction.b = value(s.value, lane).reg;
      instruction.a = add_access(s.buffer, s.indices, lane);
      stores.push_back(instruction);
    }
    for (const Instruction& instruction : stores) emit(current(), instruction);
  }

  void for_stmt(const For& s) {
    Instruction instruction{Op::Loop};
    instruction.a = value(s.min, 0).reg;
    instruction.b = value(s.extent, 0).reg;
    instruction.dst = new_register();
    instruction.c = in_new_block([&] {
      vars_[s.var.var()] = {{instruction.dst, current(), true}};
      stmt(s.body);
    });
    emit(current(), instruction);
  }

  void while_stmt(const loop::While& s) {
    Instruction instruction{Op::While};
    instruction.a = in_new_block([&] { instruction.b = value(s.condition, 0).reg; });
    instruction.c = in_new_block([&] { stmt(s.body); });
    emit(current(), instruction);
  }

  const Function& function_;
  Program program_;
  std::vector<ScopeState> scopes_;
  std::unordered_map<const VarNode*, std::vector<Value>> vars_;
  std::unordered_map<const BufferNode*, int32_t> slots_;
  std::unordered_map<const ExprNode*, bool> has_load_;
  std::vector<Expr> kept_;  // made here; the memos are keyed by address
};

}  // namespace

Program compile_program(const Function& function) { return Compiler(function).run(); }

}  // namespace treadle::loop
