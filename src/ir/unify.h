// SPDX-License-Identifier: Apache-2.0
// Unification of types with open parts: what the builders use for one call and InferType for whole modules.
#pragma once

#include <string>
#include <vector>

#include "type/type.h"

namespace treadle::ir {

// The type of a value that is one or the other (branches of If): extents that are not provably equal become anonymous.
// Errors: TypeMismatch when dtype, rank or structure differ.
Type join_types(const Type& a, const Type& b);

// Result of a Loop: carried values, then scanned values with the number of iterations as new axis 0.
//   initial    types of the carried values before the first iteration
//   body       type of one iteration's result: carried…, scanned…
//   trip_count extent of the new axis; anonymous when not known
// Null when a type is not known. Errors: TypeMismatch.
Type loop_type(const std::vector<Type>& initial, const Type& body, int num_scanned, const Dim& trip_count);

// True when the types are equal where both are known exactly: an extent with an anonymous symbol stands for any other
// such.
bool same_up_to_anonymous(const Type& a, const Type& b);

// A set of placeholders and what is known of each. A placeholder is a TypeVar whose name starts with '$'.
class Unifier {
 public:
  // A new placeholder.
  Type fresh();
  // The type with a new placeholder for each null part.
  Type open(const Type& type);
  // Placeholders replaced by what is known of them; unknown ones stay.
  Type resolve(const Type& type) const;
  // As resolve, but unknown ones become null.
  Type close(const Type& type) const;
  // Makes the two equal, up to extents that may be equal. Errors: TypeMismatch naming both types.
  void unify(const Type& a, const Type& b);
  // Type of the call of a value of type `callee` with these arguments: type parameters are instantiated, anonymous
  // extents of the result are those of the arguments where the parameters say so, else new. once = false: the function
  // is called again with other extents (a loop's body), so its anonymous extents stay. Errors: TypeMismatch.
  Type apply(const Type& callee, const std::vector<Type>& args, bool once = true);
  // Grows with every binding: tells whether a round changed anything.
  size_t bindings() const { return bound_count_; }

 private:
  const Type& find(const Type& type) const;
  bool occurs(size_t id, const Type& type) const;
  void unify_parts(const Type& a, const Type& b);
  Type instantiate(const FuncType& func);

  std::vector<Type> bound_;  // by the placeholder's number; null: unknown
  size_t bound_count_ = 0;
};

}  // namespace treadle::ir
