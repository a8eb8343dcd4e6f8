// SPDX-License-Identifier: Apache-2.0
// Steps of If, Loop and function calls. Extents that only running the program tells are late symbols: a branch, an
// iteration or a call binds those that stand for its values' extents.
#include <algorithm>

#include "lower/step_builder.h"

namespace treadle::lower {
namespace {

constexpr int kMaxDepth = 200;  // of nested If, Loop and calls
// Up to so many rows a stacked output has room for all that there may be; beyond, its memory grows row by row.
constexpr int64_t kPlannedRows = 4096;

void add_binding(BindStep& step, const std::string& symbol, std::variant<Leaf, Dim> value) {
  const bool known = std::any_of(step.bindings.begin(), step.bindings.end(),
                                 [&](const BindStep::Binding& binding) { return binding.symbol == symbol; });
  if (!known) step.bindings.push_back({symbol, std::move(value)});
}

void push(BindStep step, Steps& steps) {
  if (!step.bindings.empty()) steps.push_back({std::move(step)});
}

}  // namespace

StepBuilder::Leaves StepBuilder::convert_scope(const ir::Expr& root, Steps& steps) {
  if (++depth_ > kMaxDepth) fail(ErrorCode::Limit, "control flow is nested deeper than {}", kMaxDepth);
  const size_t mark = insertions_.size();
  Leaves result = convert_graph(root, steps);
  for (; insertions_.size() > mark; insertions_.pop_back()) values_.erase(insertions_.back());
  --depth_;
  return result;
}

StepBuilder::Leaves StepBuilder::call_function(const ir::Function& function, const Leaves& args, Steps& steps) {
  if (++depth_ > kMaxDepth) fail(ErrorCode::Limit, "function calls are nested deeper than {}", kMaxDepth);
  const size_t mark = insertions_.size();
  size_t offset = 0;
  for (const ir::Expr& param : function.params) {
    const size_t count = tensors_of(param.type()).size();
    set_value(param, Leaves(args.begin() + offset, args.begin() + offset + count));
    offset += count;
  }
  match_arguments(function, args, steps);
  Leaves result = convert_graph(function.body, steps);
  for (; insertions_.size() > mark; insertions_.pop_back()) values_.erase(insertions_.back());
  --depth_;
  return result;
}

void StepBuilder::match_arguments(const ir::Function& function, const Leaves& args, Steps& steps) {
  BindStep extents;
  Steps checks;
  size_t next = 0;
  for (const ir::Expr& param : function.params) {
    for (const TensorType* type : tensors_of(param.type())) {
      const Shape& given = args[next++].shape;
      match(type->shape, given, extents);
      for (size_t axis = 0; axis < given.size(); ++axis) {
        if (!type->shape[axis].as_symbol() && !(type->shape[axis] == given[axis]))
          check({Assumption::Kind::Equal, type->shape[axis], given[axis]}, "the argument of a function", checks);
      }
    }
  }
  push(std::move(extents), steps);
  steps.insert(steps.end(), checks.begin(), checks.end());
}

void StepBuilder::match(const Shape& shape, const Shape& values, BindStep& step) {
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const std::optional<std::string> symbol = shape[axis].as_symbol();
    if (!symbol || !has_late(shape[axis]) || shape[axis] == values[axis]) continue;
    add_late(*symbol);
    add_binding(step, *symbol, values[axis]);
  }
}

std::string StepBuilder::new_late() {
  std::string symbol = fmt::format("?late{}", program_->late_symbols.size());
  add_late(symbol);
  return symbol;
}

StepBuilder::Leaves StepBuilder::convert_if(const ir::If& expr, Steps& steps) {
  IfStep step;
  step.condition = values_.at(expr.condition.get()).at(0);
  ++position_;
  use(step.condition);
  step.then_steps = std::make_shared<Steps>();
  step.else_steps = std::make_shared<Steps>();
  const Leaves then_values = convert_scope(expr.then_branch, *step.then_steps);
  const Leaves else_values = convert_scope(expr.else_branch, *step.else_steps);
  use(then_values);  // copied behind the steps of both branches

  // Where the branches' extents differ, the result's is a symbol that each branch binds.
  BindStep then_extents, else_extents;
  const std::vector<const TensorType*> types = tensors_of(expr.type);
  for (size_t i = 0; i < types.size(); ++i) {
    match(types[i]->shape, then_values[i].shape, then_extents);
    match(types[i]->shape, else_values[i].shape, else_extents);
    for (size_t axis = 0; axis < types[i]->shape.size(); ++axis) {
      const Dim bound = max(upper_bound(then_values[i].shape[axis]), upper_bound(else_values[i].shape[axis]));
      const std::optional<std::string> symbol = types[i]->shape[axis].as_symbol();
      if (symbol && has_late(types[i]->shape[axis]) && !has_late(bound)) late_bounds_.try_emplace(*symbol, bound);
    }
  }
  push(std::move(then_extents), *step.then_steps);
  push(std::move(else_extents), *step.else_steps);
  ++position_;
  Leaves result;
  for (const TensorType* type : types) {
    result.push_back(unallocated_leaf(type->shape, type->dtype));
    allocate(result.back(), *step.then_steps);
    allocate(result.back(), *step.else_steps);
  }
  copy(then_values, result, *step.then_steps);
  copy(else_values, result, *step.else_steps);
  steps.push_back({std::move(step)});
  return result;
}

// Memory of their own for the carried values, which each iteration overwrites at its end. An extent that may change has
// a symbol.
StepBuilder::Leaves StepBuilder::carry(const ir::Loop& expr, const Leaves& initial, Steps& steps) {
  std::vector<const TensorType*> types;
  const auto& params = expr.body.as<ir::Function>()->params;
  for (size_t i = 1; i < params.size(); ++i) {
    for (const TensorType* type : tensors_of(params[i].type())) types.push_back(type);
  }
  BindStep extents;
  std::vector<Shape> shapes;
  for (size_t i = 0; i < initial.size(); ++i) {
    Shape shape = initial[i].shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (!types[i]->shape[axis].as_symbol() || types[i]->shape[axis] == shape[axis]) continue;
      const std::string symbol = new_late();
      add_binding(extents, symbol, shape[axis]);
      shape[axis] = Dim::symbol(symbol);
    }
    shapes.push_back(std::move(shape));
  }
  push(std::move(extents), steps);
  Leaves carried;
  for (size_t i = 0; i < initial.size(); ++i) carried.push_back(new_leaf(shapes[i], initial[i].dtype, steps));
  copy(initial, carried, steps);
  return carried;
}

// Memory for the stacked outputs, as far as their sizes are known before the loop.
StepBuilder::Stacks StepBuilder::new_stacks(const ir::Loop& expr, const LoopStep& loop, Steps& steps) {
  const std::vector<const TensorType*> types = tensors_of(expr.type);
  const size_t num_carried = types.size() - static_cast<size_t>(expr.num_scanned);
  Stacks stacks;
  for (size_t i = num_carried; i < types.size(); ++i) {
    const TensorType& type = *types[i];
    const std::optional<std::string> rows = type.shape[0].as_symbol();
    stacks.counted.push_back(false);
    if (rows && has_late(type.shape[0])) {
      const auto* trips = expr.trip_count.as<ir::Constant>();
      add_late(*rows);
      if (loop.trip_count && !expr.condition.defined()) {
        BindStep step;
        add_binding(step, *rows, *loop.trip_count);
        push(std::move(step), steps);
      } else {
        stacks.counted.back() = true;
        if (trips && trips->value.int_at(0) <= kPlannedRows)
          late_bounds_[*rows] = Dim(std::max<int64_t>(trips->value.int_at(0), 0));
      }
    }
    stacks.leaves.push_back(unallocated_leaf(type.shape, type.dtype));
  }
  return stacks;
}

// Writes the values of this iteration to the next row of their stacks. `before`: what is bound before the loop.
void StepBuilder::stack(const Leaves& values, const Leaves& stacks, size_t late_before, LoopStep& loop,
                        BindStep& before) {
  for (size_t i = 0; i < stacks.size(); ++i) {
    ++position_;
    use({values[i], stacks[i], loop.counter});
    StackStep step{values[i], stacks[i], loop.counter, false, std::nullopt};
    step.grow = storages_[stacks[i].storage].kind == Storage::Kind::Dynamic;
    // Extents that are bound inside the body must be the same in each iteration; without any they are 0.
    for (size_t late = late_before; late < program_->late_symbols.size(); ++late) {
      const std::string symbol = program_->late_symbols[late];
      const bool has = std::any_of(values[i].shape.begin(), values[i].shape.end(),
                                   [&](const Dim& dim) { return dim.symbols().count(symbol) > 0; });
      if (!has) continue;
      add_binding(before, symbol, Dim(0));
      if (!step.row_bytes) step.row_bytes = new_late();
    }
    BindStep row_extents;
    const Shape row(stacks[i].shape.begin() + 1, stacks[i].shape.end());
    match(row, values[i].shape, row_extents);
    for (const BindStep::Binding& binding : row_extents.bindings) add_binding(before, binding.symbol, Dim(0));
    push(std::move(row_extents), *loop.body);
    loop.body->push_back({std::move(step)});
  }
}

// Moves the values of this iteration to where the next one takes them. Two copies where a result is another carried
// value, as all are saved before the first is overwritten; likewise with their extents.
void StepBuilder::next_iteration(const Leaves& results, const Leaves& carried, Steps& steps) {
  Leaves saved;
  for (const Leaf& leaf : results) {
    const bool is_carried =
        std::any_of(carried.begin(), carried.end(), [&](const Leaf& c) { return c.storage == leaf.storage; });
    saved.push_back(is_carried ? new_leaf(leaf.shape, leaf.dtype, steps) : leaf);
    if (is_carried) copy({leaf}, {saved.back()}, steps);
  }
  BindStep next_extents, extents;
  Leaves targets = carried;
  for (size_t i = 0; i < carried.size(); ++i) {
    for (size_t axis = 0; axis < carried[i].shape.size(); ++axis) {
      const std::optional<std::string> symbol = carried[i].shape[axis].as_symbol();
      if (!symbol || !late_.count(*symbol) || carried[i].shape[axis] == results[i].shape[axis]) continue;
      const std::string next = new_late();
      add_binding(next_extents, next, results[i].shape[axis]);
      add_binding(extents, *symbol, Dim::symbol(next));
      targets[i].shape[axis] = Dim::symbol(next);
    }
  }
  push(std::move(next_extents), steps);
  for (const Leaf& target : targets) {
    if (storages_[target.storage].kind != Storage::Kind::Dynamic) continue;
    steps.push_back({AllocateStep{target.storage, bytes_of(target.shape, target.dtype)}});
  }
  copy(saved, targets, steps);
  push(std::move(extents), steps);
}

StepBuilder::Leaves StepBuilder::convert_loop(const ir::Loop& expr, Steps& steps) {
  const Leaves initial = values_of(expr.initial);
  LoopStep step;
  ++position_;
  const int start = position_;
  step.counter = new_leaf({}, dtype::int64_, steps);
  copy({constant(Tensor::scalar(dtype::int64_, 0))}, {step.counter}, steps);
  if (expr.trip_count.defined()) step.trip_count = values_.at(expr.trip_count.get()).at(0);
  const Leaves carried = carry(expr, initial, steps);
  const Stacks stacks = new_stacks(expr, step, steps);

  const size_t late_before = program_->late_symbols.size();
  Leaves args = {step.counter};
  args.insert(args.end(), carried.begin(), carried.end());
  if (expr.condition.defined()) {
    step.condition = new_leaf({}, dtype::bool_, steps);
    step.condition_steps = std::make_shared<Steps>();
    Leaves value = call_function(*expr.condition.as<ir::Function>(), args, *step.condition_steps);
    copy(value, {*step.condition}, *step.condition_steps);
  }
  step.body = std::make_shared<Steps>();
  const Leaves results = call_function(*expr.body.as<ir::Function>(), args, *step.body);
  BindStep before;
  stack({results.begin() + carried.size(), results.end()}, stacks.leaves, late_before, step, before);
  push(std::move(before), steps);
  for (size_t i = 0; i < stacks.leaves.size(); ++i) {
    // A number of rows that is known is reserved at once.
    if (!stacks.counted[i]) allocate(stacks.leaves[i], steps);
  }
  next_iteration({results.begin(), results.begin() + carried.size()}, carried, *step.body);

  ++position_;
  use(carried);
  use(stacks.leaves);
  use(step.counter);
  if (step.condition) use(*step.condition);
  if (step.trip_count) use(*step.trip_count);
  // Whatever the loop reads from outside must outlive its last iteration.
  for (Storage& storage : storages_) {
    if (storage.first < start && storage.last >= start) storage.last = position_;
  }
  const Leaf counter = step.counter;
  steps.push_back({std::move(step)});

  BindStep after;
  const std::vector<const TensorType*> types = tensors_of(expr.type);
  Leaves values;
  for (size_t i = 0; i < types.size(); ++i) {
    const Leaf& leaf = i < carried.size() ? carried[i] : stacks.leaves[i - carried.size()];
    if (i < carried.size()) {
      match(types[i]->shape, leaf.shape, after);
    } else if (stacks.counted[i - carried.size()]) {
      add_binding(after, *types[i]->shape[0].as_symbol(), counter);
    }
    values.push_back({leaf.storage, types[i]->shape, leaf.dtype, 0});
  }
  push(std::move(after), steps);
  return values;
}

}  // namespace treadle::lower
