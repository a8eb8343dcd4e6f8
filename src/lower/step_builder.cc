// SPDX-License-Identifier: Apache-2.0
#include "lower/step_builder.h"

#include <algorithm>

#include "ir/text.h"
#include "ir/visitor.h"
#include "schedule/abstract_constants.h"

namespace treadle::lower {
namespace {

// The parameter whose memory, seen with another shape, is the function's result; -1 when elements move.
int alias_of(const ir::Function& function) {
  const ir::Expr* expr = &function.body;
  while (const auto* call = expr->as<ir::Call>()) {
    if (!call->op() || !call->op()->has(ir::kShapeOnly)) return -1;
    expr = &call->args[0];
  }
  for (size_t i = 0; i < function.params.size(); ++i) {
    if (function.params[i].same_as(*expr) && as_tensor(expr->type())) return static_cast<int>(i);
  }
  return -1;
}

// The one operator call of a function that is no loop nest; null when the function is a kernel.
const ir::Call* runtime_call(const ir::Function& function) {
  const auto* call = function.body.as<ir::Call>();
  return call && call->op() && !call->op()->compute && call->op()->runtime ? call : nullptr;
}

// Parameters that a kernel reads only at the element that it writes.
std::vector<int> overwritable_params(const ir::Function& function) {
  const TensorType* result = as_tensor(function.body.type());
  if (!result) return {};
  bool elementwise = true;
  ir::post_order(function.body, [&](const ir::Expr& expr) {
    const auto* call = expr.as<ir::Call>();
    if (call && call->op() && call->op()->fusion > ir::FusionKind::Broadcast) elementwise = false;
  });
  std::vector<int> params;
  for (size_t i = 0; elementwise && i < function.params.size(); ++i) {
    if (equal(function.params[i].type(), function.body.type())) params.push_back(static_cast<int>(i));
  }
  return params;
}

bool only_symbols_of(const loop::Expr& expr, const std::map<std::string, Dim>& symbols) {
  struct Check : loop::ExprVisitor {
    explicit Check(const std::map<std::string, Dim>& s) : symbols(s) {}
    void visit_expr(const loop::Expr& e) override {
      const auto* var = e.as<loop::VarNode>();
      if (var && !symbols.count(var->name)) good = false;
      visit_children(e);
    }
    const std::map<std::string, Dim>& symbols;
    bool good = true;
  } check(symbols);
  check.visit(expr);
  return check.good;
}

std::string node_name(const ir::Expr& expr) { return expr->span ? to_string(expr->span) : ""; }

}  // namespace

Dim bytes_of(const Shape& shape, DType dtype) { return product(shape) * Dim(static_cast<int64_t>(dtype.bytes())); }

KernelTable::Call KernelTable::add(const loop::Function& scheduled) {
  schedule::Abstracted abstracted = schedule::abstract_constants(scheduled);
  const uint64_t hash = loop::structural_hash(abstracted.function);
  auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const loop::Function& known = functions_[it->second];
    if (loop::structural_equal(known, abstracted.function)) return {known.name, std::move(abstracted.arguments)};
  }
  loop::Function function = std::move(abstracted.function);
  // The name depends on the code alone, so that equal kernels of different models are equal objects.
  function.name = fmt::format("{}_{:016x}", function.name, hash + std::distance(begin, end));
  by_hash_.emplace(hash, functions_.size());
  functions_.push_back(std::move(function));
  return {functions_.back().name, std::move(abstracted.arguments)};
}

Steps StepBuilder::build(const ir::Function& main, Program& program) {
  program_ = &program;
  bind_inputs(main);
  Steps steps;
  bind_outputs(main, convert_graph(main.body, steps), steps);
  program.kernels = kernels_.take();
  program.late_bounds = late_bounds_;
  return steps;
}

Port StepBuilder::make_port(std::string name, const TensorType& type) const {
  Port port{std::move(name), type.dtype, type.shape, upper_bound(type.shape)};
  port.bounded = std::none_of(port.bound.begin(), port.bound.end(), [&](const Dim& dim) { return has_late(dim); });
  return port;
}

void StepBuilder::bind_inputs(const ir::Function& main) {
  std::set<std::string> symbols;
  for (const ir::Expr& param : main.params) {
    std::vector<const TensorType*> types = tensors_of(param.type());
    Leaves leaves;
    for (size_t i = 0; i < types.size(); ++i) {
      std::string name = param.as<ir::Var>()->name;
      if (types.size() > 1) name += fmt::format(".{}", i);
      Storage storage;
      storage.kind = Storage::Kind::Input;
      storage.index = static_cast<int>(program_->inputs.size());
      storages_.push_back(storage);
      leaves.push_back({static_cast<int>(storages_.size()) - 1, types[i]->shape, types[i]->dtype, 0});
      program_->inputs.push_back(make_port(std::move(name), *types[i]));
      for (const Dim& dim : types[i]->shape) symbols.merge(dim.symbols());
    }
    set_value(param, std::move(leaves));
  }
  program_->symbols.assign(symbols.begin(), symbols.end());
}

void StepBuilder::bind_outputs(const ir::Function& main, const Leaves& results, Steps& steps) {
  // Importers name the results in the function's attribute `output_names`.
  ir::Strings names;
  if (auto found = main.attrs.find("output_names");
      found != main.attrs.end() && std::holds_alternative<ir::Strings>(found->second)) {
    names = std::get<ir::Strings>(found->second);
  }
  std::set<int> taken;
  for (size_t i = 0; i < results.size(); ++i) {
    const Leaf& result = results[i];
    program_->outputs.push_back(
        make_port(i < names.size() ? names[i] : fmt::format("output{}", i), TensorType(result.shape, result.dtype)));
    if (!program_->outputs.back().bounded) {
      ++position_;
      use(result);
      steps.push_back({GiveStep{static_cast<int>(i), result}});
      continue;
    }
    Storage& storage = storages_[result.storage];
    // What is computed once, for this output only, is computed in place; everything else is copied.
    const bool whole = result.offset.is(0) && storage.bytes == bytes_of(upper_bound(result.shape), result.dtype);
    if (storage.kind == Storage::Kind::Arena && whole && taken.insert(result.storage).second) {
      storage.kind = Storage::Kind::Output;
      storage.index = static_cast<int>(i);
      continue;
    }
    Storage output;
    output.kind = Storage::Kind::Output;
    output.index = static_cast<int>(i);
    storages_.push_back(output);
    copy({result}, {{static_cast<int>(storages_.size()) - 1, result.shape, result.dtype, 0}}, steps);
  }
}

void StepBuilder::set_value(const ir::Expr& expr, Leaves leaves) {
  if (values_.insert_or_assign(expr.get(), std::move(leaves)).second) insertions_.push_back(expr.get());
}

StepBuilder::Leaves StepBuilder::convert_graph(const ir::Expr& root, Steps& steps) {
  struct Frame {
    ir::Expr expr;
    std::vector<ir::Expr> operands;
    size_t next = 0;
  };
  auto operands_of = [](const ir::Expr& expr) -> std::vector<ir::Expr> {
    switch (expr.kind()) {
      case ir::ExprKind::Call:
        return expr.as<ir::Call>()->args;
      case ir::ExprKind::Tuple:
        return expr.as<ir::Tuple>()->fields;
      case ir::ExprKind::TupleGetItem:
        return {expr.as<ir::TupleGetItem>()->tuple};
      case ir::ExprKind::Let:
        return {expr.as<ir::Let>()->value, expr.as<ir::Let>()->body};
      case ir::ExprKind::If:
        return {expr.as<ir::If>()->condition};
      case ir::ExprKind::Loop: {
        std::vector<ir::Expr> operands = expr.as<ir::Loop>()->initial;
        if (expr.as<ir::Loop>()->trip_count.defined()) operands.push_back(expr.as<ir::Loop>()->trip_count);
        return operands;
      }
      default:
        return {};
    }
  };
  std::vector<Frame> stack;
  stack.push_back({root, operands_of(root)});
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (values_.count(frame.expr.get())) {
      stack.pop_back();
    } else if (frame.next < frame.operands.size()) {
      const auto* let = frame.expr.as<ir::Let>();
      if (let && frame.next == 1) set_value(let->var, values_.at(let->value.get()));
      ir::Expr operand = frame.operands[frame.next++];
      if (!values_.count(operand.get())) stack.push_back({operand, operands_of(operand)});
    } else {
      ir::Expr expr = frame.expr;
      try {
        set_value(expr, convert(expr, steps));
      } catch (Error& error) {
        if (error.context().empty() && !node_name(expr).empty()) error.at("node " + node_name(expr));
        throw;
      }
      stack.pop_back();
    }
  }
  return values_.at(root.get());
}

StepBuilder::Leaves StepBuilder::values_of(const std::vector<ir::Expr>& exprs) const {
  Leaves leaves;
  for (const ir::Expr& expr : exprs) {
    const Leaves& part = values_.at(expr.get());
    leaves.insert(leaves.end(), part.begin(), part.end());
  }
  return leaves;
}

StepBuilder::Leaves StepBuilder::convert(const ir::Expr& expr, Steps& steps) {
  switch (expr.kind()) {
    case ir::ExprKind::Constant:
      return {constant(expr.as<ir::Constant>()->value)};
    case ir::ExprKind::Tuple:
      return values_of(expr.as<ir::Tuple>()->fields);
    case ir::ExprKind::TupleGetItem: {
      const auto* item = expr.as<ir::TupleGetItem>();
      const Leaves& tuple = values_.at(item->tuple.get());
      const auto begin = tuple.begin() + leaf_offset(*as_tuple(item->tuple.type()), item->index);
      return Leaves(begin, begin + static_cast<int64_t>(tensors_of(expr.type()).size()));
    }
    case ir::ExprKind::Call:
      return convert_call(expr, steps);
    case ir::ExprKind::Let:
      return values_.at(expr.as<ir::Let>()->body.get());
    case ir::ExprKind::If:
      return convert_if(*expr.as<ir::If>(), steps);
    case ir::ExprKind::Loop:
      return convert_loop(*expr.as<ir::Loop>(), steps);
    case ir::ExprKind::Var:
      fail(ErrorCode::CodegenUnsupported, "%{} has no value here: closures and recursion cannot be compiled",
           expr.as<ir::Var>()->name);
    case ir::ExprKind::Function:
      return {};  // a let-bound function; its calls are converted where they stand
    default:
      fail(ErrorCode::CodegenUnsupported, "a value of type {} cannot be compiled", to_string(expr.type()));
  }
}

StepBuilder::Leaves StepBuilder::convert_call(const ir::Expr& expr, Steps& steps) {
  const auto& call = *expr.as<ir::Call>();
  const auto* function = call.callee.as<ir::Function>();
  if (!function)
    fail(ErrorCode::CodegenUnsupported,
         "a call of a function that is known only while running cannot be compiled: closures and recursion");
  Leaves inputs = values_of(call.args);
  if (!function->is_primitive()) return call_function(*function, inputs, steps);
  match_arguments(*function, inputs, steps);
  check_assumptions(*function, steps);
  if (const int alias = alias_of(*function); alias >= 0) {
    size_t offset = 0;
    for (int i = 0; i < alias; ++i) offset += tensors_of(function->params[i].type()).size();
    const TensorType& type = *as_tensor(function->body.type());
    return {{inputs[offset].storage, type.shape, type.dtype, inputs[offset].offset}};
  }
  if (std::optional<Leaves> pieces = convert_pieces(*function, inputs, steps)) return *pieces;
  if (const ir::Call* op_call = runtime_call(*function)) return convert_runtime(*function, *op_call, inputs, steps);
  return convert_kernel(call.callee, inputs, steps);
}

void StepBuilder::check_assumptions(const ir::Function& function, Steps& steps) {
  auto has_symbol = [](const Type& type) {
    const std::vector<const TensorType*> tensors = tensors_of(type);
    return std::any_of(tensors.begin(), tensors.end(), [](const TensorType* tensor) {
      return std::any_of(tensor->shape.begin(), tensor->shape.end(), [](const Dim& dim) { return !dim.is_const(); });
    });
  };
  ir::post_order(function.body, [&](const ir::Expr& expr) {
    const auto* call = expr.as<ir::Call>();
    if (!call || !call->op()) return;
    std::vector<Type> types;
    bool symbolic = has_symbol(call->type);
    for (const ir::Expr& arg : call->args) {
      types.push_back(arg.type());
      symbolic = symbolic || has_symbol(types.back());
    }
    if (!symbolic) return;
    AssumptionScope scope;
    ir::infer_call(*call->op(), *call->attrs, types);
    for (const TensorType* tensor : tensors_of(call->type)) {
      for (const Dim& dim : tensor->shape) assume_at_most(0, dim);
    }
    const std::string where = node_name(expr).empty() ? call->op()->name : "node " + node_name(expr);
    for (const Assumption& assumption : scope.assumptions()) check(assumption, where, steps);
  });
}

void StepBuilder::check(const Assumption& assumption, const std::string& where, Steps& steps) {
  const std::string a = to_string(assumption.a), b = to_string(assumption.b);
  // Once is enough, except for symbols that another call or iteration may bind again.
  if (!has_late(assumption.a) && !has_late(assumption.b)) {
    const std::string key = fmt::format("{} {} {}", static_cast<int>(assumption.kind), a, b);
    if (checked_.count(key)) return;
    if (depth_ == 0) checked_.insert(key);  // what stands in a branch may not run
  }
  std::string message;
  switch (assumption.kind) {
    case Assumption::Kind::Equal:
      message = fmt::format("{}: the extents {} and {} must be equal", where, a, b);
      break;
    case Assumption::Kind::AtMost:
      message = assumption.a.is(0) ? fmt::format("{}: the extent {} is negative", where, b)
                                   : fmt::format("{}: {} must be at most {}", where, a, b);
      break;
    case Assumption::Kind::Broadcast:
    case Assumption::Kind::BroadcastTo:
      message = fmt::format("{}: the extent {} does not broadcast to {}", where, a, b);
      break;
  }
  steps.push_back({CheckStep{assumption, std::move(message)}});
}

int StepBuilder::add_call(KernelInfo info) {
  program_->calls.push_back(std::move(info));
  return static_cast<int>(program_->calls.size()) - 1;
}

// An operator whose arguments or results are pieces of one another's memory needs no kernel.
std::optional<StepBuilder::Leaves> StepBuilder::convert_pieces(const ir::Function& function, const Leaves& inputs,
                                                               Steps& steps) {
  const auto* call = function.body.as<ir::Call>();
  if (!call || !call->op() || !options_.in_place) return std::nullopt;
  // The tensors of the call's arguments, which must be the function's parameters.
  Leaves args;
  std::map<const ir::ExprNode*, Leaf> params;
  for (size_t i = 0; i < function.params.size(); ++i) {
    if (!as_tensor(function.params[i].type())) return std::nullopt;
    params[function.params[i].get()] = inputs[i];
  }
  for (const ir::Expr& arg : call->args) {
    const auto* tuple = arg.as<ir::Tuple>();
    for (const ir::Expr& field : tuple ? tuple->fields : std::vector<ir::Expr>{arg}) {
      auto found = params.find(field.get());
      if (found == params.end()) return std::nullopt;
      args.push_back(found->second);
    }
  }
  auto bytes = [](const Dim& elements, DType dtype) { return elements * Dim(static_cast<int64_t>(dtype.bytes())); };
  if (call->op()->splits) {
    std::optional<std::vector<Dim>> offsets = call->op()->splits(*call);
    if (!offsets) return std::nullopt;
    Leaves outputs;
    const std::vector<const TensorType*> types = tensors_of(function.body.type());
    for (size_t i = 0; i < types.size(); ++i) {
      outputs.push_back(
          {args[0].storage, types[i]->shape, types[i]->dtype, args[0].offset + bytes((*offsets)[i], types[i]->dtype)});
    }
    return outputs;
  }
  std::optional<std::vector<Dim>> offsets = call->op()->joins ? call->op()->joins(*call) : std::nullopt;
  if (!offsets) return std::nullopt;
  ++position_;
  JoinStep step;
  step.inputs = args;
  step.output = new_leaves(function.body.type(), steps).at(0);
  for (const Dim& offset : *offsets) step.offsets.push_back(bytes(offset, step.output.dtype));
  use(step.inputs);
  use(step.output);
  steps.push_back({step});
  return Leaves{step.output};
}

KernelTable::Call StepBuilder::kernel_of(const PlainExtents& plain, const TensorGraph& graph) {
  const uint64_t hash = ir::structural_hash(plain.function);
  const auto [begin, end] = scheduled_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (ir::structural_equal(it->second.first, plain.function)) return it->second.second;
  }
  loop::Function scheduled = schedule_(graph.name, graph.inputs, graph.outputs);
  scheduled.source = graph.source;
  KernelTable::Call kernel = kernels_.add(scheduled);
  // Symbols of attributes are not plain, and anonymous ones count as equal: such a kernel is no other's.
  const bool plain_scalars = std::all_of(kernel.scalars.begin(), kernel.scalars.end(), [&](const loop::Expr& scalar) {
    return only_symbols_of(scalar, plain.values);
  });
  if (plain_scalars) scheduled_.emplace(hash, std::pair(plain.function, kernel));
  return kernel;
}

StepBuilder::Leaves StepBuilder::convert_kernel(const ir::Expr& function_expr, const Leaves& inputs, Steps& steps) {
  const ir::Function& function = *function_expr.as<ir::Function>();
  const PlainExtents plain = plain_extents(function_expr);
  const TensorGraph graph = tensor_graph(*plain.function.as<ir::Function>());
  KernelTable::Call kernel = kernel_of(plain, graph);
  std::map<const loop::VarNode*, loop::Expr> extents;
  for (const auto& [symbol, dim] : plain.values) extents[loop::symbol_var(symbol).var()] = loop::to_expr(dim);
  for (loop::Expr& scalar : kernel.scalars) scalar = loop::substitute(scalar, extents);
  ++position_;
  KernelStep step;
  step.function = kernel.function;
  step.scalars = std::move(kernel.scalars);
  step.call = add_call({graph.name, graph.source, kernel.function, count_operations(graph, plain.values)});
  step.position = position_;
  step.buffers = inputs;
  Leaves outputs = new_leaves(function.body.type(), steps);
  step.buffers.insert(step.buffers.end(), outputs.begin(), outputs.end());
  if (options_.in_place && std::all_of(function.params.begin(), function.params.end(),
                                       [](const ir::Expr& p) { return as_tensor(p.type()) != nullptr; })) {
    step.may_overwrite = overwritable_params(function);
  }
  use(step.buffers);
  steps.push_back({std::move(step)});
  return outputs;
}

StepBuilder::Leaves StepBuilder::convert_runtime(const ir::Function& function, const ir::Call& call,
                                                 const Leaves& inputs, Steps& steps) {
  std::map<const ir::ExprNode*, Leaves> params;
  size_t offset = 0;
  for (const ir::Expr& param : function.params) {
    const size_t count = tensors_of(param.type()).size();
    params[param.get()] = Leaves(inputs.begin() + offset, inputs.begin() + offset + count);
    offset += count;
  }
  RuntimeStep step;
  step.kernel = call.op()->runtime(call);
  std::function<void(const ir::Expr&)> add_input = [&](const ir::Expr& arg) {
    if (const auto* value = arg.as<ir::Constant>()) {
      step.inputs.push_back(constant(value->value));
    } else if (const auto* fields = arg.as<ir::Tuple>()) {
      for (const ir::Expr& field : fields->fields) add_input(field);
    } else {
      const Leaves& leaves = params.at(arg.get());
      step.inputs.insert(step.inputs.end(), leaves.begin(), leaves.end());
    }
  };
  for (const ir::Expr& arg : call.args) add_input(arg);

  std::vector<const TensorType*> types = tensors_of(function.body.type());
  for (size_t i = 0; step.kernel.bounded && i < step.kernel.output_bounds.size(); ++i) {
    for (size_t axis = 0; axis < types[i]->shape.size(); ++axis) {
      std::optional<std::string> symbol = types[i]->shape[axis].as_symbol();
      const auto& names = step.kernel.result_symbols;
      if (symbol && std::find(names.begin(), names.end(), *symbol) != names.end()) {
        late_bounds_[*symbol] = upper_bound(step.kernel.output_bounds[i][axis]);
      }
    }
  }
  for (const std::string& symbol : step.kernel.result_symbols) add_late(symbol);
  ++position_;
  step.call = add_call({call.op()->name, node_name(function.body), "runtime:" + step.kernel.kernel, 0});
  Leaves outputs = new_leaves(function.body.type(), steps);
  step.outputs = outputs;
  use(step.inputs);
  use(step.outputs);
  steps.push_back({std::move(step)});
  return outputs;
}

Leaf StepBuilder::constant(const Tensor& value) {
  auto [found, added] = constant_storage_.try_emplace(value.data(), static_cast<int>(storages_.size()));
  if (added) {
    Storage storage;
    storage.kind = Storage::Kind::Constant;
    storage.index = static_cast<int>(program_->constants.size());
    storages_.push_back(storage);
    program_->constants.push_back(value);
  }
  return {found->second, to_shape(value.shape()), value.dtype(), 0};
}

Leaf StepBuilder::new_leaf(const Shape& shape, DType dtype, Steps& steps) {
  const Leaf leaf = unallocated_leaf(shape, dtype);
  allocate(leaf, steps);
  return leaf;
}

Leaf StepBuilder::unallocated_leaf(const Shape& shape, DType dtype) {
  Storage storage;
  storage.bytes = bytes_of(upper_bound(shape), dtype);
  storage.first = storage.last = position_;
  // Without a bound the size is known only when what binds the symbol has run, so the memory cannot be planned ahead.
  if (has_late(storage.bytes)) storage.kind = Storage::Kind::Dynamic;
  storages_.push_back(storage);
  return {static_cast<int>(storages_.size()) - 1, shape, dtype, 0};
}

void StepBuilder::allocate(const Leaf& leaf, Steps& steps) {
  const Storage& storage = storages_[leaf.storage];
  if (storage.kind == Storage::Kind::Dynamic) steps.push_back({AllocateStep{leaf.storage, storage.bytes}});
}

StepBuilder::Leaves StepBuilder::new_leaves(const Type& type, Steps& steps) {
  Leaves leaves;
  for (const TensorType* leaf : tensors_of(type)) leaves.push_back(new_leaf(leaf->shape, leaf->dtype, steps));
  return leaves;
}

void StepBuilder::copy(const Leaves& from, const Leaves& to, Steps& steps) {
  TREADLE_CHECK(from.size() == to.size());
  ++position_;
  for (size_t i = 0; i < from.size(); ++i) {
    use(from[i]);
    use(to[i]);
    steps.push_back({CopyStep{from[i], to[i]}});
  }
}

void StepBuilder::use(const Leaf& leaf) { storages_[leaf.storage].last = position_; }

void StepBuilder::use(const Leaves& leaves) {
  for (const Leaf& leaf : leaves) use(leaf);
}

void StepBuilder::add_late(const std::string& symbol) {
  if (late_.insert(symbol).second) program_->late_symbols.push_back(symbol);
}

bool StepBuilder::has_late(const Dim& dim) const {
  if (dim.is_const()) return false;
  const std::set<std::string> symbols = dim.symbols();
  return !std::includes(program_->symbols.begin(), program_->symbols.end(), symbols.begin(), symbols.end());
}

Dim StepBuilder::upper_bound(const Dim& dim) const { return late_bounds_.empty() ? dim : dim.substitute(late_bounds_); }

Shape StepBuilder::upper_bound(const Shape& shape) const {
  Shape bound;
  for (const Dim& dim : shape) bound.push_back(upper_bound(dim));
  return bound;
}

}  // namespace treadle::lower
