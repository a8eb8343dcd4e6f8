// SPDX-License-Identifier: Apache-2.0
// The operator interface: everything the compiler knows of an operator stands in one Op, registered by its family in
// op/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/target.h"
#include "ir/expr.h"
#include "loop/tensor.h"
#include "type/layout.h"

namespace treadle::ir {

// How FuseOps may join an operator with its neighbours; ordered as Relay's OpPatternKind.
enum class FusionKind {
  Elementwise = 0,
  Broadcast = 1,
  Injective = 2,
  Reduction = 3,
  OutFusable = 4,
  Tuple = 7,
  Opaque = 8
};
const char* to_string(FusionKind kind);

// What passes may ask of an operator instead of its name; a set of bits.
enum Trait : uint32_t {
  kPure = 1 << 0,              // the result depends on arguments and attributes only (every operator but random ones)
  kReadsZeroOutside = 1 << 1,  // padding attribute means zeros: a constant zero pad of the input can be absorbed
  kLinearInData = 1 << 2,      // f(a*x) = a*f(x) per channel: convolution, dense
  kScaleCommutes = 1 << 3,     // f(a*x) = a*f(x) for any per-channel a: reshaping, average pooling, padding with zeros
  kPositiveScaleCommutes = 1 << 4,  // the same for a > 0: relu, leaky_relu, max pooling
  kCommutative = 1 << 5,            // of two arguments
  kIdentity = 1 << 6,               // gives its first argument: copy, dropout at inference
  kCreation = 1 << 7,               // makes a tensor from attributes: zeros, arange
  kShapeOnly = 1 << 8,              // moves no element: reshape, squeeze, expand_dims (row-major memory stays)
  kReadsShapeOnly = 1 << 9,         // uses only the argument's shape: shape_of, zeros_like
  kDataDependentShape = 1 << 10,    // an output extent is known when it ran: argwhere, unique
  kMultiplyLike = 1 << 11,
  kAddLike = 1 << 12,  // elementwise with broadcasting: multiply; add
};

enum class MixedPrecision { Always, Follow, Never };

struct InputInfo {
  std::string name;
  std::string doc;  // shape and meaning, "(N, C, H, W)"
};

// The arguments of a type relation, and its answer. A relation is called again while something is missing.
class Relation {
 public:
  Relation(const Op& op, const Attrs& attrs, std::vector<Type> inputs)
      : op(op), attrs_(attrs), inputs_(std::move(inputs)) {}
  size_t num_inputs() const { return inputs_.size(); }
  // Null when it is not known yet.
  const Type& input(size_t i) const { return inputs_[i]; }
  // Null when not known yet. Errors: TypeMismatch when it is no tensor.
  const TensorType* tensor(size_t i) const;
  // The tensors of argument i, a tuple (concatenate); nullopt when not all are known.
  std::optional<std::vector<const TensorType*>> tensors(size_t i) const;
  // Says what argument i must be (a weight's shape); null parts stay open. Errors: TypeMismatch when it is known and
  // differs.
  void set_input(size_t i, Type type);
  void set_output(Type type) { output_ = std::move(type); }
  const Type& output() const { return output_; }
  template <typename A>
  const A& attrs() const {
    return static_cast<const A&>(attrs_);
  }
  const Op& op;

 private:
  const Attrs& attrs_;
  std::vector<Type> inputs_;
  Type output_;
};

// Layouts around one call. `wanted` are the layouts in which the arguments now come (undefined: the original one).
struct LayoutRequest {
  const Call& call;
  std::vector<Layout> wanted;
};
// The layouts that the call will take and give with `attrs`; undefined: the original order of axes.
struct LayoutAnswer {
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
  AttrsRef attrs;
};
// What a target would rather have: another operator or attributes for the same arguments, in these layouts.
struct Alternative {
  const Op* op;
  AttrsRef attrs;
  std::vector<Layout> inputs_old, inputs;    // each argument's layout as it is, and as the alternative wants it
  std::vector<Layout> outputs_old, outputs;  // each output's, likewise
};

// A kernel of the runtime (src/runtime/kernels) that stands for the operator.
struct RuntimeCall {
  std::string kernel;
  std::vector<int64_t> params;  // as the kernel documents them; doubles as their bits
  // Symbols of the output type that the kernel's `results` bind, in order; empty when the shapes are known before.
  std::vector<std::string> result_symbols;
  std::vector<Shape> output_bounds;  // upper bounds of the outputs' shapes when result_symbols is not empty
  bool bounded = true;               // false: the outputs have no elements, their bounds bound nothing (dyn.extents)
};

using RelationFn = std::function<void(Relation&)>;
// inputs: one tensor per argument, tuples flattened; gives one tensor per output.
using ComputeFn = std::function<std::vector<loop::Tensor>(const Call& call, const std::vector<loop::Tensor>& inputs)>;
// The call written with simpler operators, for the arguments as they are; same type.
using DecomposeFn = std::function<Expr(const Call& call)>;
using RuntimeFn = std::function<RuntimeCall(const Call& call)>;
using LayoutFn = std::function<LayoutAnswer(const LayoutRequest& request)>;
using AlterFn = std::function<std::optional<Alternative>(const Call& call, const Target& target)>;
// Where tensors lie inside another one, as element offsets, when each is one contiguous piece of it; nullopt when they
// are not.
using PiecesFn = std::function<std::optional<std::vector<Dim>>(const Call& call)>;
// One gradient per argument; undefined: none.
using GradientFn = std::function<std::vector<Expr>(const Call& call, const Expr& output_gradient)>;
// A better form of the call, or undefined when there is none.
using CanonicaliseFn = std::function<Expr(const Call& call)>;
// How a per-channel scale on axis `axis` of the output (or of the data) moves into the call's weights; see
// FoldScaleAxis.
struct ScaleRule {
  int weight = 1;  // the argument that takes the scale
  // Axis of the weight that belongs to the data's channel axis (forward) and to the output's (backward); -1: cannot.
  std::function<int(const Call& call)> data_axis, weight_in_axis, out_axis, weight_out_axis;
};

class Op {
 public:
  std::string name;     // Relay's: "nn.conv2d"
  std::string family;   // "nn/conv"
  std::string summary;  // one sentence
  std::string formula;  // plain text; may be empty
  std::string source;   // what the semantics follow: "Relay 0.16", a paper, a section
  std::vector<InputInfo> inputs;
  size_t optional_inputs = 0;  // how many of the last inputs may be left out, all together
  bool tuple_input = false;    // the one argument is a tuple: concatenate, stack, einsum
  int num_outputs = 1;         // 0: a tuple whose length depends on attributes (split)
  bool tuple_output = false;
  FusionKind fusion = FusionKind::Opaque;
  uint32_t traits = kPure;
  MixedPrecision mixed_precision = MixedPrecision::Follow;

  const AttrSchema* schema = nullptr;
  std::function<AttrsRef(const AttrMap&)> make_attrs;

  RelationFn relation;
  ComputeFn compute;  // of compute, decompose and runtime at least one is there
  DecomposeFn decompose;
  RuntimeFn runtime;
  LayoutFn layout;
  AlterFn alter;
  GradientFn gradient;
  CanonicaliseFn canonicalise;
  std::optional<ScaleRule> scale;
  // What needs no kernel when memory is laid out for it: the arguments are pieces of the output (concatenate along the
  // outermost axis that is longer than 1), or the outputs are pieces of the first argument (split, slices).
  PiecesFn joins, splits;

  bool has(Trait trait) const { return (traits & trait) != 0; }
};

// Registers operators with a chain of setters; see op/nn/softmax.cc for the pattern.
class OpBuilder {
 public:
  explicit OpBuilder(Op* op) : op_(op) {}
  OpBuilder& summary(std::string text) {
    op_->summary = std::move(text);
    return *this;
  }
  OpBuilder& formula(std::string text) {
    op_->formula = std::move(text);
    return *this;
  }
  OpBuilder& source(std::string text) {
    op_->source = std::move(text);
    return *this;
  }
  OpBuilder& input(std::string name, std::string doc) {
    op_->inputs.push_back({std::move(name), std::move(doc)});
    return *this;
  }
  // The last inputs, which a call has all or none of.
  OpBuilder& optional_input(std::string name, std::string doc) {
    ++op_->optional_inputs;
    return input(std::move(name), std::move(doc));
  }
  OpBuilder& tuple_input(std::string name, std::string doc) {
    op_->tuple_input = true;
    return input(std::move(name), std::move(doc));
  }
  OpBuilder& outputs(int count) {
    op_->num_outputs = count;
    op_->tuple_output = true;
    return *this;
  }
  OpBuilder& fusion(FusionKind kind) {
    op_->fusion = kind;
    return *this;
  }
  OpBuilder& traits(uint32_t bits) {
    op_->traits |= bits;
    return *this;
  }
  OpBuilder& impure() {
    op_->traits &= ~static_cast<uint32_t>(kPure);
    return *this;
  }
  OpBuilder& mixed_precision(MixedPrecision m) {
    op_->mixed_precision = m;
    return *this;
  }
  OpBuilder& relation(RelationFn f) {
    op_->relation = std::move(f);
    return *this;
  }
  OpBuilder& compute(ComputeFn f) {
    op_->compute = std::move(f);
    return *this;
  }
  OpBuilder& decompose(DecomposeFn f) {
    op_->decompose = std::move(f);
    return *this;
  }
  OpBuilder& runtime(RuntimeFn f) {
    op_->runtime = std::move(f);
    return *this;
  }
  OpBuilder& layout(LayoutFn f) {
    op_->layout = std::move(f);
    return *this;
  }
  OpBuilder& alter(AlterFn f) {
    op_->alter = std::move(f);
    return *this;
  }
  OpBuilder& gradient(GradientFn f) {
    op_->gradient = std::move(f);
    return *this;
  }
  OpBuilder& canonicalise(CanonicaliseFn f) {
    op_->canonicalise = std::move(f);
    return *this;
  }
  OpBuilder& joins(PiecesFn f) {
    op_->joins = std::move(f);
    return *this;
  }
  OpBuilder& splits(PiecesFn f) {
    op_->splits = std::move(f);
    return *this;
  }
  OpBuilder& scale(ScaleRule rule) {
    op_->scale = std::move(rule);
    return *this;
  }

 private:
  Op* op_;
};

// All operators of the process by name. Filled once by op::register_operators(); read-only afterwards, so threads may
// share it.
class OpRegistry {
 public:
  static OpRegistry& instance();
  // Errors: Internal when the name is taken.
  template <typename A = NoAttrs>
  OpBuilder add(std::string name, std::string family) {
    return OpBuilder(insert(std::move(name), std::move(family), &A::static_schema(),
                            [](const AttrMap& map, std::string_view op) { return A::from_map(map, op); }));
  }
  // Null when unknown.
  const Op* find(std::string_view name) const;
  // Errors: InvalidArgument naming the nearest names.
  const Op& get(std::string_view name) const;
  std::vector<const Op*> all() const;  // sorted by name
  // At most three names that `name` may be a misspelling of, nearest first.
  std::vector<std::string> nearest(std::string_view name) const;

 private:
  Op* insert(std::string name, std::string family, const AttrSchema* schema,
             AttrsRef (*make)(const AttrMap&, std::string_view));
  std::map<std::string, std::unique_ptr<Op>, std::less<>> ops_;
};

// Runs the operator's relation on the arguments' types. Gives the output type, null when something is missing; `inputs`
// is refined. Errors: TypeMismatch, TypeAttribute with the operator's name and all argument types.
Type infer_call(const Op& op, const Attrs& attrs, std::vector<Type>& inputs);

}  // namespace treadle::ir
