// SPDX-License-Identifier: Apache-2.0
// Tensors in files: NumPy's .npy and .npz, and pictures.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor.h"

namespace treadle {

// One array in NumPy's format, versions 1 to 3 (numpy.lib.format): little-endian numbers and bool, C or Fortran order.
// Errors: Io; ImportFormat for a broken file; ImportUnsupported for objects, strings and complex numbers.
Tensor read_npy(const std::string& path);
Tensor parse_npy(std::string_view bytes, const std::string& source);
std::string format_npy(const Tensor& tensor);  // bfloat16 as uint16, which NumPy has no name for

// Arrays by name (without ".npy"). Errors as read_npy.
std::map<std::string, Tensor> read_npz(const std::string& path);
// Compressed; the same arrays give the same bytes. Errors: Io.
void write_npz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays);

// How a picture becomes a tensor.
struct PictureOptions {
  std::string layout = "NCHW";      // of the result; "NHWC"
  std::vector<double> mean = {0};   // of 0 … 255, one for all or one per channel; subtracted first
  std::vector<double> scale = {1};  // then multiplied
};

// Reads a PNG or JPEG, resizes it to the height and width of `shape` (linear, half-pixel centres; -1: keeps its own)
// and converts it to the channels of `shape` (1: grey, 3: RGB, 4: RGBA) and to `dtype`. Errors: Io; ImportFormat;
// InvalidArgument for a shape that is no picture's.
Tensor read_picture(const std::string& path, DType dtype, const std::vector<int64_t>& shape,
                    const PictureOptions& options);

}  // namespace treadle
