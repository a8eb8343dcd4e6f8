// SPDX-License-Identifier: Apache-2.0
#include "driver/output_file.h"

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace treadle::driver {
namespace {

namespace fs = std::filesystem;

bool write(const fs::path& path, const void* data, size_t bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  return static_cast<bool>(file.flush());
}

}  // namespace

void write_file(const std::string& path, const void* data, size_t bytes) {
  if (path.empty()) fail(ErrorCode::Io, "the output file has no name");
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) fail(ErrorCode::Io, "cannot write {}: it is a folder", path);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    if (!write(path, data, bytes)) fail(ErrorCode::Io, "cannot write {}", path);
    return;
  }
  const fs::path target = fs::exists(status) ? fs::canonical(path, error) : fs::path(path);
  const fs::path aside = target.string() + ".part";
  const bool written = write(aside, data, bytes);
  if (written && fs::exists(status)) fs::permissions(aside, status.permissions(), error);
  if (written) fs::rename(aside, target, error);
  if (written && !error) return;
  std::error_code ignored;
  fs::remove(aside, ignored);
  fail(ErrorCode::Io, "cannot write {}{}", path, error ? ": " + error.message() : "");
}

}  // namespace treadle::driver
