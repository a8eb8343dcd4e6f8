// SPDX-License-Identifier: Apache-2.0
#include "loop/lexer.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "loop/text.h"

namespace treadle::loop {

void parse_error(std::string_view text, const std::string& source, size_t offset, const std::string& message) {
  offset = std::min(offset, text.size());
  const size_t newline = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  const size_t end = std::min(text.find('\n', offset), text.size());
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n') + 1;
  Error error(ErrorCode::Parse, message);
  error.at(fmt::format("{}:{}:{}", source, line, offset - begin + 1));
  error.note(fmt::format("{}\n  {}^", text.substr(begin, end - begin), std::string(offset - begin, ' ')));
  throw error;
}

namespace {

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  std::vector<Token> run() {
    while (skip_space()) token();
    tokens_.push_back({TokenKind::End, "", text_.size()});
    return std::move(tokens_);
  }

 private:
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  bool digit(size_t i) const { return std::isdigit(static_cast<unsigned char>(at(i))); }
  bool name_char(size_t i) const { return i < text_.size() && is_identifier_char(text_[i]); }

  bool skip_space() {
    while (pos_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(at(pos_))))
        ++pos_;
      else if (text_.substr(pos_, 2) == "//")
        pos_ = std::min(text_.find('\n', pos_), text_.size());
      else
        return true;
    }
    return false;
  }

  void token() {
    const size_t start = pos_;
    const char c = at(pos_);
    if (digit(pos_)) return number();
    if (c == '"') return string(TokenKind::String);
    if (c == '@' && at(pos_ + 1) == '"') {
      ++pos_;
      return string(TokenKind::Global);
    }
    if ((c == '%' || c == '@' || c == '$') && name_char(pos_ + 1)) {
      ++pos_;
      return name(c == '%' ? TokenKind::Buffer : c == '@' ? TokenKind::Global : TokenKind::Alias, start);
    }
    if (name_char(pos_)) return name(TokenKind::Name, start);
    for (std::string_view two : {"<<", ">>", "==", "!=", "<=", ">="}) {
      if (text_.substr(pos_, 2) == two) return symbol(2);
    }
    if (std::string_view("()[]{}<>,;:=+-*/&|^!").find(c) == std::string_view::npos) {
      parse_error(text_, source_, pos_, fmt::format("unexpected character '{}'", c));
    }
    symbol(1);
  }

  void symbol(size_t length) {
    tokens_.push_back({TokenKind::Symbol, std::string(text_.substr(pos_, length)), pos_});
    pos_ += length;
  }

  void name(TokenKind kind, size_t start) {
    const size_t begin = pos_;
    while (name_char(pos_)) ++pos_;
    tokens_.push_back({kind, std::string(text_.substr(begin, pos_ - begin)), start});
  }

  void number() {
    const size_t start = pos_;
    while (digit(pos_)) ++pos_;
    if (at(pos_) == '.') {
      ++pos_;
      while (digit(pos_)) ++pos_;
    }
    if (at(pos_) == 'e' || at(pos_) == 'E') {
      ++pos_;
      if (at(pos_) == '+' || at(pos_) == '-') ++pos_;
      while (digit(pos_)) ++pos_;
    }
    tokens_.push_back({TokenKind::Number, std::string(text_.substr(start, pos_ - start)), start});
  }

  void string(TokenKind kind) {
    const size_t start = pos_++;
    std::string value;
    for (; at(pos_) != '"'; ++pos_) {
      if (pos_ >= text_.size()) parse_error(text_, source_, start, "a string without end");
      if (at(pos_) == '\\' && pos_ + 1 < text_.size()) {
        ++pos_;
        value += at(pos_) == 'n' ? '\n' : at(pos_);
      } else {
        value += at(pos_);
      }
    }
    ++pos_;
    tokens_.push_back({kind, std::move(value), start});
  }

  std::string_view text_;
  const std::string& source_;
  size_t pos_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text, const std::string& source) { return Lexer(text, source).run(); }

}  // namespace treadle::loop
