// SPDX-License-Identifier: Apache-2.0
// Compiled models on disk, found again by their content.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "driver/build.h"

namespace treadle::driver {

// The folder is $TREADLE_CACHE, else $XDG_CACHE_HOME/treadle, else ~/.cache/treadle; TREADLE_CACHE=off switches it off.
// When it holds more than $TREADLE_CACHE_BYTES (4 GiB), what was not used for longest is deleted. A cache that cannot
// be read or written is no error.
class Cache {
 public:
  explicit Cache(const BuildOptions& options);
  bool enabled() const { return !folder_.empty(); }
  // Of the module (its constants too), what of the options changes the code, the target and the compiler's own build.
  std::string key(const ir::Module& module, const BuildOptions& options) const;
  // Null when it is not there or broken (then it is deleted).
  std::shared_ptr<const Executable> find(const std::string& key) const;
  void store(const std::string& key, const lower::Program& program, const std::vector<codegen::Bytes>& objects,
             const Target& target) const;

 private:
  void trim() const;
  std::string folder_;
};

}  // namespace treadle::driver
