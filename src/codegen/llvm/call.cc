// SPDX-License-Identifier: Apache-2.0
// Calls that leave the function: kernels, kernels of the runtime, profiling marks and failure (loop::Extern).
#include "base/error.h"
#include "codegen/llvm/function.h"
#include "treadle/abi.h"

namespace treadle::codegen {

using loop::Expr;

// TreadleTensorRef in 8-byte words: data, shape, then rank, type code and bits in one word.
constexpr int64_t kTensorWords = 3;
static_assert(sizeof(TreadleTensorRef) == 8 * kTensorWords && offsetof(TreadleTensorRef, rank) == 16 &&
              offsetof(TreadleTensorRef, type_code) == 20 && offsetof(TreadleTensorRef, bits) == 21);

Value* FunctionEmitter::string_constant(const std::string& text) { return b_.CreateGlobalString(text, "text"); }

// One area on the stack serves all calls of the function, as only one call is made at a time.
Value* FunctionEmitter::call_words(int64_t count) {
  if (frame_->call_area == nullptr) {
    llvm::IRBuilder<> entry(frame_->entry_end);
    frame_->call_area = entry.CreateAlloca(b_.getInt64Ty(), b_.getInt64(1), "call");
    frame_->call_area->setAlignment(llvm::Align(16));
  }
  frame_->call_area_words = std::max(frame_->call_area_words, count);
  return frame_->call_area;
}

// Gives the int32 code of the call, or null when it cannot fail.
Value* FunctionEmitter::emit_extern(const loop::Extern& call) {
  const auto after = [&](std::string_view prefix) -> std::optional<std::string> {
    if (!std::string_view(call.name).starts_with(prefix)) return std::nullopt;
    return call.name.substr(prefix.size());
  };
  calls_out_ = true;
  if (const auto name = after("kernel:")) return call_kernel(*name, call);
  if (const auto name = after("runtime:")) return call_runtime(*name, call);
  if (call.name == "profile") return call_profile(call);
  if (call.name == "reserve") return call_reserve(call);
  if (call.name == "give_output") return call_give_output(call);
  if (const auto message = after("fail:")) return call_fail(*message);
  fail(ErrorCode::CodegenUnsupported, "extern call \"{}\"", call.name);
}

Value* FunctionEmitter::call_kernel(const std::string& name, const loop::Extern& call) {
  std::vector<Value*> pointers, scalars;
  for (const Expr& arg : call.args) {
    Value* value = emit_expr(arg);
    if (arg.kind() == loop::ExprKind::Address) {
      pointers.push_back(value);
    } else {
      scalars.push_back(arith_.cast(value, arg.dtype(), dtype::int64_));
    }
  }
  Value* area = call_words(static_cast<int64_t>(std::max<size_t>(pointers.size() + scalars.size(), 1)));
  int64_t word = 0;
  for (Value* pointer : pointers)
    b_.CreateStore(pointer, b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), area, static_cast<uint64_t>(word++)));
  Value* scalar_area = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), area, static_cast<uint64_t>(word));
  for (Value* scalar : scalars)
    b_.CreateStore(scalar, b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), area, static_cast<uint64_t>(word++)));
  llvm::Type* pointer = b_.getPtrTy();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, pointer}, false);
  llvm::FunctionCallee kernel = state_.module.getOrInsertFunction(name, type);
  return b_.CreateCall(kernel, {frame_->context, area, scalar_area});
}

// Writes one TreadleTensorRef per tensor to `area`, and their shapes from word `shape_word` on.
Value* FunctionEmitter::tensor_references(Value* area, const std::vector<const loop::Address*>& tensors,
                                          int64_t shape_word) {
  llvm::Type* word_type = b_.getInt64Ty();
  const auto word = [&](int64_t index) {
    return b_.CreateConstInBoundsGEP1_64(word_type, area, static_cast<uint64_t>(index));
  };
  int64_t at = 0;
  for (const loop::Address* tensor : tensors) {
    const loop::BufferNode& buffer = *tensor->buffer;
    b_.CreateStore(element_address(tensor->buffer, tensor->indices), word(at));
    b_.CreateStore(word(shape_word), word(at + 1));
    const uint64_t description = static_cast<uint64_t>(buffer.shape.size()) |
                                 static_cast<uint64_t>(buffer.dtype.code) << 32 |
                                 static_cast<uint64_t>(buffer.dtype.bits) << 40;
    b_.CreateStore(b_.getInt64(description), word(at + 2));
    for (const Expr& extent : buffer.shape) b_.CreateStore(emit_expr(extent), word(shape_word++));
    at += kTensorWords;
  }
  return area;
}

Value* FunctionEmitter::call_runtime(const std::string& name, const loop::Extern& call) {
  size_t next = 0;
  const auto take_count = [&] {
    const int64_t* count = next < call.args.size() ? loop::as_int(call.args[next++]) : nullptr;
    if (count == nullptr || *count < 0 || static_cast<size_t>(*count) > call.args.size() - next) {
      fail(ErrorCode::LoopInvalid, "arguments of extern call \"{}\" are not counted", call.name);
    }
    return static_cast<size_t>(*count);
  };
  std::vector<const loop::Address*> tensors;
  const auto take_tensors = [&] {
    const size_t count = take_count();
    for (size_t i = 0; i < count; ++i) {
      const auto* tensor = call.args[next++].as<loop::Address>();
      if (tensor == nullptr) fail(ErrorCode::LoopInvalid, "extern call \"{}\" wants addresses", call.name);
      tensors.push_back(tensor);
    }
    return count;
  };
  const size_t inputs = take_tensors(), outputs = take_tensors(), num_params = take_count();
  std::vector<Value*> params;
  for (size_t i = 0; i < num_params; ++i, ++next) {
    params.push_back(arith_.cast(emit_expr(call.args[next]), call.args[next].dtype(), dtype::int64_));
  }
  Value* results = next < call.args.size() ? emit_expr(call.args[next]) : llvm::ConstantPointerNull::get(b_.getPtrTy());
  int64_t shape_words = 0;
  for (const loop::Address* tensor : tensors) shape_words += static_cast<int64_t>(tensor->buffer->shape.size());
  const int64_t shapes_at = kTensorWords * static_cast<int64_t>(tensors.size());
  const int64_t params_at = shapes_at + shape_words;
  Value* area = call_words(std::max<int64_t>(params_at + static_cast<int64_t>(num_params), 1));
  tensor_references(area, tensors, shapes_at);
  const auto word = [&](int64_t index) {
    return b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), area, static_cast<uint64_t>(index));
  };
  for (size_t i = 0; i < num_params; ++i) b_.CreateStore(params[i], word(params_at + static_cast<int64_t>(i)));

  llvm::Type *pointer = b_.getPtrTy(), *number = b_.getInt32Ty();
  auto* finder = llvm::FunctionType::get(pointer, {pointer, pointer}, false);
  Value* kernel = b_.CreateCall(finder, context_callback(5), {frame_->context, string_constant(name)});
  llvm::BasicBlock* unknown = new_block("unknown");
  llvm::BasicBlock* known = new_block("known");
  b_.CreateCondBr(b_.CreateIsNull(kernel), unknown, known);
  b_.SetInsertPoint(unknown);
  b_.CreateRet(call_fail(fmt::format("this runtime has no kernel \"{}\"", name)));
  b_.SetInsertPoint(known);
  auto* type =
      llvm::FunctionType::get(number, {pointer, pointer, number, pointer, number, pointer, number, pointer}, false);
  return b_.CreateCall(type, kernel,
                       {frame_->context, area, b_.getInt32(static_cast<uint32_t>(inputs)),
                        word(kTensorWords * static_cast<int64_t>(inputs)), b_.getInt32(static_cast<uint32_t>(outputs)),
                        word(params_at), b_.getInt32(static_cast<uint32_t>(num_params)), results});
}

Value* FunctionEmitter::call_fail(const std::string& message) {
  llvm::Type* pointer = b_.getPtrTy();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer}, false);
  return b_.CreateCall(type, context_callback(6), {frame_->context, string_constant(message)});
}

Value* FunctionEmitter::call_reserve(const loop::Extern& call) {
  if (call.args.size() != 3) fail(ErrorCode::LoopInvalid, "extern call \"reserve\" wants a slot, bytes and keep");
  Value* slot = emit_expr(call.args[0]);
  Value* bytes = arith_.cast(emit_expr(call.args[1]), call.args[1].dtype(), dtype::int64_);
  Value* keep = arith_.cast(emit_expr(call.args[2]), call.args[2].dtype(), dtype::int32_);
  llvm::Type* pointer = b_.getPtrTy();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, b_.getInt64Ty(), b_.getInt32Ty()}, false);
  return b_.CreateCall(type, context_callback(8), {frame_->context, slot, bytes, keep});
}

Value* FunctionEmitter::call_give_output(const loop::Extern& call) {
  const auto* tensor = call.args.size() == 2 ? call.args[1].as<loop::Address>() : nullptr;
  if (tensor == nullptr) fail(ErrorCode::LoopInvalid, "extern call \"give_output\" wants an output and its address");
  Value* output = arith_.cast(emit_expr(call.args[0]), call.args[0].dtype(), dtype::int32_);
  Value* area = call_words(kTensorWords + static_cast<int64_t>(tensor->buffer->shape.size()));
  tensor_references(area, {tensor}, kTensorWords);
  llvm::Type* pointer = b_.getPtrTy();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, b_.getInt32Ty(), pointer}, false);
  return b_.CreateCall(type, context_callback(9), {frame_->context, output, area});
}

Value* FunctionEmitter::call_profile(const loop::Extern& call) {
  if (call.args.size() != 2) fail(ErrorCode::LoopInvalid, "extern call \"profile\" wants a kernel and 1 or 0");
  Value* kernel = arith_.cast(emit_expr(call.args[0]), call.args[0].dtype(), dtype::int32_);
  Value* begin = arith_.cast(emit_expr(call.args[1]), call.args[1].dtype(), dtype::int32_);
  Value* callback = context_callback(7);
  llvm::BasicBlock* wanted = new_block("profile");
  llvm::BasicBlock* after = new_block("profiled");
  b_.CreateCondBr(b_.CreateIsNotNull(callback), wanted, after);
  b_.SetInsertPoint(wanted);
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getInt32Ty()}, false);
  b_.CreateCall(type, callback, {frame_->context, kernel, begin});
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  return nullptr;
}

}  // namespace treadle::codegen
