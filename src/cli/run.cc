// SPDX-License-Identifier: Apache-2.0
// treadle run, treadle bench
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "base/file.h"
#include "cli/command.h"
#include "cli/profile.h"
#include "driver/model.h"
#include "runtime/session.h"

namespace treadle::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

std::string shape_text(const std::vector<int64_t>& shape) { return to_string(to_shape(shape)); }

std::vector<std::string> read_lines(const std::string& path) {
  std::istringstream file(read_file(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Places of the `count` largest values of the last axis' first row, largest first; NaN counts as smallest.
std::vector<int64_t> largest(const Tensor& tensor, int64_t row, int64_t width, int count) {
  std::vector<int64_t> order(static_cast<size_t>(width));
  std::iota(order.begin(), order.end(), 0);
  auto value = [&](int64_t i) {
    const double v = tensor.at(row * width + i);
    return std::isnan(v) ? -INFINITY : v;
  };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return value(a) > value(b); });
  order.resize(std::min<size_t>(order.size(), static_cast<size_t>(count)));
  return order;
}

// Names of a model may be no UTF-8.
void print_json(const Json& report) {
  std::printf("%s\n", report.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

struct RunFlags {
  std::string model;
  BuildFlags build;
  InputFlags inputs;
  std::string output, labels;
  int threads = 0, top = 0;
  bool profile = false, json = false;

  // Labels alone ask for the largest values, too.
  int shown() const { return top > 0 || labels.empty() ? top : 5; }
};

Json summary_of(const Tensor& tensor) {
  double low = INFINITY, high = -INFINITY, sum = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double value = tensor.at(i);
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  }
  Json summary = {{"dtype", to_string(tensor.dtype())}, {"shape", tensor.shape()}};
  if (tensor.size() > 0)
    summary.update({{"min", low}, {"max", high}, {"mean", sum / static_cast<double>(tensor.size())}});
  return summary;
}

void print_top(const RunFlags& flags, const Tensor& tensor, const std::vector<std::string>& labels) {
  const int64_t width = tensor.shape().empty() ? 1 : tensor.shape().back();
  const int64_t rows = width == 0 ? 0 : tensor.size() / width;
  for (int64_t row = 0; row < std::min<int64_t>(rows, 8); ++row) {
    for (int64_t place : largest(tensor, row, width, flags.shown())) {
      const std::string label = place < static_cast<int64_t>(labels.size()) ? labels[place] : fmt::format("{}", place);
      std::printf("  %10.6f  %s\n", tensor.at(row * width + place), label.c_str());
    }
  }
}

std::vector<TreadleTensorRef> refs(const std::vector<Tensor>& tensors) {
  std::vector<TreadleTensorRef> result;
  for (const Tensor& tensor : tensors) result.push_back(tensor_ref(tensor));
  return result;
}

// What was compiled already is run as it is.
void refuse_build_flags(const RunFlags& flags) {
  const std::string given = flags.build.given();
  if (given.empty() || given == "--no-cache" || model_kind(flags.model) != ModelKind::Artifact) return;
  fail(ErrorCode::InvalidArgument, "{} is for models that are compiled now; {} is compiled already", given,
       flags.model);
}

void run(const RunFlags& flags) {
  const auto start = Clock::now();
  refuse_build_flags(flags);
  if (!flags.output.empty()) {
    refuse_overwriting(flags.output, flags.model);
    refuse_overwriting(flags.output, flags.labels);
    for (const std::string& input : flags.inputs.inputs)
      refuse_overwriting(flags.output, input.substr(input.find('=') + 1));
  }
  BuildOptions options = flags.build.resolve();
  options.profile = flags.profile;
  const Artifact artifact = load_model(flags.model, options, flags.build.input_shapes());
  flags.build.print_times(artifact.report());
  Session session(artifact.executable());
  const double compile_ms = milliseconds(Clock::now() - start);
  const std::vector<Tensor> inputs = flags.inputs.make(session.manifest());
  std::vector<KernelTime> times;
  RunOptions run_options;
  run_options.max_threads = flags.threads;
  if (flags.profile) run_options.profile = &times;
  const auto run_start = Clock::now();
  const std::vector<Tensor> outputs = session.run(inputs, run_options);
  const double run_ms = milliseconds(Clock::now() - run_start);
  const Manifest& manifest = session.manifest();
  if (!flags.output.empty()) {
    std::vector<std::pair<std::string, Tensor>> arrays;
    for (size_t i = 0; i < outputs.size(); ++i) arrays.emplace_back(manifest.outputs[i].name, outputs[i]);
    write_npz(flags.output, arrays);
  }
  const std::vector<std::string> labels = flags.labels.empty() ? std::vector<std::string>() : read_lines(flags.labels);
  if (flags.json) {
    Json report = {{"model", flags.model},
                   {"compile_ms", compile_ms},
                   {"run_ms", run_ms},
                   {"from_cache", artifact.report().from_cache}};
    for (size_t i = 0; i < outputs.size(); ++i) {
      Json output = summary_of(outputs[i]);
      output["name"] = manifest.outputs[i].name;
      if (flags.shown() > 0 && outputs[i].size() > 0) {
        for (int64_t place :
             largest(outputs[i], 0, outputs[i].shape().empty() ? 1 : outputs[i].shape().back(), flags.shown())) {
          Json entry = {{"index", place}, {"value", outputs[i].at(place)}};
          if (place < static_cast<int64_t>(labels.size())) entry["label"] = labels[place];
          output["top"].push_back(entry);
        }
      }
      report["outputs"].push_back(output);
    }
    if (flags.profile)
      report["profile"] = to_json(make_profile(manifest, times, session.kernel_flops(refs(inputs)), 1));
    return print_json(report);
  }
  std::printf("ready in %.1f ms%s, ran in %.3f ms\n", compile_ms,
              artifact.report().from_cache ? " (from the cache)" : "", run_ms);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::printf("%s: %s %s", manifest.outputs[i].name.c_str(), to_string(outputs[i].dtype()).c_str(),
                shape_text(outputs[i].shape()).c_str());
    const Json summary = summary_of(outputs[i]);
    if (summary.contains("min"))
      std::printf("  min %g  max %g  mean %g", summary["min"].get<double>(), summary["max"].get<double>(),
                  summary["mean"].get<double>());
    std::printf("\n");
    if (flags.shown() > 0) print_top(flags, outputs[i], labels);
  }
  if (flags.profile) print_profile(make_profile(manifest, times, session.kernel_flops(refs(inputs)), 1));
}

struct BenchFlags {
  RunFlags run;
  int repeat = 20, warmup = 3;
};

void bench(const BenchFlags& flags) {
  refuse_build_flags(flags.run);
  BuildOptions options = flags.run.build.resolve();
  options.profile = flags.run.profile;
  const auto start = Clock::now();
  const Artifact artifact = load_model(flags.run.model, options, flags.run.build.input_shapes());
  flags.run.build.print_times(artifact.report());
  Session session(artifact.executable());
  const double compile_ms = milliseconds(Clock::now() - start);
  const std::vector<Tensor> inputs = flags.run.inputs.make(session.manifest());
  RunOptions run_options;
  run_options.max_threads = flags.run.threads;
  for (int i = 0; i < flags.warmup; ++i) session.run(inputs, run_options);
  std::vector<KernelTime> times;
  if (flags.run.profile) run_options.profile = &times;
  std::vector<double> runs;
  for (int i = 0; i < flags.repeat; ++i) {
    const auto run_start = Clock::now();
    session.run(inputs, run_options);
    runs.push_back(milliseconds(Clock::now() - run_start));
  }
  std::sort(runs.begin(), runs.end());
  const std::vector<int64_t> flops = session.kernel_flops(refs(inputs));
  const double total_flops = std::accumulate(flops.begin(), flops.end(), 0.0);
  const double median = runs[runs.size() / 2];
  if (flags.run.json) {
    Json report = {{"model", flags.run.model}, {"compile_ms", compile_ms}, {"min_ms", runs.front()},
                   {"median_ms", median},      {"runs", runs.size()},      {"gflops", total_flops / median / 1e6}};
    if (flags.run.profile) report["profile"] = to_json(make_profile(session.manifest(), times, flops, flags.repeat));
    return print_json(report);
  }
  std::printf("ready in %.1f ms; %zu runs: min %.3f ms, median %.3f ms, %.2f GFLOP/s\n", compile_ms, runs.size(),
              runs.front(), median, total_flops / median / 1e6);
  if (flags.run.profile) print_profile(make_profile(session.manifest(), times, flops, flags.repeat));
}

void add_common(CLI::App& command, RunFlags& flags) {
  command.add_option("MODEL", flags.model, ".onnx, Relay text, or a shared object of `treadle compile`")->required();
  flags.inputs.add_to(command);
  flags.build.add_to(command);
  command.add_option("-t,--threads", flags.threads, "threads of a run; 0: all")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command.add_flag("--profile", flags.profile, "print the time of each kernel");
  command.add_flag("--json", flags.json, "print JSON");
}

}  // namespace

void add_run(CLI::App& app) {
  auto* command = app.add_subcommand(
      "run", with_example("Runs a model.",
                          "treadle run examples/digits/digits.onnx --input examples/digits/pictures/3.png --labels "
                          "examples/digits/labels.txt --top 2"));
  auto flags = std::make_shared<RunFlags>();
  add_common(*command, *flags);
  command->add_option("-o,--output", flags->output, "an .npz for the outputs");
  command->add_option("--top", flags->top, "print the N largest values of each output (5 with --labels)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--labels", flags->labels, "a text file: line i names class i");
  command->callback([flags] { run(*flags); });
}

void add_bench(CLI::App& app) {
  auto* command = app.add_subcommand(
      "bench", with_example("Times a model.", "treadle bench examples/digits/digits.onnx --threads 1 --profile"));
  auto flags = std::make_shared<BenchFlags>();
  add_common(*command, flags->run);
  command->add_option("--repeat", flags->repeat, "timed runs")->check(CLI::Range(1, 1000000))->capture_default_str();
  command->add_option("--warmup", flags->warmup, "runs before")->check(CLI::Range(0, 1000000))->capture_default_str();
  command->callback([flags] { bench(*flags); });
}

}  // namespace treadle::cli
