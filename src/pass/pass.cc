// SPDX-License-Identifier: Apache-2.0
#include "pass/pass.h"

#include <chrono>

#include "base/nearest.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "pass/passes.h"

namespace treadle::pass {
namespace {

bool listed(const std::set<std::string>& names, const std::string& name) {
  return names.count(name) || names.count("all");
}

void dump(const PassContext& context, const char* when, const Pass& pass, const ir::Module& module) {
  if (context.print)
    context.print(fmt::format("{} {}", when, pass.name),
                  ir::print(module, {.types = true, .spans = false, .constants = false}));
}

ir::Module run_one(const Pass& pass, const ir::Module& module, PassContext& context) {
  if (listed(context.print_before, pass.name)) dump(context, "before", pass, module);
  const auto start = std::chrono::steady_clock::now();
  const int rewrites = context.rewrites;
  ir::Module result;
  try {
    result = pass.run(module, context);
  } catch (Error& error) {
    error.at("pass " + pass.name);
    throw;
  }
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  context.times.push_back({pass.name, elapsed.count(), context.rewrites - rewrites});
  if (listed(context.print_after, pass.name)) dump(context, "after", pass, result);
  if (context.verify) {
    try {
      ir::verify(result);
    } catch (Error& error) {
      error.at("after pass " + pass.name);
      throw;
    }
  }
  return result;
}

}  // namespace

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes = {
#define TREADLE_PASS(function, name, opt_level, purpose) {name, purpose, opt_level, function},
#include "pass/passes.def"
#undef TREADLE_PASS
  };
  return passes;
}

const Pass& get_pass(const std::string& name) {
  std::vector<std::string> names;
  for (const Pass& pass : all_passes()) {
    if (pass.name == name) return pass;
    names.push_back(pass.name);
  }
  throw Error(ErrorCode::InvalidArgument, fmt::format("there is no pass \"{}\"", name))
      .help("nearest: " + nearest(name, names));
}

const std::vector<std::string>& default_pipeline() {
  static const std::vector<std::string> names = {
      "RemoveUnusedFunctions",
      "Inline",
      "InferType",  // from here: only main and what recursion needs; every type is known
      "SimplifyInference",
      "FoldConstant",
      "CanonicalizeOps",
      "SimplifyExpr",
      "EliminateCommonSubexpr",
      "FoldScaleAxis",
      "FoldConstant",
      "SimplifyExpr",
      "AlterOpLayout",
      "SimplifyInference",
      "CanonicalizeOps",
      "SimplifyExpr",  // from here: every operator has a kernel
      "FoldConstant",
      "EliminateCommonSubexpr",
      "DeadCodeElimination",
      "FuseOps",  // from here: operators occur only inside primitive functions
  };
  return names;
}

ir::Module run_passes(ir::Module module, const std::vector<std::string>& names, PassContext& context) {
  for (const std::string& name : names) {
    const Pass& pass = get_pass(name);
    if (pass.opt_level > context.opt_level || (pass.opt_level > 0 && context.disabled.count(name))) continue;
    module = run_one(pass, module, context);
  }
  return module;
}

}  // namespace treadle::pass
