// SPDX-License-Identifier: Apache-2.0
#include "driver/cache.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/hash.h"
#include "driver/output_file.h"
#include "driver/package.h"
#include "ir/text.h"

namespace treadle::driver {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kDefaultBytes = uintmax_t{4} << 30;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string default_folder() {
  if (std::string chosen = environment("TREADLE_CACHE"); !chosen.empty()) return chosen == "off" ? "" : chosen;
  if (std::string base = environment("XDG_CACHE_HOME"); !base.empty()) return base + "/treadle";
  if (std::string home = environment("HOME"); !home.empty()) return home + "/.cache/treadle";
  return "";
}

uintmax_t byte_limit() {
  const std::string text = environment("TREADLE_CACHE_BYTES");
  const uintmax_t limit = std::strtoull(text.c_str(), nullptr, 10);
  return limit ? limit : kDefaultBytes;
}

// The compiler's own code decides what it generates: size and time of the file that holds this function.
uint64_t compiler_identity() {
  static const uint64_t identity = [] {
    Dl_info info;
    if (!dladdr(reinterpret_cast<void*>(&compiler_identity), &info)) return uint64_t{0};
    std::error_code error;
    // The main program's dli_fname may be a relative argv[0]; /proc names the file.
    fs::path file =
        fs::exists(info.dli_fname, error) ? fs::path(info.dli_fname) : fs::read_symlink("/proc/self/exe", error);
    const auto time = fs::last_write_time(file, error).time_since_epoch().count();
    return hash_combine(static_cast<uint64_t>(time), fs::file_size(file, error));
  }();
  return identity;
}

// Beside each entry: the hash of its bytes, since nobody reads all of a shared object when it is loaded.
fs::path hash_path(const fs::path& entry) { return entry.string() + ".hash"; }

std::string hash_of_file(const fs::path& path) {
  std::error_code error;
  std::vector<char> bytes(fs::file_size(path, error));
  if (error || !std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    fail(ErrorCode::Io, "cannot read {}", path.string());
  return fmt::format("{:016x}", hash_bytes(bytes.data(), bytes.size()));
}

void remove_entry(const fs::path& path) {
  std::error_code error;
  for (const fs::path& file : {path, hash_path(path), fs::path(path.string() + ".constants")}) fs::remove(file, error);
}

}  // namespace

Cache::Cache(const BuildOptions& options) {
  const bool debugging = options.print || options.verify || options.stop_after >= 0;
  if (!options.cache || debugging) return;
  folder_ = default_folder();
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) folder_.clear();
}

std::string Cache::key(const ir::Module& module, const BuildOptions& options) const {
  uint64_t settings = hash_combine(compiler_identity(), static_cast<uint64_t>(options.opt_level) * 2 + options.profile);
  const Target target = codegen::parse_target(options.target);
  settings = hash_string(target.text + target.triple + target.cpu, settings);
  for (const std::string& feature : target.features) settings = hash_string(feature, settings);
  for (const std::string& name : options.disabled_passes) settings = hash_string(name, settings);
  // Names are not structure, but the manifest shows them.
  const uint64_t text = hash_string(ir::print(module, {.types = false, .spans = true, .constants = false}), settings);
  return fmt::format("{:016x}{:016x}", hash_combine(ir::structural_hash(module), settings), text);
}

std::shared_ptr<const Executable> Cache::find(const std::string& key) const {
  const fs::path path = fs::path(folder_) / (key + ".so");
  std::error_code error;
  std::string expected;
  if (!fs::exists(path, error) || !(std::ifstream(hash_path(path)) >> expected)) return nullptr;
  try {
    if (hash_of_file(path) != expected) fail(ErrorCode::ArtifactInvalid, "the entry is damaged");
    std::shared_ptr<const Executable> executable = Executable::load(path.string());
    fs::last_write_time(path, fs::file_time_type::clock::now(), error);  // used: kept longer
    return executable;
  } catch (const Error&) {
    remove_entry(path);
    return nullptr;
  }
}

void Cache::store(const std::string& key, const lower::Program& program, const std::vector<codegen::Bytes>& objects,
                  const Target& target) const {
  try {
    const fs::path path = fs::path(folder_) / (key + ".so");
    write_shared(program, objects, target, path.string());
    write_file(hash_path(path).string(), hash_of_file(path));
    trim();
  } catch (const Error&) {
    // A full or read-only disk costs the next run its time, nothing else.
  }
}

void Cache::trim() const {
  struct Entry {
    fs::path path;
    fs::file_time_type time;
    uintmax_t bytes;
  };
  std::vector<Entry> entries;
  uintmax_t total = 0;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_, error)) {
    if (file.path().extension() != ".so") continue;
    const fs::path side = file.path().string() + ".constants";
    uintmax_t bytes = file.file_size(error);
    if (fs::exists(side, error)) bytes += fs::file_size(side, error);
    entries.push_back({file.path(), file.last_write_time(error), bytes});
    total += bytes;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.time < b.time; });
  const uintmax_t limit = byte_limit();
  for (size_t i = 0; i + 1 < entries.size() && total > limit; ++i) {  // the newest always stays
    remove_entry(entries[i].path);
    total -= entries[i].bytes;
  }
}

}  // namespace treadle::driver
