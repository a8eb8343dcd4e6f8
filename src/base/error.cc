// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

namespace treadle {
namespace {

struct CodeInfo {
  std::string_view text;
  std::string_view meaning;
};

constexpr CodeInfo kCodes[] = {
#define TREADLE_ERROR(name, code, meaning) {code, meaning},
#include "base/error_codes.def"
#undef TREADLE_ERROR
};

}  // namespace

std::string_view code_text(ErrorCode code) { return kCodes[static_cast<int>(code)].text; }
std::string_view code_meaning(ErrorCode code) { return kCodes[static_cast<int>(code)].meaning; }

Error::Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) { render(); }

Error& Error::at(std::string context) {
  context_.push_back(std::move(context));
  render();
  return *this;
}

Error& Error::note(std::string note) {
  notes_.push_back(std::move(note));
  render();
  return *this;
}

Error& Error::help(std::string hint) {
  hint_ = std::move(hint);
  render();
  return *this;
}

void Error::render() {
  text_ = fmt::format("error {}: {}", code_text(code_), message_);
  for (const std::string& context : context_) text_ += "\n  at " + context;
  for (const std::string& note : notes_) text_ += "\n  " + note;
  if (!hint_.empty()) text_ += "\n  help: " + hint_;
}

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  std::string_view path = file;
  if (size_t src = path.rfind("/src/"); src != std::string_view::npos) path.remove_prefix(src + 5);
  throw Error(ErrorCode::Internal,
              fmt::format("{}{}check failed: {} ({}:{})", message, message.empty() ? "" : "; ", condition, path, line));
}

}  // namespace treadle
