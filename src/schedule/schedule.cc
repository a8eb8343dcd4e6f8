// SPDX-License-Identifier: Apache-2.0
// The primitives: bookkeeping of loops, and rewriting of definitions for inlining, caching and packing.
#include "schedule/schedule.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace treadle::schedule {

using namespace loop;  // NOLINT(google-build-using-namespace): this file is about every node of it

namespace {

// Replaces each load of `from` by f(indices).
class ReplaceLoads : public Mutator {
 public:
  ReplaceLoads(const BufferNode* from, const std::function<Expr(const std::vector<Expr>&)>& f) : from_(from), f_(f) {}

 protected:
  Expr mutate_expr(const Expr& e) override {
    const auto* l = e.as<Load>();
    if (!l || l->buffer.get() != from_) return mutate_children(e);
    std::vector<Expr> indices;
    for (const Expr& index : l->indices) indices.push_back(mutate(index));
    return f_(indices);
  }

 private:
  const BufferNode* from_;
  const std::function<Expr(const std::vector<Expr>&)>& f_;
};

bool reads(const Expr& expr, const BufferNode* buffer) {
  struct Finder : ExprVisitor {
    void visit_expr(const Expr& e) override {
      if (const auto* l = e.as<Load>()) found |= l->buffer.get() == buffer;
      visit_children(e);
    }
    const BufferNode* buffer = nullptr;
    bool found = false;
  } finder;
  finder.buffer = buffer;
  finder.visit(expr);
  return finder.found;
}

std::vector<Expr> as_exprs(const std::vector<Var>& vars) { return {vars.begin(), vars.end()}; }

}  // namespace

// ---- Stage ----

size_t Stage::position(const Var& loop) const {
  for (size_t i = 0; i < loops_.size(); ++i) {
    if (loops_[i].same_as(loop)) return i;
  }
  fail(ErrorCode::ScheduleInvalid, "stage {}: {} is no loop of it (split, fused or of another stage)", buffer_->name,
       loop.defined() ? loop.name() : "nothing");
}

bool Stage::is_reduce_loop(const Var& loop) const { return reduce_.at(loop.var()); }

bool Stage::has_attached(const Var& loop) const {
  return std::any_of(schedule_->order_.begin(), schedule_->order_.end(), [&](const Stage* s) {
    return s->place_ == Place::At && s->consumer_ == this && s->at_.same_as(loop);
  });
}

// What was computed inside `from` is computed inside `to`, whose body is the same.
void Stage::move_attached(const Var& from, const Var& to) {
  for (Stage* s : schedule_->order_) {
    if (s->place_ == Place::At && s->consumer_ == this && s->at_.same_as(from)) s->at_ = to;
  }
}

std::pair<Var, Var> Stage::split_as(Relation::Kind kind, const Var& loop, int64_t factor, Tail tail) {
  const size_t at = position(loop);
  if (factor < 1)
    fail(ErrorCode::ScheduleInvalid, "stage {}: loop {} is split by {}, it must be at least 1", buffer_->name,
         loop.name(), factor);
  if (reduce_.at(loop.var()) && tail == Tail::ShiftInwards) {
    fail(ErrorCode::ScheduleInvalid, "stage {}: loop {} of a reduction cannot compute elements twice", buffer_->name,
         loop.name());
  }
  Relation relation{kind, loop, Var(loop.name() + "o"), Var(loop.name() + "i"), factor, tail};
  move_attached(loop, relation.inner);
  reduce_[relation.outer.var()] = reduce_[relation.inner.var()] = reduce_.at(loop.var());
  loops_[at] = relation.outer;
  loops_.insert(loops_.begin() + static_cast<ptrdiff_t>(at) + 1, relation.inner);
  relations_.push_back(relation);
  return {relation.outer, relation.inner};
}

std::pair<Var, Var> Stage::split(const Var& loop, int64_t factor, Tail tail) {
  return split_as(Relation::Kind::Split, loop, factor, tail);
}

std::pair<Var, Var> Stage::split_parts(const Var& loop, int64_t parts) {
  return split_as(Relation::Kind::Parts, loop, parts, Tail::Even);
}

Var Stage::fuse(const Var& outer, const Var& inner) {
  const size_t at = position(outer);
  if (position(inner) != at + 1) {
    fail(ErrorCode::ScheduleInvalid, "stage {}: loops {} and {} are fused but do not follow each other", buffer_->name,
         outer.name(), inner.name());
  }
  if (reduce_.at(outer.var()) != reduce_.at(inner.var())) {
    fail(ErrorCode::ScheduleInvalid, "stage {}: loops {} and {} are fused but only one belongs to the reduction",
         buffer_->name, outer.name(), inner.name());
  }
  Relation relation{Relation::Kind::Fuse, Var(outer.name() + inner.name()), outer, inner};
  if (has_attached(outer)) {
    fail(ErrorCode::ScheduleInvalid, "stage {}: loop {} is fused but a stage is computed inside it", buffer_->name,
         outer.name());
  }
  move_attached(inner, relation.whole);
  reduce_[relation.whole.var()] = reduce_.at(outer.var());
  loops_[at] = relation.whole;
  loops_.erase(loops_.begin() + static_cast<ptrdiff_t>(at) + 1);
  relations_.push_back(relation);
  return relation.whole;
}

void Stage::reorder(const std::vector<Var>& order) {
  std::vector<size_t> places;
  for (const Var& loop : order) places.push_back(position(loop));
  std::sort(places.begin(), places.end());
  if (std::adjacent_find(places.begin(), places.end()) != places.end()) {
    fail(ErrorCode::ScheduleInvalid, "stage {}: a loop stands twice in an order", buffer_->name);
  }
  for (size_t i = 0; i < order.size(); ++i) loops_[places[i]] = order[i];
}

std::array<Var, 4> Stage::tile(const Var& x, const Var& y, int64_t x_factor, int64_t y_factor, Tail tail) {
  const auto [xo, xi] = split(x, x_factor, tail);
  const auto [yo, yi] = split(y, y_factor, tail);
  reorder({xo, yo, xi, yi});
  return {xo, yo, xi, yi};
}

void Stage::mark(const Var& loop, ForKind kind) {
  position(loop);
  const auto axis = axis_of(kind);
  if ((kind == ForKind::Parallel || axis) && is_reduce_loop(loop)) {
    fail(ErrorCode::ScheduleInvalid, "stage {}: loop {} belongs to the reduction, its iterations depend on each other",
         buffer_->name, loop.name());
  }
  for (const Var& other : loops_) {
    if (axis && !other.same_as(loop) && kind_of(other) == kind) {
      fail(ErrorCode::ScheduleInvalid, "stage {}: loops {} and {} are both bound to {}", buffer_->name, other.name(),
           loop.name(), name_of(*axis));
    }
  }
  kinds_[loop.var()] = kind;
}

ForKind Stage::kind_of(const Var& loop) const {
  const auto kind = kinds_.find(loop.var());
  return kind == kinds_.end() ? ForKind::Serial : kind->second;
}

void Stage::vectorize(const Var& loop) { mark(loop, ForKind::Vectorized); }
void Stage::unroll(const Var& loop) { mark(loop, ForKind::Unrolled); }
void Stage::parallel(const Var& loop) { mark(loop, ForKind::Parallel); }
void Stage::bind(const Var& loop, ThreadAxis axis) { mark(loop, bound_to(axis)); }

void Stage::vectorize_reduction(const Var& loop, int lanes, int unroll) {
  if (position(loop) + 1 != loops_.size() || !is_reduce_loop(loop)) {
    fail(ErrorCode::ScheduleInvalid, "stage {}: loop {} is not the innermost of a reduction", buffer_->name,
         loop.name());
  }
  if (lanes < 1 || unroll < 1)
    fail(ErrorCode::ScheduleInvalid, "stage {}: {} vectors of {} lanes", buffer_->name, unroll, lanes);
  reduction_lanes_ = lanes;
  reduction_unroll_ = unroll;
}

void Stage::compute_at(Stage& consumer, const Var& loop, Scope scope) {
  consumer.position(loop);
  if (schedule_->is_output(*this))
    fail(ErrorCode::ScheduleInvalid, "stage {} is an output, it is computed whole", buffer_->name);
  for (const Stage* s = &consumer; s; s = s->place_ == Place::At ? s->consumer_ : nullptr) {
    if (s == this) fail(ErrorCode::ScheduleInvalid, "stage {} cannot be computed inside itself", buffer_->name);
  }
  place_ = Place::At;
  consumer_ = &consumer;
  at_ = loop;
  scope_ = scope;
}

void Stage::compute_inline() {
  if (reduction_) fail(ErrorCode::ScheduleInvalid, "stage {} is a reduction, it cannot be inlined", buffer_->name);
  if (schedule_->is_output(*this))
    fail(ErrorCode::ScheduleInvalid, "stage {} is an output, it cannot be inlined", buffer_->name);
  const std::function<Expr(const std::vector<Expr>&)> definition = [&](const std::vector<Expr>& indices) {
    std::map<const VarNode*, Expr> values;
    for (size_t i = 0; i < axes_.size(); ++i) values[axes_[i].var()] = indices[i];
    return substitute(value_, values);
  };
  for (Stage* reader : schedule_->readers(buffer_)) {
    ReplaceLoads replace(buffer_.get(), definition);
    reader->value_ = replace.mutate(reader->value_);
    if (reader->reduction_ && reader->reduction_->init.defined())
      reader->reduction_->init = replace.mutate(reader->reduction_->init);
  }
  place_ = Place::Inlined;
  std::erase(schedule_->order_, this);
}

// ---- Schedule ----

Schedule::Schedule(std::string name, const std::vector<loop::Tensor>& inputs, const std::vector<loop::Tensor>& outputs)
    : name_(std::move(name)) {
  std::set<const TensorNode*> params, given;
  for (const loop::Tensor& input : inputs) {
    TREADLE_CHECK(params.insert(input.get()).second, "{} is twice an input", input->buffer->name);
    params_.push_back(input->buffer);
  }
  given = params;
  std::vector<loop::Tensor> results;
  for (const loop::Tensor& output : outputs) {
    const bool own = params.insert(output.get()).second;
    results.push_back(own ? output
                          : compute(output->buffer->name + "_copy", output.shape(),
                                    [&](const std::vector<Var>& i) { return output(as_exprs(i)); }));
    params_.push_back(results.back()->buffer);
  }
  num_outputs_ = results.size();
  std::set<const TensorNode*> needed;
  for (const loop::Tensor& result : results) needed.insert(result.get());
  std::vector<loop::Tensor> order = topological_order(results);
  for (size_t i = order.size(); i-- > 0;) {
    if (!needed.count(order[i].get())) continue;
    for (const loop::Tensor& input : order[i]->inputs) {
      if (!given.count(input.get())) needed.insert(input.get());
    }
  }
  for (const loop::Tensor& tensor : order) {
    if (!needed.count(tensor.get())) continue;
    TREADLE_CHECK(!tensor->is_placeholder(), "{} is used but is no input of {}", tensor->buffer->name, name_);
    add_stage(tensor->buffer, tensor->axes, tensor->value, tensor->reduction, order_.size());
  }
}

Stage& Schedule::add_stage(Buffer buffer, std::vector<Var> axes, Expr value, std::optional<Reduction> reduction,
                           size_t before) {
  Stage& s = storage_.emplace_back();
  s.schedule_ = this;
  s.buffer_ = std::move(buffer);
  s.axes_ = std::move(axes);
  s.value_ = std::move(value);
  s.reduction_ = std::move(reduction);
  for (const Var& axis : s.axes_) s.axis_loops_.emplace_back(axis.name());
  if (s.reduction_) {
    for (const Var& axis : s.reduction_->axes) s.reduce_loops_.emplace_back(axis.name());
  }
  for (const Var& loop : s.axis_loops_) s.reduce_[loop.var()] = false;
  for (const Var& loop : s.reduce_loops_) s.reduce_[loop.var()] = true;
  s.loops_ = s.axis_loops_;
  s.loops_.insert(s.loops_.end(), s.reduce_loops_.begin(), s.reduce_loops_.end());
  order_.insert(order_.begin() + static_cast<ptrdiff_t>(before), &s);
  return s;
}

Stage* Schedule::find(const Buffer& buffer) const {
  for (Stage* s : order_) {
    if (s->buffer_ == buffer) return s;
  }
  return nullptr;
}

Stage& Schedule::stage(const loop::Tensor& tensor) const {
  Stage* found = find(tensor->buffer);
  if (!found) fail(ErrorCode::ScheduleInvalid, "{} is no stage of {}", tensor->buffer->name, name_);
  return *found;
}

bool Schedule::is_output(const Stage& stage) const {
  return std::find(params_.end() - static_cast<ptrdiff_t>(num_outputs_), params_.end(), stage.buffer_) != params_.end();
}

std::vector<Stage*> Schedule::readers(const Buffer& buffer) const {
  std::vector<Stage*> result;
  for (Stage* s : order_) {
    const bool in_init = s->reduction_ && s->reduction_->init.defined() && reads(s->reduction_->init, buffer.get());
    if (reads(s->value_, buffer.get()) || in_init) result.push_back(s);
  }
  return result;
}

Stage& Schedule::cache_write(Stage& stage, const std::string& suffix) {
  if (!stage.relations_.empty())
    fail(ErrorCode::ScheduleInvalid, "stage {}: its loops were changed before cache_write", stage.buffer_->name);
  const size_t at = static_cast<size_t>(std::find(order_.begin(), order_.end(), &stage) - order_.begin());
  const Buffer cache =
      make_buffer(stage.buffer_->name + suffix, stage.buffer_->dtype, stage.buffer_->shape, Scope::Scratch);
  Stage& result = add_stage(cache, stage.axes_, stage.value_, stage.reduction_, at);
  std::vector<Var> axes;
  for (const Var& axis : stage.axes_) axes.emplace_back(axis.name());
  stage.axes_ = axes;
  stage.value_ = load(cache, as_exprs(axes));
  stage.reduction_.reset();
  stage.loops_ = stage.axis_loops_;
  stage.reduce_loops_.clear();
  return result;
}

Stage& Schedule::pack(const Buffer& source, const std::vector<Stage*>& readers, std::vector<Expr> shape,
                      const std::function<Expr(const std::vector<Var>&)>& place,
                      const std::function<std::vector<Expr>(const std::vector<Expr>&)>& index) {
  size_t before = order_.size();
  for (Stage* reader : readers) {
    before = std::min(before, static_cast<size_t>(std::find(order_.begin(), order_.end(), reader) - order_.begin()));
  }
  if (before == order_.size()) fail(ErrorCode::ScheduleInvalid, "{} is packed for nobody", source->name);
  std::vector<Var> axes;
  for (size_t i = 0; i < shape.size(); ++i) axes.emplace_back("p" + std::to_string(i));
  const Buffer copy = make_buffer(source->name + "_pack", source->dtype, std::move(shape), Scope::Scratch);
  const std::function<Expr(const std::vector<Expr>&)> redirect = [&](const std::vector<Expr>& indices) {
    return load(copy, index(indices));
  };
  for (Stage* reader : readers) {
    ReplaceLoads replace(source.get(), redirect);
    reader->value_ = replace.mutate(reader->value_);
  }
  return add_stage(copy, axes, place(axes), std::nullopt, before);
}

void Schedule::collapse(Stage& stage, size_t axis) {
  if (!stage.relations_.empty() || axis + 1 >= stage.axes_.size()) {
    fail(ErrorCode::ScheduleInvalid, "stage {}: axis {} of {} cannot be made one with the next", stage.buffer_->name,
         axis, stage.axes_.size());
  }
  const auto at = static_cast<ptrdiff_t>(axis);
  const Expr inner = stage.buffer_->shape[axis + 1];
  auto buffer = std::make_shared<BufferNode>(*stage.buffer_);
  buffer->shape[axis] = buffer->shape[axis] * inner;
  buffer->shape.erase(buffer->shape.begin() + at + 1);
  const Var both(stage.axes_[axis].name() + stage.axes_[axis + 1].name());
  const std::map<const VarNode*, Expr> values = {{stage.axes_[axis].var(), floordiv(both, inner)},
                                                 {stage.axes_[axis + 1].var(), floormod(both, inner)}};
  stage.value_ = substitute(stage.value_, values);
  if (stage.reduction_ && stage.reduction_->init.defined()) {
    stage.reduction_->init = substitute(stage.reduction_->init, values);
  }
  stage.axes_[axis] = both;
  stage.axes_.erase(stage.axes_.begin() + at + 1);
  const Var loop(both.name());
  stage.reduce_[loop.var()] = false;
  std::erase_if(stage.loops_, [&](const Var& v) { return v.same_as(stage.axis_loops_[axis + 1]); });
  for (Var& v : stage.loops_) {
    if (v.same_as(stage.axis_loops_[axis])) v = loop;
  }
  stage.axis_loops_[axis] = loop;
  stage.axis_loops_.erase(stage.axis_loops_.begin() + at + 1);
  const std::function<Expr(const std::vector<Expr>&)> redirect = [&](const std::vector<Expr>& indices) {
    std::vector<Expr> result = indices;
    result[axis] = indices[axis] * inner + indices[axis + 1];
    result.erase(result.begin() + at + 1);
    return load(buffer, std::move(result));
  };
  for (Stage* reader : readers(stage.buffer_)) {
    ReplaceLoads replace(stage.buffer_.get(), redirect);
    reader->value_ = replace.mutate(reader->value_);
    if (reader->reduction_ && reader->reduction_->init.defined()) {
      reader->reduction_->init = replace.mutate(reader->reduction_->init);
    }
  }
  for (Buffer& param : params_) {
    if (param == stage.buffer_) param = buffer;
  }
  stage.buffer_ = buffer;
}

Stage& Schedule::cache_read(const Buffer& source, const std::vector<Stage*>& readers) {
  return pack(
      source, readers, source->shape, [&](const std::vector<Var>& axes) { return load(source, as_exprs(axes)); },
      [](const std::vector<Expr>& indices) { return indices; });
}

}  // namespace treadle::schedule
