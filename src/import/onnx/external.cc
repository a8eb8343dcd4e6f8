// SPDX-License-Identifier: Apache-2.0
// External data: which files may be read, and reading or mapping them.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "import/onnx/file.h"
#include "import/onnx/tensor.h"

namespace treadle::onnx {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMapFrom = 64 * 1024;  // bytes; smaller tensors are read

bool inside(const fs::path& path, const fs::path& folder) {
  auto part = path.begin();
  for (const fs::path& wanted : folder) {
    if (part == path.end() || *part != wanted) return false;
    ++part;
  }
  return part != path.end();
}

// The file that `location` names, resolved. A link may stay inside the folder only.
fs::path resolve(const DataFolder& folder, const std::string& location) {
  const auto refuse = [&](const char* why) {
    throw Error(ErrorCode::ImportPath, fmt::format("external data \"{}\" {}", printable(location), why))
        .help("external data must be regular files in the model's own folder; copy them there");
  };
  if (folder.path.empty()) refuse("cannot be read: the model has no folder");
  if (location.empty()) refuse("names no file");
  if (location.find('\0') != std::string::npos || location.find('\\') != std::string::npos)
    refuse("has characters that no path may have");
  const fs::path relative(location);
  if (relative.is_absolute()) refuse("is an absolute path");
  for (const fs::path& part : relative) {
    if (part == "..") refuse("leaves the model's folder");
  }
  std::error_code error;
  const fs::path root = fs::canonical(folder.path, error);
  if (error) refuse("cannot be read: the model's folder does not exist");
  const fs::path target = fs::canonical(root / relative, error);
  if (error) refuse("does not exist");
  if (!inside(target, root) && (folder.target.empty() || !inside(target, folder.target)))
    refuse("leaves the model's folder through a link");
  return target;
}

}  // namespace

Tensor external_tensor(const DataFolder& folder, const std::string& location, int64_t offset, DType dtype,
                       const std::vector<int64_t>& dims) {
  const fs::path path = resolve(folder, location);
  // The path is resolved, so a link here would be one made in between; O_NONBLOCK keeps a FIFO from blocking.
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (file.fd() < 0)
    fail(ErrorCode::Io, "cannot open external data \"{}\": {}", printable(location), std::strerror(errno));
  struct stat info{};
  if (fstat(file.fd(), &info) != 0 || !S_ISREG(info.st_mode))
    fail(ErrorCode::ImportPath, "external data \"{}\" is no regular file", printable(location));
  const size_t bytes = static_cast<size_t>(element_count(dims)) * dtype.bytes();
  if (offset > info.st_size || bytes > static_cast<size_t>(info.st_size - offset))
    fail(ErrorCode::ImportFormat, "external data \"{}\" has {} bytes, the tensor needs {} at offset {}",
         printable(location), info.st_size, bytes, offset);
  if (bytes >= kMapFrom && offset % static_cast<int64_t>(kAlignment) == 0 && !dtype.is_bool()) {
    const int64_t page = sysconf(_SC_PAGESIZE), begin = offset / page * page;
    const size_t length = bytes + static_cast<size_t>(offset - begin);
    // Private: nobody writes to weights, but a Tensor's memory is writable by type.
    void* mapped = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.fd(), begin);
    if (mapped != MAP_FAILED) {
      std::shared_ptr<const void> owner(mapped,
                                        [length](const void* address) { munmap(const_cast<void*>(address), length); });
      return Tensor(dtype, dims, static_cast<char*>(mapped) + (offset - begin), std::move(owner));
    }
  }
  Tensor tensor(dtype, dims);
  file.read(tensor.data(), bytes, offset, fmt::format("external data \"{}\"", printable(location)));
  if (dtype.is_bool()) {
    auto* values = static_cast<uint8_t*>(tensor.data());
    for (size_t i = 0; i < bytes; ++i) values[i] = values[i] != 0;
  }
  return tensor;
}

}  // namespace treadle::onnx
