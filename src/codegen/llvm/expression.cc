// SPDX-License-Identifier: Apache-2.0
// Expressions. A select evaluates only what is chosen when a side may hold a load out of bounds: by a branch for one
// lane, by masked loads for vectors; otherwise both sides are computed, which is faster.
#include <unordered_set>

#include "base/error.h"
#include "codegen/llvm/function.h"

namespace treadle::codegen {

using loop::Expr;
using loop::ExprKind;
using loop::ExprNode;

namespace {

std::vector<Expr> children(const Expr& expr) {
  switch (expr.kind()) {
    case ExprKind::IntImm:
    case ExprKind::FloatImm:
    case ExprKind::Var:
      return {};
    case ExprKind::Binary:
      return {expr.as<loop::Binary>()->a, expr.as<loop::Binary>()->b};
    case ExprKind::Not:
      return {expr.as<loop::Not>()->a};
    case ExprKind::Select: {
      const auto* select = expr.as<loop::Select>();
      return {select->condition, select->a, select->b};
    }
    case ExprKind::Cast:
      return {expr.as<loop::Cast>()->a};
    case ExprKind::Reinterpret:
      return {expr.as<loop::Reinterpret>()->a};
    case ExprKind::Intrinsic:
      return expr.as<loop::IntrinsicCall>()->args;
    case ExprKind::Load:
      return expr.as<loop::Load>()->indices;
    case ExprKind::Ramp:
      return {expr.as<loop::Ramp>()->base, expr.as<loop::Ramp>()->stride};
    case ExprKind::Broadcast:
      return {expr.as<loop::Broadcast>()->a};
    case ExprKind::VectorReduce:
      return {expr.as<loop::VectorReduce>()->a};
    case ExprKind::Address:
      return expr.as<loop::Address>()->indices;
    case ExprKind::Extern:
      return expr.as<loop::Extern>()->args;
  }
  return {};
}

// Equal in structure; `budget` bounds the work, running out means "not known to be equal".
bool same(const Expr& a, const Expr& b, int& budget) {
  if (a.same_as(b)) return true;
  if (--budget < 0 || a.kind() != b.kind() || a.dtype() != b.dtype() || a.lanes() != b.lanes()) return false;
  switch (a.kind()) {
    case ExprKind::IntImm:
      return a.as<loop::IntImm>()->value == b.as<loop::IntImm>()->value;
    case ExprKind::FloatImm:
    case ExprKind::Var:
    case ExprKind::Extern:
      return false;
    case ExprKind::Binary:
      if (a.as<loop::Binary>()->op != b.as<loop::Binary>()->op) return false;
      break;
    case ExprKind::Intrinsic:
      if (a.as<loop::IntrinsicCall>()->function != b.as<loop::IntrinsicCall>()->function) return false;
      break;
    case ExprKind::VectorReduce:
      if (a.as<loop::VectorReduce>()->op != b.as<loop::VectorReduce>()->op) return false;
      break;
    case ExprKind::Load:
      if (a.as<loop::Load>()->buffer != b.as<loop::Load>()->buffer) return false;
      break;
    case ExprKind::Address:
      if (a.as<loop::Address>()->buffer != b.as<loop::Address>()->buffer) return false;
      break;
    default:
      break;
  }
  const std::vector<Expr> in_a = children(a), in_b = children(b);
  for (size_t i = 0; i < in_a.size(); ++i) {
    if (!same(in_a[i], in_b[i], budget)) return false;
  }
  return in_a.size() == in_b.size();
}

}  // namespace

void FunctionEmitter::new_statement() {
  for (auto& scope : scopes_) scope.clear();
  loads_.clear();
}

bool FunctionEmitter::was_loaded(const loop::Load& load) {
  for (const loop::Load* known : loads_) {
    if (known == &load) return true;
    if (known->buffer != load.buffer || known->lanes != load.lanes) continue;
    int budget = 200;
    bool equal = true;
    for (size_t i = 0; equal && i < load.indices.size(); ++i) equal = same(known->indices[i], load.indices[i], budget);
    if (equal) return true;
  }
  return false;
}

// Whether `expr` can be computed although its value may not be wanted.
bool FunctionEmitter::may_speculate(const Expr& expr) {
  std::unordered_set<const ExprNode*> seen;
  std::vector<Expr> stack{expr};
  while (!stack.empty()) {
    const Expr next = stack.back();
    stack.pop_back();
    if (!seen.insert(next.get()).second) continue;
    if (next.kind() == ExprKind::Extern) return false;
    if (const auto* load = next.as<loop::Load>(); load != nullptr) {
      if (!was_loaded(*load)) return false;
      continue;
    }
    for (const Expr& child : children(next)) stack.push_back(child);
  }
  return true;
}

Value* FunctionEmitter::find_var(Frame& frame, const loop::VarNode* var) {
  const auto known = frame.vars.find(var);
  if (known != frame.vars.end()) return known->second;
  if (frame.outer == nullptr)
    fail(ErrorCode::LoopInvalid, "variable \"{}\" in {} is not defined", var->name, source_.name);
  Value* outer = find_var(*frame.outer, var);
  return frame.vars[var] = capture(outer, var->name);
}

Value* FunctionEmitter::emit_expr(const Expr& expr) {
  if (const auto* var = expr.as<loop::VarNode>()) return find_var(*frame_, var);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto known = scope->find(expr.get());
    if (known != scope->end()) return known->second;
  }
  Value* value = emit_new(expr);
  scopes_.back()[expr.get()] = value;
  return value;
}

Value* FunctionEmitter::emit_new(const Expr& expr) {
  const DType dtype = expr.dtype();
  switch (expr.kind()) {
    case ExprKind::IntImm:
      return llvm::ConstantInt::get(arith_.type(dtype, 1), static_cast<uint64_t>(expr.as<loop::IntImm>()->value), false,
                                    true);
    case ExprKind::FloatImm:
      return arith_.float_constant(expr.as<loop::FloatImm>()->value, dtype);
    case ExprKind::Var:
      break;  // emit_expr
    case ExprKind::Binary: {
      const auto& binary = *expr.as<loop::Binary>();
      Value* a = emit_expr(binary.a);
      return arith_.binary(binary.op, binary.a.dtype(), a, emit_expr(binary.b));
    }
    case ExprKind::Not:
      return arith_.logical_not(emit_expr(expr.as<loop::Not>()->a));
    case ExprKind::Select:
      return emit_select(*expr.as<loop::Select>());
    case ExprKind::Cast: {
      const Expr& from = expr.as<loop::Cast>()->a;
      return arith_.cast(emit_expr(from), from.dtype(), dtype);
    }
    case ExprKind::Reinterpret: {
      const Expr& from = expr.as<loop::Reinterpret>()->a;
      return arith_.reinterpret(emit_expr(from), from.dtype(), dtype);
    }
    case ExprKind::Intrinsic: {
      const auto& call = *expr.as<loop::IntrinsicCall>();
      std::vector<Value*> args;
      for (const Expr& arg : call.args) args.push_back(emit_expr(arg));
      return arith_.intrinsic(call.function, call.args[0].dtype(), args);
    }
    case ExprKind::Load:
      return emit_load(*expr.as<loop::Load>());
    case ExprKind::Ramp: {
      const auto& ramp = *expr.as<loop::Ramp>();
      if (ramp.base.lanes() != 1) fail(ErrorCode::CodegenUnsupported, "a ramp of vectors in {}", source_.name);
      Value* base = arith_.splat(emit_expr(ramp.base), ramp.lanes);
      Value* stride = arith_.splat(emit_expr(ramp.stride), ramp.lanes);
      std::vector<llvm::Constant*> steps;
      auto* element = llvm::cast<llvm::IntegerType>(arith_.type(dtype, 1));
      for (int i = 0; i < ramp.lanes; ++i) steps.push_back(llvm::ConstantInt::get(element, static_cast<uint64_t>(i)));
      return b_.CreateAdd(base, b_.CreateMul(stride, llvm::ConstantVector::get(steps)));
    }
    case ExprKind::Broadcast: {
      const Expr& scalar = expr.as<loop::Broadcast>()->a;
      if (scalar.lanes() != 1) fail(ErrorCode::CodegenUnsupported, "a broadcast of vectors in {}", source_.name);
      return arith_.splat(emit_expr(scalar), expr.lanes());
    }
    case ExprKind::VectorReduce: {
      const auto& reduction = *expr.as<loop::VectorReduce>();
      return arith_.reduce(reduction.op, dtype, emit_expr(reduction.a));
    }
    case ExprKind::Address:
      return element_address(expr.as<loop::Address>()->buffer, expr.as<loop::Address>()->indices);
    case ExprKind::Extern:
      fail(ErrorCode::CodegenUnsupported, "an extern call inside an expression of {}", source_.name);
  }
  fail(ErrorCode::Internal, "expression kind {}", static_cast<int>(expr.kind()));
}

Value* FunctionEmitter::emit_select(const loop::Select& select) {
  Expr condition = select.condition;
  if (const auto* same_in_all_lanes = condition.as<loop::Broadcast>()) condition = same_in_all_lanes->a;
  Value* chosen = emit_expr(condition);
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(chosen); constant != nullptr && condition.lanes() == 1) {
    return emit_expr(constant->isZero() ? select.b : select.a);
  }
  const bool safe_a = may_speculate(select.a), safe_b = may_speculate(select.b);
  if (safe_a && safe_b) {
    Value* a = emit_expr(select.a);
    return b_.CreateSelect(chosen, a, emit_expr(select.b));
  }
  if (condition.lanes() == 1) return emit_branches(chosen, select.a, select.b);
  Value* a = safe_a ? emit_expr(select.a) : emit_masked(select.a, chosen);
  Value* b = safe_b ? emit_expr(select.b) : emit_masked(select.b, b_.CreateNot(chosen));
  return b_.CreateSelect(chosen, a, b);
}

Value* FunctionEmitter::emit_branches(Value* condition, const Expr& a, const Expr& b) {
  llvm::BasicBlock* yes = new_block("select.yes");
  llvm::BasicBlock* no = new_block("select.no");
  llvm::BasicBlock* after = new_block("select.end");
  b_.CreateCondBr(condition, yes, no);
  const size_t loads = loads_.size();
  const auto side = [&](llvm::BasicBlock* block, const Expr& expr) {
    b_.SetInsertPoint(block);
    push_scope();
    Value* value = emit_expr(expr);
    pop_scope();
    loads_.resize(loads);
    llvm::BasicBlock* end = b_.GetInsertBlock();
    b_.CreateBr(after);
    return std::pair(value, end);
  };
  const auto [value_a, end_a] = side(yes, a);
  const auto [value_b, end_b] = side(no, b);
  b_.SetInsertPoint(after);
  llvm::PHINode* result = b_.CreatePHI(value_a->getType(), 2);
  result->addIncoming(value_a, end_a);
  result->addIncoming(value_b, end_b);
  return result;
}

Value* FunctionEmitter::emit_masked(const Expr& expr, Value* mask) {
  Value* outer = mask_;
  const bool narrows = outer != nullptr && outer->getType() == mask->getType();
  mask_ = narrows ? b_.CreateAnd(outer, mask) : mask;
  const size_t loads = loads_.size();
  push_scope();
  Value* value = emit_expr(expr);
  pop_scope();
  loads_.resize(loads);
  mask_ = outer;
  return value;
}

}  // namespace treadle::codegen
