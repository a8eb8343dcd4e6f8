// SPDX-License-Identifier: Apache-2.0
// Whole files.
#pragma once

#include <string>

namespace treadle {

// Errors: Io with the system's reason, also for folders, and for pipes and devices, which may have no end.
void require_regular_file(const std::string& path);
// The bytes of a file. Errors: those of require_regular_file.
std::string read_file(const std::string& path);

}  // namespace treadle
