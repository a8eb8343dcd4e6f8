// SPDX-License-Identifier: Apache-2.0
// A compiled model in memory: its manifest, its code and its constants. From an exported shared object, or from code of
// this process.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/manifest.h"
#include "treadle/abi.h"

namespace treadle {

// Immutable, shared by sessions and threads.
class Executable {
 public:
  // Loads an exported shared object. Its symbols: treadle_abi_version (uint32), treadle_manifest (JSON) with
  // treadle_manifest_size, treadle_main (TreadleKernel), treadle_constants with treadle_constants_size; sizes are
  // uint64. Constants that live in a file are mapped from the shared object's own folder; the file's size and hash are
  // checked. Errors: Io no such file; ArtifactInvalid not a compiled model, another ABI version, a changed constants
  // file.
  static std::shared_ptr<const Executable> load(const std::string& path);

  // Code of this process. `constants`: manifest.constants_bytes bytes; `owner` keeps code and constants alive.
  // Errors: Limit when constants are not aligned and cannot be copied.
  static std::shared_ptr<const Executable> in_process(Manifest manifest, TreadleKernel main, const void* constants,
                                                      std::shared_ptr<const void> owner);

  const Manifest& manifest() const { return manifest_; }
  TreadleKernel main() const { return main_; }
  // 64-byte aligned; null when the model has none.
  const void* constants() const { return constants_; }
  // The elements of manifest().constants[i], inside constants().
  const void* constant(size_t i) const;

 private:
  Executable() = default;
  void set_constants(const void* data);

  Manifest manifest_;
  TreadleKernel main_ = nullptr;
  const void* constants_ = nullptr;
  std::shared_ptr<const void> constants_owner_;
  std::shared_ptr<const void> code_owner_;
};

}  // namespace treadle
