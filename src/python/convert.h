// SPDX-License-Identifier: Apache-2.0
// Between Python's values and ours.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <string_view>

#include "runtime/tensor.h"

namespace treadle::python {

using Array = nanobind::ndarray<nanobind::ro>;

// Texts of models may hold any byte: those that are no UTF-8 become lone surrogates and come back unchanged (Python's
// surrogateescape).
nanobind::str to_str(std::string_view text);
std::string from_str(nanobind::handle text);

// A tensor over the array's own memory, which it keeps alive, when that is dense, row-major and aligned to its element;
// else a copy. uint16 becomes bfloat16 when that is `expected`. Errors: RuntimeInput naming `name`, for another device
// or element type.
Tensor to_tensor(const std::string& name, const Array& array, DType expected);

// A NumPy array that owns the tensor; bfloat16 as uint16.
nanobind::object to_numpy(Tensor tensor);

}  // namespace treadle::python
