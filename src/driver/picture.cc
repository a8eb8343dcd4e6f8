// SPDX-License-Identifier: Apache-2.0
// Pictures as tensors: decoding by stb_image, resizing by stb_image_resize (Debian's libstb).
#include <stb/stb_image.h>
#include <stb/stb_image_resize.h>

#include <climits>
#include <memory>

#include "base/file.h"
#include "driver/tensor_file.h"

namespace treadle {
namespace {

constexpr int64_t kMaxExtent = 1 << 15;

double per_channel(const std::vector<double>& values, int64_t channel) {
  return values.size() == 1 ? values[0] : values.at(channel);
}

}  // namespace

Tensor read_picture(const std::string& path, DType dtype, const std::vector<int64_t>& shape,
                    const PictureOptions& options) {
  const bool channels_first = options.layout == "NCHW" || options.layout == "CHW";
  if (!channels_first && options.layout != "NHWC" && options.layout != "HWC") {
    fail(ErrorCode::InvalidArgument, "a picture's layout is NCHW or NHWC, not {}", options.layout);
  }
  if (shape.size() < 3 || shape.size() > 4 || (shape.size() == 4 && shape[0] > 1)) {
    fail(ErrorCode::InvalidArgument, "{}: one picture does not fill an input of rank {}", path, shape.size());
  }
  const std::vector<int64_t> inner(shape.end() - 3, shape.end());
  const int64_t channels = channels_first ? inner[0] : inner[2];
  int64_t height = channels_first ? inner[1] : inner[0], width = channels_first ? inner[2] : inner[1];
  if (channels != 1 && channels != 3 && channels != 4) {
    fail(ErrorCode::InvalidArgument, "{}: a picture has 1, 3 or 4 channels, the input has {} (layout {})", path,
         channels, options.layout);
  }
  for (const std::vector<double>& values : {options.mean, options.scale}) {
    if (values.size() != 1 && values.size() != static_cast<size_t>(channels)) {
      fail(ErrorCode::InvalidArgument, "mean and scale have {} values for {} channels", values.size(), channels);
    }
  }
  int file_width = 0, file_height = 0, file_channels = 0;
  const std::string bytes = read_file(path);
  if (bytes.size() > INT_MAX) fail(ErrorCode::Limit, "{}: a picture of {} bytes", path, bytes.size());
  const std::unique_ptr<unsigned char, void (*)(void*)> pixels(
      stbi_load_from_memory(reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()),
                            &file_width, &file_height, &file_channels, static_cast<int>(channels)),
      stbi_image_free);
  if (!pixels) fail(ErrorCode::ImportFormat, "cannot read {} as a picture: {}", path, stbi_failure_reason());
  if (height < 0) height = file_height;
  if (width < 0) width = file_width;
  if (height < 1 || width < 1 || height > kMaxExtent || width > kMaxExtent)
    fail(ErrorCode::Limit, "{}: a picture of {} x {} pixels", path, width, height);

  std::vector<float> values(static_cast<size_t>(file_width) * file_height * channels);
  for (size_t i = 0; i < values.size(); ++i) values[i] = pixels.get()[i];
  if (width != file_width || height != file_height) {
    std::vector<float> resized(static_cast<size_t>(width * height * channels));
    if (!stbir_resize_float_generic(values.data(), file_width, file_height, 0, resized.data(), static_cast<int>(width),
                                    static_cast<int>(height), 0, static_cast<int>(channels), STBIR_ALPHA_CHANNEL_NONE,
                                    0, STBIR_EDGE_CLAMP, STBIR_FILTER_TRIANGLE, STBIR_COLORSPACE_LINEAR, nullptr)) {
      fail(ErrorCode::Limit, "{}: the picture cannot be resized to {} x {}", path, width, height);
    }
    values = std::move(resized);
  }
  std::vector<int64_t> result_shape =
      channels_first ? std::vector<int64_t>{channels, height, width} : std::vector<int64_t>{height, width, channels};
  if (shape.size() == 4) result_shape.insert(result_shape.begin(), 1);
  Tensor tensor(dtype, result_shape);
  visit(dtype, [&]<typename T>() {
    for (int64_t pixel = 0; pixel < height * width; ++pixel) {
      for (int64_t c = 0; c < channels; ++c) {
        const double value =
            (values[pixel * channels + c] - per_channel(options.mean, c)) * per_channel(options.scale, c);
        tensor.values<T>()[channels_first ? c * height * width + pixel : pixel * channels + c] =
            static_cast<T>(static_cast<float>(value));
      }
    }
  });
  return tensor;
}

}  // namespace treadle
