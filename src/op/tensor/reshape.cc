// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/reshape.h"

#include <algorithm>

#include "op/relations.h"

namespace treadle::op {
namespace {

// Reads the codes of newshape against the input's extents, both from the left.
class ReshapeCodes {
 public:
  ReshapeCodes(const Shape& shape, const Shape& codes, bool allowzero)
      : shape_(shape), codes_(codes), allowzero_(allowzero) {}

  Shape resolve() {
    for (size_t i = 0; i < codes_.size(); ++i) i = read(i);
    if (unknown_) result_[*unknown_] = remaining();
    return result_;
  }

 private:
  // Handles the code at i (and its operands); gives the place of the last one read.
  size_t read(size_t i) {
    const Dim& code = codes_[i];
    if (!code.is_const() || code.value() > 0 || (code.value() == 0 && allowzero_)) {
      result_.push_back(code);
      ++source_;
      return i;
    }
    switch (code.value()) {
      case 0:
        result_.push_back(next());
        return i;
      case -1:
        set_unknown(result_.size());
        result_.push_back(1);
        ++source_;
        return i;
      case -2:
        while (source_ < shape_.size()) result_.push_back(next());
        return i;
      case -3: {
        const Dim first = next();
        result_.push_back(first * next());
        return i;
      }
      case -4:
        split(i);
        return i + 2;
      default:
        fail(ErrorCode::TypeAttribute, "newshape has {}, which is no extent and no code", code.value());
    }
  }

  void split(size_t i) {
    if (i + 2 >= codes_.size()) fail(ErrorCode::TypeAttribute, "the code -4 of newshape needs two numbers behind it");
    const Dim whole = next();
    Dim a = codes_[i + 1], b = codes_[i + 2];
    if (a.is(-1) && b.is(-1)) fail(ErrorCode::TypeAttribute, "behind the code -4 only one number may be -1");
    Dim& open = a.is(-1) ? a : b;
    const Dim& given = a.is(-1) ? b : a;
    if (given.is_const() && given.value() <= 0)
      fail(ErrorCode::TypeAttribute, "behind the code -4 stands {}", given.value());
    if (open.is(-1)) {
      const std::optional<Dim> quotient = exact_divide(whole, given);
      if (!quotient)
        fail(ErrorCode::TypeMismatch, "extent {} cannot be split into parts of {}", to_string(whole), to_string(given));
      open = *quotient;
    } else if (!assume_equal(a * b, whole)) {
      fail(ErrorCode::TypeMismatch, "extent {} cannot be split into {} and {}", to_string(whole), to_string(a),
           to_string(b));
    }
    result_.push_back(a);
    result_.push_back(b);
  }

  Dim next() {
    if (source_ >= shape_.size())
      fail(ErrorCode::TypeAttribute, "newshape {} refers to more extents than {} has", to_string(codes_),
           to_string(shape_));
    return shape_[source_++];
  }

  void set_unknown(size_t position) {
    if (unknown_) fail(ErrorCode::TypeAttribute, "newshape {} has -1 more than once", to_string(codes_));
    unknown_ = position;
  }

  Dim remaining() const {
    const Dim total = product(shape_), known = product(result_);
    if (known.is(0))
      fail(ErrorCode::TypeMismatch, "-1 cannot be found: the other extents of newshape {} have product 0",
           to_string(codes_));
    if (const std::optional<Dim> quotient = exact_divide(total, known)) return *quotient;
    if (total.is_const() && known.is_const())
      fail(ErrorCode::TypeMismatch, "{} elements of shape {} do not divide by the {} of newshape {}", to_string(total),
           to_string(shape_), to_string(known), to_string(codes_));
    return floordiv(total, known);
  }

  const Shape& shape_;
  const Shape& codes_;
  const bool allowzero_;
  size_t source_ = 0;
  Shape result_;
  std::optional<size_t> unknown_;
};

ir::RelationFn reshape_relation(bool reverse) {
  return [reverse](ir::Relation& relation) {
    const TensorType* x = relation.tensor(0);
    if (!x) return;
    const auto& attrs = relation.attrs<ReshapeAttrs>();
    relation.set_output(tensor_type(resolve_reshape(x->shape, attrs.newshape, attrs.allowzero, reverse), x->dtype));
  };
}

std::vector<loop::Tensor> reshape_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  return {reshaped(call.op()->name, inputs[0], input_types(call)[0]->shape, output_shape(call))};
}

// Of two operators that move no element one reshape remains, or none.
ir::Expr merge_reshapes(const ir::Call& call) {
  const TensorType* to = as_tensor(call.type);
  const TensorType* from = as_tensor(call.args[0].type());
  if (!to || !from) return {};
  if (to->shape == from->shape) return call.args[0];
  const auto* inner = call.args[0].as<ir::Call>();
  if (!inner || !inner->op() || !inner->op()->has(ir::kShapeOnly)) return {};
  const TensorType* source = as_tensor(inner->args[0].type());
  if (!source) return {};
  return source->shape == to->shape ? inner->args[0] : reshape_to(inner->args[0], to->shape);
}

// Position begin or end of reshape_like in 0 … rank.
size_t range_end(int64_t position, size_t rank, const char* what) {
  const auto count = static_cast<int64_t>(rank);
  const int64_t normal = position < 0 ? position + count : position;
  if (normal < 0 || normal > count)
    fail(ErrorCode::TypeAttribute, "{} {} is out of range for rank {}", what, position, rank);
  return static_cast<size_t>(normal);
}

void reshape_like_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  const TensorType* like = relation.tensor(1);
  if (!x || !like) return;
  const auto& attrs = relation.attrs<ReshapeLikeAttrs>();
  const auto rank = [](const TensorType* type) { return static_cast<int64_t>(type->shape.size()); };
  const size_t lhs_begin = range_end(attrs.lhs_begin, x->shape.size(), "lhs_begin");
  const size_t lhs_end = range_end(attrs.lhs_end.value_or(rank(x)), x->shape.size(), "lhs_end");
  const size_t rhs_begin = range_end(attrs.rhs_begin, like->shape.size(), "rhs_begin");
  const size_t rhs_end = range_end(attrs.rhs_end.value_or(rank(like)), like->shape.size(), "rhs_end");
  if (lhs_begin > lhs_end || rhs_begin > rhs_end)
    fail(ErrorCode::TypeAttribute, "a range of axes ends before it begins");
  Shape shape(x->shape.begin(), x->shape.begin() + lhs_begin);
  shape.insert(shape.end(), like->shape.begin() + rhs_begin, like->shape.begin() + rhs_end);
  shape.insert(shape.end(), x->shape.begin() + lhs_end, x->shape.end());
  if (!assume_equal(product(shape), product(x->shape)))
    fail(ErrorCode::TypeMismatch, "shape {} cannot become {}: the element counts differ", to_string(x->shape),
         to_string(shape));
  relation.set_output(tensor_type(shape, x->dtype));
}

void expand_dims_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const auto& attrs = relation.attrs<ExpandDimsAttrs>();
  Shape shape = x->shape;
  shape.insert(shape.begin() + normalise_axis(attrs.axis, shape.size() + 1), attrs.num_newaxis, Dim(1));
  relation.set_output(tensor_type(shape, x->dtype));
}

void squeeze_relation(ir::Relation& relation) {
  const TensorType* x = relation.tensor(0);
  if (!x) return;
  const auto& attrs = relation.attrs<SqueezeAttrs>();
  std::vector<bool> dropped(x->shape.size(), false);
  if (attrs.axis) {
    for (int64_t axis : normalise_axes(*attrs.axis, x->shape.size())) {
      if (!assume_equal(x->shape[axis], 1))
        fail(ErrorCode::TypeMismatch, "axis {} of {} has extent {}, only 1 can be dropped", axis, to_string(x->shape),
             to_string(x->shape[axis]));
      dropped[axis] = true;
    }
  } else {
    for (size_t i = 0; i < x->shape.size(); ++i) dropped[i] = x->shape[i].is(1);
  }
  Shape shape;
  for (size_t i = 0; i < x->shape.size(); ++i) {
    if (!dropped[i]) shape.push_back(x->shape[i]);
  }
  relation.set_output(tensor_type(shape, x->dtype));
}

// A symbolic extent that is dropped is 1 when the program runs; it does not take part in the indices.
std::vector<loop::Tensor> squeeze_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const auto& attrs = attrs_of<SqueezeAttrs>(call);
  Shape from = input_types(call)[0]->shape;
  if (attrs.axis) {
    for (int64_t axis : normalise_axes(*attrs.axis, from.size())) from[axis] = 1;
  }
  return {reshaped("squeeze", inputs[0], from, output_shape(call))};
}

template <typename A>
ir::OpBuilder add_reshape(ir::OpRegistry& registry, const char* name, const char* summary, ir::FusionKind kind) {
  return registry.add<A>(name, "tensor/reshape")
      .summary(summary)
      .source("Relay 0.16")
      .input("x", "any shape and dtype")
      .fusion(kind)
      .traits(ir::kShapeOnly)
      .canonicalise(merge_reshapes)
      .compute(reshape_compute);
}

}  // namespace

Shape resolve_reshape(const Shape& shape, const Shape& newshape, bool allowzero, bool reverse) {
  Shape from = shape, codes = newshape;
  if (reverse) {
    std::reverse(from.begin(), from.end());
    std::reverse(codes.begin(), codes.end());
  }
  Shape result = ReshapeCodes(from, codes, allowzero).resolve();
  if (reverse) std::reverse(result.begin(), result.end());
  if (!assume_equal(product(shape), product(result)))
    fail(ErrorCode::TypeMismatch, "shape {} cannot become {}: {} and {} elements", to_string(shape), to_string(result),
         to_string(product(shape)), to_string(product(result)));
  return result;
}

ir::Expr reshape(ir::Expr x, const Shape& newshape, bool allowzero) {
  auto attrs = ReshapeAttrs::defaults();
  attrs->newshape = newshape;
  attrs->allowzero = allowzero;
  return call_op("reshape", {std::move(x)}, std::move(attrs));
}

ir::Expr reshape_to(ir::Expr x, const Shape& shape) {
  const bool has_zero = std::any_of(shape.begin(), shape.end(), [](const Dim& extent) { return extent.is(0); });
  return reshape(std::move(x), shape, has_zero);
}

ir::Expr expand_dims(ir::Expr x, int64_t axis, int64_t num_newaxis) {
  auto attrs = ExpandDimsAttrs::defaults();
  attrs->axis = axis;
  attrs->num_newaxis = num_newaxis;
  return call_op("expand_dims", {std::move(x)}, std::move(attrs));
}

ir::Expr squeeze(ir::Expr x, const std::optional<ir::Ints>& axis) {
  auto attrs = SqueezeAttrs::defaults();
  attrs->axis = axis;
  return call_op("squeeze", {std::move(x)}, std::move(attrs));
}

void register_tensor_reshape(ir::OpRegistry& registry) {
  using ir::FusionKind;
  add_reshape<ReshapeAttrs>(registry, "reshape", "The same elements in another shape.", FusionKind::Injective)
      .formula("y in row-major order is x in row-major order")
      .relation(reshape_relation(false));
  add_reshape<ReshapeAttrs>(registry, "contrib_reverse_reshape", "reshape with its codes matched from the right.",
                            FusionKind::Injective)
      .relation(reshape_relation(true));
  add_reshape<ReshapeLikeAttrs>(registry, "reshape_like", "A range of axes gets the extents of another tensor's.",
                                FusionKind::Injective)
      .input("like", "only its shape counts")
      .relation(reshape_like_relation)
      // Not while an extent is symbolic: what binds the symbol must run before.
      .canonicalise([](const ir::Call& call) {
        return is_static(output_shape(call)) ? reshape_to(call.args[0], output_shape(call)) : ir::Expr();
      });
  add_reshape<ExpandDimsAttrs>(registry, "expand_dims", "New axes of extent 1.", FusionKind::Broadcast)
      .relation(expand_dims_relation);
  add_reshape<SqueezeAttrs>(registry, "squeeze", "Axes of extent 1 dropped.", FusionKind::Injective)
      .relation(squeeze_relation)
      .compute(squeeze_compute);
}

}  // namespace treadle::op
