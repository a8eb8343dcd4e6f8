// SPDX-License-Identifier: Apache-2.0
// Drops functions that main does not reach.
#include <set>

#include "ir/visitor.h"
#include "pass/passes.h"

namespace treadle::pass {

ir::Module remove_unused_functions(const ir::Module& module, PassContext&) {
  std::set<std::string> reached;
  std::vector<std::string> work = {"main"};
  while (!work.empty()) {
    const std::string name = std::move(work.back());
    work.pop_back();
    auto found = module.functions.find(name);
    if (found == module.functions.end() || !reached.insert(name).second) continue;
    ir::post_order(found->second, [&](const ir::Expr& expr) {
      if (const auto* global = expr.as<ir::GlobalVar>()) work.push_back(global->name);
    });
  }
  ir::Module result = module;
  std::erase_if(result.functions, [&](const auto& entry) { return !reached.count(entry.first); });
  return result;
}

}  // namespace treadle::pass
