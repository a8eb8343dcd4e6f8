// SPDX-License-Identifier: Apache-2.0
// Loads and stores. The flat index of an access is analysed as base + lane * stride: stride 1 is one vector access,
// stride 0 a broadcast, -1 a reversed vector, 2 to 4 a few vectors and shuffles, all else a gather or scatter.
#include "base/error.h"
#include "codegen/llvm/function.h"

namespace treadle::codegen {

using loop::Expr;

// Where the buffer's first element lies, seen from `frame`.
Value* FunctionEmitter::find_buffer(Frame& frame, const loop::Buffer& buffer) {
  const auto known = frame.buffers.find(buffer.get());
  if (known != frame.buffers.end()) return known->second;
  if (buffer->scope == loop::Scope::View) {
    // Not kept: the offset may depend on loop variables. LLVM finds the common parts.
    Value* base = find_buffer(frame, buffer->base);
    Value* offset = buffer->base_offset.defined() ? emit_expr(buffer->base_offset) : b_.getInt64(0);
    return b_.CreateInBoundsGEP(b_.getInt8Ty(), base, offset, buffer->name);
  }
  if (buffer->scope == loop::Scope::Pointer) {
    Value* place =
        b_.CreateInBoundsGEP(b_.getInt8Ty(), find_buffer(frame, buffer->base), emit_expr(buffer->base_offset));
    return b_.CreateLoad(b_.getPtrTy(), place, buffer->name);
  }
  if (frame.outer == nullptr)
    fail(ErrorCode::LoopInvalid, "buffer \"{}\" is not known in {}", buffer->name, source_.name);
  Value* outer = find_buffer(*frame.outer, buffer);
  return frame.buffers[buffer.get()] = capture(outer, buffer->name);
}

std::vector<Value*> FunctionEmitter::strides_of(const loop::Buffer& buffer) {
  const size_t rank = buffer->shape.size();
  std::vector<Value*> strides(rank);
  if (!buffer->strides.empty()) {
    for (size_t axis = 0; axis < rank; ++axis) strides[axis] = emit_expr(buffer->strides[axis]);
    return strides;
  }
  Value* stride = b_.getInt64(1);
  for (size_t axis = rank; axis-- > 0;) {
    strides[axis] = stride;
    if (axis > 0) stride = b_.CreateMul(stride, emit_expr(buffer->shape[axis]), "", true, true);
  }
  return strides;
}

Value* FunctionEmitter::as_vector(const Index& index, int lanes) {
  if (index.vector != nullptr) return index.vector;
  Value* base = arith_.splat(index.base, lanes);
  if (index.stride == nullptr) return base;
  std::vector<llvm::Constant*> steps;
  for (int i = 0; i < lanes; ++i) steps.push_back(b_.getInt64(static_cast<uint64_t>(i)));
  Value* offsets = b_.CreateMul(arith_.splat(index.stride, lanes), llvm::ConstantVector::get(steps));
  return b_.CreateAdd(base, offsets);
}

FunctionEmitter::Index FunctionEmitter::add(Index a, Index b, int lanes) {
  if (a.vector != nullptr || b.vector != nullptr) {
    return {nullptr, nullptr, b_.CreateAdd(as_vector(a, lanes), as_vector(b, lanes))};
  }
  Value* stride = a.stride == nullptr ? b.stride : b.stride == nullptr ? a.stride : b_.CreateNSWAdd(a.stride, b.stride);
  return {b_.CreateNSWAdd(a.base, b.base), stride, nullptr};
}

FunctionEmitter::Index FunctionEmitter::scale(Index a, Value* factor, int lanes) {
  if (const auto* one = llvm::dyn_cast<llvm::ConstantInt>(factor); one != nullptr && one->isOne()) return a;
  if (a.vector != nullptr) return {nullptr, nullptr, b_.CreateMul(a.vector, arith_.splat(factor, lanes))};
  return {b_.CreateNSWMul(a.base, factor), a.stride == nullptr ? nullptr : b_.CreateNSWMul(a.stride, factor), nullptr};
}

FunctionEmitter::Index FunctionEmitter::linear(const Expr& expr) {
  const int lanes = expr.lanes();
  if (lanes == 1) {
    Value* value = emit_expr(expr);
    if (expr.dtype() == dtype::int64_) return {value};
    return {arith_.cast(value, expr.dtype(), dtype::int64_)};
  }
  if (expr.dtype() == dtype::int64_) {
    if (const auto* ramp = expr.as<loop::Ramp>(); ramp != nullptr && ramp->base.lanes() == 1) {
      return {emit_expr(ramp->base), emit_expr(ramp->stride), nullptr};
    }
    if (const auto* broadcast = expr.as<loop::Broadcast>()) return {emit_expr(broadcast->a)};
    if (const auto* binary = expr.as<loop::Binary>()) {
      const bool sum = binary->op == loop::BinaryOp::Add, difference = binary->op == loop::BinaryOp::Sub;
      if (sum || difference || binary->op == loop::BinaryOp::Mul) {
        const Index a = linear(binary->a), b = linear(binary->b);
        if (sum) return add(a, b, lanes);
        if (difference) return add(a, scale(b, b_.getInt64(~uint64_t{0}), lanes), lanes);
        if (b.vector == nullptr && b.stride == nullptr) return scale(a, b.base, lanes);
        if (a.vector == nullptr && a.stride == nullptr) return scale(b, a.base, lanes);
        return {nullptr, nullptr, b_.CreateMul(as_vector(a, lanes), as_vector(b, lanes))};
      }
    }
  }
  Value* value = emit_expr(expr);
  return {nullptr, nullptr, expr.dtype() == dtype::int64_ ? value : arith_.cast(value, expr.dtype(), dtype::int64_)};
}

FunctionEmitter::Index FunctionEmitter::flat_index(const loop::Buffer& buffer, const std::vector<Expr>& indices,
                                                   int lanes) {
  if (indices.size() != buffer->shape.size()) {
    fail(ErrorCode::LoopInvalid, "{} indices into \"{}\" of rank {}", indices.size(), buffer->name,
         buffer->shape.size());
  }
  const std::vector<Value*> strides = strides_of(buffer);
  Index flat{b_.getInt64(0)};
  for (size_t axis = 0; axis < indices.size(); ++axis)
    flat = add(flat, scale(linear(indices[axis]), strides[axis], lanes), lanes);
  // A stride that folded to zero is a broadcast.
  const auto* stride = llvm::dyn_cast_or_null<llvm::ConstantInt>(flat.stride);
  if (stride != nullptr && stride->isZero()) flat.stride = nullptr;
  return flat;
}

Value* FunctionEmitter::element_address(const loop::Buffer& buffer, const std::vector<Expr>& indices) {
  const Index index = flat_index(buffer, indices, 1);
  return b_.CreateInBoundsGEP(arith_.memory_type(buffer->dtype, 1), find_buffer(*frame_, buffer), index.base);
}

// `lanes` elements, `stride` (2 … 4) apart: whole vectors that end with the last element needed, and shuffles.
Value* FunctionEmitter::strided_load(llvm::Type* element, Value* address, int64_t stride, int lanes,
                                     llvm::Align align) {
  auto* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
  const int64_t extent = stride * (lanes - 1) + 1;
  Value* result = nullptr;
  for (int64_t chunk = 0; chunk * lanes < extent; ++chunk) {
    const int64_t start = std::min(chunk * lanes, extent - lanes);
    Value* place = b_.CreateConstInBoundsGEP1_64(element, address, static_cast<uint64_t>(start));
    Value* part = b_.CreateAlignedLoad(type, place, align);
    std::vector<int> pick(static_cast<size_t>(lanes));
    for (int lane = 0; lane < lanes; ++lane) {
      const int64_t at = stride * lane;
      const bool here = at >= chunk * lanes && at < (chunk + 1) * lanes;
      pick[static_cast<size_t>(lane)] = here ? static_cast<int>(at - start) + (result == nullptr ? 0 : lanes) : lane;
    }
    result = result == nullptr ? b_.CreateShuffleVector(part, pick) : b_.CreateShuffleVector(result, part, pick);
  }
  return result;
}

Value* FunctionEmitter::emit_load(const loop::Load& load) {
  const loop::Buffer& buffer = load.buffer;
  const int lanes = load.lanes;
  const Index index = flat_index(buffer, load.indices, lanes);
  Value* base = find_buffer(*frame_, buffer);
  llvm::Type* element = arith_.memory_type(buffer->dtype, 1);
  llvm::Type* type = arith_.memory_type(buffer->dtype, lanes);
  const llvm::Align align(buffer->dtype.bytes());
  Value* mask = lanes > 1 && mask_ != nullptr && Arith::lanes_of(mask_) == lanes ? mask_ : nullptr;
  if (mask_ == nullptr) loads_.push_back(&load);
  const auto place = [&](Value* offset) { return b_.CreateInBoundsGEP(element, base, offset); };
  const auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(index.stride);
  const int64_t stride = index.stride == nullptr ? 0 : constant != nullptr ? constant->getSExtValue() : INT64_MAX;
  Value* value = nullptr;
  if (lanes == 1 || (index.vector == nullptr && stride == 0 && mask == nullptr)) {
    value = arith_.splat(b_.CreateAlignedLoad(element, place(index.base), align), lanes);
  } else if (index.vector == nullptr && stride == 1) {
    Value* address = place(index.base);
    value = mask == nullptr ? static_cast<Value*>(b_.CreateAlignedLoad(type, address, align))
                            : b_.CreateMaskedLoad(type, address, align, mask, llvm::Constant::getNullValue(type));
  } else if (index.vector == nullptr && stride == -1 && mask == nullptr) {
    Value* last = b_.CreateNSWSub(index.base, b_.getInt64(static_cast<uint64_t>(lanes - 1)));
    value = b_.CreateVectorReverse(b_.CreateAlignedLoad(type, place(last), align));
  } else if (index.vector == nullptr && stride >= 2 && stride <= 4 && mask == nullptr) {
    value = strided_load(element, place(index.base), stride, lanes, align);
  } else {
    Value* addresses = b_.CreateInBoundsGEP(element, base, as_vector(index, lanes));
    value = b_.CreateMaskedGather(type, addresses, align, mask,
                                  mask == nullptr ? nullptr : llvm::Constant::getNullValue(type));
  }
  return arith_.from_memory(buffer->dtype, value);
}

void FunctionEmitter::emit_store(const loop::Store& store) {
  const loop::Buffer& buffer = store.buffer;
  int lanes = store.value.lanes();
  for (const Expr& index : store.indices) lanes = std::max(lanes, index.lanes());
  Value* value = emit_expr(store.value);
  if (store.value.lanes() == 1) value = arith_.splat(value, lanes);
  value = arith_.to_memory(buffer->dtype, value);
  const Index index = flat_index(buffer, store.indices, lanes);
  Value* base = find_buffer(*frame_, buffer);
  llvm::Type* element = arith_.memory_type(buffer->dtype, 1);
  const llvm::Align align(buffer->dtype.bytes());
  const auto place = [&](Value* offset) { return b_.CreateInBoundsGEP(element, base, offset); };
  const auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(index.stride);
  const bool one_after_another = index.vector == nullptr && constant != nullptr && constant->isOne();
  if (lanes == 1 || one_after_another) {
    b_.CreateAlignedStore(value, place(index.base), align);
  } else if (index.vector == nullptr && index.stride == nullptr) {
    // All lanes to one place: as in a loop, the last one stays.
    b_.CreateAlignedStore(b_.CreateExtractElement(value, static_cast<uint64_t>(lanes - 1)), place(index.base), align);
  } else if (index.vector == nullptr && constant != nullptr && constant->isMinusOne()) {
    Value* last = b_.CreateNSWSub(index.base, b_.getInt64(static_cast<uint64_t>(lanes - 1)));
    b_.CreateAlignedStore(b_.CreateVectorReverse(value), place(last), align);
  } else {
    b_.CreateMaskedScatter(value, b_.CreateInBoundsGEP(element, base, as_vector(index, lanes)), align);
  }
}

}  // namespace treadle::codegen
