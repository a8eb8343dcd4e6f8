// SPDX-License-Identifier: Apache-2.0
#include "runtime/executable.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/hash.h"
#include "runtime/cpu_features.h"
#include "runtime/tensor.h"

namespace treadle {
namespace {

// The file's real path, so that the loader does not search its own folders for a bare name.
std::string real_path(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (!resolved) fail(ErrorCode::Io, "cannot open \"{}\": {}", path, std::strerror(errno));
  std::string result = resolved;
  std::free(resolved);
  return result;
}

template <typename T>
T* symbol(void* library, const char* name, const std::string& path) {
  void* address = ::dlsym(library, name);
  if (!address) fail(ErrorCode::ArtifactInvalid, "\"{}\" is not a compiled model: it has no symbol {}", path, name);
  return reinterpret_cast<T*>(address);
}

// What tells one version of a file from another.
struct FileVersion {
  dev_t device;
  ino_t inode;
  off_t size;
  int64_t seconds, nanoseconds;  // of the last change
  bool operator==(const FileVersion&) const = default;
};

#if defined(__x86_64__)
constexpr uint16_t kThisMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kThisMachine = EM_AARCH64;
#else
constexpr uint16_t kThisMachine = EM_NONE;
#endif

std::string machine_name(uint16_t machine) {
  if (machine == EM_X86_64) return "x86-64";
  if (machine == EM_AARCH64) return "AArch64";
  return fmt::format("another processor (ELF machine {})", machine);
}

// Refuses a file that is shorter than its program headers say: the loader would map pages that do not exist and be
// killed when it touches them; and code for another processor. Errors: ArtifactInvalid, Io.
void check_file(const std::string& path, off_t size) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(ErrorCode::Io, "cannot open \"{}\": {}", path, std::strerror(errno));
  Elf64_Ehdr header{};
  bool complete = ::pread(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
                  std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64;
  for (int i = 0; complete && i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const auto offset = static_cast<off_t>(header.e_phoff + static_cast<uint64_t>(i) * sizeof segment);
    complete = ::pread(file, &segment, sizeof segment, offset) == static_cast<ssize_t>(sizeof segment) &&
               segment.p_offset <= static_cast<uint64_t>(size) &&
               segment.p_filesz <= static_cast<uint64_t>(size) - segment.p_offset;
  }
  // Section headers stand last; without them the end is missing, whether it is loaded or not.
  complete = complete && header.e_shoff <= static_cast<uint64_t>(size) &&
             uint64_t{header.e_shnum} * header.e_shentsize <= static_cast<uint64_t>(size) - header.e_shoff;
  ::close(file);
  if (!complete) fail(ErrorCode::ArtifactInvalid, "\"{}\" is no shared object, or a part of one", path);
  if (kThisMachine != EM_NONE && header.e_machine != kThisMachine) {
    fail(ErrorCode::ArtifactInvalid, "\"{}\" is code for {}, and this machine is {}", path,
         machine_name(header.e_machine), machine_name(kThisMachine));
  }
}

// Opens a shared object. The system's loader goes by the name: while a model is loaded, it gives that one again even
// when another file has taken its place, which must not pass for the new one. Errors: ArtifactInvalid.
void* open_library(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, FileVersion> versions;  // of the files that were loaded last under each path
  std::lock_guard lock(mutex);
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) fail(ErrorCode::Io, "cannot open \"{}\": {}", path, std::strerror(errno));
  const FileVersion version{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                            status.st_mtim.tv_nsec};
  if (void* loaded = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) {
    if (auto found = versions.find(path); found == versions.end() || found->second == version) return loaded;
    ::dlclose(loaded);
    fail(ErrorCode::ArtifactInvalid,
         "\"{}\" has changed since it was loaded; release the old model first, or give the new one another name", path);
  }
  check_file(path, status.st_size);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = ::dlerror();
    fail(ErrorCode::ArtifactInvalid, "cannot load \"{}\": {}", path, reason ? reason : "unknown reason");
  }
  versions[path] = version;
  return library;
}

struct Mapping {
  const void* data = nullptr;
  std::shared_ptr<const void> owner;
};

// Maps a whole file for reading; `bytes` must be its size.
Mapping map_file(const std::string& path, int64_t bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(ErrorCode::Io, "cannot open the constants \"{}\": {}", path, std::strerror(errno));
  struct stat status;
  const bool known = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  if (!known || status.st_size != bytes) {
    ::close(file);
    fail(ErrorCode::ArtifactInvalid, "the constants \"{}\" have {} bytes, the model expects {}", path,
         known ? static_cast<int64_t>(status.st_size) : -1, bytes);
  }
  if (bytes == 0) {
    ::close(file);
    return {};
  }
  void* data = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  ::close(file);
  if (data == MAP_FAILED) fail(ErrorCode::Io, "cannot map the constants \"{}\": {}", path, std::strerror(error));
  return {data, {data, [bytes](const void* p) { ::munmap(const_cast<void*>(p), static_cast<size_t>(bytes)); }}};
}

Mapping map_constants(const Manifest& manifest, const std::string& library_path) {
  const std::string& name = manifest.constants_file;
  if (name.find('/') != std::string::npos || name == "." || name == "..") {
    fail(ErrorCode::ArtifactInvalid, "the constants file \"{}\" does not lie beside the model", name);
  }
  const std::string path = library_path.substr(0, library_path.rfind('/') + 1) + name;
  Mapping mapping = map_file(path, manifest.constants_bytes);
  const uint64_t hash = hash_bytes(mapping.data, static_cast<size_t>(manifest.constants_bytes));
  if (hash != manifest.constants_hash) {
    fail(ErrorCode::ArtifactInvalid, "the constants \"{}\" have hash {:016x}, the model expects {:016x}", path, hash,
         manifest.constants_hash);
  }
  return mapping;
}

void check_processor(const Manifest& manifest) {
  const std::vector<std::string> missing = missing_cpu_features(manifest.cpu_features);
  if (missing.empty()) return;
  fail(ErrorCode::ArtifactInvalid, "the model was compiled for \"{}\" and uses {}, which this processor lacks",
       manifest.target, fmt::join(missing, ", "));
}

void check_constants(const Manifest& manifest) {
  for (const Manifest::Constant& constant : manifest.constants) {
    int64_t bytes = 0;
    const bool overflow = __builtin_mul_overflow(element_count(constant.shape), constant.dtype.bytes(), &bytes);
    if (overflow || constant.offset < 0 || bytes > manifest.constants_bytes ||
        constant.offset > manifest.constants_bytes - bytes) {
      fail(ErrorCode::ArtifactInvalid, "constant \"{}\" lies outside the {} bytes of constants", constant.name,
           manifest.constants_bytes);
    }
  }
}

}  // namespace

// Takes `data`, or a copy when it is not aligned as main expects.
void Executable::set_constants(const void* data) {
  check_constants(manifest_);
  constants_ = manifest_.constants_bytes == 0 ? nullptr : data;
  if (reinterpret_cast<uintptr_t>(constants_) % kAlignment == 0) return;
  auto copy = std::make_shared<Tensor>(dtype::uint8_, std::vector<int64_t>{manifest_.constants_bytes});
  std::memcpy(copy->data(), constants_, copy->bytes());
  constants_ = copy->data();
  constants_owner_ = std::move(copy);
}

std::shared_ptr<const Executable> Executable::load(const std::string& path) {
  const std::string full_path = real_path(path);
  void* library = open_library(full_path);
  std::shared_ptr<Executable> executable(new Executable());
  executable->code_owner_ =
      std::shared_ptr<const void>(library, [](const void* p) { ::dlclose(const_cast<void*>(p)); });

  const uint32_t abi_version = *symbol<const uint32_t>(library, "treadle_abi_version", path);
  if (abi_version != TREADLE_ABI_VERSION) {
    fail(ErrorCode::ArtifactInvalid, "\"{}\" was compiled for ABI version {}, this runtime has {}", path, abi_version,
         TREADLE_ABI_VERSION);
  }
  const char* text = symbol<const char>(library, "treadle_manifest", path);
  const uint64_t text_size = *symbol<const uint64_t>(library, "treadle_manifest_size", path);
  executable->manifest_ = parse_manifest({text, static_cast<size_t>(text_size)});
  check_processor(executable->manifest_);
  executable->main_ = symbol<std::remove_pointer_t<TreadleKernel>>(library, "treadle_main", path);

  const Manifest& manifest = executable->manifest_;
  if (!manifest.constants_file.empty()) {
    Mapping mapping = map_constants(manifest, full_path);
    executable->constants_owner_ = std::move(mapping.owner);
    executable->set_constants(mapping.data);
  } else if (manifest.constants_bytes == 0) {
    executable->set_constants(nullptr);
  } else {
    const uint64_t size = *symbol<const uint64_t>(library, "treadle_constants_size", path);
    if (size != static_cast<uint64_t>(manifest.constants_bytes)) {
      fail(ErrorCode::ArtifactInvalid, "\"{}\" holds {} bytes of constants, its manifest says {}", path, size,
           manifest.constants_bytes);
    }
    executable->set_constants(symbol<const char>(library, "treadle_constants", path));
  }
  return executable;
}

std::shared_ptr<const Executable> Executable::in_process(Manifest manifest, TreadleKernel main, const void* constants,
                                                         std::shared_ptr<const void> owner) {
  TREADLE_CHECK(main != nullptr);
  check_processor(manifest);
  std::shared_ptr<Executable> executable(new Executable());
  executable->manifest_ = std::move(manifest);
  executable->main_ = main;
  executable->code_owner_ = std::move(owner);
  executable->set_constants(constants);
  return executable;
}

const void* Executable::constant(size_t i) const {
  return static_cast<const char*>(constants_) + manifest_.constants.at(i).offset;
}

}  // namespace treadle
