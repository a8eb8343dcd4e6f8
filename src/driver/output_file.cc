// SPDX-License-Identifier: Apache-2.0
#include "driver/output_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace treadle::driver {
namespace {

namespace fs = std::filesystem;

// The system's reason when it fails.
std::error_code write(const fs::path& path, const void* data, size_t bytes) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  if (file.flush()) return {};
  return errno != 0 ? std::error_code(errno, std::generic_category()) : std::make_error_code(std::errc::io_error);
}

[[noreturn]] void refuse(const std::string& path, const std::error_code& error) {
  fail(ErrorCode::Io, "cannot write {}: {}", path, error.message());
}

}  // namespace

void write_file(const std::string& path, const void* data, size_t bytes) {
  if (path.empty()) fail(ErrorCode::Io, "the output file has no name");
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) fail(ErrorCode::Io, "cannot write {}: it is a folder", path);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    if (const std::error_code reason = write(path, data, bytes)) refuse(path, reason);
    return;
  }
  const fs::path target = fs::exists(status) ? fs::canonical(path, error) : fs::path(path);
  const fs::path aside = target.string() + ".part";
  error = write(aside, data, bytes);
  if (!error && fs::exists(status)) fs::permissions(aside, status.permissions(), error);
  if (!error) fs::rename(aside, target, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove(aside, ignored);
  refuse(path, error);
}

}  // namespace treadle::driver
