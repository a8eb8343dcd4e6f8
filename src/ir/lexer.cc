// SPDX-License-Identifier: Apache-2.0
#include "ir/lexer.h"

#include <algorithm>
#include <charconv>

namespace treadle::ir {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word_char(char c) { return is_letter(c) || is_digit(c); }

class Lexer {
 public:
  explicit Lexer(const SourceText& source) : source_(source), text_(source.text()) {}

  TokenList run() {
    for (;;) {
      skip_blank();
      if (at_ == text_.size()) break;
      if (text_.substr(at_).starts_with("#[metadata]")) {
        result_.metadata_offset = at_ + 11;
        result_.metadata = text_.substr(result_.metadata_offset);
        break;
      }
      token();
    }
    push(TokenKind::End, at_, at_);
    return std::move(result_);
  }

 private:
  [[noreturn]] void error(std::string message, size_t offset) const {
    throw source_.error(ErrorCode::Parse, std::move(message), offset);
  }

  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void push(TokenKind kind, size_t begin, size_t text_begin) {
    result_.tokens.push_back({kind, text_.substr(text_begin, at_ - text_begin), begin, at_});
  }

  // A token whose text had to be built.
  void push_built(TokenKind kind, size_t begin, std::string text) {
    built_.push_back(std::move(text));
    result_.tokens.push_back({kind, built_.back(), begin, at_});
  }

  void skip_blank() {
    for (;;) {
      const char c = peek();
      if (at_ < text_.size() && (c == ' ' || c == '\n' || c == '\t' || c == '\r')) {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '/' && peek(1) == '*') {
        skip_comment();
      } else {
        return;
      }
    }
  }

  void skip_comment() {
    const size_t begin = at_;
    size_t depth = 0;
    do {
      if (at_ >= text_.size()) error("the comment is not closed", begin);
      if (peek() == '/' && peek(1) == '*') {
        ++depth;
        at_ += 2;
      } else if (peek() == '*' && peek(1) == '/') {
        --depth;
        at_ += 2;
      } else {
        ++at_;
      }
    } while (depth > 0);
  }

  void token() {
    const size_t begin = at_;
    const char c = peek();
    const bool after_dot = !result_.tokens.empty() && result_.tokens.back().is(".");
    if (is_digit(c)) return number(begin, after_dot);
    if (is_letter(c)) return identifier(begin);
    if (c == '"') return push_built(TokenKind::String, begin, string());
    if (c == '%' && peek(1) == '"') {
      ++at_;
      return push_built(TokenKind::Local, begin, string());
    }
    if (c == '%' && is_digit(peek(1))) {
      ++at_;
      while (is_digit(peek())) ++at_;
      return push(TokenKind::Graph, begin, begin + 1);
    }
    if ((c == '%' || c == '@') && is_letter(peek(1))) {
      ++at_;
      while (is_word_char(peek())) ++at_;
      return push(c == '%' ? TokenKind::Local : TokenKind::Global, begin, begin + 1);
    }
    if (c == '@' && peek(1) == '"') {
      ++at_;
      return push_built(TokenKind::Global, begin, string());
    }
    punctuation(begin);
  }

  void identifier(size_t begin) {
    while (is_word_char(peek()) || (peek() == '.' && is_letter(peek(1)))) ++at_;
    push(TokenKind::Identifier, begin, begin);
  }

  // Digits, fraction, exponent and the suffix that names the dtype.
  void number(size_t begin, bool index_only) {
    while (is_digit(peek())) ++at_;
    if (index_only) return push(TokenKind::Int, begin, begin);
    bool is_float = false;
    if (peek() == '.' && is_digit(peek(1))) {
      is_float = true;
      ++at_;
      while (is_digit(peek())) ++at_;
    }
    if ((peek() == 'e' || peek() == 'E') &&
        (is_digit(peek(1)) || ((peek(1) == '-' || peek(1) == '+') && is_digit(peek(2))))) {
      is_float = true;
      at_ += 2;
      while (is_digit(peek())) ++at_;
    }
    if (is_letter(peek())) {
      is_float |= peek() == 'f' || peek() == 'b';
      while (is_word_char(peek())) ++at_;
    }
    push(is_float ? TokenKind::Float : TokenKind::Int, begin, begin);
  }

  int hex(char c) const {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    error("\\x needs two hexadecimal digits", at_);
  }

  std::string string() {
    const size_t begin = at_++;
    std::string result;
    for (;;) {
      if (at_ >= text_.size() || text_[at_] == '\n') error("the string is not closed", begin);
      const char c = text_[at_++];
      if (c == '"') return result;
      if (c != '\\') {
        result += c;
        continue;
      }
      const char escape = peek();
      ++at_;
      switch (escape) {
        case 'n':
          result += '\n';
          break;
        case 't':
          result += '\t';
          break;
        case 'r':
          result += '\r';
          break;
        case '"':
        case '\'':
        case '\\':
          result += escape;
          break;
        case 'x': {
          const int high = hex(peek()), low = hex(peek(1));
          result += static_cast<char>(high * 16 + low);
          at_ += 2;
          break;
        }
        default:
          error("unknown escape in a string", at_ - 2);
      }
    }
  }

  void punctuation(size_t begin) {
    for (std::string_view two : {"->", "<=", ">=", "==", "!=", "#["}) {
      if (text_.substr(at_).starts_with(two)) {
        at_ += 2;
        return push(TokenKind::Punctuation, begin, begin);
      }
    }
    // The quote and the percent sign occur in what is skipped (VirtualDevice) and in extents.
    if (std::string_view("(){}[],;:.=+-*/<>?'%").find(peek()) == std::string_view::npos) {
      const auto byte = static_cast<unsigned char>(peek());
      error(byte >= 0x20 && byte < 0x7f ? fmt::format("unexpected character '{}'", peek())
                                        : fmt::format("unexpected byte 0x{:02x}", byte),
            begin);
    }
    ++at_;
    push(TokenKind::Punctuation, begin, begin);
  }

  const SourceText& source_;
  std::string_view text_;
  size_t at_ = 0;
  TokenList result_;
  std::list<std::string>& built_ = result_.storage;
};

}  // namespace

SourceText::SourceText(std::string_view text, std::string name) : text_(text), name_(std::move(name)), lines_{0} {
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') lines_.push_back(i + 1);
  }
}

std::pair<int, int> SourceText::place(size_t offset) const {
  const auto line = std::upper_bound(lines_.begin(), lines_.end(), offset) - 1;
  return {static_cast<int>(line - lines_.begin()) + 1, static_cast<int>(offset - *line) + 1};
}

Error SourceText::error(ErrorCode code, std::string message, size_t offset) const {
  Error result(code, std::move(message));
  const auto [line, column] = place(offset);
  result.at(fmt::format("{}:{}:{}", name_, line, column));
  return result;
}

void SourceText::add_line(Error& error, size_t offset) const {
  constexpr size_t kBefore = 70, kWidth = 110;  // of a long line only the neighbourhood is shown
  const auto [line, column] = place(offset);
  const size_t begin = lines_[static_cast<size_t>(line - 1)];
  size_t end = text_.find('\n', begin);
  if (end == std::string_view::npos) end = text_.size();
  const size_t first = offset - begin > kBefore ? offset - kBefore : begin;
  std::string shown(text_.substr(first, std::min(end - first, kWidth)));
  std::string marker;
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  // A character of several bytes takes one place.
  for (size_t i = first; i < offset; ++i) {
    if ((static_cast<unsigned char>(text_[i]) & 0xc0) != 0x80) marker += ' ';
  }
  error.note(fmt::format("{:>5} | {}\n        | {}^", line, shown, marker));
}

void SourceText::show_line(Error& error) const {
  for (const std::string& context : error.context()) {
    if (!context.starts_with(name_ + ":")) continue;
    const char* end = context.data() + context.size();
    size_t line = 0, column = 0;
    const auto [stop, problem] = std::from_chars(context.data() + name_.size() + 1, end, line);
    if (problem != std::errc() || stop == end || std::from_chars(stop + 1, end, column).ec != std::errc()) continue;
    if (line == 0 || line > lines_.size() || column == 0) continue;
    return add_line(error, std::min(lines_[line - 1] + column - 1, text_.size()));
  }
}

TokenList tokenize(const SourceText& source) { return Lexer(source).run(); }

}  // namespace treadle::ir
