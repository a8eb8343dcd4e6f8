// SPDX-License-Identifier: Apache-2.0
// An open file of which pieces are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace treadle::onnx {

class File {
 public:
  explicit File(int fd = -1) : fd_(fd) {}
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  int fd() const { return fd_; }
  // Reads exactly so many bytes. Errors: Io, naming `what`, also when the file is too short.
  void read(void* data, size_t bytes, int64_t offset, const std::string& what) const;

 private:
  int fd_;
};

}  // namespace treadle::onnx
