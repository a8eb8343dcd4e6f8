// SPDX-License-Identifier: Apache-2.0
// *How* tensor expressions are computed. A Schedule holds one stage per tensor; primitives change the loops of stages
// and where they are computed, never the values; `lower` gives the loop nest. Loops are named by variables: at first
// one per axis of the tensor and of its reduction, in that order.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "loop/stmt.h"

namespace treadle::schedule {

// What a split does when the factor does not divide the extent.
enum class Tail {
  Guard,         // the last tile is shorter
  Even,          // all tiles differ by at most one: 14 by at most 6 is 5+5+4; a symbolic extent: as Guard
  ShiftInwards,  // the last tile starts at extent - factor and computes some elements again; the extent must be at
                 // least the factor
};

class Schedule;

// One tensor's computation. Errors of all primitives: ScheduleInvalid naming the stage and the loop.
class Stage {
 public:
  const loop::Buffer& buffer() const { return buffer_; }
  const std::vector<loop::Var>& axes() const { return axes_; }  // variables of `value`, not loops
  const loop::Expr& value() const { return value_; }
  const std::optional<loop::Reduction>& reduction() const { return reduction_; }

  // Whether it is computed whole, neither inlined nor inside another stage's loop.
  bool at_root() const { return place_ == Place::Root; }

  // The present loops, outermost first; those of the data axes and of the reduction as they were at first.
  const std::vector<loop::Var>& loops() const { return loops_; }
  loop::Var axis(size_t i) const { return axis_loops_[i]; }
  loop::Var reduce_axis(size_t i) const { return reduce_loops_[i]; }
  // Extent of a data axis or reduction axis.
  const loop::Expr& extent(size_t axis) const { return buffer_->shape[axis]; }

  // loop = outer * factor + inner
  std::pair<loop::Var, loop::Var> split(const loop::Var& loop, int64_t factor, Tail tail = Tail::Guard);
  // At most `parts` iterations of the outer loop, the inner ones even.
  std::pair<loop::Var, loop::Var> split_parts(const loop::Var& loop, int64_t parts);
  // One loop over both; `inner` must follow `outer` directly, and its extent not depend on it.
  loop::Var fuse(const loop::Var& outer, const loop::Var& inner);
  // Puts the named loops into this order, on the places that they now hold together.
  void reorder(const std::vector<loop::Var>& order);
  // Two splits and a reorder: x outer, y outer, x inner, y inner.
  std::array<loop::Var, 4> tile(const loop::Var& x, const loop::Var& y, int64_t x_factor, int64_t y_factor,
                                Tail tail = Tail::Guard);
  void vectorize(const loop::Var& loop);
  void unroll(const loop::Var& loop);
  void parallel(const loop::Var& loop);
  // The loop's iterations become blocks of a GPU's grid or threads of a block. Where a split does not divide, a bound
  // inner loop is guarded instead of shortened, since its extent must be known before the grid starts.
  void bind(const loop::Var& loop, loop::ThreadAxis axis);
  // Combines over the innermost loop, which must be one of the reduction, with `unroll` vectors of `lanes` partial
  // results.
  void vectorize_reduction(const loop::Var& loop, int lanes, int unroll);

  // Computes this stage inside `loop` of `consumer`, just what one iteration needs; `scope` says where the values live.
  void compute_at(Stage& consumer, const loop::Var& loop, loop::Scope scope = loop::Scope::Scratch);
  // Where the stage is computed inside a loop, it computes a multiple of `multiple` elements along `axis`, even behind
  // the end of its shape: what its definition reads there must exist.
  void round_up(size_t axis, int64_t multiple) { round_up_[axis] = multiple; }
  // Replaces each use by the definition; the stage must not be a reduction nor an output.
  void compute_inline();

 private:
  friend class Schedule;
  friend class Emitter;
  struct Relation {
    enum class Kind { Split, Parts, Fuse } kind;
    loop::Var whole, outer, inner;
    int64_t factor = 0;
    Tail tail = Tail::Guard;
  };
  enum class Place { Root, At, Inlined };

  size_t position(const loop::Var& loop) const;
  bool is_reduce_loop(const loop::Var& loop) const;
  std::pair<loop::Var, loop::Var> split_as(Relation::Kind kind, const loop::Var& loop, int64_t factor, Tail tail);
  void mark(const loop::Var& loop, loop::ForKind kind);
  loop::ForKind kind_of(const loop::Var& loop) const;
  bool has_attached(const loop::Var& loop) const;
  void move_attached(const loop::Var& from, const loop::Var& to);

  Schedule* schedule_ = nullptr;
  loop::Buffer buffer_;
  std::vector<loop::Var> axes_;
  loop::Expr value_;
  std::optional<loop::Reduction> reduction_;
  std::vector<loop::Var> axis_loops_, reduce_loops_, loops_;
  std::vector<Relation> relations_;
  std::map<const loop::VarNode*, loop::ForKind> kinds_;
  std::map<const loop::VarNode*, bool> reduce_;  // every loop that ever was: whether it belongs to the reduction
  Place place_ = Place::Root;
  Stage* consumer_ = nullptr;
  loop::Var at_;
  loop::Scope scope_ = loop::Scope::Scratch;
  std::map<size_t, int64_t> round_up_;
  int reduction_lanes_ = 0, reduction_unroll_ = 1;
};

class Schedule {
 public:
  // `outputs` and `inputs` become parameters as in loop::lower_naive.
  Schedule(std::string name, const std::vector<loop::Tensor>& inputs, const std::vector<loop::Tensor>& outputs);
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // Producers before users.
  const std::vector<Stage*>& stages() const { return order_; }
  // The stage that computes this buffer; null for an input.
  Stage* find(const loop::Buffer& buffer) const;
  Stage& stage(const loop::Tensor& tensor) const;
  bool is_output(const Stage& stage) const;
  // Stages that read `buffer`, inlined ones left out.
  std::vector<Stage*> readers(const loop::Buffer& buffer) const;

  // The computation of `stage` moves to a new stage (given back), `stage` itself becomes a copy of that.
  Stage& cache_write(Stage& stage, const std::string& suffix = "_acc");
  // A new stage with a copy of `source` that `readers` read instead.
  //   place(axes)      the element of source that the copy holds at these axes, an expression with value of source's
  //   dtype index(indices)   where the copy holds the element of source at these indices
  Stage& pack(const loop::Buffer& source, const std::vector<Stage*>& readers, std::vector<loop::Expr> shape,
              const std::function<loop::Expr(const std::vector<loop::Var>&)>& place,
              const std::function<std::vector<loop::Expr>(const std::vector<loop::Expr>&)>& index);
  // Makes the axes `axis` and `axis`+1 of a stage one; its memory stays as it is. Before any other change of its loops.
  void collapse(Stage& stage, size_t axis);
  // Reads of `readers` through a copy with the same axes.
  Stage& cache_read(const loop::Buffer& source, const std::vector<Stage*>& readers);

  // The loop nest. Marks of loops are kept; `finish` (simplify.h) makes them code.
  loop::Function lower();

 private:
  friend class Stage;
  friend class Emitter;
  Stage& add_stage(loop::Buffer buffer, std::vector<loop::Var> axes, loop::Expr value,
                   std::optional<loop::Reduction> reduction, size_t before);

  std::string name_;
  std::vector<loop::Buffer> params_;
  size_t num_outputs_ = 0;
  std::deque<Stage> storage_;
  std::vector<Stage*> order_;
};

}  // namespace treadle::schedule
