// SPDX-License-Identifier: Apache-2.0
// Writing what the user named.
#pragma once

#include <string>

namespace treadle::driver {

// Writes a file as a whole: a regular one aside and renamed, so that a reader never sees half of it, with the mode that
// it had, where a link points to; a device or pipe directly. Nothing is left behind on error. Errors: Io.
void write_file(const std::string& path, const void* data, size_t bytes);
inline void write_file(const std::string& path, const std::string& text) { write_file(path, text.data(), text.size()); }

}  // namespace treadle::driver
