// SPDX-License-Identifier: Apache-2.0
#include "driver/build.h"

#include <chrono>

#include "codegen/codegen.h"
#include "driver/cache.h"
#include "driver/evaluator.h"
#include "driver/output_file.h"
#include "driver/package.h"
#include "ir/text.h"
#include "ir/visitor.h"
#include "lower/schedule.h"
#include "lower/size.h"
#include "op/register.h"
#include "schedule/simplify.h"

namespace treadle {
namespace {

class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::vector<loop::Function> all_functions(const lower::Program& program) {
  std::vector<loop::Function> functions;
  for (const loop::Function* function : driver::functions_of(program)) functions.push_back(*function);
  return functions;
}

// What the scheduled code of one program may grow to: LLVM's time and memory follow from it. A kernel beyond it becomes
// the plain loop nest, which is small. The nets of bench/models.py have up to 0.04 million in a kernel and 0.8 million
// (lower::code_size) in all.
class ScheduleBudget {
 public:
  bool open() const { return kernels_ < kMaxKernels && size_ < kMaxSize; }
  // Whether a kernel of this size is taken.
  bool pay(int64_t size) {
    if (!open() || size > kMaxKernel) return false;
    ++kernels_;
    size_ += size;
    return true;
  }

 private:
  static constexpr int64_t kMaxKernels = 1024, kMaxKernel = 100'000, kMaxSize = 2'000'000;
  int64_t kernels_ = 0, size_ = 0;
};

pass::PassContext make_context(const BuildOptions& options) {
  op::register_operators();
  pass::PassContext context;
  context.opt_level = options.opt_level;
  context.target = codegen::parse_target(options.target);
  context.evaluator = driver::compiled_evaluator(options);
  for (const std::string& name : options.disabled_passes) pass::get_pass(name);  // an unknown name is an error
  context.disabled = options.disabled_passes;
  context.print_before = options.print_before;
  context.print_after = options.print_after;
  context.print = options.print;
  context.verify = options.verify || pass::kAlwaysVerify;
  context.stop_after = options.stop_after;
  return context;
}

}  // namespace

ir::Module optimize(ir::Module module, const BuildOptions& options, BuildReport* report) {
  const AnonymousScope scope(ir::first_free_anonymous(module));
  pass::PassContext context = make_context(options);
  ir::Module result = pass::run_passes(std::move(module), pass::default_pipeline(), context);
  if (report) report->passes = context.times;
  return result;
}

ir::Module optimize_until(const ir::Module& module, const std::string& pass, const BuildOptions& options,
                          BuildReport* report) {
  pass::get_pass(pass);
  std::vector<std::string> names = pass::default_pipeline();
  while (!names.empty() && names.back() != pass) names.pop_back();
  if (names.empty()) fail(ErrorCode::InvalidArgument, "the default pipeline does not run {}", pass);
  const AnonymousScope scope(ir::first_free_anonymous(module));
  pass::PassContext context = make_context(options);
  ir::Module result = pass::run_passes(module, names, context);
  if (report) report->passes = context.times;
  return result;
}

lower::Program lower_module(const ir::Module& optimized, const BuildOptions& options, BuildReport* report) {
  const Stopwatch watch;
  const AnonymousScope scope(ir::first_free_anonymous(optimized));
  const Target target = codegen::parse_target(options.target);
  const bool schedule = options.opt_level > 0, verify = options.verify || pass::kAlwaysVerify;
  lower::LowerOptions lower_options;
  lower_options.profile = options.profile;
  lower_options.in_place = schedule;
  ScheduleBudget budget;
  lower::Program program = lower::lower(
      optimized,
      [&](const std::string& name, const std::vector<loop::Tensor>& inputs, const std::vector<loop::Tensor>& outputs) {
        loop::Function function;
        if (schedule && budget.open()) function = lower::schedule_function(name, inputs, outputs, target);
        if (!function.body.defined() || !budget.pay(lower::code_size(function)))
          function = schedule::flatten(loop::lower_naive(name, inputs, outputs));
        if (verify) loop::verify(function);
        return function;
      },
      lower_options);
  if (verify) {
    for (const loop::Function* function : driver::functions_of(program)) loop::verify(*function);
  }
  if (report) {
    report->lower_ms = watch.ms();
    report->kernels = program.kernels.size();
    report->kernel_calls = program.calls.size();
  }
  return program;
}

Artifact build(ir::Module module, const BuildOptions& options) {
  op::register_operators();
  Artifact artifact;
  const driver::Cache cache(options);
  const std::string key = cache.enabled() ? cache.key(module, options) : "";
  if (cache.enabled()) {
    if (std::shared_ptr<const Executable> found = cache.find(key)) {
      artifact.executable_ = std::move(found);
      artifact.report_.from_cache = true;
      return artifact;
    }
  }
  const Target target = codegen::parse_target(options.target);
  BuildReport& report = artifact.report_;
  // Weights are held once on the way: each form is released when the next one is made.
  lower::Program program = lower_module(optimize(std::move(module), options, &report), options, &report);
  const Stopwatch codegen_watch;
  std::vector<codegen::Bytes> objects = driver::compile(program, target, options.opt_level, options.threads);
  report.codegen_ms = codegen_watch.ms();
  const Stopwatch link_watch;
  if (cache.enabled()) cache.store(key, program, objects, target);
  artifact.executable_ = driver::load(std::move(program), std::move(objects), target);
  report.link_ms = link_watch.ms();
  return artifact;
}

Artifact load_artifact(const std::string& path) {
  Artifact artifact;
  artifact.executable_ = Executable::load(path);
  return artifact;
}

void export_module(const ir::Module& module, const std::string& path, EmitKind kind, const BuildOptions& options,
                   BuildReport* report) {
  const Target target = codegen::parse_target(options.target);
  const ir::Module optimized = optimize(module, options, report);
  if (kind == EmitKind::Relay) return driver::write_file(path, ir::print(optimized));
  const lower::Program program = lower_module(optimized, options, report);
  codegen::Options codegen_options;
  codegen_options.opt_level = std::min(options.opt_level, 3);
  const Stopwatch watch;
  std::string text;
  switch (kind) {
    case EmitKind::Loop:
      for (const loop::Function& function : all_functions(program)) text += loop::to_string(function) + "\n";
      break;
    case EmitKind::Llvm:
      text = codegen::emit_llvm(all_functions(program), target, codegen_options);
      break;
    case EmitKind::Assembly:
      text = codegen::emit_assembly(all_functions(program), target, codegen_options);
      break;
    case EmitKind::Object: {
      const codegen::Bytes object = codegen::emit_object(all_functions(program), target, codegen_options);
      text.assign(object.begin(), object.end());
      break;
    }
    default: {
      const std::vector<codegen::Bytes> objects = driver::compile(program, target, options.opt_level, options.threads);
      if (report) report->codegen_ms = watch.ms();
      const Stopwatch link_watch;
      driver::write_shared(program, objects, target, path);
      if (report) report->link_ms = link_watch.ms();
      return;
    }
  }
  if (report) report->codegen_ms = watch.ms();
  driver::write_file(path, text);
}

}  // namespace treadle
