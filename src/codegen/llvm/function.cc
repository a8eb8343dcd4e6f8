// SPDX-License-Identifier: Apache-2.0
// Statements and control flow. A function becomes
//
//   int32_t NAME(TreadleContext*, void* const* buffers, const int64_t* scalars)
//
// and each parallel loop a private function int32_t NAME.parallelN(TreadleContext*, void* closure, int64_t begin,
// int64_t end).
#include "codegen/llvm/function.h"

#include <llvm/IR/MDBuilder.h>

#include <cstddef>

#include "base/error.h"
#include "treadle/abi.h"

namespace treadle::codegen {

using loop::ForKind;
using loop::Stmt;
using loop::StmtKind;

namespace {

// The byte offsets that the code generator relies on; `context_callback` indexes pointers from `owner` on.
static_assert(offsetof(TreadleContext, owner) == 8 && offsetof(TreadleContext, parallel_for) == 16 &&
              offsetof(TreadleContext, allocate) == 24 && offsetof(TreadleContext, release) == 32 &&
              offsetof(TreadleContext, runtime_kernel) == 40 && offsetof(TreadleContext, fail) == 48 &&
              offsetof(TreadleContext, profile) == 56 && offsetof(TreadleContext, reserve) == 64 &&
              offsetof(TreadleContext, give_output) == 72);

// Scratch up to this size, and up to this sum in one function, lies on the stack.
constexpr int64_t kStackBuffer = 64 << 10;
constexpr int64_t kStackTotal = 256 << 10;
constexpr int64_t kLocalLimit = 64 << 10;

}  // namespace

FunctionEmitter::FunctionEmitter(ModuleState& state, const loop::Function& function)
    : state_(state),
      source_(function),
      context_(state.module.getContext()),
      b_(context_),
      arith_(b_, state.module, state_.features) {}

llvm::BasicBlock* FunctionEmitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(context_, name, frame_->function);
}

llvm::Function* FunctionEmitter::declare(const std::string& name, llvm::FunctionType* type, bool exported) {
  llvm::Function* function = state_.module.getFunction(name);
  if (function == nullptr)
    function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, state_.module);
  if (!function->empty()) fail(ErrorCode::CodegenUnsupported, "two functions are called \"{}\"", name);
  function->setLinkage(exported ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage);
  function->setDSOLocal(true);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr("target-cpu", state_.target.cpu);
  function->addFnAttr("target-features", feature_text(state_.target));
  const std::string bits = std::to_string(state_.target.vector_bytes * 8);
  function->addFnAttr("prefer-vector-width", bits);
  function->addFnAttr("min-legal-vector-width", bits);  // otherwise 512-bit vectors are split on some processors
  if (state_.debug != nullptr) {
    const std::string title = source_.source.empty() ? name : source_.source;
    llvm::DISubroutineType* no_types = state_.debug->createSubroutineType(state_.debug->getOrCreateTypeArray({}));
    llvm::DISubprogram* subprogram = state_.debug->createFunction(
        state_.file, title, name, state_.file, 1, no_types, 1, llvm::DINode::FlagArtificial,
        llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
    function->setSubprogram(subprogram);
  }
  return function;
}

void FunctionEmitter::begin_frame(Frame& frame, llvm::Function* function) {
  frame.outer = frame_;
  frame.function = function;
  frame.context = function->getArg(0);
  function->getArg(0)->setName("context");
  for (unsigned i = 0; i < 2; ++i) {
    function->addParamAttr(i, llvm::Attribute::NonNull);
    function->addParamAttr(i, llvm::Attribute::NoUndef);
  }
  frame_ = &frame;
  llvm::BasicBlock* entry = new_block("entry");
  llvm::BasicBlock* body = new_block("body");
  b_.SetInsertPoint(entry);
  if (llvm::DISubprogram* subprogram = function->getSubprogram()) {
    b_.SetCurrentDebugLocation(llvm::DILocation::get(context_, 1, 1, subprogram));
  }
  frame.entry_end = b_.CreateBr(body);
  b_.SetInsertPoint(body);
}

void FunctionEmitter::end_frame() {
  b_.CreateRet(b_.getInt32(0));
  if (frame_->call_area != nullptr) frame_->call_area->setOperand(0, b_.getInt64(frame_->call_area_words));
  frame_ = frame_->outer;
}

void FunctionEmitter::emit() {
  llvm::Type* pointer = b_.getPtrTy();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, pointer}, false);
  Frame frame;
  begin_frame(frame, declare(source_.name, type, true));
  b_.SetInsertPoint(frame.entry_end);
  llvm::MDNode* nothing = llvm::MDNode::get(context_, {});
  for (size_t i = 0; i < source_.buffers.size(); ++i) {
    const loop::Buffer& buffer = source_.buffers[i];
    Value* place = b_.CreateConstInBoundsGEP1_64(pointer, frame.function->getArg(1), i);
    llvm::LoadInst* address = b_.CreateAlignedLoad(pointer, place, llvm::Align(8), buffer->name);
    address->setMetadata(llvm::LLVMContext::MD_invariant_load, nothing);
    if (buffer->alignment > 1) {
      auto* align = llvm::ConstantAsMetadata::get(b_.getInt64(static_cast<uint64_t>(buffer->alignment)));
      address->setMetadata(llvm::LLVMContext::MD_align, llvm::MDNode::get(context_, {align}));
    }
    frame.buffers[buffer.get()] = address;
  }
  for (size_t i = 0; i < source_.scalars.size(); ++i) {
    Value* place = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), frame.function->getArg(2), i);
    llvm::LoadInst* scalar = b_.CreateAlignedLoad(b_.getInt64Ty(), place, llvm::Align(8), source_.scalars[i].name());
    scalar->setMetadata(llvm::LLVMContext::MD_invariant_load, nothing);
    frame.vars[source_.scalars[i].get()] = scalar;
  }
  b_.SetInsertPoint(&frame.function->back());
  push_scope();
  emit_stmt(source_.body);
  pop_scope();
  end_frame();
  if (calls_out_) {  // a `main`: hundreds of calls that are made once, not worth the time of the optimiser
    frame.function->addFnAttr(llvm::Attribute::OptimizeNone);
    frame.function->addFnAttr(llvm::Attribute::NoInline);
  }
}

void FunctionEmitter::emit_stmt(const Stmt& stmt) {
  if (!stmt.defined()) return;
  new_statement();
  switch (stmt.kind()) {
    case StmtKind::Store:
      return emit_store(*stmt.as<loop::Store>());
    case StmtKind::For:
      return emit_for(*stmt.as<loop::For>());
    case StmtKind::While:
      return emit_while(*stmt.as<loop::While>());
    case StmtKind::If:
      return emit_if(*stmt.as<loop::If>());
    case StmtKind::Let: {
      const auto& let = *stmt.as<loop::Let>();
      frame_->vars[let.var.get()] = emit_expr(let.value);
      return emit_stmt(let.body);
    }
    case StmtKind::Allocate:
      return emit_allocate(*stmt.as<loop::Allocate>());
    case StmtKind::Block:
      for (const Stmt& child : stmt.as<loop::Block>()->stmts) emit_stmt(child);
      return;
    case StmtKind::Evaluate:
      return emit_evaluate(*stmt.as<loop::Evaluate>());
  }
}

void FunctionEmitter::emit_for(const loop::For& loop) {
  if (const auto axis = loop::axis_of(loop.for_kind)) {
    fail(ErrorCode::CodegenUnsupported, "function {}: loop {} is bound to {}, an axis of a GPU, and {} has none",
         source_.name, loop.var.name(), loop::name_of(*axis), state_.target.triple);
  }
  const int64_t* extent = loop::as_int(loop.extent);
  if (extent != nullptr && *extent <= 0) return;
  if (extent != nullptr && *extent == 1) {
    frame_->vars[loop.var.get()] = emit_expr(loop.min);
    return emit_stmt(loop.body);
  }
  if (loop.for_kind == ForKind::Parallel && !in_parallel_) return emit_parallel(loop);
  Value* begin = emit_expr(loop.min);
  emit_serial(loop, begin, b_.CreateNSWAdd(begin, emit_expr(loop.extent)));
}

void FunctionEmitter::emit_serial(const loop::For& loop, Value* begin, Value* end) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* body = new_block("loop");
  llvm::BasicBlock* after = new_block("after");
  Value* runs = b_.CreateICmpSLT(begin, end);
  b_.CreateCondBr(runs, body, after);  // a constant condition is folded by the passes
  b_.SetInsertPoint(body);
  llvm::PHINode* variable = b_.CreatePHI(b_.getInt64Ty(), 2, loop.var.name());
  variable->addIncoming(begin, before);
  frame_->vars[loop.var.get()] = variable;
  emit_stmt(loop.body);
  const auto* first = llvm::dyn_cast<llvm::ConstantInt>(begin);
  const bool counts_up_from_zero = first != nullptr && !first->isNegative();
  Value* next = b_.CreateAdd(variable, b_.getInt64(1), "", counts_up_from_zero, true);
  variable->addIncoming(next, b_.GetInsertBlock());
  annotate_loop(b_.CreateCondBr(b_.CreateICmpSLT(next, end), body, after), loop.for_kind);
  b_.SetInsertPoint(after);
}

void FunctionEmitter::annotate_loop(llvm::BranchInst* latch, ForKind kind) {
  if (kind != ForKind::Unrolled) return;
  llvm::MDNode* full = llvm::MDNode::get(context_, {llvm::MDString::get(context_, "llvm.loop.unroll.full")});
  auto placeholder = llvm::MDNode::getTemporary(context_, {});
  llvm::MDNode* loop_id = llvm::MDNode::getDistinct(context_, {placeholder.get(), full});
  loop_id->replaceOperandWith(0, loop_id);
  latch->setMetadata(llvm::LLVMContext::MD_loop, loop_id);
}

Value* FunctionEmitter::context_callback(unsigned field) {
  Value* place = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), frame_->context, field);
  return b_.CreateAlignedLoad(b_.getPtrTy(), place, llvm::Align(8));
}

void FunctionEmitter::return_if_failed(Value* code) {
  llvm::BasicBlock* failed = new_block("failed");
  llvm::BasicBlock* fine = new_block("fine");
  b_.CreateCondBr(b_.CreateICmpNE(code, b_.getInt32(0)), failed, fine,
                  llvm::MDBuilder(context_).createUnlikelyBranchWeights());
  b_.SetInsertPoint(failed);
  b_.CreateRet(code);
  b_.SetInsertPoint(fine);
}

void FunctionEmitter::emit_parallel(const loop::For& loop) {
  Value* min = emit_expr(loop.min);
  Value* extent = emit_expr(loop.extent);
  llvm::Type* pointer = b_.getPtrTy();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, b_.getInt64Ty(), b_.getInt64Ty()}, false);
  llvm::Function* body = declare(fmt::format("{}.parallel{}", source_.name, parallel_count_++), type, false);
  const llvm::IRBuilderBase::InsertPoint here = b_.saveIP();
  const llvm::DebugLoc location = b_.getCurrentDebugLocation();
  Frame inner;
  begin_frame(inner, body);
  inner.closure = body->getArg(1);
  in_parallel_ = true;
  Value* first = capture(min, "min");
  const auto outer_loads = loads_;
  auto outer_scopes = std::move(scopes_);
  scopes_.clear();
  push_scope();
  emit_serial(loop, b_.CreateNSWAdd(first, body->getArg(2)), b_.CreateNSWAdd(first, body->getArg(3)));
  scopes_ = std::move(outer_scopes);
  loads_ = outer_loads;
  in_parallel_ = false;
  end_frame();
  b_.restoreIP(here);
  b_.SetCurrentDebugLocation(location);

  llvm::IRBuilder<> entry(frame_->entry_end);
  llvm::Type* room =
      llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(std::max<int64_t>(inner.closure_bytes, 8)));
  llvm::AllocaInst* closure = entry.CreateAlloca(room, nullptr, "closure");
  closure->setAlignment(llvm::Align(64));
  for (const auto& [value, offset] : inner.captures) {
    b_.CreateStore(value, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), closure, static_cast<uint64_t>(offset)));
  }
  Value* wanted = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, extent, b_.getInt64(0));
  Value* parallel_for = context_callback(2);
  auto* callback = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, pointer, b_.getInt64Ty()}, false);
  return_if_failed(b_.CreateCall(callback, parallel_for, {frame_->context, body, closure, wanted}));
}

// The inner function's copy of a value of the function around it.
Value* FunctionEmitter::capture(Value* outer_value, const llvm::Twine& name) {
  if (llvm::isa<llvm::Constant>(outer_value)) return outer_value;
  llvm::Type* type = outer_value->getType();
  const llvm::DataLayout& layout = state_.module.getDataLayout();
  const llvm::Align align = layout.getABITypeAlign(type);
  frame_->closure_bytes = static_cast<int64_t>(llvm::alignTo(static_cast<uint64_t>(frame_->closure_bytes), align));
  const int64_t offset = frame_->closure_bytes;
  frame_->closure_bytes += static_cast<int64_t>(layout.getTypeAllocSize(type));
  frame_->captures.emplace_back(outer_value, offset);
  llvm::IRBuilder<> entry(frame_->entry_end);
  Value* place = entry.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), frame_->closure, static_cast<uint64_t>(offset));
  llvm::LoadInst* value = entry.CreateLoad(type, place, name);
  value->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  return value;
}

void FunctionEmitter::emit_while(const loop::While& loop) {
  llvm::BasicBlock* head = new_block("while");
  llvm::BasicBlock* body = new_block("while.body");
  llvm::BasicBlock* after = new_block("while.end");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  Value* condition = emit_expr(loop.condition);
  b_.CreateCondBr(condition, body, after);
  b_.SetInsertPoint(body);
  emit_stmt(loop.body);
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
}

void FunctionEmitter::emit_if(const loop::If& branch) {
  Value* condition = emit_expr(branch.condition);
  llvm::BasicBlock* yes = new_block("then");
  llvm::BasicBlock* no = branch.else_body.defined() ? new_block("else") : nullptr;
  llvm::BasicBlock* after = new_block("end");
  b_.CreateCondBr(condition, yes, no != nullptr ? no : after);
  b_.SetInsertPoint(yes);
  emit_stmt(branch.then_body);
  b_.CreateBr(after);
  if (no != nullptr) {
    b_.SetInsertPoint(no);
    emit_stmt(branch.else_body);
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

void FunctionEmitter::emit_allocate(const loop::Allocate& allocation) {
  const loop::Buffer& buffer = allocation.buffer;
  int64_t count = 1;
  bool is_static = true;
  for (const loop::Expr& extent : buffer->shape) {
    const int64_t* value = loop::as_int(extent);
    is_static = is_static && value != nullptr && *value >= 0;
    if (is_static && __builtin_mul_overflow(count, *value, &count))
      fail(ErrorCode::Limit, "buffer \"{}\" is too large", buffer->name);
  }
  const int64_t bytes = is_static ? count * static_cast<int64_t>(buffer->dtype.bytes()) : 0;
  const bool local = buffer->scope == loop::Scope::Local;
  if (local && (!is_static || bytes > kLocalLimit)) {
    fail(ErrorCode::CodegenUnsupported, "local buffer \"{}\" has no small static shape", buffer->name);
  }
  if (is_static && bytes <= kStackBuffer && (local || frame_->stack_bytes + bytes <= kStackTotal)) {
    frame_->stack_bytes += bytes;
    llvm::IRBuilder<> entry(frame_->entry_end);
    llvm::Type* type =
        llvm::ArrayType::get(arith_.memory_type(buffer->dtype, 1), static_cast<uint64_t>(std::max<int64_t>(count, 1)));
    llvm::AllocaInst* memory = entry.CreateAlloca(type, nullptr, buffer->name);
    memory->setAlignment(llvm::Align(64));
    frame_->buffers[buffer.get()] = memory;
    return emit_stmt(allocation.body);
  }
  Value* size = b_.getInt64(buffer->dtype.bytes());
  for (const loop::Expr& extent : buffer->shape) size = b_.CreateMul(size, emit_expr(extent));
  llvm::Type* pointer = b_.getPtrTy();
  auto* allocate = llvm::FunctionType::get(pointer, {pointer, b_.getInt64Ty()}, false);
  llvm::CallInst* memory = b_.CreateCall(allocate, context_callback(3), {frame_->context, size}, buffer->name);
  memory->addRetAttr(llvm::Attribute::NoAlias);
  memory->addRetAttr(llvm::Attribute::getWithAlignment(context_, llvm::Align(64)));
  llvm::BasicBlock* failed = new_block("no_memory");
  llvm::BasicBlock* fine = new_block("memory");
  b_.CreateCondBr(b_.CreateIsNull(memory), failed, fine, llvm::MDBuilder(context_).createUnlikelyBranchWeights());
  b_.SetInsertPoint(failed);
  b_.CreateRet(call_fail(fmt::format("out of memory for buffer \"{}\" of {}", buffer->name, source_.name)));
  b_.SetInsertPoint(fine);
  frame_->buffers[buffer.get()] = memory;
  emit_stmt(allocation.body);
  auto* release = llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer}, false);
  b_.CreateCall(release, context_callback(4), {frame_->context, memory});
}

void FunctionEmitter::emit_evaluate(const loop::Evaluate& statement) {
  const auto* call = statement.value.as<loop::Extern>();
  if (call == nullptr) return;  // without effect
  if (Value* code = emit_extern(*call)) return_if_failed(code);
}

}  // namespace treadle::codegen
