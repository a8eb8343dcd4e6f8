// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace treadle {
namespace {

constexpr size_t kIdleStates = 8;  // memory kept for runs at the same time

std::string type_text(std::span<const int64_t> shape, DType dtype) {
  return fmt::format("({}) {}", fmt::join(shape, ", "), to_string(dtype));
}

std::string type_text(const Manifest::TensorInfo& info) {
  return fmt::format("({}) {}", fmt::join(info.shape, ", "), to_string(info.dtype));
}

DType dtype_of_ref(const TreadleTensorRef& ref) { return {static_cast<TypeCode>(ref.type_code), ref.bits}; }

std::string type_text(const TreadleTensorRef& ref) {
  return type_text({ref.shape, static_cast<size_t>(ref.rank)}, dtype_of_ref(ref));
}

// Runs f when the scope is left.
template <typename F>
struct Finally {
  F f;
  ~Finally() { f(); }
};
template <typename F>
Finally(F) -> Finally<F>;

}  // namespace

TreadleTensorRef tensor_ref(const Tensor& tensor) {
  return {const_cast<void*>(tensor.data()), tensor.shape().data(), static_cast<int32_t>(tensor.shape().size()),
          static_cast<uint8_t>(tensor.dtype().code), tensor.dtype().bits};
}

Session::Session(std::shared_ptr<const Executable> executable) : executable_(std::move(executable)) {
  for (const Manifest::Symbol& symbol : manifest().symbols) symbols_.push_back(symbol.name);
  try {
    inputs_ = parse_ports(manifest().inputs);
    outputs_ = parse_ports(manifest().outputs);
    for (size_t i = 0; i < symbols_.size(); ++i) {
      const std::string& bound = manifest().symbols[i].bound;
      if (bound.empty()) continue;
      if (bound == kInternalSymbol) {
        bounds_.emplace_back(i, Extent());
        continue;
      }
      // Symbols after this one are not known when the bound is evaluated.
      bounds_.emplace_back(i, Extent::parse(bound, std::span(symbols_).first(i)));
    }
    arena_bytes_ = Extent::parse(manifest().arena_bytes, symbols_);
    for (const Manifest::Kernel& kernel : manifest().kernels) flops_.push_back(Extent::parse(kernel.flops, symbols_));
  } catch (const Error& error) {
    throw Error(ErrorCode::ArtifactInvalid, error.message());
  }
  plan_bindings();
  idle_.reserve(kIdleStates);  // so that giving back never fails
}

Session::~Session() = default;

std::vector<Session::Port> Session::parse_ports(const std::vector<Manifest::TensorInfo>& infos) {
  std::vector<Port> ports;
  for (const Manifest::TensorInfo& info : infos) {
    Port port;
    for (const std::string& text : info.shape) {
      port.shape.push_back(Extent::parse(text, symbols_));
      const std::vector<size_t> symbols = port.shape.back().symbols();
      port.unbounded.push_back(std::any_of(symbols.begin(), symbols.end(), [&](size_t symbol) {
        return manifest().symbols[symbol].bound == kInternalSymbol;
      }));
      port.any_unbounded = port.any_unbounded || port.unbounded.back();
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

// Finds for each symbol an extent of an input from which it follows: first one that is the symbol itself, then one in
// which it is the only symbol still unknown.
void Session::plan_bindings() {
  std::vector<bool> known(symbols_.size());
  for (const auto& [symbol, bound] : bounds_) known[symbol] = true;
  auto pass = [&](bool plain) {
    bool progress = false;
    for (size_t input = 0; input < inputs_.size(); ++input) {
      for (size_t axis = 0; axis < inputs_[input].shape.size(); ++axis) {
        const Extent& extent = inputs_[input].shape[axis];
        if (plain && !extent.symbol()) continue;
        std::vector<size_t> unknown = extent.symbols();
        std::erase_if(unknown, [&](size_t symbol) { return known[symbol]; });
        if (unknown.size() != 1) continue;
        bindings_.push_back({unknown[0], input, axis});
        known[unknown[0]] = true;
        progress = true;
      }
    }
    return progress;
  };
  pass(true);
  while (pass(false)) {
  }
  for (size_t i = 0; i < symbols_.size(); ++i) {
    if (!known[i]) fail(ErrorCode::ArtifactInvalid, "no input binds the symbol {} of the model", symbols_[i]);
  }
}

void Session::check_input(size_t i, const TreadleTensorRef& input) const {
  const Manifest::TensorInfo& info = manifest().inputs[i];
  if (dtype_of_ref(input) != info.dtype || static_cast<size_t>(input.rank) != info.shape.size()) {
    fail(ErrorCode::RuntimeInput, "input \"{}\": expected {}, got {}", info.name, type_text(info), type_text(input));
  }
  int64_t count = 1;
  for (int axis = 0; axis < input.rank; ++axis) {
    if (input.shape[axis] < 0)
      fail(ErrorCode::RuntimeInput, "input \"{}\": axis {} has extent {}", info.name, axis, input.shape[axis]);
    count = input.shape[axis] == 0 ? 0 : count;
  }
  if (count != 0 && !input.data) fail(ErrorCode::RuntimeInput, "input \"{}\" has no data", info.name);
  if (reinterpret_cast<uintptr_t>(input.data) % info.dtype.bytes() != 0) {
    fail(ErrorCode::RuntimeInput, "input \"{}\": the data is not aligned to its {} elements", info.name,
         to_string(info.dtype));
  }
}

// The value of the symbol under which the extent has this value: extents that bind a symbol are linear in it.
int64_t Session::solve(const Binding& binding, int64_t extent, std::vector<int64_t>& values) const {
  const Extent& formula = inputs_[binding.input].shape[binding.axis];
  if (formula.symbol()) return extent;
  values[binding.symbol] = 0;
  const int64_t at_0 = formula.evaluate(values);
  values[binding.symbol] = 1;
  const int64_t slope = formula.evaluate(values) - at_0;
  // When it is not linear, the check of all extents that follows does not hold.
  return slope == 0 ? 0 : std::max<int64_t>((extent - at_0) / slope, 0);
}

// Sets the value of every symbol; those that depend on data get their upper bounds.
void Session::bind(std::span<const TreadleTensorRef> inputs, std::vector<int64_t>& values) const {
  if (inputs.size() != inputs_.size()) {
    fail(ErrorCode::RuntimeInput, "the model has {} inputs, {} were given", inputs_.size(), inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) check_input(i, inputs[i]);
  values.assign(symbols_.size(), 0);
  for (const Binding& binding : bindings_) {
    values[binding.symbol] = solve(binding, inputs[binding.input].shape[binding.axis], values);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t axis = 0; axis < inputs_[i].shape.size(); ++axis) {
      const int64_t expected = inputs_[i].shape[axis].evaluate(values), got = inputs[i].shape[axis];
      if (expected == got) continue;
      const Manifest::TensorInfo& info = manifest().inputs[i];
      Error error(ErrorCode::RuntimeInput,
                  fmt::format("input \"{}\": expected {}, got {}", info.name, type_text(info), type_text(inputs[i])));
      for (size_t symbol : inputs_[i].shape[axis].symbols()) {
        for (const Binding& binding : bindings_) {
          if (binding.symbol != symbol) continue;
          error.note(fmt::format("{} is {}, from axis {} of input \"{}\"", symbols_[symbol], values[symbol],
                                 binding.axis, manifest().inputs[binding.input].name));
        }
      }
      throw error;
    }
  }
  for (const auto& [symbol, bound] : bounds_) values[symbol] = bound.evaluate(values);
}

int64_t Session::output_extent(size_t output, size_t axis, std::span<const int64_t> values) const {
  if (outputs_[output].unbounded[axis]) return kUnbounded;
  const int64_t extent = outputs_[output].shape[axis].evaluate(values);
  if (extent < 0) {
    const Manifest::TensorInfo& info = manifest().outputs[output];
    fail(ErrorCode::RuntimeInput, "these inputs give axis {} of output \"{}\" the extent {} = {}", axis, info.name,
         info.shape[axis], extent);
  }
  return extent;
}

std::vector<std::vector<int64_t>> Session::output_shapes(std::span<const TreadleTensorRef> inputs) const {
  std::vector<int64_t> values;
  bind(inputs, values);
  std::vector<std::vector<int64_t>> shapes(outputs_.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (size_t axis = 0; axis < outputs_[i].shape.size(); ++axis) shapes[i].push_back(output_extent(i, axis, values));
  }
  return shapes;
}

std::vector<int64_t> Session::kernel_flops(std::span<const TreadleTensorRef> inputs) const {
  std::vector<int64_t> values;
  bind(inputs, values);
  std::vector<int64_t> flops;
  for (const Extent& extent : flops_) flops.push_back(extent.evaluate(values));
  return flops;
}

void Session::check_output(size_t i, const OutputBuffer& output, std::span<const int64_t> values) const {
  const Manifest::TensorInfo& info = manifest().outputs[i];
  bool fits = output.dtype == info.dtype && static_cast<size_t>(output.rank) == info.shape.size();
  if (outputs_[i].any_unbounded) {
    if (fits && !output.data && output.value) return;
    fail(ErrorCode::InvalidArgument,
         "output \"{}\", {}: its size is known only when the model has run, so no memory can be given", info.name,
         type_text(info));
  }
  int64_t count = 1;
  for (size_t axis = 0; fits && axis < info.shape.size(); ++axis) {
    fits = output.shape[axis] == output_extent(i, axis, values);
    if (output.shape[axis] == 0) count = 0;
  }
  if (!fits) {
    fail(ErrorCode::InvalidArgument, "output \"{}\": expected {}, got memory for {}", info.name, type_text(info),
         type_text({output.shape, static_cast<size_t>(output.rank)}, output.dtype));
  }
  if ((count != 0 && !output.data) || reinterpret_cast<uintptr_t>(output.data) % info.dtype.bytes() != 0) {
    fail(ErrorCode::InvalidArgument, "output \"{}\": the memory is null or not aligned to its {} elements", info.name,
         to_string(info.dtype));
  }
}

void Session::run(std::span<const TreadleTensorRef> inputs, std::span<const OutputBuffer> outputs,
                  const RunOptions& options) {
  if (outputs.size() != outputs_.size()) {
    fail(ErrorCode::InvalidArgument, "the model has {} outputs, memory for {} was given", outputs_.size(),
         outputs.size());
  }
  std::unique_ptr<RunState> state = take_state();
  Finally give([&] { give_back(std::move(state)); });
  bind(inputs, state->scalars);
  for (size_t i = 0; i < outputs.size(); ++i) check_output(i, outputs[i], state->scalars);
  if (options.profile) options.profile->resize(manifest().kernels.size());
  state->begin(options.max_threads, options.profile);
  Finally end([&] { state->end(); });
  call_main(*state, inputs, outputs);
  if (bounds_.empty()) return;
  read_results(*state);
  for (size_t i = 0; i < outputs.size(); ++i) read_output(*state, i, outputs[i]);
}

void Session::read_output(RunState& state, size_t i, const OutputBuffer& output) const {
  if (!outputs_[i].any_unbounded) {
    for (int32_t axis = 0; axis < output.rank; ++axis) output.shape[axis] = output_extent(i, axis, state.scalars);
    return;
  }
  if (i >= state.given.size() || !state.given[i].defined()) {
    fail(ErrorCode::Internal, "model \"{}\" did not give output \"{}\"", manifest().name, manifest().outputs[i].name);
  }
  *output.value = std::move(state.given[i]);
  std::copy(output.value->shape().begin(), output.value->shape().end(), output.shape);
}

void Session::call_main(RunState& state, std::span<const TreadleTensorRef> inputs,
                        std::span<const OutputBuffer> outputs) {
  state.buffers.clear();
  for (const TreadleTensorRef& input : inputs) state.buffers.push_back(input.data);
  for (const OutputBuffer& output : outputs) state.buffers.push_back(output.data);
  state.buffers.push_back(const_cast<void*>(executable_->constants()));
  state.buffers.push_back(state.arena(arena_bytes_.evaluate(state.scalars)));
  state.results.assign(std::max<size_t>(bounds_.size() + static_cast<size_t>(manifest().slots), 1), 0);
  std::fill_n(state.results.begin(), bounds_.size(), -1);
  state.buffers.push_back(state.results.data());
  const int32_t code = executable_->main()(state.context(), state.buffers.data(), state.scalars.data());
  if (code == 0) return;
  if (state.message().empty())
    fail(ErrorCode::RuntimeKernel, "model \"{}\" failed with code {}", manifest().name, code);
  Error error(ErrorCode::RuntimeKernel, state.message());
  for (const Binding& binding : bindings_) {
    error.note(fmt::format("{} is {}, from axis {} of input \"{}\"", symbols_[binding.symbol],
                           state.scalars[binding.symbol], binding.axis, manifest().inputs[binding.input].name));
  }
  throw error;
}

// Replaces the upper bounds of symbols that depend on data by their values.
void Session::read_results(RunState& state) const {
  for (size_t k = 0; k < bounds_.size(); ++k) {
    int64_t& value = state.scalars[bounds_[k].first];
    if (manifest().symbols[bounds_[k].first].bound == kInternalSymbol) continue;
    if (state.results[k] < 0 || state.results[k] > value) {
      fail(ErrorCode::Internal, "model \"{}\" gave symbol {} the value {}, its bound is {}", manifest().name,
           symbols_[bounds_[k].first], state.results[k], value);
    }
    value = state.results[k];
  }
}

std::vector<Tensor> Session::run(const std::vector<Tensor>& inputs, const RunOptions& options) {
  std::vector<TreadleTensorRef> refs;
  for (const Tensor& input : inputs) refs.push_back(tensor_ref(input));
  std::vector<std::vector<int64_t>> shapes = output_shapes(refs);
  std::vector<Tensor> outputs(shapes.size());
  std::vector<OutputBuffer> buffers;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const DType dtype = manifest().outputs[i].dtype;
    if (!outputs_[i].any_unbounded) outputs[i] = Tensor(dtype, shapes[i]);
    buffers.push_back({outputs[i].defined() ? outputs[i].data() : nullptr, shapes[i].data(),
                       static_cast<int32_t>(shapes[i].size()), dtype, &outputs[i]});
  }
  run(refs, buffers, options);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].shape() == shapes[i]) continue;
    auto whole = std::make_shared<Tensor>(std::move(outputs[i]));  // the memory stays as large as the bound
    outputs[i] = Tensor(whole->dtype(), shapes[i], whole->data(), whole);
  }
  return outputs;
}

std::vector<Tensor> Session::run_named(const std::map<std::string, Tensor>& inputs, const RunOptions& options) {
  std::vector<Tensor> ordered;
  for (const Manifest::TensorInfo& info : manifest().inputs) {
    auto found = inputs.find(info.name);
    if (found == inputs.end()) {
      fail(ErrorCode::RuntimeInput, "input \"{}\", {}, is missing", info.name, type_text(info));
    }
    ordered.push_back(found->second);
  }
  for (const auto& [name, tensor] : inputs) {
    const auto& infos = manifest().inputs;
    if (std::any_of(infos.begin(), infos.end(), [&, &key = name](const auto& info) { return info.name == key; }))
      continue;
    std::vector<std::string> names;
    for (const Manifest::TensorInfo& info : infos) names.push_back("\"" + info.name + "\"");
    fail(ErrorCode::RuntimeInput, "the model has no input \"{}\"; its inputs are {}", name, fmt::join(names, ", "));
  }
  return run(ordered, options);
}

std::unique_ptr<RunState> Session::take_state() {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<RunState>();
  std::unique_ptr<RunState> state = std::move(idle_.back());
  idle_.pop_back();
  return state;
}

void Session::give_back(std::unique_ptr<RunState> state) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleStates) idle_.push_back(std::move(state));
}

}  // namespace treadle
