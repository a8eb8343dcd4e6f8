// SPDX-License-Identifier: Apache-2.0
// Splits the text of loop IR into tokens. `//` starts a comment that runs to the end of the line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::loop {

enum class TokenKind {
  Name,    // identifier
  Buffer,  // %name, without the sign
  Global,  // @name
  Alias,   // $name
  Number,  // digits, perhaps with fraction and exponent; no sign
  String,  // without quotes, escapes resolved
  Symbol,  // punctuation: one of the longest matches
  End,
};

struct Token {
  TokenKind kind;
  std::string text;
  size_t offset;  // of its first character, in bytes
};

// The last token is End. Errors: Parse.
std::vector<Token> tokenize(std::string_view text, const std::string& source);

// Throws Parse with line, column and the line itself with a caret below the place.
[[noreturn]] void parse_error(std::string_view text, const std::string& source, size_t offset,
                              const std::string& message);

}  // namespace treadle::loop
