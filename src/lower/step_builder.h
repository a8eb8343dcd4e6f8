// SPDX-License-Identifier: Apache-2.0
// Walks the graph of `main` and records steps, storages and kernels.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lower/kernel.h"
#include "lower/program.h"
#include "lower/steps.h"

namespace treadle::lower {

// All kernels of a program, structurally equal ones once.
class KernelTable {
 public:
  struct Call {
    std::string function;
    std::vector<loop::Expr> scalars;
  };
  // The function for a kernel as scheduled, with its large constants turned into arguments; adds it when it is new.
  Call add(const loop::Function& scheduled);
  std::vector<loop::Function> take() { return std::move(functions_); }

 private:
  std::vector<loop::Function> functions_;
  std::unordered_multimap<uint64_t, size_t> by_hash_;
};

class StepBuilder {
 public:
  StepBuilder(const Scheduler& schedule, const LowerOptions& options) : schedule_(schedule), options_(options) {}

  // Fills inputs, outputs, constants, symbols, calls and kernels of `program`; gives the steps of main.
  Steps build(const ir::Function& main, Program& program);
  std::vector<Storage>& storages() { return storages_; }

 private:
  using Leaves = std::vector<Leaf>;

  void bind_inputs(const ir::Function& main);
  void bind_outputs(const ir::Function& main, const Leaves& results, Steps& steps);
  Port make_port(std::string name, const TensorType& type) const;

  // The value of `root`; converts what it needs first, without recursion along operands.
  Leaves convert_graph(const ir::Expr& root, Steps& steps);
  // The same in a scope of its own: what it converted is forgotten afterwards, since its steps may not run.
  Leaves convert_scope(const ir::Expr& root, Steps& steps);
  Leaves convert(const ir::Expr& expr, Steps& steps);
  Leaves convert_call(const ir::Expr& expr, Steps& steps);
  // The symbols of the function's own types get the extents of its arguments.
  void match_arguments(const ir::Function& function, const Leaves& args, Steps& steps);
  // Records checks of what the types of the function's calls assume of extents.
  void check_assumptions(const ir::Function& function, Steps& steps);
  void check(const Assumption& assumption, const std::string& where, Steps& steps);
  // The kernel of a primitive function with plain extents.
  KernelTable::Call kernel_of(const PlainExtents& plain, const TensorGraph& graph);
  Leaves convert_kernel(const ir::Expr& function, const Leaves& inputs, Steps& steps);
  Leaves convert_runtime(const ir::Function& function, const ir::Call& call, const Leaves& inputs, Steps& steps);
  std::optional<Leaves> convert_pieces(const ir::Function& function, const Leaves& inputs, Steps& steps);
  Leaves convert_if(const ir::If& expr, Steps& steps);
  Leaves convert_loop(const ir::Loop& expr, Steps& steps);
  Leaves carry(const ir::Loop& expr, const Leaves& initial, Steps& steps);
  struct Stacks {
    Leaves leaves;
    std::vector<bool> counted;  // the number of rows is known when the loop ends
  };
  Stacks new_stacks(const ir::Loop& expr, const LoopStep& loop, Steps& steps);
  void stack(const Leaves& values, const Leaves& stacks, size_t late_before, LoopStep& loop, BindStep& before);
  void next_iteration(const Leaves& results, const Leaves& carried, Steps& steps);
  Leaves call_function(const ir::Function& function, const Leaves& args, Steps& steps);
  Leaf constant(const Tensor& value);
  Leaves values_of(const std::vector<ir::Expr>& exprs) const;

  // Memory for a value that the next step of `steps` makes.
  Leaf new_leaf(const Shape& shape, DType dtype, Steps& steps);
  // In two parts, for a size that is known only later: in `steps` of `allocate`.
  Leaf unallocated_leaf(const Shape& shape, DType dtype);
  void allocate(const Leaf& leaf, Steps& steps);
  Leaves new_leaves(const Type& type, Steps& steps);
  void set_value(const ir::Expr& expr, Leaves leaves);
  void copy(const Leaves& from, const Leaves& to, Steps& steps);
  // Records that the current step reads or writes the leaf.
  void use(const Leaf& leaf);
  void use(const Leaves& leaves);
  void add_late(const std::string& symbol);
  std::string new_late();
  // Whether only running the program tells the extent: it is none over the inputs' symbols.
  bool has_late(const Dim& dim) const;
  // Gives the late symbols of `shape` the extents of `values`.
  void match(const Shape& shape, const Shape& values, BindStep& step);
  Dim upper_bound(const Dim& dim) const;
  Shape upper_bound(const Shape& shape) const;
  int add_call(KernelInfo info);

  const Scheduler& schedule_;
  const LowerOptions& options_;
  Program* program_ = nullptr;
  KernelTable kernels_;
  // Kernels by the hash of the primitive functions that they are made of: scheduling the same one again costs more than
  // comparing.
  std::unordered_multimap<uint64_t, std::pair<ir::Expr, KernelTable::Call>> scheduled_;
  std::vector<Storage> storages_;
  std::unordered_map<const ir::ExprNode*, Leaves> values_;
  std::vector<const ir::ExprNode*> insertions_;  // keys of values_ in order, to undo a scope
  std::map<const void*, int> constant_storage_;  // by the address of the data
  std::set<std::string> late_;                   // the program's late symbols
  std::set<std::string> checked_;                // what every later step may rely on
  std::map<std::string, Dim> late_bounds_;       // upper bounds of late symbols, in symbols of the inputs
  int position_ = 0;                             // of the step that is being recorded
  int depth_ = 0;                                // of scopes
};

}  // namespace treadle::lower
