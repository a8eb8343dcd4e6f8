// SPDX-License-Identifier: Apache-2.0
#include "driver/listing.h"

#include <map>
#include <nlohmann/json.hpp>

#include "codegen/codegen.h"
#include "ir/op.h"
#include "pass/pass.h"

namespace treadle {
namespace {

using Json = nlohmann::ordered_json;

const char* mixed_precision_text(ir::MixedPrecision kind) {
  switch (kind) {
    case ir::MixedPrecision::Always:
      return "always";
    case ir::MixedPrecision::Follow:
      return "follow";
    case ir::MixedPrecision::Never:
      return "never";
  }
  return "";
}

std::vector<std::string> implementations(const ir::Op& op) {
  std::vector<std::string> names;
  if (op.compute) names.push_back("compute");
  if (op.decompose) names.push_back("decompose");
  if (op.runtime) names.push_back("runtime");
  return names;
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string default_text(const ir::FieldInfo& field) {
  return field.required ? "required" : ir::to_string(field.default_value);
}

std::string outputs_text(const ir::Op& op) {
  if (!op.tuple_output) return "1";
  return op.num_outputs > 0 ? fmt::format("a tuple of {}", op.num_outputs) : "a tuple";
}

std::map<std::string, std::vector<const ir::Op*>> by_family() {
  std::map<std::string, std::vector<const ir::Op*>> families;
  for (const ir::Op* op : ir::OpRegistry::instance().all()) families[op->family].push_back(op);
  return families;
}

Json describe(const ir::Op& op) {
  Json inputs = Json::array(), attributes = Json::array();
  for (const ir::InputInfo& input : op.inputs) inputs.push_back({{"name", input.name}, {"doc", input.doc}});
  for (const ir::FieldInfo& field : *op.schema) {
    Json entry = {{"name", field.name},
                  {"type", ir::to_string(field.type)},
                  {"optional", field.optional},
                  {"required", field.required}};
    if (!field.required) entry["default"] = ir::to_string(field.default_value);
    entry["doc"] = field.doc;
    if (field.min) entry["min"] = *field.min;
    if (field.max) entry["max"] = *field.max;
    if (!field.allowed.empty()) entry["allowed"] = field.allowed;
    attributes.push_back(std::move(entry));
  }
  return {{"name", op.name},
          {"family", op.family},
          {"summary", op.summary},
          {"formula", op.formula},
          {"source", op.source},
          {"inputs", inputs},
          {"tuple_input", op.tuple_input},
          {"outputs", outputs_text(op)},
          {"attributes", attributes},
          {"fusion", ir::to_string(op.fusion)},
          {"implementation", implementations(op)},
          {"has_gradient", static_cast<bool>(op.gradient)},
          {"mixed_precision", mixed_precision_text(op.mixed_precision)}};
}

std::string escape(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.replace(at, 1, "\\|");
  return text;
}

std::string full_text(const ir::Op& op) {
  std::string text = fmt::format("{}  ({})\n  {}\n", op.name, op.family, op.summary);
  if (!op.formula.empty()) text += fmt::format("  {}\n", op.formula);
  text += "inputs" + std::string(op.tuple_input ? " (one tuple)" : "") + ":\n";
  for (const ir::InputInfo& input : op.inputs) text += fmt::format("  {:<16} {}\n", input.name, input.doc);
  text += fmt::format("outputs: {}\n", outputs_text(op));
  if (!op.schema->empty()) text += "attributes:\n";
  for (const ir::FieldInfo& field : *op.schema) {
    text += fmt::format("  {:<16} {:<14} {:<12} {}\n", field.name, ir::to_string(field.type), default_text(field),
                        field.doc);
  }
  return text + fmt::format("fusion: {}; {}; gradient: {}; mixed precision: {}; source: {}\n", ir::to_string(op.fusion),
                            join(implementations(op)), op.gradient ? "yes" : "no",
                            mixed_precision_text(op.mixed_precision), op.source);
}

}  // namespace

std::string operators_text(const std::string& name) {
  if (!name.empty()) return full_text(ir::OpRegistry::instance().get(name));
  std::string text;
  size_t count = 0;
  for (const auto& [family, ops] : by_family()) {
    text += family + "\n";
    for (const ir::Op* op : ops) text += fmt::format("  {:<34} {}\n", op->name, op->summary);
    count += ops.size();
  }
  return text + fmt::format("{} operators\n", count);
}

std::string operators_json(const std::string& name) {
  Json result = Json::array();
  if (!name.empty())
    result = describe(ir::OpRegistry::instance().get(name));
  else
    for (const ir::Op* op : ir::OpRegistry::instance().all()) result.push_back(describe(*op));
  return result.dump(2) + "\n";
}

std::string operators_markdown() {
  std::string text =
      "# Operators\n\nMade from the registry by `treadle ops --markdown`; a test keeps this page current. Names, "
      "attributes and semantics are those of Relay\n"
      "(TVM 0.16). *Fusion* says how `FuseOps` may join an operator with its neighbours; *by* how it is computed: "
      "`compute` (a tensor expression),\n"
      "`decompose` (into simpler operators) or `runtime` (a kernel of the runtime).\n";
  for (const auto& [family, ops] : by_family()) {
    text += fmt::format("\n## {}\n", family);
    for (const ir::Op* op : ops) {
      text += fmt::format("\n### {}\n\n{}\n\n", op->name, op->summary);
      if (!op->formula.empty()) text += fmt::format("    {}\n\n", op->formula);
      for (const ir::InputInfo& input : op->inputs)
        text += fmt::format("- `{}`{}: {}\n", input.name, op->tuple_input ? " (a tuple)" : "", input.doc);
      text += fmt::format("- gives {}; fusion {}; by {}; gradient {}; mixed precision {}\n", outputs_text(*op),
                          ir::to_string(op->fusion), join(implementations(*op)), op->gradient ? "yes" : "no",
                          mixed_precision_text(op->mixed_precision));
      if (op->schema->empty()) continue;
      text += "\n| attribute | type | default | |\n| --- | --- | --- | --- |\n";
      for (const ir::FieldInfo& field : *op->schema) {
        text += fmt::format("| `{}` | {} | {} | {} |\n", field.name, ir::to_string(field.type),
                            escape(default_text(field)), escape(field.doc));
      }
    }
  }
  return text;
}

std::string passes_text(bool markdown) {
  std::string text;
  if (markdown) {
    text =
        "# Passes\n\nMade from the registry by `treadle passes --markdown`; a test keeps this page current. Each pass "
        "is one file of `src/pass`, which opens with\n"
        "before, after and when not.\n\n| pass | from level | |\n| --- | --- | --- |\n";
  }
  for (const pass::Pass& pass : pass::all_passes()) {
    text += markdown ? fmt::format("| {} | {} | {} |\n", pass.name, pass.opt_level, pass.purpose)
                     : fmt::format("{:<26} O{}  {}\n", pass.name, pass.opt_level, pass.purpose);
  }
  return text + fmt::format("\n{}: {}\n", markdown ? "The default pipeline" : "default pipeline",
                            join(pass::default_pipeline()));
}

std::string errors_text(bool markdown) {
  std::string text;
  if (markdown) {
    text =
        "# Errors\n\nMade by `treadle errors --markdown`; a test keeps this page current. Codes are stable: programs "
        "may compare them. The command prints an error\n"
        "and exits with status 1, Python raises `treadle.Error`, the C interface gives a status and "
        "`treadle_last_error_code`.\n\n| code | meaning |\n| --- | --- |\n";
  }
  const ErrorCode codes[] = {
#define TREADLE_ERROR(name, code, meaning) ErrorCode::name,
#include "base/error_codes.def"
#undef TREADLE_ERROR
  };
  for (ErrorCode code : codes) {
    text += markdown ? fmt::format("| {} | {} |\n", code_text(code), code_meaning(code))
                     : fmt::format("{:<14} {}\n", code_text(code), code_meaning(code));
  }
  return text;
}

std::string targets_text() {
  std::string text;
  for (const auto& [name, sentence] : codegen::known_targets()) text += fmt::format("{:<34} {}\n", name, sentence);
  const Target host = codegen::host_target();
  return text + fmt::format("\nthis machine: {}, {}-byte vectors, {} registers, L1 {} KiB, L2 {} KiB, L3 {} KiB\n",
                            host.cpu, host.vector_bytes, host.vector_registers, host.l1_bytes >> 10,
                            host.l2_bytes >> 10, host.l3_bytes >> 10);
}

}  // namespace treadle
