// SPDX-License-Identifier: Apache-2.0
#include "driver/model.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/file.h"
#include "import/onnx/onnx.h"
#include "ir/text.h"
#include "op/register.h"

namespace treadle {
namespace {

constexpr std::string_view kElf =
    "\x7f"
    "ELF";

// Relay texts begin with a version attribute, a definition or a comment; ONNX is binary and begins with a small field
// tag.
bool is_relay_text(std::string_view head) {
  const size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return false;
  head.remove_prefix(start);
  for (std::string_view prefix : {"#[", "def ", "fn ", "fn(", "//", "/*", "free_var", "let ", "type "}) {
    if (head.starts_with(prefix)) return true;
  }
  return false;
}

onnx::ImportOptions with_shapes(const std::map<std::string, Shape>& input_shapes) {
  onnx::ImportOptions options;
  options.input_shapes = input_shapes;
  return options;
}

// Above the numbers of the anonymous symbols in the shapes, which the model's own will meet.
int64_t first_free_anonymous(const std::map<std::string, Shape>& input_shapes) {
  int64_t first = 0;
  for (const auto& [input, shape] : input_shapes) {
    for (const Dim& dim : shape) {
      for (const std::string& name : dim.symbols()) first = std::max(first, anonymous_number(name).value_or(-1) + 1);
    }
  }
  return first;
}

void refuse_input_shapes(const std::map<std::string, Shape>& input_shapes) {
  if (!input_shapes.empty())
    fail(ErrorCode::InvalidArgument, "input shapes can be set for ONNX models only; a Relay text states its own");
}

}  // namespace

ModelKind model_kind(const std::string& path) {
  require_regular_file(path);
  std::ifstream file(path, std::ios::binary);
  char head[256];
  if (!file || (!file.read(head, sizeof head) && file.bad()))
    fail(ErrorCode::Io, "cannot read {}: {}", path, std::strerror(errno));
  const std::string_view text(head, static_cast<size_t>(file.gcount()));
  if (text.empty()) fail(ErrorCode::ImportFormat, "{} is empty", path);
  if (text.starts_with(kElf)) return ModelKind::Artifact;
  return is_relay_text(text) ? ModelKind::Relay : ModelKind::Onnx;
}

ir::Module import_model(const std::string& path, const std::map<std::string, Shape>& input_shapes) {
  op::register_operators();
  const AnonymousScope scope(first_free_anonymous(input_shapes));
  switch (model_kind(path)) {
    case ModelKind::Artifact:
      fail(ErrorCode::InvalidArgument, "{} is compiled already; this needs the model that it was made of", path);
    case ModelKind::Relay:
      refuse_input_shapes(input_shapes);
      return ir::parse(read_file(path), path);
    case ModelKind::Onnx:
      break;
  }
  return onnx::import_onnx_file(path, with_shapes(input_shapes)).module;
}

ir::Module import_bytes(std::string_view bytes, const std::string& source_name,
                        const std::map<std::string, Shape>& input_shapes) {
  op::register_operators();
  const AnonymousScope scope(first_free_anonymous(input_shapes));
  if (bytes.starts_with(kElf))
    fail(ErrorCode::InvalidArgument, "{} is compiled already; a compiled model is loaded from a path", source_name);
  if (!is_relay_text(bytes.substr(0, 256)))
    return onnx::import_onnx(bytes, source_name, "", with_shapes(input_shapes)).module;
  refuse_input_shapes(input_shapes);
  return ir::parse(bytes, source_name);
}

Artifact load_model(const std::string& path, const BuildOptions& options,
                    const std::map<std::string, Shape>& input_shapes) {
  if (model_kind(path) == ModelKind::Artifact) return load_artifact(path);
  return build(import_model(path, input_shapes), options);
}

}  // namespace treadle
