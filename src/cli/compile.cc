// SPDX-License-Identifier: Apache-2.0
// treadle compile, treadle print, treadle check
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "driver/emit_kinds.h"
#include "driver/model.h"
#include "import/onnx/onnx.h"
#include "ir/text.h"
#include "op/register.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CompileFlags {
  std::string model, output, emit = "so";
  BuildFlags build;
  bool profile = false;
};

struct PrintFlags {
  std::string model, after;
  BuildFlags build;
  bool spans = false, no_types = false, no_constants = false;
};

struct CheckFlags {
  std::string model;
  BuildFlags build;
  bool json = false;
};

void compile(const CompileFlags& flags) {
  BuildOptions options = flags.build.resolve();
  options.profile = flags.profile;
  const ir::Module module = import_model(flags.model, flags.build.input_shapes());
  refuse_overwriting(flags.output, flags.model);
  BuildReport report;
  export_module(module, flags.output, emit_kinds().at(flags.emit), options, &report);
  flags.build.print_times(report);
  std::printf("wrote %s\n", flags.output.c_str());
}

void print(const PrintFlags& flags) {
  const BuildOptions options = flags.build.resolve();
  ir::Module module = import_model(flags.model, flags.build.input_shapes());
  if (const std::string given = flags.build.given(); flags.after.empty() && !given.empty() && given != "--shape")
    fail(ErrorCode::InvalidArgument, "{} is about passes, and none runs: say with --after up to which", given);
  if (!flags.after.empty()) {
    BuildReport report;
    module = optimize_until(module, flags.after, options, &report);
    flags.build.print_times(report);
  }
  ir::PrintOptions print_options;
  print_options.types = !flags.no_types;
  print_options.spans = flags.spans;
  print_options.constants = !flags.no_constants;
  std::printf("%s", ir::print(module, print_options).c_str());
}

// What keeps a Relay text from being compiled: its operators are all known, or it would not parse, but it may call what
// only running tells.
std::vector<onnx::Unsupported> check_relay(const std::string& path, const std::map<std::string, Shape>& input_shapes) {
  BuildOptions options;
  options.opt_level = 0;
  try {
    lower_module(optimize(import_model(path, input_shapes), options), options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::CodegenUnsupported) throw;
    onnx::Unsupported found;
    found.node = error.context().empty() ? path : error.context().front();
    found.reason = error.message();
    return {found};
  }
  return {};
}

std::string to_text(const onnx::Unsupported& node) {
  std::string inputs;
  for (const std::string& type : node.inputs) inputs += (inputs.empty() ? "" : ", ") + type;
  if (node.op_type.empty()) return fmt::format("{}: {}\n", node.node, node.reason);
  return fmt::format("{} ({}{}{}, opset {}): {}\n  inputs: {}\n", node.node, node.domain,
                     node.domain.empty() ? "" : ".", node.op_type, node.opset, node.reason, inputs);
}

// Exit status 1 when something is unsupported.
int check(const CheckFlags& flags) {
  op::register_operators();
  std::vector<onnx::Unsupported> nodes;
  if (model_kind(flags.model) == ModelKind::Onnx) {
    onnx::ImportOptions options;
    options.input_shapes = flags.build.input_shapes();
    nodes = onnx::check_onnx_file(flags.model, options);
  } else {
    nodes = check_relay(flags.model, flags.build.input_shapes());
  }
  if (flags.json) {
    Json list = Json::array();
    for (const onnx::Unsupported& node : nodes) {
      list.push_back({{"node", node.node},
                      {"op_type", node.op_type},
                      {"domain", node.domain},
                      {"opset", node.opset},
                      {"inputs", node.inputs},
                      {"reason", node.reason}});
    }
    std::printf("%s\n", list.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return nodes.empty() ? 0 : 1;
  }
  for (const onnx::Unsupported& node : nodes) std::printf("%s", to_text(node).c_str());
  if (nodes.empty())
    std::printf("every operator is supported\n");
  else
    std::printf("%zu unsupported node%s\n", nodes.size(), nodes.size() == 1 ? "" : "s");
  return nodes.empty() ? 0 : 1;
}

}  // namespace

void add_compile(CLI::App& app) {
  auto* command = app.add_subcommand(
      "compile",
      with_example("Compiles a model to a file.", "treadle compile examples/digits/digits.onnx -o digits.so"));
  auto flags = std::make_shared<CompileFlags>();
  std::vector<std::string> kinds;
  for (const auto& [name, kind] : emit_kinds()) kinds.push_back(name);
  command->add_option("MODEL", flags->model, ".onnx or Relay text")->required();
  command->add_option("-o,--output", flags->output, "the file to write")->required();
  command->add_option("--emit", flags->emit, "so: complete artifact; obj, llvm, asm, loop, relay: a stage on the way")
      ->check(CLI::IsMember(kinds))
      ->capture_default_str();
  command->add_flag("--profile", flags->profile, "let each kernel be timed");
  flags->build.add_to(*command);
  command->callback([flags] { compile(*flags); });
}

void add_print(CLI::App& app) {
  auto* command = app.add_subcommand(
      "print", with_example("Prints a model as Relay text.",
                            "treadle print examples/digits/digits.onnx --after FuseOps --no-constants"));
  auto flags = std::make_shared<PrintFlags>();
  command->add_option("MODEL", flags->model, ".onnx or Relay text")->required();
  command->add_option("--after", flags->after, "after this pass of the pipeline (its last run); default: as imported");
  command->add_flag("--spans", flags->spans, "show where each value came from");
  command->add_flag("--no-types", flags->no_types, "leave out the types of values");
  command->add_flag("--no-constants", flags->no_constants,
                    "leave out the data of large constants; the text can then not be read back");
  flags->build.add_to(*command);
  command->callback([flags] { print(*flags); });
}

void add_check(CLI::App& app, int& status) {
  auto* command = app.add_subcommand(
      "check", with_example("Lists every node of a model that is not supported; exit status 1 if there is one.",
                            "treadle check examples/digits/digits.onnx --json"));
  auto flags = std::make_shared<CheckFlags>();
  command->add_option("MODEL", flags->model, ".onnx or Relay text")->required();
  command->add_flag("--json", flags->json, "print JSON");
  command->add_option("--shape", flags->build.shapes, "NAME:D,D,… extents of an input instead of the model's");
  command->callback([flags, &status] { status = check(*flags); });
}

}  // namespace treadle::cli
