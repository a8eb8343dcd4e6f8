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

constexpr int64_t kConstantAlign = static_cast<int64_t>(kAlignment);
// A longer main is cut into pieces of so many steps: code generation is not linear in the length of a function.
constexpr size_t kStepsPerPart = 1000;

Buffer bytes_buffer(const std::string& name, const Dim& bytes) {
  return loop::make_buffer(name, dtype::uint8_, {loop::to_expr(bytes)});
}

// Statements of one block; lets and allocations enclose whatever follows them.
class BlockWriter {
 public:
  void push(Stmt stmt) { frames_.back().stmts.push_back(std::move(stmt)); }
  void bind(loop::Var var, Expr value) {
    frames_.push_back({[var, value](Stmt body) { return loop::let(var, value, std::move(body)); }, {}});
  }
  void allocate(Buffer buffer) {
    frames_.push_back({[buffer](Stmt body) { return loop::allocate(buffer, std::move(body)); }, {}});
  }
  Stmt finish() {
    while (frames_.size() > 1) {
      Frame frame = std::move(frames_.back());
      frames_.pop_back();
      push(frame.wrap(loop::block(std::move(frame.stmts))));
    }
    return loop::block(std::move(frames_.back().stmts));
  }

 private:
  struct Frame {
    std::function<Stmt(Stmt)> wrap;
    std::vector<Stmt> stmts;
  };
  std::vector<Frame> frames_ = {{nullptr, {}}};
};

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
    if (steps.size() <= kStepsPerPart || has_bindings(steps)) {
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
    int64_t offset = 0;
    for (const Tensor& constant : program_.constants) {
      constant_offsets_.push_back(offset);
      offset = (offset + static_cast<int64_t>(constant.bytes()) + kConstantAlign - 1) / kConstantAlign * kConstantAlign;
    }
    constants_bytes_ = offset;
  }

  void declare_buffers() {
    // With its bound: a symbol that is bound while running has no value yet.
    auto declare = [&](const Port& port) {
      return loop::make_buffer(port.name, port.dtype, loop::to_exprs(port.bound));
    };
    for (const Port& port : program_.inputs) inputs_.push_back(declare(port));
    for (const Port& port : program_.outputs) outputs_.push_back(declare(port));
    constants_ = bytes_buffer("constants", constants_bytes_);
    arena_ = bytes_buffer("arena", program_.arena);
    results_ = loop::make_buffer("results", dtype::int64_, {Expr(static_cast<int64_t>(program_.late_symbols.size()))});
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

  // The buffer through which a leaf is read and written: its storage's memory with the leaf's own shape.
  Buffer view(const Leaf& leaf) {
    const auto [id, piece_offset] = root_of(resolve(leaf.storage));
    const Storage& storage = storages_[id];
    const Dim offset = leaf.offset + piece_offset;
    auto node = std::make_shared<loop::BufferNode>();
    node->dtype = leaf.dtype;
    node->shape = loop::to_exprs(leaf.shape);
    node->scope = loop::Scope::View;
    node->base_offset = loop::to_expr(offset);
    switch (storage.kind) {
      case Storage::Kind::Input:
        node->base = inputs_[storage.index];
        break;
      case Storage::Kind::Output:
        node->base = outputs_[storage.index];
        break;
      case Storage::Kind::Constant:
        node->base = constants_;
        node->base_offset = loop::to_expr(offset + constant_offsets_[storage.index]);
        break;
      case Storage::Kind::Arena:
        node->base = arena_;
        node->base_offset = loop::to_expr(offset + offsets_[id]);
        break;
      case Storage::Kind::Dynamic:
        node->base = dynamic_.at(id);
        break;
    }
    node->name = fmt::format("t{}", id);
    return node;
  }

  Expr base_address(const Leaf& leaf) {
    return loop::address(view(leaf), std::vector<Expr>(leaf.shape.size(), Expr(0)));
  }
  Expr scalar(const Leaf& leaf) { return loop::load(view(leaf), {}); }

  // ---- Statements. ----

  static bool has_bindings(const Steps& steps) {
    return std::any_of(steps.begin(), steps.end(), [](const Step& step) {
      const auto* runtime = std::get_if<RuntimeStep>(&step.what);
      return std::holds_alternative<BindStep>(step.what) || std::holds_alternative<AllocateStep>(step.what) ||
             (runtime && !runtime->kernel.result_symbols.empty());
    });
  }

  Stmt call_parts(const Steps& steps) {
    std::vector<Stmt> calls;
    for (size_t begin = 0; begin < steps.size(); begin += kStepsPerPart) {
      loop::Function part = signature(fmt::format("main_part{}", program_.main_parts.size()));
      part.body = block(steps, begin, std::min(steps.size(), begin + kStepsPerPart));
      std::vector<Expr> args;
      for (const Buffer& buffer : part.buffers)
        args.push_back(loop::address(buffer, std::vector<Expr>(buffer->shape.size(), Expr(0))));
      for (const loop::Var& var : scalars_) args.push_back(var);
      calls.push_back(loop::evaluate(loop::extern_call("kernel:" + part.name, std::move(args))));
      program_.main_parts.push_back(std::move(part));
    }
    return loop::block(std::move(calls));
  }

  Stmt block(const Steps& steps, size_t begin, size_t end) {
    BlockWriter writer;
    for (size_t i = begin; i < end; ++i) {
      std::visit([&](const auto& step) { emit(step, writer); }, steps[i].what);
    }
    return writer.finish();
  }
  Stmt block(const Steps& steps) { return block(steps, 0, steps.size()); }

  void call(Expr expr, int number, BlockWriter& writer) {
    auto mark = [&](int begin) {
      if (options_.profile) writer.push(loop::evaluate(loop::extern_call("profile", {Expr(number), Expr(begin)})));
    };
    mark(1);
    writer.push(loop::evaluate(std::move(expr)));
    mark(0);
  }

  void emit(const KernelStep& step, BlockWriter& writer) {
    std::vector<Expr> args;
    for (const Leaf& leaf : step.buffers) args.push_back(base_address(leaf));
    args.insert(args.end(), step.scalars.begin(), step.scalars.end());
    call(loop::extern_call("kernel:" + step.function, std::move(args)), step.call, writer);
  }

  void emit(const RuntimeStep& step, BlockWriter& writer) {
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
    auto slot = [&](const std::string& symbol) {
      auto found = std::find(program_.late_symbols.begin(), program_.late_symbols.end(), symbol);
      return Expr(static_cast<int64_t>(found - program_.late_symbols.begin()));
    };
    if (!symbols.empty()) args.push_back(loop::address(results_, {slot(symbols[0])}));
    call(loop::extern_call("runtime:" + step.kernel.kernel, std::move(args)), step.call, writer);
    for (const std::string& symbol : symbols)
      writer.bind(loop::symbol_var(symbol), loop::load(results_, {slot(symbol)}));
  }

  void emit(const CopyStep& step, BlockWriter& writer) {
    if (resolve(step.from.storage) == resolve(step.to.storage) && step.from.offset == step.to.offset) return;
    writer.push(copy_call(base_address(step.from), base_address(step.to)));
  }

  static Stmt copy_call(Expr from, Expr to) {
    return loop::evaluate(
        loop::extern_call("runtime:copy", {Expr(1), std::move(from), Expr(1), std::move(to), Expr(0)}));
  }

  void emit(const JoinStep& step, BlockWriter& writer) {
    const auto [root, start] = root_of(resolve(step.output.storage));
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const Leaf& input = step.inputs[i];
      const auto [input_root, input_start] = root_of(resolve(input.storage));
      if (input_root == root && input_start + input.offset == start + step.output.offset + step.offsets[i]) continue;
      Leaf place{step.output.storage, input.shape, input.dtype, step.output.offset + step.offsets[i]};
      writer.push(copy_call(base_address(input), base_address(place)));
    }
  }

  void emit(const IfStep& step, BlockWriter& writer) {
    writer.push(loop::if_then(scalar(step.condition), block(*step.then_steps), block(*step.else_steps)));
  }

  void emit(const LoopStep& step, BlockWriter& writer) {
    Expr running = loop::bool_imm(true);
    if (step.trip_count)
      running = running && (scalar(step.counter) < loop::cast(scalar(*step.trip_count), dtype::int64_));
    if (step.condition) running = running && scalar(*step.condition);
    std::vector<Stmt> body = {block(*step.body), loop::store(view(step.counter), {}, scalar(step.counter) + Expr(1))};
    if (step.condition_steps) {
      writer.push(block(*step.condition_steps));
      body.push_back(block(*step.condition_steps));
    }
    writer.push(loop::while_loop(running, loop::block(std::move(body))));
  }

  void emit(const StackStep& step, BlockWriter& writer) {
    const Leaf& from = step.from;
    auto row = std::make_shared<loop::BufferNode>(*view({step.to.storage, from.shape, step.to.dtype, step.to.offset}));
    const Dim row_bytes = product(from.shape) * Dim(static_cast<int64_t>(from.dtype.bytes()));
    row->base_offset = row->base_offset + scalar(step.counter) * loop::to_expr(row_bytes);
    writer.push(copy_call(base_address(from), loop::address(row, std::vector<Expr>(from.shape.size(), Expr(0)))));
  }

  void emit(const BindStep& step, BlockWriter& writer) {
    loop::Var symbol = loop::symbol_var(step.symbol);
    auto found = std::find(program_.late_symbols.begin(), program_.late_symbols.end(), step.symbol);
    Expr value = loop::max(loop::cast(scalar(step.value), dtype::int64_), Expr(0));
    writer.bind(symbol, value);
    writer.push(loop::store(results_, {Expr(static_cast<int64_t>(found - program_.late_symbols.begin()))}, symbol));
  }

  void emit(const AllocateStep& step, BlockWriter& writer) {
    Buffer buffer = loop::make_buffer(fmt::format("dynamic{}", step.storage), dtype::uint8_,
                                      {loop::to_expr(storages_[step.storage].bytes)}, loop::Scope::Scratch);
    dynamic_[step.storage] = buffer;
    writer.allocate(buffer);
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
  std::map<int, Buffer> dynamic_;
  std::set<int> has_pieces_;  // storages of which others are pieces
};

}  // namespace

void build_main(const Steps& steps, std::vector<Storage> storages, const LowerOptions& options, Program& program) {
  MainBuilder(std::move(storages), options, program).build(steps);
}

}  // namespace treadle::lower
