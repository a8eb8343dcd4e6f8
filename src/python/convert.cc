// SPDX-License-Identifier: Apache-2.0
#include "python/convert.h"

#include <algorithm>
#include <cstring>

namespace nb = nanobind;

namespace treadle::python {
namespace {

DType dtype_of_array(const std::string& name, const Array& array) {
  const nb::dlpack::dtype type = array.dtype();
  const DType dtype{static_cast<TypeCode>(type.code), type.bits};
  const auto& known = all_dtypes();
  if (type.lanes != 1 || std::find(known.begin(), known.end(), dtype) == known.end()) {
    fail(ErrorCode::RuntimeInput,
         "input \"{}\" has {} elements of {} bits with DLPack's type code {}, which no model takes", name,
         type.lanes == 1 ? "scalar" : "vector", type.bits, type.code);
  }
  return dtype;
}

bool is_dense(const Array& array, size_t element_bytes) {
  int64_t expected = 1;
  for (size_t axis = array.ndim(); axis-- > 0;) {
    if (array.shape(axis) != 1 && array.stride(axis) != expected) return array.size() == 0;
    expected *= static_cast<int64_t>(array.shape(axis));
  }
  return reinterpret_cast<uintptr_t>(array.data()) % element_bytes == 0;
}

// Element by element, in row-major order.
Tensor copy_strided(const Array& array, DType dtype, std::vector<int64_t> shape) {
  Tensor tensor(dtype, shape);
  const size_t bytes = dtype.bytes();
  std::vector<int64_t> index(shape.size(), 0);
  auto* to = static_cast<char*>(tensor.data());
  int64_t offset = 0;  // in elements
  for (int64_t i = 0; i < tensor.size(); ++i, to += bytes) {
    std::memcpy(to, static_cast<const char*>(array.data()) + offset * static_cast<int64_t>(bytes), bytes);
    for (size_t axis = shape.size(); axis-- > 0;) {
      offset += array.stride(axis);
      if (++index[axis] < shape[axis]) break;
      offset -= array.stride(axis) * shape[axis];
      index[axis] = 0;
    }
  }
  return tensor;
}

// Keeps the array's memory alive, and lets go of it from any thread.
std::shared_ptr<const void> keep(const Array& array) {
  return {new Array(array), [](const Array* held) {
            if (!nb::is_alive()) return;  // the interpreter is gone, and the object with it
            const nb::gil_scoped_acquire acquire;
            delete held;
          }};
}

}  // namespace

nb::str to_str(std::string_view text) {
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

std::string from_str(nb::handle text) {
  const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  if (!bytes.is_valid()) throw nb::python_error();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

Tensor to_tensor(const std::string& name, const Array& array, DType expected) {
  if (array.device_type() != nb::device::cpu::value)
    fail(ErrorCode::RuntimeInput, "input \"{}\" lies on another device (DLPack type {}), not in the CPU's memory", name,
         array.device_type());
  DType dtype = dtype_of_array(name, array);
  if (expected == dtype::bfloat16_ && dtype == dtype::uint16_) dtype = expected;
  std::vector<int64_t> shape;
  for (size_t axis = 0; axis < array.ndim(); ++axis) shape.push_back(static_cast<int64_t>(array.shape(axis)));
  if (!is_dense(array, dtype.bytes())) return copy_strided(array, dtype, std::move(shape));
  // Inputs are only read.
  return Tensor(dtype, std::move(shape), const_cast<void*>(array.data()), keep(array));
}

nb::object to_numpy(Tensor tensor) {
  const DType dtype = tensor.dtype() == dtype::bfloat16_ ? dtype::uint16_ : tensor.dtype();
  auto* owned = new Tensor(std::move(tensor));
  const nb::capsule owner(owned, [](void* held) noexcept { delete static_cast<Tensor*>(held); });
  const std::vector<size_t> shape(owned->shape().begin(), owned->shape().end());
  const nb::dlpack::dtype type{static_cast<uint8_t>(dtype.code), dtype.bits, 1};
  static char nothing = 0;  // NumPy wants an address for no elements, too
  void* data = owned->data() ? owned->data() : &nothing;
  return nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, nullptr, type));
}

}  // namespace treadle::python
