// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <filesystem>

#include "treadle/runtime.h"

namespace treadle::cli {

std::string with_example(const std::string& text, const std::string& example) {
  return text + "\n\nExample:\n  " + example;
}

int run_command(int argc, char** argv) {
  CLI::App app{with_example("Compiles neural networks to machine code and runs them.",
                            "treadle run examples/digits/digits.onnx --fill random"),
               "treadle"};
  app.set_version_flag("--version", std::string("treadle ") + treadle_version());
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  int status = 0;
  add_run(app);
  add_compile(app);
  add_check(app, status);
  add_print(app);
  add_ops(app);
  add_passes(app);
  add_targets(app);
  add_bench(app);
  add_errors(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // 0: --help and --version
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "error TRD-LIM-001: out of memory\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    std::fprintf(stderr, "error TRD-IO-001: cannot write to the standard output\n");
    return 1;
  }
  return status;
}

void refuse_overwriting(const std::string& output, const std::string& input) {
  std::error_code error;
  if (std::filesystem::equivalent(output, input, error))
    fail(ErrorCode::InvalidArgument, "the output {} is {}, which is read", output,
         output == input ? "the input" : "the file " + input);
}

void BuildFlags::add_to(CLI::App& command) {
  const std::vector<CLI::Option*> before_us = command.get_options();
  command.add_option("-O,--opt-level", options.opt_level, "optimisation level")
      ->check(CLI::Range(0, 4))
      ->capture_default_str();
  command.add_option("--target", options.target, "what to generate code for; see `treadle targets`")
      ->capture_default_str();
  command.add_option("--shape", shapes, "NAME:D,D,… extents of an input instead of the model's; a name is a symbol");
  command.add_option("--disable-pass", disabled, "a pass to leave out; may be given several times");
  command.add_option("--print-before", before, "print the module before this pass (or all)");
  command.add_option("--print-after", after, "print the module after this pass (or all)");
  command.add_option("--stop-after", options.stop_after, "stop the passes after N rewrites, for bisecting")
      ->check(CLI::Range(0, INT_MAX));
  command.add_flag("--time-passes", time_passes, "print how long each pass and each stage behind them took");
  command.add_flag("--verify", options.verify, "check the IR after every pass");
  command.add_flag("--no-cache", no_cache, "neither use nor fill the compile cache");
  for (const CLI::Option* option : command.get_options()) {
    if (std::find(before_us.begin(), before_us.end(), option) == before_us.end()) flags_.push_back(option);
  }
}

std::string BuildFlags::given() const {
  for (const CLI::Option* flag : flags_) {
    if (flag->count() > 0) return flag->get_name();
  }
  return "";
}

BuildOptions BuildFlags::resolve() const {
  BuildOptions result = options;
  for (const auto* names : {&disabled, &before, &after}) {
    for (const std::string& name : *names) {
      if (name != "all" || names == &disabled) pass::get_pass(name);  // an unknown name is an error
    }
  }
  result.disabled_passes.insert(disabled.begin(), disabled.end());
  result.print_before.insert(before.begin(), before.end());
  result.print_after.insert(after.begin(), after.end());
  if (!before.empty() || !after.empty()) {
    result.print = [](const std::string& title, const std::string& text) {
      std::printf("// %s\n%s\n", title.c_str(), text.c_str());
    };
  }
  result.cache = !no_cache && !time_passes;
  return result;
}

void BuildFlags::print_times(const BuildReport& report) const {
  if (!time_passes) return;
  std::fprintf(stderr, "%10s %9s  pass\n", "ms", "rewrites");
  double total = 0;
  for (const pass::PassTime& time : report.passes) {
    std::fprintf(stderr, "%10.3f %9d  %s\n", time.milliseconds, time.rewrites, time.name.c_str());
    total += time.milliseconds;
  }
  std::fprintf(stderr, "%10.3f %9s  all passes\n", total, "");
  for (const auto& [name, ms] : {std::pair("lowering and schedules", report.lower_ms),
                                 std::pair("code generation", report.codegen_ms), std::pair("linking", report.link_ms)})
    std::fprintf(stderr, "%10.3f %9s  %s\n", ms, "", name);
}

std::map<std::string, Shape> BuildFlags::input_shapes() const {
  std::map<std::string, Shape> result;
  for (const std::string& text : shapes) {
    const size_t colon = text.rfind(':');
    if (colon == std::string::npos) fail(ErrorCode::InvalidArgument, "--shape {} is not NAME:D,D,…", text);
    Shape shape;
    for (size_t start = colon + 1; start < text.size();) {
      const size_t comma = std::min(text.find(',', start), text.size());
      shape.push_back(parse_dim(std::string_view(text).substr(start, comma - start)));
      start = comma + 1;
    }
    result[text.substr(0, colon)] = std::move(shape);
  }
  return result;
}

}  // namespace treadle::cli
