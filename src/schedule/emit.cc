// SPDX-License-Identifier: Apache-2.0
// Loop nests of stages. A stage computes a region (per axis: least element and extent); its loops run from 0 over the
// region, and a stage attached to a loop gets as region what its readers inside that loop read (region.cc).
#include "schedule/emit.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/simplify.h"

namespace treadle::schedule {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it

namespace {

Expr ceil_div(const Expr& a, int64_t b) { return floordiv(a + int_imm(b - 1), int_imm(b)); }

// Resolves loops that were split or fused into the loops that run.
class Resolver : public Mutator {
 public:
  std::map<const VarNode*, Expr> values;

 protected:
  Expr mutate_expr(const Expr& e) override {
    if (const auto* v = e.as<VarNode>()) {
      const auto found = values.find(v);
      return found == values.end() ? e : mutate(found->second);
    }
    return mutate_children(e);
  }
};

// Moves loads to where the values lie.
class Redirect : public Mutator {
 public:
  using Find = std::function<const std::pair<Buffer, std::vector<Expr>>*(const BufferNode*)>;
  std::map<const BufferNode*, std::pair<Buffer, std::vector<Expr>>> moves;

 protected:
  Expr mutate_expr(const Expr& e) override {
    const auto* l = e.as<Load>();
    if (!l) return mutate_children(e);
    const auto found = moves.find(l->buffer.get());
    std::vector<Expr> indices;
    for (const Expr& index : l->indices) indices.push_back(mutate(index));
    if (found == moves.end()) return load(l->buffer, std::move(indices));
    const auto& [buffer, origin] = found->second;
    for (size_t i = 0; i < origin.size(); ++i) indices[i] = indices[i] - origin[i];
    return load(buffer, std::move(indices));
  }
};

Buffer scratch_like(const Buffer& buffer, Scope scope, std::vector<Expr> shape) {
  auto copy = std::make_shared<BufferNode>(*buffer);
  copy->scope = scope;
  copy->shape = std::move(shape);
  copy->strides.clear();
  return copy;
}

}  // namespace

// The loops that run of which `loop` is made.
std::vector<Var> Emitter::leaves(const Stage& stage, const Var& loop) {
  std::vector<Var> now{loop}, result;
  while (!now.empty()) {
    const Var v = now.back();
    now.pop_back();
    bool split = false;
    for (const auto& r : stage.relations_) {
      if (r.kind == Stage::Relation::Kind::Fuse) {
        if (r.outer.same_as(v) || r.inner.same_as(v)) now.push_back(r.whole), split = true;
      } else if (r.whole.same_as(v)) {
        now.push_back(r.outer), now.push_back(r.inner), split = true;
      }
    }
    if (!split) result.push_back(v);
  }
  return result;
}

// Whether all loops that make up `outer` are outside of those that make up `inner`.
bool Emitter::is_outside(const Stage& stage, const Var& outer, const Var& inner) {
  size_t last = 0, first = stage.loops_.size();
  for (const Var& v : leaves(stage, outer)) last = std::max(last, stage.position(v));
  for (const Var& v : leaves(stage, inner)) first = std::min(first, stage.position(v));
  return last < first;
}

// Whether a loop that makes up `loop` is bound to an axis of a GPU.
bool Emitter::is_bound(const Stage& stage, const Var& loop) {
  const std::vector<Var> parts = leaves(stage, loop);
  return std::any_of(parts.begin(), parts.end(), [&](const Var& v) { return axis_of(stage.kind_of(v)).has_value(); });
}

// Whether the last tile of a split can have an inner loop with fewer iterations.
bool Emitter::may_shorten(const Stage& stage, const Var& outer, const Var& inner) {
  return is_outside(stage, outer, inner) && !is_bound(stage, inner);
}

// The extents of both loops of a split, the value of the loop that was split, and a guard where the inner loop cannot
// be clipped.
Expr Emitter::plan_split(const Stage& stage, const Stage::Relation& r, std::map<const VarNode*, Expr>& extent,
                         Nest& nest) {
  const Expr whole = extent.at(r.whole.var()), factor = int_imm(r.factor);
  const bool parts = r.kind == Stage::Relation::Kind::Parts;
  if (!parts && analyzer_.proves(floormod(whole, factor) == int_imm(0))) {
    extent[r.outer.var()] = analyzer_.simplify(floordiv(whole, factor));
    extent[r.inner.var()] = factor;
    return r.outer * factor + r.inner;
  }
  if (r.tail == Tail::Even && (parts || as_int(whole))) {
    // tiles of `most` elements first, then tiles of one less
    const Expr tiles = parts ? min(factor, whole) : analyzer_.simplify(ceil_div(whole, r.factor));
    const Expr count = max(tiles, int_imm(1));
    const Expr most = analyzer_.simplify(floordiv(whole + count - int_imm(1), count));
    const Expr longer = analyzer_.simplify(whole - tiles * (most - int_imm(1)));
    extent[r.outer.var()] = analyzer_.simplify(tiles);
    extent[r.inner.var()] = select(r.outer < longer, most, most - int_imm(1));
    if (!may_shorten(stage, r.outer, r.inner)) {
      nest.guards.push_back(r.inner < extent[r.inner.var()]);
      extent[r.inner.var()] = most;
    }
    return r.outer * (most - int_imm(1)) + min(r.outer, longer) + r.inner;
  }
  extent[r.outer.var()] = analyzer_.simplify(ceil_div(whole, r.factor));
  extent[r.inner.var()] = factor;
  if (r.tail == Tail::ShiftInwards) {
    if (!analyzer_.proves(whole >= factor)) {
      fail(ErrorCode::ScheduleInvalid, "stage {}: loop {} has extent {}, not known to be at least its factor {}",
           stage.buffer_->name, r.whole.name(), to_string(whole), r.factor);
    }
    return min(r.outer * factor, whole - factor) + r.inner;
  }
  if (may_shorten(stage, r.outer, r.inner)) {
    extent[r.inner.var()] = min(factor, whole - r.outer * factor);
  } else {
    nest.guards.push_back(r.outer * factor + r.inner < whole);
  }
  return r.outer * factor + r.inner;
}

Emitter::Nest Emitter::plan(Stage& stage, const Region& region) {
  Nest nest{&stage, {}, {}, {}};
  std::map<const VarNode*, Expr> extent;
  for (size_t i = 0; i < stage.axis_loops_.size(); ++i) {
    const Var& loop = stage.axis_loops_[i];
    extent[loop.var()] = region.extent[i];
    // What a bound loop computes of another stage is guarded by the region's extent, which may differ between blocks.
    if (stage.at_root() || as_int(region.extent[i]) || !is_bound(stage, loop)) continue;
    if (const auto most = analyzer_.upper_bound(region.extent[i])) {
      nest.guards.push_back(loop < region.extent[i]);
      extent[loop.var()] = int_imm(*most);
    }
  }
  for (size_t i = 0; i < stage.reduce_loops_.size(); ++i)
    extent[stage.reduce_loops_[i].var()] = stage.reduction_->extents[i];

  Resolver resolver;
  std::map<const VarNode*, Expr> values;  // of loops that were split or fused
  for (const auto& r : stage.relations_) {
    if (r.kind == Stage::Relation::Kind::Fuse) {
      const Expr outer = extent.at(r.outer.var()), inner = extent.at(r.inner.var());
      extent[r.whole.var()] = analyzer_.simplify(outer * inner);
      values[r.outer.var()] = floordiv(r.whole, inner);
      values[r.inner.var()] = floormod(r.whole, inner);
    } else {
      values[r.whole.var()] = plan_split(stage, r, extent, nest);
    }
  }
  resolver.values = std::move(values);
  for (size_t i = 0; i < stage.loops_.size(); ++i) {
    const Var& loop = stage.loops_[i];
    nest.extents.push_back(analyzer_.simplify(resolver.mutate(extent.at(loop.var()))));
    analyzer_.bind(loop, int_imm(0), nest.extents.back());
  }
  for (size_t i = 0; i < stage.axes_.size(); ++i) {
    nest.values[stage.axes_[i].var()] = analyzer_.simplify(region.min[i] + resolver.mutate(stage.axis_loops_[i]));
  }
  for (size_t i = 0; i < stage.reduce_loops_.size(); ++i) {
    nest.values[stage.reduction_->axes[i].var()] = analyzer_.simplify(resolver.mutate(stage.reduce_loops_[i]));
  }
  for (Expr& guard : nest.guards) guard = resolver.mutate(guard);
  return nest;
}

Expr Emitter::value_of(const Nest& nest, const Expr& value) {
  Redirect redirect;
  for (const auto& [buffer, target] : targets_) redirect.moves[buffer] = {target.buffer, target.origin};
  return redirect.mutate(substitute(value, nest.values));
}

std::vector<Expr> Emitter::place(const Nest& nest) {
  const Target& target = targets_.at(nest.stage->buffer_.get());
  std::vector<Expr> result;
  for (size_t i = 0; i < nest.stage->axes_.size(); ++i) {
    const Expr& index = nest.values.at(nest.stage->axes_[i].var());
    result.push_back(target.origin.empty() ? index : analyzer_.simplify(index - target.origin[i]));
  }
  return result;
}

Stmt Emitter::update(Nest& nest) {
  const Buffer& buffer = targets_.at(nest.stage->buffer_.get()).buffer;
  const std::vector<Expr> index = place(nest);
  Expr value = value_of(nest, nest.stage->value_);
  if (nest.stage->reduction_) value = combine(nest.stage->reduction_->op, load(buffer, index), value);
  Stmt result = store(buffer, index, value);
  for (const Expr& guard : nest.guards) result = if_then(guard, result);
  return result;
}

// The start values of a reduction, over the data loops at `level` and inside.
Stmt Emitter::initial(Nest& nest, size_t level) {
  const Stage& stage = *nest.stage;
  const Reduction& r = *stage.reduction_;
  const Buffer& buffer = targets_.at(stage.buffer_.get()).buffer;
  const Expr start = r.init.defined() ? value_of(nest, r.init) : reduce_identity(r.op, buffer->dtype);
  Stmt body = store(buffer, place(nest), start);
  const auto of_reduction = [&](const VarNode* var) {
    const auto loop = stage.reduce_.find(var);
    return loop != stage.reduce_.end() && loop->second;
  };
  for (const Expr& guard : nest.guards) {
    if (!uses_any(guard, of_reduction)) body = if_then(guard, body);
  }
  for (size_t i = stage.loops_.size(); i-- > level;) {
    const Var& loop = stage.loops_[i];
    if (stage.is_reduce_loop(loop)) continue;
    body = for_loop(loop, int_imm(0), nest.extents[i], body, stage.kind_of(loop));
  }
  return fresh_copy(body);
}

Stmt Emitter::emit(Nest& nest, size_t level) {
  const Stage& stage = *nest.stage;
  if (level == stage.loops_.size()) return update(nest);
  const Var& loop = stage.loops_[level];
  const bool starts = stage.is_reduce_loop(loop) &&
                      std::none_of(stage.loops_.begin(), stage.loops_.begin() + static_cast<ptrdiff_t>(level),
                                   [&](const Var& outer) { return stage.is_reduce_loop(outer); });
  Stmt body;
  if (stage.reduction_lanes_ > 0 && level + 1 == stage.loops_.size()) {
    body = vector_reduction(nest);
  } else {
    const ForKind kind = stage.kind_of(loop);
    const std::string problem = binding_problem(around_, kind, nest.extents[level]);
    if (!problem.empty())
      fail(ErrorCode::ScheduleInvalid, "stage {}: loop {} {}", stage.buffer_->name, loop.name(), problem);
    around_.push_back({loop, kind});
    body = emit_attached(nest, level, Stmt());
    around_.pop_back();
    body = for_loop(loop, int_imm(0), nest.extents[level], body, kind);
  }
  return starts ? block({initial(nest, level), body}) : body;
}

// The body of the loop at `level`: the stages attached to it, then what is inside.
Stmt Emitter::emit_attached(Nest& nest, size_t level, Stmt) {
  std::vector<Stage*> attached;
  for (Stage* s : schedule_.order_) {
    if (s->place_ == Stage::Place::At && s->consumer_ == nest.stage && s->at_.same_as(nest.stage->loops_[level]))
      attached.push_back(s);
  }
  std::vector<Region> regions;
  for (Stage* s : attached) {
    Region region = required(*s, nest, level);
    Target target;
    std::vector<Expr> shape;
    for (const Expr& extent : region.extent) {
      const auto most = analyzer_.upper_bound(extent);
      if (!most && s->scope_ == Scope::Local) {
        fail(ErrorCode::ScheduleInvalid, "stage {}: a local buffer of extent {} has no constant size", s->buffer_->name,
             to_string(extent));
      }
      shape.push_back(most ? int_imm(std::max<int64_t>(*most, 1)) : extent);
    }
    target.buffer = scratch_like(s->buffer_, s->scope_, shape);
    target.origin = region.min;
    targets_[s->buffer_.get()] = target;
    regions.push_back(std::move(region));
  }
  std::vector<Stmt> parts;
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < attached.size(); ++i) {
    buffers.push_back(targets_.at(attached[i]->buffer_.get()).buffer);
    parts.push_back(emit_stage(*attached[i], regions[i], targets_.at(attached[i]->buffer_.get())));
  }
  parts.push_back(emit(nest, level + 1));
  Stmt body = block(std::move(parts));
  for (size_t i = buffers.size(); i-- > 0;) body = allocate(buffers[i], body);
  return body;
}

Stmt Emitter::emit_stage(Stage& stage, const Region& region, const Target& target) {
  targets_[stage.buffer_.get()] = target;
  Nest nest = plan(stage, region);
  if (stage.loops_.empty() || !stage.reduction_ || !stage.reduce_loops_.empty()) return emit(nest, 0);
  return block({initial(nest, 0), emit(nest, 0)});  // a reduction over no axis still starts from its initial value
}

// for ko: for u (unrolled): part[u] op= value[ko*unroll + u …lanes];  then whole vectors, the tree over part, and
// single elements.
Stmt Emitter::vector_reduction(Nest& nest) {
  const Stage& stage = *nest.stage;
  const ReduceOp op = stage.reduction_->op;
  const Buffer& buffer = targets_.at(stage.buffer_.get()).buffer;
  const std::vector<Expr> index = place(nest);
  const Var k = stage.loops_.back();
  const Expr extent = nest.extents.back();
  const int64_t lanes = stage.reduction_lanes_, unroll = stage.reduction_unroll_;
  const Expr value = value_of(nest, stage.value_);
  const Buffer part =
      make_buffer(stage.buffer_->name + "_part", buffer->dtype, {int_imm(unroll), int_imm(lanes)}, Scope::Local);
  const auto accumulate = [&](const Expr& first, const Expr& row) {  // part[row] op= value[first …]
    const Var lane("lane");
    const Stmt body =
        store(part, {row, lane}, combine(op, load(part, {row, lane}), substitute(value, {{k.var(), first + lane}})));
    return for_loop(lane, int_imm(0), int_imm(lanes), body, ForKind::Vectorized);
  };
  std::vector<Stmt> stmts;
  const Var row("u"), lane("lane"), block_var(k.name() + "o"), row2("u"), vector_var(k.name() + "v");
  stmts.push_back(for_loop(row, int_imm(0), int_imm(unroll),
                           for_loop(lane, int_imm(0), int_imm(lanes),
                                    store(part, {row, lane}, reduce_identity(op, buffer->dtype)), ForKind::Vectorized),
                           ForKind::Unrolled));
  const Expr blocks = analyzer_.simplify(floordiv(extent, int_imm(lanes * unroll)));
  stmts.push_back(
      for_loop(block_var, int_imm(0), blocks,
               for_loop(row2, int_imm(0), int_imm(unroll),
                        accumulate((block_var * int_imm(unroll) + row2) * int_imm(lanes), row2), ForKind::Unrolled)));
  const Expr vectors = analyzer_.simplify(floordiv(extent, int_imm(lanes)) - blocks * int_imm(unroll));
  stmts.push_back(for_loop(vector_var, int_imm(0), vectors,
                           accumulate((blocks * int_imm(unroll) + vector_var) * int_imm(lanes), int_imm(0))));
  Expr total;
  for (int64_t u = 0; u < unroll; ++u) {
    const Expr row_value = load(part, {int_imm(u), ramp(int_imm(0), int_imm(1), static_cast<int>(lanes))});
    total = u == 0 ? row_value : combine(op, total, row_value);
  }
  const auto reduced = [&](const Expr& x) { return store(buffer, index, combine(op, load(buffer, index), x)); };
  stmts.push_back(reduced(lanes == 1 ? load(part, {int_imm(0), int_imm(0)}) : vector_reduce(op, total)));
  const Var tail(k.name() + "t");
  const Expr done = analyzer_.simplify(floordiv(extent, int_imm(lanes)) * int_imm(lanes));
  stmts.push_back(for_loop(tail, int_imm(0), analyzer_.simplify(extent - done),
                           reduced(substitute(value, {{k.var(), done + tail}}))));
  Stmt result = allocate(part, block(std::move(stmts)));
  for (const Expr& guard : nest.guards) result = if_then(guard, result);
  return result;
}

Function Emitter::run() {
  std::vector<Stmt> nests;
  std::vector<Buffer> between;
  for (Stage* stage : schedule_.order_) {
    if (stage->place_ != Stage::Place::Root) continue;
    Region region{std::vector<Expr>(stage->axes_.size(), int_imm(0)), stage->buffer_->shape};
    Target target{stage->buffer_, {}};
    if (!schedule_.is_output(*stage)) {
      target.buffer = scratch_like(stage->buffer_, Scope::Scratch, stage->buffer_->shape);
      between.push_back(target.buffer);
    }
    nests.push_back(emit_stage(*stage, region, target));
  }
  Function function;
  function.name = schedule_.name_;
  function.buffers = schedule_.params_;
  function.num_outputs = schedule_.num_outputs_;
  Stmt body = block(std::move(nests));
  for (size_t i = between.size(); i-- > 0;) body = allocate(between[i], body);
  function.body = body;
  function.scalars = free_symbols(function);
  return function;
}

Function Schedule::lower() { return Emitter(*this).run(); }

}  // namespace treadle::schedule
