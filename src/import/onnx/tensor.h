// SPDX-License-Identifier: Apache-2.0
// Values of TensorProto messages, in every form in which the format stores them.
#pragma once

#include <string>

#include "import/onnx/model.h"
#include "runtime/tensor.h"

namespace treadle::onnx {

// The dtype of a TensorProto.DataType code. Errors: ImportUnsupported for strings, complex numbers, 4- and 2-bit
// integers and floats of 8 bits and less; ImportFormat for an unknown code.
DType dtype_of_code(int64_t code);
// "FLOAT8E4M3FN (17)".
std::string code_name(int64_t code);

// The tensor; its data are taken out of the message, so this is called once. `raw` has the data of a tensor with
// `carved`. `folder` is where external data may lie. Errors: ImportFormat when data and dims do not agree;
// ImportUnsupported; ImportPath; Io; Limit.
Tensor take_tensor(onnxpb::TensorProto& proto, const DataFolder& folder, const RawData& raw);

// The bytes at `offset` of the file `location` (relative, with '/') in `folder`: mapped when the offset suits the dtype
// and there are at least 64 KiB, else read. Errors: ImportPath for an absolute path, "..", a link that leaves the
// folder, or no regular file; ImportFormat when the file is too short; Io.
Tensor external_tensor(const DataFolder& folder, const std::string& location, int64_t offset, DType dtype,
                       const std::vector<int64_t>& dims);

}  // namespace treadle::onnx
