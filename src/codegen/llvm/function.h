// SPDX-License-Identifier: Apache-2.0
// Emits one function of the loop IR, and the bodies of its parallel loops, into an LLVM module.
#pragma once

#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <unordered_map>
#include <vector>

#include "codegen/llvm/arith.h"
#include "loop/stmt.h"

namespace treadle::codegen {

// What all functions of one module share.
struct ModuleState {
  llvm::Module& module;
  const Target& target;
  Features features;
  llvm::DIBuilder* debug = nullptr;  // null: no debug information
  llvm::DIFile* file = nullptr;
};

class FunctionEmitter {
 public:
  FunctionEmitter(ModuleState& state, const loop::Function& function);
  // Errors: CodegenUnsupported.
  void emit();

 private:
  // One LLVM function being filled: the kernel itself or, inside it, the body of a parallel loop. Such a body takes
  // what it uses of the function around it through a closure, a struct on the stack that grows as names are looked up.
  struct Frame {
    Frame* outer = nullptr;
    llvm::Function* function = nullptr;
    llvm::Instruction* entry_end = nullptr;  // allocas and captured values go before it
    Value* context = nullptr;
    Value* closure = nullptr;
    int64_t closure_bytes = 0;
    std::vector<std::pair<Value*, int64_t>> captures;  // the outer value, its offset in the closure
    std::unordered_map<const loop::ExprNode*, Value*> vars;
    std::unordered_map<const loop::BufferNode*, Value*> buffers;  // where element 0 lies
    int64_t stack_bytes = 0;
    llvm::AllocaInst* call_area = nullptr;  // pointers, int64s and tensor references of one outgoing call
    int64_t call_area_words = 0;
  };
  // An int64 index over lanes: base + lane * stride (stride null: the same in all lanes), or any vector.
  struct Index {
    Value* base = nullptr;
    Value* stride = nullptr;
    Value* vector = nullptr;
  };

  // function.cc: statements
  llvm::Function* declare(const std::string& name, llvm::FunctionType* type, bool exported);
  void begin_frame(Frame& frame, llvm::Function* function);
  void end_frame();
  void emit_stmt(const loop::Stmt& stmt);
  void emit_for(const loop::For& loop);
  void emit_serial(const loop::For& loop, Value* begin, Value* end);
  void emit_parallel(const loop::For& loop);
  void emit_while(const loop::While& loop);
  void emit_if(const loop::If& branch);
  void emit_allocate(const loop::Allocate& allocation);
  void emit_evaluate(const loop::Evaluate& statement);
  void return_if_failed(Value* code);
  llvm::BasicBlock* new_block(const char* name);
  Value* context_callback(unsigned field);  // a function pointer of TreadleContext
  void annotate_loop(llvm::BranchInst* latch, loop::ForKind kind);
  Value* capture(Value* outer_value, const llvm::Twine& name);

  // expression.cc
  Value* emit_expr(const loop::Expr& expr);  // memoised
  Value* emit_new(const loop::Expr& expr);
  Value* emit_select(const loop::Select& select);
  Value* emit_branches(Value* condition, const loop::Expr& a, const loop::Expr& b);
  Value* emit_masked(const loop::Expr& expr, Value* mask);
  Value* find_var(Frame& frame, const loop::VarNode* var);
  bool may_speculate(const loop::Expr& expr);
  bool was_loaded(const loop::Load& load);
  void push_scope() { scopes_.emplace_back(); }
  void pop_scope() { scopes_.pop_back(); }
  void new_statement();  // forgets values that a store may have changed

  // memory.cc
  Value* find_buffer(Frame& frame, const loop::Buffer& buffer);
  Value* element_address(const loop::Buffer& buffer, const std::vector<loop::Expr>& indices);
  Value* emit_load(const loop::Load& load);
  void emit_store(const loop::Store& store);
  Index flat_index(const loop::Buffer& buffer, const std::vector<loop::Expr>& indices, int lanes);
  Index linear(const loop::Expr& expr);
  Index add(Index a, Index b, int lanes);
  Index scale(Index a, Value* factor, int lanes);
  Value* as_vector(const Index& index, int lanes);
  Value* strided_load(llvm::Type* element, Value* address, int64_t stride, int lanes, llvm::Align align);
  std::vector<Value*> strides_of(const loop::Buffer& buffer);
  llvm::MDNode* alias_scope(const loop::Buffer& buffer);

  // call.cc
  Value* emit_extern(const loop::Extern& call);
  Value* call_kernel(const std::string& name, const loop::Extern& call);
  Value* call_runtime(const std::string& name, const loop::Extern& call);
  Value* call_fail(const std::string& message);
  Value* call_profile(const loop::Extern& call);
  Value* call_reserve(const loop::Extern& call);
  Value* call_give_output(const loop::Extern& call);
  Value* call_words(int64_t count);  // room for `count` 8-byte words of one call
  Value* string_constant(const std::string& text);
  Value* tensor_references(Value* area, const std::vector<const loop::Address*>& tensors, int64_t shape_word);

  ModuleState& state_;
  const loop::Function& source_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  Arith arith_;
  Frame* frame_ = nullptr;
  bool in_parallel_ = false;
  Value* mask_ = nullptr;  // lanes that are wanted, while the side of a vector select is emitted
  std::vector<std::unordered_map<const loop::ExprNode*, Value*>> scopes_;
  std::vector<const loop::Load*> loads_;  // emitted on every path to here, within the statement
  int parallel_count_ = 0;
  bool calls_out_ = false;  // calls kernels
};

}  // namespace treadle::codegen
