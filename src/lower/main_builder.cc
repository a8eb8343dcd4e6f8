// SPDX-License-Identifier: Apache-2.0
#include "lower/main_builder.h"

#include <algorithm>
#include <map>
#include <set>

#include "lower/memory_plan.h"

namespace treadle::lower {
namespace {

using loop::Buffer;
using loop::Expr;
using loop::Stmt;

constexpr const char* kRowsDiffer =
    "fail:the iterations of a loop give values of different sizes, which cannot be stacked";
constexpr int64_t kConstantAlign = static_cast<int64_t>(kAlignment);
// A longer main is cut into pieces of so many steps: code generation is not linear in the length of a function.
constexpr size_t kStepsPerPart = 1000;

Buffer bytes_buffer(const std::string& name, const Dim& bytes) {
  return loop::make_buffer(name, dtype::uint8_, {loop::to_expr(bytes)});
}

class MainBuilder {
 public:
  MainBuilder(std::vector<Storage> storages, const LowerOptions& options, Program& program)
      : storages_(std::move(storages)), options_(options), program_(program), merged_(storages_.size(), -1) {}

  void build(const Steps& steps) {
    merge_joins(steps);
    merge_in_place(steps);
    place();
    declare_buffers();
    loop::Function main = signature("main");
    if (steps.size() <= kStepsPerPart) {
      main.body = block(steps, 0, steps.size());
    } else {
      main.body = call_parts(steps);
    }
    program_.main = std::move(main);
  }

 private:
  // ---- Memory. ----

  int resolve(int storage) const {
    while (merged_[storage] >= 0) storage = merged_[storage];
    return storage;
  }

  // Every join of the steps, in order.
  static void collect_joins(const Steps& steps, std::vector<const JoinStep*>& joins) {
    for (const Step& step : steps) {
      if (const auto* join = std::get_if<JoinStep>(&step.what)) joins.push_back(join);
    }
  }

  // The storage at the root of a piece, and the piece's place in it.
  std::pair<int, Dim> root_of(int storage) const {
    Dim offset = 0;
    for (; storages_[storage].parent >= 0; storage = storages_[storage].parent)
      offset = offset + storages_[storage].offset;
    return {storage, offset};
  }

  // Makes the inputs of joins pieces of the outputs. The last join comes first: it is the largest where features pile
  // up (DenseNet), and an earlier join of the same values is then a piece of it as a whole. Only top-level steps: a
  // branch or loop may not run.
  void merge_joins(const Steps& steps) {
    std::vector<const JoinStep*> joins;
    collect_joins(steps, joins);
    for (size_t j = joins.size(); j-- > 0;) {
      const JoinStep& join = *joins[j];
      Storage& output = storages_[join.output.storage];
      if (!join.output.offset.is(0) || (output.kind != Storage::Kind::Arena && output.kind != Storage::Kind::Output))
        continue;
      if (output.kind == Storage::Kind::Arena && output.parent < 0 && already_pieces(join)) continue;
      for (size_t i = 0; i < join.inputs.size(); ++i) {
        const Leaf& input = join.inputs[i];
        Storage& piece = storages_[input.storage];
        const Dim bytes = product(input.shape) * Dim(static_cast<int64_t>(input.dtype.bytes()));
        const bool whole = input.offset.is(0) && piece.bytes == bytes;
        if (piece.kind != Storage::Kind::Arena || piece.parent >= 0 || !whole || input.storage == join.output.storage)
          continue;
        if (has_pieces_.count(input.storage) && output.kind != Storage::Kind::Arena) continue;
        piece.parent = join.output.storage;
        piece.offset = join.offsets[i];
        has_pieces_.insert(join.output.storage);
        extend(join.output.storage, piece.first, piece.last);
      }
    }
  }

  // A storage and all it is a piece of must live from `first` to `last`.
  void extend(int storage, int first, int last) {
    for (; storage >= 0; storage = storages_[storage].parent) {
      storages_[storage].first = std::min(storages_[storage].first, first);
      storages_[storage].last = std::max(storages_[storage].last, last);
    }
  }

  // When all inputs lie one behind the other in one storage already, the output is that stretch of it.
  bool already_pieces(const JoinStep& join) {
    std::optional<std::pair<int, Dim>> start;
    for (size_t i = 0; i < join.inputs.size(); ++i) {
      auto [root, offset] = root_of(join.inputs[i].storage);
      offset = offset + join.inputs[i].offset - join.offsets[i];
      if (i == 0)
        start = {root, offset};
      else if (root != start->first || !(offset == start->second))
        return false;
    }
    const bool is_piece = start && storages_[join.inputs[0].storage].parent >= 0 && start->first != join.output.storage;
    if (!is_piece || storages_[start->first].kind == Storage::Kind::Constant ||
        storages_[start->first].kind == Storage::Kind::Input)
      return false;
    Storage& output = storages_[join.output.storage];
    output.parent = start->first;
    output.offset = start->second;
    has_pieces_.insert(start->first);
    extend(start->first, output.first, output.last);
    return true;
  }

  // Lets an elementwise kernel's output take over the memory of an argument that dies with that step.
  void merge_in_place(const Steps& steps) {
    for (const Step& step : steps) {
      if (const auto* branch = std::get_if<IfStep>(&step.what)) {
        merge_in_place(*branch->then_steps);
        merge_in_place(*branch->else_steps);
      } else if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
        if (loop->condition_steps) merge_in_place(*loop->condition_steps);
        merge_in_place(*loop->body);
      } else if (const auto* kernel = std::get_if<KernelStep>(&step.what)) {
        merge_in_place(*kernel);
      }
    }
  }

  void merge_in_place(const KernelStep& step) {
    const int output = step.buffers.back().storage;
    auto is_alone = [&](int storage) { return storages_[storage].parent < 0 && !has_pieces_.count(storage); };
    if (storages_[output].kind != Storage::Kind::Arena || merged_[output] >= 0 || !is_alone(output)) return;
    for (int input : step.may_overwrite) {
      const int source = resolve(step.buffers[input].storage);
      Storage& storage = storages_[source];
      const bool dies = is_alone(source) && step.buffers[input].offset.is(0) && storage.kind == Storage::Kind::Arena &&
                        storage.last == step.position && storage.first < step.position;
      const bool read_twice = std::count_if(step.buffers.begin(), step.buffers.end() - 1,
                                            [&](const Leaf& leaf) { return resolve(leaf.storage) == source; }) > 1;
      if (!dies || read_twice || !(storage.bytes == storages_[output].bytes) ||
          storages_[output].first != step.position)
        continue;
      storage.last = std::max(storage.last, storages_[output].last);
      merged_[output] = source;
      return;
    }
  }

  void place() {
    std::vector<Lifetime> lifetimes;
    std::vector<int> ids;
    for (size_t i = 0; i < storages_.size(); ++i) {
      if (storages_[i].kind != Storage::Kind::Arena || merged_[i] >= 0 || storages_[i].parent >= 0) continue;
      lifetimes.push_back({storages_[i].bytes, storages_[i].first, storages_[i].last});
      ids.push_back(static_cast<int>(i));
    }
    MemoryPlan plan = plan_memory(lifetimes);
    offsets_.resize(storages_.size());
    for (size_t i = 0; i < ids.size(); ++i) offsets_[ids[i]] = plan.offsets[i];
    program_.arena = plan.total;
    assign_slots();
    int64_t offset = 0;
    for (const Tensor& constant : program_.constants) {
      constant_offsets_.push_back(offset);
      offset = (offset + static_cast<int64_t>(constant.bytes()) + kConstantAlign - 1) / kConstantAlign * kConstantAlign;
    }
    constants_bytes_ = offset;
  }

  // Dynamic storages that never live at the same time share a slot.
  void assign_slots() {
    slots_.assign(storages_.size(), -1);
    std::vector<int> order;
    for (size_t i = 0; i < storages_.size(); ++i) {
      if (storages_[i].kind == Storage::Kind::Dynamic) order.push_back(static_cast<int>(i));
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return storages_[a].first < storages_[b].first; });
    std::multimap<int, int> busy;  // slots by the last step of what is in them
    for (int storage : order) {
      const auto free = busy.begin();
      int slot = program_.slots;
      if (free != busy.end() && free->first < storages_[storage].first) {
        slot = free->second;
        busy.erase(free);
      } else {
        ++program_.slots;
      }
      slots_[storage] = slot;
      busy.emplace(storages_[storage].last, slot);
    }
  }

  void declare_buffers() {
    // With its bound: a symbol that is bound while running has no value yet.
    auto declare = [&](const Port& port) {
      return loop::make_buffer(port.name, port.dtype,
                               port.bounded ? loop::to_exprs(port.bound) : std::vector<Expr>{Expr(0)});
    };
    for (const Port& port : program_.inputs) inputs_.push_back(declare(port));
    for (const Port& port : program_.outputs) outputs_.push_back(declare(port));
    constants_ = bytes_buffer("constants", constants_bytes_);
    arena_ = bytes_buffer("arena", program_.arena);
    const auto num_late = static_cast<int64_t>(program_.late_symbols.size());
    results_ = loop::make_buffer("results", dtype::int64_, {Expr(num_late + program_.slots)});
    for (int64_t i = 0; i < num_late; ++i) {
      late_values_[loop::symbol_var(program_.late_symbols[i]).var()] = loop::load(results_, {Expr(i)});
    }
    for (const std::string& symbol : program_.symbols) scalars_.push_back(loop::symbol_var(symbol));
    for (const std::string& symbol : program_.late_symbols) scalars_.push_back(loop::Var(symbol + ".bound"));
  }

  loop::Function signature(std::string name) const {
    loop::Function function;
    function.name = std::move(name);
    function.buffers = inputs_;
    function.buffers.insert(function.buffers.end(), outputs_.begin(), outputs_.end());
    for (const Buffer& buffer : {constants_, arena_, results_}) function.buffers.push_back(buffer);
    function.num_outputs = outputs_.size() + 3;
    function.scalars = scalars_;
    return function;
  }

  // ---- Symbols that are bound while running: their values stand in the results, behind them the slots. ----

  Expr late_place(const std::string& symbol) const {
    const auto& late = program_.late_symbols;
    const auto found = std::find(late.begin(), late.end(), symbol);
    TREADLE_CHECK(found != late.end(), "symbol {} is bound nowhere", symbol);
    return Expr(static_cast<int64_t>(found - late.begin()));
  }
  Expr slot_place(int storage) const {
    return Expr(static_cast<int64_t>(program_.late_symbols.size()) + slots_[storage]);
  }
  Expr value_of(const Expr& expr) const { return late_values_.empty() ? expr : loop::substitute(expr, late_values_); }
  Expr value_of(const Dim& dim) const { return value_of(loop::to_expr(dim)); }

  // ---- Tensors. ----

  static std::vector<Expr> zeros(size_t rank) { return std::vector<Expr>(rank, Expr(0)); }

  // The buffer through which a leaf is read and written: its storage's memory with the leaf's own shape, from so many
  // bytes on.
  Buffer view(const Leaf& leaf, const Expr& from = Expr(0)) {
    const auto [id, piece_offset] = root_of(resolve(leaf.storage));
    const Storage& storage = storages_[id];
    Dim offset = leaf.offset + piece_offset;
    auto node = std::make_shared<loop::BufferNode>();
    switch (storage.kind) {
      case Storage::Kind::Input:
        node->base = inputs_[storage.index];
        break;
      case Storage::Kind::Output:
        node->base = outputs_[storage.index];
        break;
      case Storage::Kind::Constant:
        node->base = constants_;
        offset = offset + constant_offsets_[storage.index];
        break;
      case Storage::Kind::Arena:
        node->base = arena_;
        offset = offset + offsets_[id];
        break;
      case Storage::Kind::Dynamic:
        node->base = pointer(id);
        break;
    }
    node->name = fmt::format("t{}", id);
    node->dtype = leaf.dtype;
    for (const Dim& dim : leaf.shape) node->shape.push_back(value_of(dim));
    node->scope = loop::Scope::View;
    node->base_offset = value_of(offset) + from;
    return node;
  }

  // The memory whose address is in a Dynamic storage's slot.
  Buffer pointer(int storage) const {
    auto node = std::make_shared<loop::BufferNode>();
    node->name = fmt::format("dynamic{}", storage);
    node->dtype = dtype::uint8_;
    node->shape = {Expr(0)};
    node->scope = loop::Scope::Pointer;
    node->base = results_;
    node->base_offset = slot_place(storage) * Expr(static_cast<int64_t>(sizeof(int64_t)));
    return node;
  }

  Expr base_address(const Leaf& leaf, const Expr& from = Expr(0)) {
    return loop::address(view(leaf, from), zeros(leaf.shape.size()));
  }
  Expr scalar(const Leaf& leaf) { return loop::load(view(leaf), {}); }

  // ---- Statements. ----

  Stmt call_parts(const Steps& steps) {
    std::vector<Stmt> calls;
    for (size_t begin = 0; begin < steps.size(); begin += kStepsPerPart) {
      loop::Function part = signature(fmt::format("main_part{}", program_.main_parts.size()));
      part.body = block(steps, begin, std::min(steps.size(), begin + kStepsPerPart));
      std::vector<Expr> args;
      for (const Buffer& buffer : part.buffers) args.push_back(loop::address(buffer, zeros(buffer->shape.size())));
      for (const loop::Var& var : scalars_) args.push_back(var);
      calls.push_back(loop::evaluate(loop::extern_call("kernel:" + part.name, std::move(args))));
      program_.main_parts.push_back(std::move(part));
    }
    return loop::block(std::move(calls));
  }

  Stmt block(const Steps& steps, size_t begin, size_t end) {
    std::vector<Stmt> stmts;
    for (size_t i = begin; i < end; ++i) {
      std::visit([&](const auto& step) { emit(step, stmts); }, steps[i].what);
    }
    return loop::block(std::move(stmts));
  }
  Stmt block(const Steps& steps) { return block(steps, 0, steps.size()); }

  void call(Expr expr, int number, std::vector<Stmt>& out) {
    auto mark = [&](int begin) {
      if (options_.profile) out.push_back(loop::evaluate(loop::extern_call("profile", {Expr(number), Expr(begin)})));
    };
    mark(1);
    out.push_back(loop::evaluate(std::move(expr)));
    mark(0);
  }

  void emit(const KernelStep& step, std::vector<Stmt>& out) {
    std::vector<Expr> args;
    for (const Leaf& leaf : step.buffers) args.push_back(base_address(leaf));
    for (const Expr& scalar : step.scalars) args.push_back(value_of(scalar));
    call(loop::extern_call("kernel:" + step.function, std::move(args)), step.call, out);
  }

  void emit(const RuntimeStep& step, std::vector<Stmt>& out) {
    std::vector<Expr> args = {Expr(static_cast<int64_t>(step.inputs.size()))};
    for (const Leaf& leaf : step.inputs) args.push_back(base_address(leaf));
    args.push_back(Expr(static_cast<int64_t>(step.outputs.size())));
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      Leaf leaf = step.outputs[i];
      // A data-dependent extent is not bound yet: the kernel sees the room that there is.
      if (!step.kernel.output_bounds.empty()) leaf.shape = step.kernel.output_bounds[i];
      args.push_back(base_address(leaf));
    }
    args.push_back(Expr(static_cast<int64_t>(step.kernel.params.size())));
    for (int64_t param : step.kernel.params) args.push_back(Expr(param));
    const auto& symbols = step.kernel.result_symbols;
    if (!symbols.empty()) args.push_back(loop::address(results_, {late_place(symbols[0])}));
    call(loop::extern_call("runtime:" + step.kernel.kernel, std::move(args)), step.call, out);
  }

  void emit(const CopyStep& step, std::vector<Stmt>& out) {
    if (resolve(step.from.storage) == resolve(step.to.storage) && step.from.offset == step.to.offset) return;
    out.push_back(copy_call(base_address(step.from), base_address(step.to)));
  }

  static Stmt copy_call(Expr from, Expr to) {
    return loop::evaluate(
        loop::extern_call("runtime:copy", {Expr(1), std::move(from), Expr(1), std::move(to), Expr(0)}));
  }

  void emit(const JoinStep& step, std::vector<Stmt>& out) {
    const auto [root, start] = root_of(resolve(step.output.storage));
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const Leaf& input = step.inputs[i];
      const auto [input_root, input_start] = root_of(resolve(input.storage));
      if (input_root == root && input_start + input.offset == start + step.output.offset + step.offsets[i]) continue;
      Leaf place{step.output.storage, input.shape, input.dtype, step.output.offset + step.offsets[i]};
      out.push_back(copy_call(base_address(input), base_address(place)));
    }
  }

  void emit(const IfStep& step, std::vector<Stmt>& out) {
    out.push_back(loop::if_then(scalar(step.condition), block(*step.then_steps), block(*step.else_steps)));
  }

  void emit(const LoopStep& step, std::vector<Stmt>& out) {
    Expr running = loop::bool_imm(true);
    if (step.trip_count)
      running = running && (scalar(step.counter) < loop::cast(scalar(*step.trip_count), dtype::int64_));
    if (step.condition) running = running && scalar(*step.condition);
    std::vector<Stmt> body = {block(*step.body), loop::store(view(step.counter), {}, scalar(step.counter) + Expr(1))};
    if (step.condition_steps) {
      out.push_back(block(*step.condition_steps));
      body.push_back(block(*step.condition_steps));
    }
    out.push_back(loop::while_loop(running, loop::block(std::move(body))));
  }

  void emit(const StackStep& step, std::vector<Stmt>& out) {
    const Leaf& from = step.from;
    const Expr row_bytes = value_of(bytes_of(from.shape, from.dtype));
    const Expr begin = scalar(step.counter) * row_bytes;
    if (step.row_bytes) {
      const Expr place = late_place(*step.row_bytes);
      out.push_back(loop::if_then(scalar(step.counter) == Expr(0), loop::store(results_, {place}, row_bytes)));
      out.push_back(loop::if_then(loop::load(results_, {place}) != row_bytes,
                                  loop::evaluate(loop::extern_call(kRowsDiffer, {}))));
    }
    if (step.grow) out.push_back(reserve(step.to.storage, begin + row_bytes, true));
    out.push_back(copy_call(base_address(from),
                            base_address({step.to.storage, from.shape, step.to.dtype, step.to.offset}, begin)));
  }

  // All values are read before the first symbol changes.
  void emit(const BindStep& step, std::vector<Stmt>& out) {
    std::vector<loop::Var> values;
    std::vector<Stmt> stores;
    for (const BindStep::Binding& binding : step.bindings) {
      values.push_back(loop::Var(binding.symbol + ".value"));
      stores.push_back(loop::store(results_, {late_place(binding.symbol)}, values.back()));
    }
    Stmt body = loop::block(std::move(stores));
    for (size_t i = values.size(); i-- > 0;) {
      const auto& value = step.bindings[i].value;
      const Leaf* leaf = std::get_if<Leaf>(&value);
      body = loop::let(
          values[i],
          leaf ? loop::max(loop::cast(scalar(*leaf), dtype::int64_), Expr(0)) : value_of(std::get<Dim>(value)),
          std::move(body));
    }
    out.push_back(std::move(body));
  }

  void emit(const AllocateStep& step, std::vector<Stmt>& out) {
    out.push_back(reserve(step.storage, value_of(step.bytes), false));
  }

  void emit(const CheckStep& step, std::vector<Stmt>& out) {
    const Expr a = value_of(step.assumption.a), b = value_of(step.assumption.b);
    Expr holds;
    switch (step.assumption.kind) {
      case Assumption::Kind::Equal:
        holds = a == b;
        break;
      case Assumption::Kind::AtMost:
        holds = a <= b;
        break;
      case Assumption::Kind::Broadcast:
        holds = a == b || (a == Expr(1) && Expr(1) <= b) || (b == Expr(1) && Expr(1) <= a);
        break;
      case Assumption::Kind::BroadcastTo:
        holds = a == b || a == Expr(1);
        break;
    }
    out.push_back(loop::if_then(!holds, loop::evaluate(loop::extern_call("fail:" + step.message, {}))));
  }

  void emit(const GiveStep& step, std::vector<Stmt>& out) {
    out.push_back(loop::evaluate(loop::extern_call("give_output", {Expr(step.output), base_address(step.value)})));
  }

  Stmt reserve(int storage, Expr bytes, bool keep) {
    return loop::evaluate(loop::extern_call(
        "reserve", {loop::address(results_, {slot_place(storage)}), std::move(bytes), Expr(keep ? 1 : 0)}));
  }

  std::vector<Storage> storages_;
  const LowerOptions& options_;
  Program& program_;
  std::vector<int> merged_;  // the storage whose memory this one took over; -1: its own
  std::vector<Dim> offsets_;
  std::vector<int64_t> constant_offsets_;
  int64_t constants_bytes_ = 0;
  std::vector<Buffer> inputs_, outputs_;
  Buffer constants_, arena_, results_;
  std::vector<loop::Var> scalars_;
  std::vector<int> slots_;  // of Dynamic storages
  std::map<const loop::VarNode*, Expr> late_values_;
  std::set<int> has_pieces_;  // storages of which others are pieces
};

}  // namespace

void build_main(const Steps& steps, std::vector<Storage> storages, const LowerOptions& options, Program& program) {
  MainBuilder(std::move(storages), options, program).build(steps);
}

}  // namespace treadle::lower
