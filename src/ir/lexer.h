// SPDX-License-Identifier: Apache-2.0
// Tokens of Relay's text format.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace treadle::ir {

enum class TokenKind {
  Identifier,   // nn.conv2d, fn, Tensor: letters, digits, '_', parts joined by '.'
  Local,        // %x, or %"any text"; text is the name
  Graph,        // %12; text is the number
  Global,       // @main; text is the name
  Int,          // 12, 3i64
  Float,        // 1f, 1e-05f, 1.5f64
  String,       // "…"; text is the content
  Punctuation,  // one of ( ) { } [ ] , ; : . = -> + - * / < <= > >= == != ? ' % #[
  End,
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;  // of the source, except where escapes had to be resolved
  size_t offset = 0;      // of the first byte in the source
  size_t end = 0;         // behind the last byte
  bool is(std::string_view punctuation) const { return kind == TokenKind::Punctuation && text == punctuation; }
  bool is_word(std::string_view word) const { return kind == TokenKind::Identifier && text == word; }
};

// A text to be parsed: gives places for errors and spans.
class SourceText {
 public:
  SourceText(std::string_view text, std::string name);
  std::string_view text() const { return text_; }
  const std::string& name() const { return name_; }
  // 1-based line, and column in bytes.
  std::pair<int, int> place(size_t offset) const;
  // The error with its place, "net.relay:3:14".
  Error error(ErrorCode code, std::string message, size_t offset) const;
  // Adds the line of the innermost place in this text that the error's context names, with a caret under the column.
  void show_line(Error& error) const;

 private:
  void add_line(Error& error, size_t offset) const;

  std::string_view text_;
  std::string name_;
  std::vector<size_t> lines_;  // offset of each line's start
};

struct TokenList {
  std::vector<Token> tokens;       // ends with End
  std::list<std::string> storage;  // of texts that are no substring of the source; a list does not move them
  std::string_view metadata;       // the JSON behind #[metadata]; empty when absent
  size_t metadata_offset = 0;
};

// Splits the whole text. Comments (`//` to the end of the line, nested `/* */`) are skipped. Errors: Parse, Limit.
TokenList tokenize(const SourceText& source);

}  // namespace treadle::ir
