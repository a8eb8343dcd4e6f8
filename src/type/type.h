// SPDX-License-Identifier: Apache-2.0
// The types of values: tensors, tuples, functions, and the type variables of polymorphic functions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/dtype.h"
#include "type/dim.h"

namespace treadle {

enum class TypeKind { Tensor, Tuple, Func, Var };

struct TypeNode {
  explicit TypeNode(TypeKind kind) : kind(kind) {}
  virtual ~TypeNode() = default;
  const TypeKind kind;
};

// Null: not known yet. Types are immutable and shared.
using Type = std::shared_ptr<const TypeNode>;

struct TensorType : TypeNode {
  TensorType(Shape shape, DType dtype) : TypeNode(TypeKind::Tensor), shape(std::move(shape)), dtype(dtype) {}
  Shape shape;
  DType dtype;
};

// Tuples of tuples share their fields, so that a short program can name a type of exponential size: there is a limit.
struct TupleType : TypeNode {
  static constexpr int64_t kMaxLeaves = 1 << 16;
  static constexpr int kMaxDepth = 256;

  // Errors: Limit for more fields, counted through nested tuples, or deeper nesting.
  explicit TupleType(std::vector<Type> fields);
  std::vector<Type> fields;  // a field may be null: not known yet
  int64_t leaves = 0;        // fields that are no tuples, of this and of nested tuples; at least 1
  int depth = 1;             // of nested tuples
};

struct FuncType : TypeNode {
  FuncType(std::vector<Type> params, Type result, std::vector<std::string> type_params = {})
      : TypeNode(TypeKind::Func),
        params(std::move(params)),
        result(std::move(result)),
        type_params(std::move(type_params)) {}
  std::vector<Type> params;
  Type result;
  std::vector<std::string> type_params;  // names bound in params and result
};

// A type parameter of a polymorphic function: `A` of `def @id[A](%x: A) -> A`.
struct TypeVar : TypeNode {
  explicit TypeVar(std::string name) : TypeNode(TypeKind::Var), name(std::move(name)) {}
  std::string name;
};

inline Type tensor_type(Shape shape, DType dtype) { return std::make_shared<TensorType>(std::move(shape), dtype); }
inline Type tuple_type(std::vector<Type> fields) { return std::make_shared<TupleType>(std::move(fields)); }
inline Type func_type(std::vector<Type> params, Type result, std::vector<std::string> type_params = {}) {
  return std::make_shared<FuncType>(std::move(params), std::move(result), std::move(type_params));
}

// Null when the type is null or of another kind.
inline const TensorType* as_tensor(const Type& type) {
  return type && type->kind == TypeKind::Tensor ? static_cast<const TensorType*>(type.get()) : nullptr;
}
inline const TupleType* as_tuple(const Type& type) {
  return type && type->kind == TypeKind::Tuple ? static_cast<const TupleType*>(type.get()) : nullptr;
}
inline const FuncType* as_func(const Type& type) {
  return type && type->kind == TypeKind::Func ? static_cast<const FuncType*>(type.get()) : nullptr;
}
inline const TypeVar* as_type_var(const Type& type) {
  return type && type->kind == TypeKind::Var ? static_cast<const TypeVar*>(type.get()) : nullptr;
}

// The leaves of a type in order, tuples flattened; null for a leaf that is no tensor or not known.
std::vector<const TensorType*> flatten_tuple_type(const Type& type);
// The number of leaves before the field `index`.
int64_t leaf_offset(const TupleType& tuple, int index);

// Calls f with the name of each anonymous symbol of the type, for each extent that it occurs in.
void for_each_anonymous(const Type& type, const std::function<void(const std::string&)>& f);

// True when the type and all its parts are known.
bool is_complete(const Type& type);
// Structural; extents are equal when Dim proves it.
bool equal(const Type& a, const Type& b);
// As equal, but two extents also agree when either is an anonymous symbol ("?…"): what a declared `?` promises.
bool compatible(const Type& a, const Type& b);
uint64_t hash(const Type& type);
Type substitute(const Type& type, const std::map<std::string, Dim>& symbols);
// Relay's text: "Tensor[(1, 3, H, W), float32]", "float32" for 0-d, "(A, B)", "fn (A, B) -> C", "_" for null.
std::string to_string(const Type& type);

// Shape that NumPy broadcasting gives for two shapes. Of a symbolic and a constant extent other than 1 the constant
// remains; of two symbolic extents that are not provably equal, their maximum: the kernels stretch an extent that is 1
// at run time. Errors: TypeMismatch naming the extents when both are constant, different and not 1.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace treadle
