// SPDX-License-Identifier: Apache-2.0
// Whole files.
#pragma once

#include <string>

namespace treadle {

// The bytes of a file. Errors: Io with the system's reason, also for folders.
std::string read_file(const std::string& path);

}  // namespace treadle
