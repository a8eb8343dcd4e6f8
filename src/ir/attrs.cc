// SPDX-License-Identifier: Apache-2.0
// Attribute values: text, equality, hash, and the conversions to a field's type.
#include "ir/attrs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/hash.h"

namespace treadle::ir {
namespace {

template <typename... F>
struct Overload : F... {
  using F::operator()...;
};
template <typename... F>
Overload(F...) -> Overload<F...>;

// Shortest text that reads back to the same double, with Relay's suffix: "1f", "1e-05f", "inff", "-inff", "nanf".
const auto float_text = [](double value) { return fmt::format("{}f", value); };

template <typename T, typename F>
std::string list_text(const std::vector<T>& items, F text) {
  std::string result = "[";
  for (size_t i = 0; i < items.size(); ++i) result += (i ? ", " : "") + text(items[i]);
  return result + "]";
}

const auto int_text = [](int64_t value) { return fmt::format("{}", value); };

// NaNs are equal to each other here: an attribute is data.
bool same_double(double a, double b) {
  return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
}

uint64_t double_bits(double value) {
  return std::bit_cast<uint64_t>(std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value);
}

// ---- Conversions; each gives nullopt when the value does not convert. ----

std::optional<int64_t> as_int(const AttrValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return *i;
  if (const auto* b = std::get_if<bool>(&value)) return *b ? 1 : 0;
  if (const auto* dim = std::get_if<Dim>(&value)) return dim->as_const();
  return std::nullopt;
}

std::optional<bool> as_bool(const AttrValue& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b;
  const std::optional<int64_t> i = as_int(value);
  return i && (*i == 0 || *i == 1) ? std::optional(*i == 1) : std::nullopt;
}

std::optional<double> as_double(const AttrValue& value) {
  if (const auto* d = std::get_if<double>(&value)) return *d;
  if (const std::optional<int64_t> i = as_int(value)) return static_cast<double>(*i);
  return std::nullopt;
}

std::optional<Dim> as_dim(const AttrValue& value) {
  if (const auto* dim = std::get_if<Dim>(&value)) return *dim;
  if (const auto* text = std::get_if<std::string>(&value)) {
    try {
      return parse_dim(*text);
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  if (const std::optional<int64_t> i = as_int(value)) return Dim(*i);
  return std::nullopt;
}

std::optional<DType> as_dtype(const AttrValue& value) {
  if (const auto* d = std::get_if<DType>(&value)) return *d;
  if (const auto* text = std::get_if<std::string>(&value)) return parse_dtype(*text);
  return std::nullopt;
}

// The elements of a list, or the value itself as a list of one; nullopt for what is neither.
std::optional<std::vector<AttrValue>> elements(const AttrValue& value) {
  auto split = [](const auto& list) { return std::optional(std::vector<AttrValue>(list.begin(), list.end())); };
  return std::visit(
      Overload{[](std::monostate) { return std::optional<std::vector<AttrValue>>(); },
               [&](const Ints& list) { return split(list); }, [&](const Floats& list) { return split(list); },
               [&](const Strings& list) { return split(list); }, [&](const Shape& list) { return split(list); },
               [&](const IntLists& list) { return split(list); },
               [](const auto& single) { return std::optional(std::vector<AttrValue>{AttrValue(single)}); }},
      value);
}

template <typename T, typename F>
std::optional<AttrValue> as_list(const AttrValue& value, F convert) {
  const std::optional<std::vector<AttrValue>> items = elements(value);
  if (!items) return std::nullopt;
  std::vector<T> result;
  for (const AttrValue& item : *items) {
    std::optional<T> converted = convert(item);
    if (!converted) return std::nullopt;
    result.push_back(std::move(*converted));
  }
  return AttrValue(std::move(result));
}

std::optional<std::string> as_string(const AttrValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? std::optional(*text) : std::nullopt;
}

std::optional<std::vector<int64_t>> as_ints(const AttrValue& value) {
  const std::optional<AttrValue> list = as_list<int64_t>(value, as_int);
  return list ? std::optional(std::get<Ints>(*list)) : std::nullopt;
}

template <typename T>
std::optional<AttrValue> wrap(std::optional<T> value) {
  return value ? std::optional(AttrValue(std::move(*value))) : std::nullopt;
}

std::optional<AttrValue> convert(AttrType type, const AttrValue& value) {
  switch (type) {
    case AttrType::Bool:
      return wrap(as_bool(value));
    case AttrType::Int:
      return wrap(as_int(value));
    case AttrType::Float:
      return wrap(as_double(value));
    case AttrType::String:
      return wrap(as_string(value));
    case AttrType::DType:
      return wrap(as_dtype(value));
    case AttrType::Dim:
      return wrap(as_dim(value));
    case AttrType::Ints:
      return as_list<int64_t>(value, as_int);
    case AttrType::Floats:
      return as_list<double>(value, as_double);
    case AttrType::Strings:
      return as_list<std::string>(value, as_string);
    case AttrType::Dims:
      return as_list<Dim>(value, as_dim);
    case AttrType::IntLists:
      return as_list<std::vector<int64_t>>(value, as_ints);
    case AttrType::IntOrInts: {
      const std::optional<int64_t> number = as_int(value);
      return number ? std::optional(AttrValue(*number)) : as_list<int64_t>(value, as_int);
    }
  }
  return std::nullopt;
}

void check_bounds(const FieldInfo& field, const AttrValue& value, std::string_view op) {
  auto check = [&](double number) {
    if ((field.min && !(number >= *field.min)) || (field.max && !(number <= *field.max))) {
      fail(ErrorCode::TypeAttribute, "{}: attribute {} is {}, must be {}", op, field.name, to_string(value),
           !field.max   ? fmt::format("at least {}", *field.min)
           : !field.min ? fmt::format("at most {}", *field.max)
                        : fmt::format("between {} and {}", *field.min, *field.max));
    }
  };
  auto check_dim = [&](const Dim& dim) {
    if (dim.is_const()) check(static_cast<double>(dim.value()));
  };
  std::visit(Overload{[&](int64_t v) { check(static_cast<double>(v)); }, [&](double v) { check(v); }, check_dim,
                      [&](const Ints& v) {
                        for (int64_t i : v) check(static_cast<double>(i));
                      },
                      [&](const Floats& v) {
                        for (double d : v) check(d);
                      },
                      [&](const Shape& v) {
                        for (const Dim& d : v) check_dim(d);
                      },
                      [&](const IntLists& v) {
                        for (const Ints& list : v)
                          for (int64_t i : list) check(static_cast<double>(i));
                      },
                      [](const auto&) {}},
             value);
  if (const auto* text = std::get_if<std::string>(&value); text && !field.allowed.empty()) {
    if (std::find(field.allowed.begin(), field.allowed.end(), *text) == field.allowed.end()) {
      fail(ErrorCode::TypeAttribute, "{}: attribute {} is \"{}\", must be one of {}", op, field.name, *text,
           to_string(AttrValue(field.allowed)));
    }
  }
}

}  // namespace

const char* to_string(AttrType type) {
  switch (type) {
    case AttrType::Bool:
      return "bool";
    case AttrType::Int:
      return "int";
    case AttrType::Float:
      return "float";
    case AttrType::String:
      return "string";
    case AttrType::DType:
      return "dtype";
    case AttrType::Dim:
      return "extent";
    case AttrType::Ints:
      return "list of int";
    case AttrType::Floats:
      return "list of float";
    case AttrType::Strings:
      return "list of string";
    case AttrType::Dims:
      return "list of extent";
    case AttrType::IntLists:
      return "list of lists of int";
    case AttrType::IntOrInts:
      return "int or list of int";
  }
  return "unknown";
}

AttrValue list_value(const std::vector<AttrValue>& items) {
  const auto all = [&](auto... types) {
    return std::all_of(items.begin(), items.end(),
                       [&](const AttrValue& item) { return (std::holds_alternative<decltype(types)>(item) || ...); });
  };
  const auto collect = [&](auto list, auto convert) {
    for (const AttrValue& item : items) list.push_back(convert(item));
    return AttrValue(std::move(list));
  };
  if (all(int64_t{}, bool{})) return collect(Ints(), [](const AttrValue& v) { return as_int(v).value(); });
  if (all(int64_t{}, bool{}, double{}))
    return collect(Floats(), [](const AttrValue& v) { return as_double(v).value(); });
  if (all(std::string{})) return collect(Strings(), [](const AttrValue& v) { return std::get<std::string>(v); });
  if (all(Ints{})) return collect(IntLists(), [](const AttrValue& v) { return std::get<Ints>(v); });
  // A symbolic extent is written as a string.
  if (!all(int64_t{}, std::string{}, Dim{})) fail(ErrorCode::TypeAttribute, "a list mixes values of different types");
  Shape dims;
  for (const AttrValue& item : items) {
    std::optional<Dim> dim = as_dim(item);
    if (!dim) fail(ErrorCode::TypeAttribute, "\"{}\" is no extent", to_string(item));
    dims.push_back(std::move(*dim));
  }
  return dims;
}

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    switch (c) {
      case '"':
        result += "\\\"";
        break;
      case '\\':
        result += "\\\\";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\t':
        result += "\\t";
        break;
      case '\r':
        result += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else
          result += c;
    }
  }
  return result + "\"";
}

std::string to_string(const AttrValue& value) {
  auto dim_text = [](const Dim& dim) { return dim.is_const() ? int_text(dim.value()) : quote(to_string(dim)); };
  auto ints_text = [](const Ints& list) { return list_text(list, int_text); };
  return std::visit(
      Overload{[](std::monostate) { return std::string("None"); },
               [](bool v) { return std::string(v ? "True" : "False"); }, int_text, float_text,
               [](const std::string& v) { return quote(v); }, [](DType v) { return quote(to_string(v)); }, dim_text,
               ints_text, [](const Floats& v) { return list_text(v, float_text); },
               [](const Strings& v) { return list_text(v, [](const std::string& s) { return quote(s); }); },
               [&](const Shape& v) { return list_text(v, dim_text); },
               [&](const IntLists& v) { return list_text(v, ints_text); }},
      value);
}

bool equal(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* d = std::get_if<double>(&a)) return same_double(*d, std::get<double>(b));
  if (const auto* list = std::get_if<Floats>(&a)) {
    const Floats& other = std::get<Floats>(b);
    return std::equal(list->begin(), list->end(), other.begin(), other.end(), same_double);
  }
  return a == b;
}

uint64_t hash(const AttrValue& value) {
  const uint64_t seed = value.index();
  auto number = [](uint64_t h, int64_t v) { return hash_combine(h, static_cast<uint64_t>(v)); };
  auto list = [&](const auto& items, auto item_hash) {
    uint64_t h = hash_combine(seed, items.size());
    for (const auto& item : items) h = hash_combine(h, item_hash(item));
    return h;
  };
  auto int_hash = [&](int64_t v) { return number(1, v); };
  return std::visit(
      Overload{[&](std::monostate) { return hash_combine(seed, 0); }, [&](bool v) { return hash_combine(seed, v); },
               [&](int64_t v) { return number(seed, v); }, [&](double v) { return hash_combine(seed, double_bits(v)); },
               [&](const std::string& v) { return hash_string(v, seed); },
               [&](DType v) { return number(seed, static_cast<int>(v.code) << 8 | v.bits); },
               [&](const Dim& v) { return hash_combine(seed, v.hash()); },
               [&](const Ints& v) { return list(v, int_hash); }, [&](const Floats& v) { return list(v, double_bits); },
               [&](const Strings& v) { return list(v, [](const std::string& s) { return hash_string(s); }); },
               [&](const Shape& v) { return list(v, [](const Dim& d) { return d.hash(); }); },
               [&](const IntLists& v) {
                 return list(v, [&](const Ints& ints) {
                   uint64_t h = hash_combine(2, ints.size());
                   for (int64_t i : ints) h = number(h, i);
                   return h;
                 });
               }},
      value);
}

AttrValue coerce(const FieldInfo& field, const AttrValue& value, std::string_view op) {
  // Relay writes an absent dtype as "" or "void".
  const auto* text = std::get_if<std::string>(&value);
  const bool none = std::holds_alternative<std::monostate>(value) ||
                    (field.type == AttrType::DType && field.optional && text && (text->empty() || *text == "void"));
  if (none) {
    if (!field.optional)
      fail(ErrorCode::TypeAttribute, "{}: attribute {} is None, must be {}", op, field.name, to_string(field.type));
    return AttrValue();
  }
  std::optional<AttrValue> result = convert(field.type, value);
  if (!result) {
    fail(ErrorCode::TypeAttribute, "{}: attribute {} is {}, must be {}", op, field.name, to_string(value),
         to_string(field.type));
  }
  check_bounds(field, *result, op);
  return std::move(*result);
}

AttrValue Attrs::get(std::string_view name) const {
  const AttrSchema& fields = schema();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return get(i);
  }
  fail(ErrorCode::InvalidArgument, "no attribute is called \"{}\"", name);
}

bool Attrs::equals(const Attrs& other) const {
  if (this == &other) return true;
  const size_t count = schema().size();
  if (&schema() != &other.schema()) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!equal(get(i), other.get(i))) return false;
  }
  return true;
}

uint64_t Attrs::hash() const {
  uint64_t h = schema().size();
  for (size_t i = 0; i < schema().size(); ++i) h = hash_combine(h, ir::hash(get(i)));
  return h;
}

std::vector<AttrValue> resolve_fields(const AttrSchema& schema, const AttrMap& map, std::string_view op) {
  for (const auto& [name, value] : map) {
    if (std::none_of(schema.begin(), schema.end(), [&](const FieldInfo& field) { return field.name == name; })) {
      std::string known;
      for (const FieldInfo& field : schema) known += (known.empty() ? "" : ", ") + field.name;
      Error error(ErrorCode::TypeAttribute, fmt::format("{} has no attribute \"{}\"", op, name));
      error.note(known.empty() ? "it has none" : "its attributes are " + known);
      throw error;
    }
  }
  std::vector<AttrValue> values;
  for (const FieldInfo& field : schema) {
    const auto found = map.find(field.name);
    if (found != map.end()) {
      values.push_back(coerce(field, found->second, op));
    } else if (field.required) {
      fail(ErrorCode::TypeAttribute, "{}: attribute {} ({}) is missing and has no default", op, field.name,
           to_string(field.type));
    } else {
      values.push_back(field.default_value);
    }
  }
  return values;
}

AttrValue zero_value(AttrType type) {
  switch (type) {
    case AttrType::Bool:
      return false;
    case AttrType::Int:
      return int64_t{0};
    case AttrType::Float:
      return 0.0;
    case AttrType::String:
      return std::string();
    case AttrType::DType:
      return dtype::float32_;
    case AttrType::Dim:
      return Dim();
    case AttrType::Ints:
      return Ints();
    case AttrType::Floats:
      return Floats();
    case AttrType::Strings:
      return Strings();
    case AttrType::Dims:
      return Shape();
    case AttrType::IntLists:
      return IntLists();
    case AttrType::IntOrInts:
      return Ints();
  }
  return AttrValue();
}

}  // namespace treadle::ir
