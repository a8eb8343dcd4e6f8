// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace treadle {

void require_regular_file(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) fail(ErrorCode::Io, "cannot read {}: {}", path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail(ErrorCode::Io, "cannot read {}: it is no regular file", path);
}

std::string read_file(const std::string& path) {
  require_regular_file(path);
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (!file) fail(ErrorCode::Io, "cannot read {}: {}", path, std::strerror(errno));
  std::string bytes;
  char block[1 << 16];
  for (size_t got = sizeof block; got == sizeof block;) {
    got = std::fread(block, 1, sizeof block, file.get());
    bytes.append(block, got);
  }
  if (std::ferror(file.get())) fail(ErrorCode::Io, "cannot read {}: {}", path, std::strerror(errno));
  return bytes;
}

}  // namespace treadle
