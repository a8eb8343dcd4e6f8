// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace treadle::onnx {

File::File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) close(fd_);
}

void File::read(void* data, size_t bytes, int64_t offset, const std::string& what) const {
  auto* out = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = pread(fd_, out, bytes, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail(ErrorCode::Io, "cannot read {}: {}", what, got < 0 ? std::strerror(errno) : "it is too short");
    out += got;
    offset += got;
    bytes -= static_cast<size_t>(got);
  }
}

}  // namespace treadle::onnx
