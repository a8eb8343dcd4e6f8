// SPDX-License-Identifier: Apache-2.0
// The pass manager: what a pass is, in which context it runs, and the default pipeline.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/target.h"
#include "ir/expr.h"

namespace treadle::pass {

// Debug builds check the IR after every pass, and every loop function, whether asked to or not.
#ifdef TREADLE_DEBUG
inline constexpr bool kAlwaysVerify = true;
#else
inline constexpr bool kAlwaysVerify = false;
#endif

// Computes constant subgraphs: each expression is closed (no free variables); gives one tensor per output of each, in
// order.
using Evaluator = std::function<std::vector<std::vector<Tensor>>(const std::vector<ir::Expr>& closed)>;

struct PassTime {
  std::string name;
  double milliseconds;
  int rewrites;
};

// How passes run. One context serves one build; not shared between threads.
struct PassContext {
  int opt_level = 3;  // passes of a higher level are skipped
  Target target;
  Evaluator evaluator;             // empty: the interpreter of the loop IR
  std::set<std::string> disabled;  // pass names; those of level 0 still do what the rest of the road needs
  std::set<std::string> print_before, print_after;                               // pass names, or "all"
  std::function<void(const std::string& title, const std::string& text)> print;  // where dumps go
  bool verify = kAlwaysVerify;                                                   // run ir::verify after every pass
  int stop_after = -1;          // stop after that many rewrites of all passes together; -1: never
  int rewrites = 0;             // counted so far
  std::vector<PassTime> times;  // of each pass that ran, in order

  // Asks whether one more rewrite may be done, and counts it; what bisecting turns off. Every pass calls it before a
  // rewrite, except the passes of level 0 for what the rest of the road needs.
  bool allow_rewrite() {
    if (stop_after >= 0 && rewrites >= stop_after) return false;
    ++rewrites;
    return true;
  }
};

struct Pass {
  std::string name;     // "FoldConstant"
  std::string purpose;  // one line
  int opt_level;        // the lowest at which the default pipeline runs it
  ir::Module (*run)(const ir::Module& module, PassContext& context);
};

// Every pass, in the order of passes.def.
const std::vector<Pass>& all_passes();
// Errors: InvalidArgument naming the nearest names.
const Pass& get_pass(const std::string& name);

// Names of the passes that `treadle compile` runs, in order; a name may occur more than once.
const std::vector<std::string>& default_pipeline();

// Runs passes by name: skips what is disabled or of a higher level, times, dumps, verifies. An Error gets the pass's
// name as context.
ir::Module run_passes(ir::Module module, const std::vector<std::string>& names, PassContext& context);

}  // namespace treadle::pass
