// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/known.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "op/tensor/creation.h"
#include "op/tensor/join.h"
#include "op/tensor/reshape.h"
#include "op/tensor/unary.h"

namespace treadle::onnx {
namespace {

int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || (extent > 0 && count > kMaxKnown / extent)) return kMaxKnown + 1;
    count *= extent;
  }
  return count;
}

std::vector<int64_t> strides_of(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// Calls f with each position of a tensor of this shape, in row-major order.
template <typename F>
void for_each_index(const std::vector<int64_t>& shape, F f) {
  std::vector<int64_t> index(shape.size(), 0);
  const int64_t count = count_of(shape);
  for (int64_t n = 0; n < count; ++n) {
    f(index);
    for (size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
}

int64_t offset_of(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) offset += index[i] * strides[i];
  return offset;
}

std::optional<std::vector<int64_t>> broadcast_shape(const std::vector<const Known*>& inputs) {
  std::vector<int64_t> shape;
  for (const Known* input : inputs) {
    const auto& other = input->shape;
    while (shape.size() < other.size()) shape.insert(shape.begin(), 1);
    for (size_t i = 0; i < other.size(); ++i) {
      int64_t& extent = shape[shape.size() - other.size() + i];
      if (extent == 1)
        extent = other[i];
      else if (other[i] != 1 && other[i] != extent)
        return std::nullopt;
    }
  }
  return shape;
}

std::optional<Element> fits(const Dim& dim, DType dtype) {
  if (dim.is_const() && dtype == dtype::int32_) {
    if (dim.value() < std::numeric_limits<int32_t>::min() || dim.value() > std::numeric_limits<int32_t>::max())
      return std::nullopt;
  }
  return Element(dim);
}

Element rounded(double value, DType dtype) {
  return Element::of(dtype == dtype::float32_ ? static_cast<float>(value) : value);
}

bool never_negative(const Dim& dim) { return dim.lower_bound().value_or(-1) >= 0; }

// Truncating division of integers.
std::optional<Element> divide_dims(const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  if (a.is_const() && b.is_const()) {
    if (a.value() == std::numeric_limits<int64_t>::min() && b.value() == -1) return std::nullopt;
    return Element(a.value() / b.value());
  }
  if (const auto exact = exact_divide(a, b)) return Element(*exact);
  if (never_negative(a) && b.lower_bound().value_or(0) > 0) return Element(floordiv(a, b));
  return std::nullopt;
}

std::optional<Element> modulo_dims(const Dim& a, const Dim& b) {
  if (!b.is_const() || b.value() <= 0) return std::nullopt;
  return Element(mod(a, b));
}

std::optional<Element> compare(const std::string& op, const Element& a, const Element& b) {
  if (a.is_const() && b.is_const()) {
    const auto decide = [&](auto x, auto y) {
      if (op == "Equal") return x == y;
      if (op == "Less") return x < y;
      if (op == "LessOrEqual") return x <= y;
      if (op == "Greater") return x > y;
      return x >= y;
    };
    const bool integers = !a.is_real && !b.is_real;
    return Element(integers ? decide(a.dim.value(), b.dim.value()) : decide(a.number(), b.number()));
  }
  if (a.is_real || b.is_real) return std::nullopt;
  const Dim difference = a.dim - b.dim;
  const auto low = difference.lower_bound(), high = difference.upper_bound();
  if (op == "Equal") {
    if (difference.is(0)) return Element(1);
    if ((low && *low > 0) || (high && *high < 0)) return Element(0);
  } else if (op == "Less" || op == "GreaterOrEqual") {
    if (high && *high < 0) return Element(op == "Less");
    if (low && *low >= 0) return Element(op != "Less");
  } else {
    if (low && *low > 0) return Element(op == "Greater");
    if (high && *high <= 0) return Element(op != "Greater");
  }
  return std::nullopt;
}

std::optional<Element> real_arithmetic(const std::string& op, double a, double b, DType dtype) {
  if (op == "Add") return rounded(a + b, dtype);
  if (op == "Sub") return rounded(a - b, dtype);
  if (op == "Mul") return rounded(a * b, dtype);
  if (op == "Div") return rounded(a / b, dtype);
  if (std::isnan(a) || std::isnan(b)) return std::nullopt;
  if (op == "Max") return rounded(std::max(a, b), dtype);
  if (op == "Min") return rounded(std::min(a, b), dtype);
  return std::nullopt;
}

std::optional<Element> arithmetic(const std::string& op, const Element& a, const Element& b, DType dtype) {
  if (dtype.is_float() && a.is_const() && b.is_const()) return real_arithmetic(op, a.number(), b.number(), dtype);
  if (a.is_real || b.is_real) return std::nullopt;
  if (op == "Add") return fits(a.dim + b.dim, dtype);
  if (op == "Sub") return fits(a.dim - b.dim, dtype);
  if (op == "Mul") return fits(a.dim * b.dim, dtype);
  if (op == "Max") return Element(max(a.dim, b.dim));
  if (op == "Min") return Element(min(a.dim, b.dim));
  if (op == "Div" && dtype.is_float()) {
    const auto exact = b.dim.is_const() && !b.dim.is(0) ? exact_divide(a.dim, b.dim) : std::nullopt;
    return exact ? std::optional<Element>(*exact) : std::nullopt;
  }
  if (op == "Div") return divide_dims(a.dim, b.dim);
  if (op == "Mod" && dtype.is_integer()) return modulo_dims(a.dim, b.dim);
  return std::nullopt;
}

std::optional<Element> unary(const std::string& op, const Element& x, DType dtype) {
  if (op == "Identity") return x;
  if (op == "Neg") {
    // Not 0 - x: a float 0 has a sign.
    if (dtype.is_float())
      return x.is_const() && x.number() != 0 ? std::optional(Element::of(-x.number())) : std::nullopt;
    return x.is_real ? std::nullopt : fits(Dim(0) - x.dim, dtype);
  }
  if (op == "Abs" && !x.is_real && never_negative(x.dim)) return x;
  if (op == "Not") return x.is_const() ? std::optional<Element>(x.number() == 0) : std::nullopt;
  if (op == "Floor" || op == "Ceil" || op == "Round") {
    if (!x.is_real) return x;
    if (!std::isfinite(x.real)) return x;
    return Element::of(op == "Floor" ? std::floor(x.real) : op == "Ceil" ? std::ceil(x.real) : std::nearbyint(x.real));
  }
  if (op == "Sqrt" && x.is_const()) return rounded(std::sqrt(x.number()), dtype);
  return std::nullopt;
}

}  // namespace

Element Element::of(double value) {
  // -0 stays a real number.
  if (std::abs(value) < 9e15 && value == std::floor(value) && !(value == 0 && std::signbit(value)))
    return Element(Dim(static_cast<int64_t>(value)));
  Element result;
  result.real = value;
  result.is_real = true;
  return result;
}

bool Known::is_const() const {
  return std::all_of(values.begin(), values.end(), [](const Element& value) { return value.is_const(); });
}

std::optional<std::vector<Dim>> Known::dims() const {
  std::vector<Dim> result;
  for (const Element& value : values) {
    if (value.is_real) return std::nullopt;
    result.push_back(value.dim);
  }
  return result;
}

bool may_be_known(DType dtype) {
  return dtype.is_bool() || dtype == dtype::int32_ || dtype == dtype::int64_ || dtype == dtype::float32_ ||
         dtype == dtype::float64_;
}

std::optional<Known> known_of(const Tensor& tensor) {
  if (!may_be_known(tensor.dtype()) || tensor.size() > kMaxKnown) return std::nullopt;
  Known known{tensor.dtype(), tensor.shape(), {}};
  for (int64_t i = 0; i < tensor.size(); ++i) {
    known.values.push_back(tensor.dtype().is_float() ? Element::of(tensor.at(i)) : Element(tensor.int_at(i)));
  }
  return known;
}

ir::Expr to_expr(const Known& known, const Span& span) {
  if (known.is_const()) {
    Tensor tensor(known.dtype, known.shape);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const Element& value = known.values[static_cast<size_t>(i)];
      if (known.dtype == dtype::float32_)
        tensor.values<float>()[static_cast<size_t>(i)] = static_cast<float>(value.number());
      else if (known.dtype == dtype::float64_)
        tensor.values<double>()[static_cast<size_t>(i)] = value.number();
      else if (known.dtype == dtype::int64_)
        tensor.values<int64_t>()[static_cast<size_t>(i)] = value.dim.value();
      else if (known.dtype == dtype::int32_)
        tensor.values<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(value.dim.value());
      else
        static_cast<uint8_t*>(tensor.data())[i] = value.dim.value() != 0;
    }
    return ir::constant(std::move(tensor), span);
  }
  // Element by element: arange from the extent to the one behind it.
  std::vector<ir::Expr> parts;
  for (const Element& value : known.values) {
    if (value.is_real)
      parts.push_back(ir::constant(Tensor::from<double>({value.real})));
    else
      parts.push_back(op::arange(value.dim, value.dim + 1, 1, dtype::int64_));
    parts.back() = op::cast(parts.back(), known.dtype);
  }
  ir::Expr joined = parts.size() == 1 ? parts[0] : op::concatenate(std::move(parts), 0);
  return known.shape.size() == 1 ? joined : op::reshape_to(joined, to_shape(known.shape));
}

std::optional<Known> map_known(const std::vector<const Known*>& inputs, DType dtype, const ElementFn& f) {
  const auto shape = broadcast_shape(inputs);
  if (!shape || count_of(*shape) > kMaxKnown) return std::nullopt;
  Known result{dtype, *shape, {}};
  std::vector<std::vector<int64_t>> strides;
  for (const Known* input : inputs) {
    std::vector<int64_t> own = strides_of(input->shape);
    for (size_t i = 0; i < own.size(); ++i) {
      if (input->shape[i] == 1) own[i] = 0;
    }
    own.insert(own.begin(), shape->size() - own.size(), 0);
    strides.push_back(std::move(own));
  }
  bool complete = true;
  for_each_index(*shape, [&](const std::vector<int64_t>& index) {
    if (!complete) return;
    std::vector<Element> args;
    for (size_t i = 0; i < inputs.size(); ++i)
      args.push_back(inputs[i]->values[static_cast<size_t>(offset_of(index, strides[i]))]);
    try {
      const auto value = f(args);
      if (value) return result.values.push_back(*value);
    } catch (const Error&) {
      // A coefficient that leaves int64: left to the operators.
    }
    complete = false;
  });
  return complete ? std::optional(std::move(result)) : std::nullopt;
}

// Not told when a broken node has another number of operands; the operator's rule says so.
static ElementFn of_operands(size_t count, ElementFn f) {
  return [count, f = std::move(f)](const std::vector<Element>& x) { return x.size() == count ? f(x) : std::nullopt; };
}

ElementFn element_function(const std::string& op, DType dtype) {
  for (const char* name : {"Identity", "Neg", "Abs", "Not", "Floor", "Ceil", "Round", "Sqrt"}) {
    if (op == name)
      return of_operands(1, [op, dtype](const std::vector<Element>& x) { return unary(op, x[0], dtype); });
  }
  for (const char* name : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
    if (op == name) return of_operands(2, [op](const std::vector<Element>& x) { return compare(op, x[0], x[1]); });
  }
  for (const char* name : {"Add", "Sub", "Mul", "Div", "Mod"}) {
    if (op == name)
      return of_operands(2, [op, dtype](const std::vector<Element>& x) { return arithmetic(op, x[0], x[1], dtype); });
  }
  if (op == "Max" || op == "Min") {
    return [op, dtype](const std::vector<Element>& x) -> std::optional<Element> {
      if (x.empty()) return std::nullopt;
      std::optional<Element> result = x[0];
      for (size_t i = 1; result && i < x.size(); ++i) result = arithmetic(op, *result, x[i], dtype);
      return result;
    };
  }
  if (op == "And" || op == "Or") {
    return of_operands(2, [op](const std::vector<Element>& x) -> std::optional<Element> {
      if (!x[0].is_const() || !x[1].is_const()) return std::nullopt;
      const bool a = x[0].number() != 0, b = x[1].number() != 0;
      return Element(op == "And" ? a && b : a || b);
    });
  }
  if (op == "Where") {
    return of_operands(3, [](const std::vector<Element>& x) -> std::optional<Element> {
      if (!x[0].is_const()) return std::nullopt;
      return x[0].number() != 0 ? x[1] : x[2];
    });
  }
  return nullptr;
}

std::optional<Element> convert_element(const Element& x, DType from, DType to) {
  if (!may_be_known(to)) return std::nullopt;
  if (to.is_bool()) {
    if (x.is_const()) return Element(std::isnan(x.number()) || x.number() != 0);
    return never_negative(x.dim - 1) ? std::optional<Element>(1) : std::nullopt;
  }
  if (to.is_float()) {
    if (!x.is_const()) return x;
    return rounded(x.number(), to);
  }
  if (x.is_real) {
    if (!std::isfinite(x.real) || std::abs(x.real) > 9e15) return std::nullopt;
    return fits(Dim(static_cast<int64_t>(x.real)), to);  // truncated
  }
  (void)from;
  return fits(x.dim, to);
}

std::optional<Known> take_known(const Known& x, const Known& indices, int64_t axis) {
  const auto at = static_cast<size_t>(axis);
  Known result{x.dtype, {}, {}};
  result.shape.assign(x.shape.begin(), x.shape.begin() + axis);
  result.shape.insert(result.shape.end(), indices.shape.begin(), indices.shape.end());
  result.shape.insert(result.shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  if (count_of(result.shape) > kMaxKnown || !indices.is_const()) return std::nullopt;
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < at; ++i) outer *= x.shape[i];
  for (size_t i = at + 1; i < x.shape.size(); ++i) inner *= x.shape[i];
  const int64_t extent = x.shape[at];
  for (int64_t o = 0; o < outer; ++o) {
    for (const Element& element : indices.values) {
      if (element.is_real) return std::nullopt;
      int64_t index = element.dim.value();
      if (index < -extent || index >= extent)
        fail(ErrorCode::ImportFormat, "index {} is outside of an axis of extent {}", index, extent);
      if (index < 0) index += extent;
      for (int64_t i = 0; i < inner; ++i)
        result.values.push_back(x.values[static_cast<size_t>((o * extent + index) * inner + i)]);
    }
  }
  return result;
}

std::optional<Known> concat_known(const std::vector<const Known*>& parts, int64_t axis) {
  Known result{parts[0]->dtype, parts[0]->shape, {}};
  const auto at = static_cast<size_t>(axis);
  int64_t total = 0, outer = 1;
  for (const Known* part : parts) {
    if (part->shape.size() <= at || part->shape.size() != result.shape.size() || part->dtype != result.dtype)
      return std::nullopt;
    for (size_t i = 0; i < part->shape.size(); ++i) {
      if (i != at && part->shape[i] != result.shape[i]) return std::nullopt;
    }
    total += part->shape[at];
  }
  result.shape[at] = total;
  if (count_of(result.shape) > kMaxKnown) return std::nullopt;
  for (size_t i = 0; i < at; ++i) outer *= result.shape[i];
  for (int64_t o = 0; o < outer; ++o) {
    for (const Known* part : parts) {
      const int64_t row = static_cast<int64_t>(part->values.size()) / outer;
      result.values.insert(result.values.end(), part->values.begin() + o * row, part->values.begin() + (o + 1) * row);
    }
  }
  return result;
}

std::optional<Known> transpose_known(const Known& x, const std::vector<int64_t>& axes) {
  Known result{x.dtype, {}, {}};
  const std::vector<int64_t> strides = strides_of(x.shape);
  std::vector<int64_t> moved;
  for (const int64_t axis : axes) {
    result.shape.push_back(x.shape[static_cast<size_t>(axis)]);
    moved.push_back(strides[static_cast<size_t>(axis)]);
  }
  for_each_index(result.shape, [&](const std::vector<int64_t>& index) {
    result.values.push_back(x.values[static_cast<size_t>(offset_of(index, moved))]);
  });
  return result;
}

std::optional<Known> slice_known(const Known& x, int64_t axis, int64_t start, int64_t stride, int64_t length) {
  Known indices{dtype::int64_, {length}, {}};
  for (int64_t i = 0; i < length; ++i) indices.values.emplace_back(start + i * stride);
  return take_known(x, indices, axis);
}

std::optional<Known> expand_known(const Known& x, const std::vector<int64_t>& shape) {
  if (count_of(shape) > kMaxKnown) return std::nullopt;
  const Known target = filled_known(x.dtype, shape, Element(0));
  return map_known({&x, &target}, x.dtype, [](const std::vector<Element>& args) { return args[0]; });
}

Known filled_known(DType dtype, std::vector<int64_t> shape, const Element& value) {
  Known result{dtype, std::move(shape), {}};
  result.values.assign(static_cast<size_t>(count_of(result.shape)), value);
  return result;
}

}  // namespace treadle::onnx
