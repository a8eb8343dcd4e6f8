// SPDX-License-Identifier: Apache-2.0
// The names by which users ask for what a compilation writes.
#pragma once

#include <map>
#include <string>

#include "driver/build.h"

namespace treadle {

inline const std::map<std::string, EmitKind>& emit_kinds() {
  static const std::map<std::string, EmitKind> kinds = {{"so", EmitKind::SharedObject}, {"obj", EmitKind::Object},
                                                        {"llvm", EmitKind::Llvm},       {"asm", EmitKind::Assembly},
                                                        {"loop", EmitKind::Loop},       {"relay", EmitKind::Relay}};
  return kinds;
}

}  // namespace treadle
