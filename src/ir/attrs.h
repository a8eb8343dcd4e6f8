// SPDX-License-Identifier: Apache-2.0
// Attributes of operators, by reflection: an attribute struct lists its fields once, and from that come text, JSON,
// equality, hash, defaults, bounds, Python signatures and documentation.
//
//   struct SoftmaxAttrs : AttrsOf<SoftmaxAttrs> {
//     int64_t axis;
//     template <typename F> static void fields(F& field) {
//       field(&SoftmaxAttrs::axis, "axis", -1, "axis along which the values sum to 1");
//     }
//   };
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "runtime/dtype.h"
#include "type/dim.h"

namespace treadle::ir {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Strings = std::vector<std::string>;
using IntLists = std::vector<std::vector<int64_t>>;  // pad_width: pairs
using IntOrInts = std::variant<int64_t, Ints>;       // split: how many parts, or where they begin

// A value of any attribute; monostate is Relay's None.
using AttrValue = std::variant<std::monostate, bool, int64_t, double, std::string, DType, Dim, Ints, Floats, Strings,
                               Shape, IntLists>;

enum class AttrType { Bool, Int, Float, String, DType, Dim, Ints, Floats, Strings, Dims, IntLists, IntOrInts };
const char* to_string(AttrType type);           // "int", "list of int", …
std::string to_string(const AttrValue& value);  // as the text format writes it: [1, 2], "NCHW", None, 1e-05f
bool equal(const AttrValue& a, const AttrValue& b);
uint64_t hash(const AttrValue& value);
// The list with these elements: of the narrowest list type that holds all. Errors: TypeAttribute when there is none.
AttrValue list_value(const std::vector<AttrValue>& items);
// A string as the text format writes it, in double quotes with \", \\, \n, \t, \r and \xNN.
std::string quote(std::string_view text);

template <typename T>
struct AttrTypeOf;
template <>
struct AttrTypeOf<bool> {
  static constexpr AttrType value = AttrType::Bool;
};
template <>
struct AttrTypeOf<int64_t> {
  static constexpr AttrType value = AttrType::Int;
};
template <>
struct AttrTypeOf<double> {
  static constexpr AttrType value = AttrType::Float;
};
template <>
struct AttrTypeOf<std::string> {
  static constexpr AttrType value = AttrType::String;
};
template <>
struct AttrTypeOf<DType> {
  static constexpr AttrType value = AttrType::DType;
};
template <>
struct AttrTypeOf<Dim> {
  static constexpr AttrType value = AttrType::Dim;
};
template <>
struct AttrTypeOf<Ints> {
  static constexpr AttrType value = AttrType::Ints;
};
template <>
struct AttrTypeOf<Floats> {
  static constexpr AttrType value = AttrType::Floats;
};
template <>
struct AttrTypeOf<Strings> {
  static constexpr AttrType value = AttrType::Strings;
};
template <>
struct AttrTypeOf<Shape> {
  static constexpr AttrType value = AttrType::Dims;
};
template <>
struct AttrTypeOf<IntLists> {
  static constexpr AttrType value = AttrType::IntLists;
};
template <>
struct AttrTypeOf<IntOrInts> {
  static constexpr AttrType value = AttrType::IntOrInts;
};

// What is known of one field.
struct FieldInfo {
  std::string name;
  AttrType type;
  bool optional = false;  // may be None
  bool required = false;  // has no default
  AttrValue default_value;
  std::string doc;                 // one sentence
  std::optional<double> min, max;  // of the number or of each number of a list
  Strings allowed;                 // of a string; empty: any

  FieldInfo& at_least(double bound) {
    min = bound;
    return *this;
  }
  FieldInfo& at_most(double bound) {
    max = bound;
    return *this;
  }
  FieldInfo& one_of(Strings values) {
    allowed = std::move(values);
    return *this;
  }
};

using AttrSchema = std::vector<FieldInfo>;

// Converts what a text, JSON or Python gives to the field's type: an int where a float, a Dim or a list of one is
// wanted, a string where a dtype is, and so on; checks bounds. Errors: TypeAttribute naming operator and field.
AttrValue coerce(const FieldInfo& field, const AttrValue& value, std::string_view op);

// An operator's attributes; immutable once shared.
class Attrs {
 public:
  virtual ~Attrs() = default;
  virtual const AttrSchema& schema() const = 0;
  virtual AttrValue get(size_t field) const = 0;

  AttrValue get(std::string_view name) const;
  bool equals(const Attrs& other) const;
  uint64_t hash() const;
};

using AttrsRef = std::shared_ptr<const Attrs>;
using AttrMap = std::map<std::string, AttrValue, std::less<>>;

// Marks a field without default.
struct Required {};

namespace detail {

template <typename T>
struct FieldStorage {
  using Type = T;
  static constexpr bool optional = false;
};
template <typename T>
struct FieldStorage<std::optional<T>> {
  using Type = T;
  static constexpr bool optional = true;
};

template <typename T>
AttrValue to_value(const T& member) {
  if constexpr (FieldStorage<T>::optional) {
    return member ? AttrValue(*member) : AttrValue();
  } else if constexpr (std::is_same_v<T, IntOrInts>) {
    return std::visit([](const auto& value) { return AttrValue(value); }, member);
  } else {
    return AttrValue(member);
  }
}

struct SchemaBuilder {
  AttrSchema schema;
  template <typename A, typename T, typename D>
  FieldInfo& operator()(T A::*, const char* name, const D& default_value, const char* doc) {
    using Storage = FieldStorage<T>;
    FieldInfo info;
    info.name = name;
    info.type = AttrTypeOf<typename Storage::Type>::value;
    info.optional = Storage::optional;
    info.doc = doc;
    if constexpr (std::is_same_v<D, Required>)
      info.required = true;
    else if constexpr (!std::is_same_v<D, std::nullopt_t>)
      info.default_value = AttrValue(typename Storage::Type(default_value));
    schema.push_back(std::move(info));
    return schema.back();
  }
};

// Gives a throw-away FieldInfo so that the chained bounds of fields() compile for the visitors below.
struct GetField {
  const void* attrs;
  size_t wanted, index = 0;
  AttrValue value;
  FieldInfo ignored;
  template <typename A, typename T, typename D>
  FieldInfo& operator()(T A::* member, const char*, const D&, const char*) {
    if (index++ == wanted) value = to_value(static_cast<const A*>(attrs)->*member);
    return ignored;
  }
};

struct SetFields {
  void* attrs;
  const std::vector<AttrValue>& values;  // one per field, already coerced
  size_t index = 0;
  FieldInfo ignored;
  template <typename A, typename T, typename D>
  FieldInfo& operator()(T A::* member, const char*, const D&, const char*) {
    using Storage = FieldStorage<T>;
    const AttrValue& value = values[index++];
    if constexpr (Storage::optional) {
      if (std::holds_alternative<std::monostate>(value)) {
        (static_cast<A*>(attrs)->*member).reset();
        return ignored;
      }
    }
    if constexpr (std::is_same_v<T, IntOrInts>) {
      if (const auto* number = std::get_if<int64_t>(&value))
        static_cast<A*>(attrs)->*member = *number;
      else
        static_cast<A*>(attrs)->*member = std::get<Ints>(value);
    } else {
      static_cast<A*>(attrs)->*member = std::get<typename Storage::Type>(value);
    }
    return ignored;
  }
};

}  // namespace detail

template <typename A>
class AttrsOf : public Attrs {
 public:
  static const AttrSchema& static_schema() {
    static const AttrSchema schema = [] {
      detail::SchemaBuilder builder;
      A::fields(builder);
      return builder.schema;
    }();
    return schema;
  }
  const AttrSchema& schema() const override { return static_schema(); }
  AttrValue get(size_t field) const override {
    detail::GetField getter{static_cast<const A*>(this), field, 0, {}, {}};
    A::fields(getter);
    return getter.value;
  }
  using Attrs::get;
  // An A with all defaults set, for builders to change. Required fields are value-initialised.
  static std::shared_ptr<A> defaults() {
    auto attrs = std::make_shared<A>();
    std::vector<AttrValue> values;
    for (const FieldInfo& field : static_schema()) {
      values.push_back(field.required && !field.optional ? zero_value(field.type) : field.default_value);
    }
    detail::SetFields setter{attrs.get(), values, 0, {}};
    A::fields(setter);
    return attrs;
  }
  // From named values. Errors: TypeAttribute for an unknown name, a missing required field, a wrong type or bound.
  static AttrsRef from_map(const AttrMap& map, std::string_view op);

 private:
  static AttrValue zero_value(AttrType type);
};

// One value per field of the schema, coerced. Errors as AttrsOf::from_map.
std::vector<AttrValue> resolve_fields(const AttrSchema& schema, const AttrMap& map, std::string_view op);
AttrValue zero_value(AttrType type);

template <typename A>
AttrValue AttrsOf<A>::zero_value(AttrType type) {
  return ir::zero_value(type);
}

template <typename A>
AttrsRef AttrsOf<A>::from_map(const AttrMap& map, std::string_view op) {
  std::vector<AttrValue> values = resolve_fields(static_schema(), map, op);
  auto attrs = std::make_shared<A>();
  detail::SetFields setter{attrs.get(), values, 0, {}};
  A::fields(setter);
  return attrs;
}

// Of an operator without attributes.
struct NoAttrs : AttrsOf<NoAttrs> {
  template <typename F>
  static void fields(F&) {}
};

}  // namespace treadle::ir
