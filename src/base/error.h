// SPDX-License-Identifier: Apache-2.0
// The one exception of Treadle, its stable codes, and the check for our own mistakes.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace treadle {

enum class ErrorCode {
#define TREADLE_ERROR(name, code, meaning) name,
#include "base/error_codes.def"
#undef TREADLE_ERROR
};

// "TRD-TYPE-002" of ErrorCode::TypeMismatch.
std::string_view code_text(ErrorCode code);
// One sentence, from error_codes.def.
std::string_view code_meaning(ErrorCode code);

// An error with a stable code, a message (lower case, numbers first, no full stop), a chain of context from the inside
// out (argument, node, file), notes and at most one hint. what() is the whole as one readable paragraph.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message);

  // Adds where it happened; called from the inside outwards: e.at("node \"conv1\" (Conv, opset 13)").at("model.onnx").
  Error& at(std::string context);
  // Adds a fact that the reader needs, for example an argument's type.
  Error& note(std::string note);
  // Sets the hint.
  Error& help(std::string hint);

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::vector<std::string>& context() const { return context_; }
  const std::vector<std::string>& notes() const { return notes_; }
  const std::string& hint() const { return hint_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  void render();

  ErrorCode code_;
  std::string message_;
  std::vector<std::string> context_;
  std::vector<std::string> notes_;
  std::string hint_;
  std::string text_;
};

// Throws Error: fail(ErrorCode::TypeMismatch, "input has {} channels", n).
template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);

}  // namespace treadle

// For what only a defect of ours can break; a user's mistake is reported with fail(). Throws Error with
// ErrorCode::Internal.
#define TREADLE_CHECK(condition, ...) \
  ((condition) ? (void)0 : ::treadle::check_failed(#condition, __FILE__, __LINE__, ::fmt::format("" __VA_ARGS__)))
