// SPDX-License-Identifier: Apache-2.0
#include "op/tensor/einsum.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "op/relations.h"

namespace treadle::op {
namespace {

// Names of axes; those of an ellipsis are the characters '0', '1', … counted from the right, so that they align as
// broadcasting does.
using Names = std::string;

struct Plan {
  std::vector<Names> operands;
  Names output, summed;
  std::map<char, Dim> extents;

  Shape shape_of(const Names& names) const {
    Shape shape;
    for (char name : names) shape.push_back(extents.at(name));
    return shape;
  }
};

Names ellipsis_names(size_t count) {
  Names names;
  for (size_t i = count; i-- > 0;) names += static_cast<char>('0' + i);
  return names;
}

// One side's names, its ellipsis replaced by `ellipsis` names. Errors: TypeAttribute.
Names expand(const std::string& text, const Names& ellipsis) {
  Names names;
  for (size_t i = 0; i < text.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      names += text[i];
    } else if (text.compare(i, 3, "...") == 0 && text.find("...", i + 1) == std::string::npos) {
      names += ellipsis;
      i += 2;
    } else {
      fail(ErrorCode::TypeAttribute, "equation has '{}' in \"{}\"", text[i], text);
    }
  }
  return names;
}

bool has_ellipsis(const std::string& text) { return text.find("...") != std::string::npos; }

// The extent of a name in all operands: what broadcasting makes of them.
void merge_extent(Plan& plan, char name, const Dim& extent) {
  const auto [found, added] = plan.extents.emplace(name, extent);
  if (!added) found->second = broadcast({found->second}, {extent})[0];
}

Plan plan_of(const std::string& equation, const std::vector<const TensorType*>& tensors) {
  std::string text;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(text), [](char c) { return c != ' '; });
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (char c : left) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != tensors.size())
    fail(ErrorCode::TypeAttribute, "equation names {} operands, there are {}", terms.size(), tensors.size());
  Plan plan;
  size_t widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t named = terms[i].size() - (has_ellipsis(terms[i]) ? 3 : 0), rank = tensors[i]->shape.size();
    if (named > rank || (named < rank && !has_ellipsis(terms[i])) || rank - named > 10)
      fail(ErrorCode::TypeMismatch, "\"{}\" does not fit operand {} of shape {}", terms[i], i,
           to_string(tensors[i]->shape));
    widest = std::max(widest, rank - named);
    plan.operands.push_back(expand(terms[i], ellipsis_names(rank - named)));
    for (size_t a = 0; a < rank; ++a) merge_extent(plan, plan.operands[i][a], tensors[i]->shape[a]);
  }
  if (arrow != std::string::npos) {
    plan.output = expand(text.substr(arrow + 2), ellipsis_names(widest));
  } else {
    Names once;
    for (const auto& [name, extent] : plan.extents) {
      size_t uses = 0;
      for (const Names& names : plan.operands) uses += std::count(names.begin(), names.end(), name);
      if (uses == 1 && std::isalpha(static_cast<unsigned char>(name))) once += name;
    }
    plan.output = ellipsis_names(widest) + once;
  }
  for (size_t i = 0; i < plan.output.size(); ++i) {
    if (!plan.extents.contains(plan.output[i]) || plan.output.find(plan.output[i], i + 1) != Names::npos)
      fail(ErrorCode::TypeAttribute, "'{}' of the result is in no operand, or twice in the result", plan.output[i]);
  }
  for (const auto& [name, extent] : plan.extents) {
    if (plan.output.find(name) == Names::npos) plan.summed += name;
  }
  return plan;
}

void einsum_relation(ir::Relation& relation) {
  const auto tensors = relation.tensors(0);
  if (!tensors) return;
  if (tensors->empty()) fail(ErrorCode::TypeMismatch, "einsum needs an operand");
  for (const TensorType* tensor : *tensors) {
    if (!(tensor->dtype == tensors->front()->dtype) || tensor->dtype.is_bool())
      fail(ErrorCode::TypeMismatch, "the operands must be numbers of one dtype, they are {} and {}",
           to_string(tensors->front()->dtype), to_string(tensor->dtype));
  }
  const Plan plan = plan_of(relation.attrs<EinsumAttrs>().equation, *tensors);
  relation.set_output(tensor_type(plan.shape_of(plan.output), tensors->front()->dtype));
}

std::vector<loop::Tensor> einsum_compute(const ir::Call& call, const std::vector<loop::Tensor>& inputs) {
  const std::vector<const TensorType*> types = input_types(call);
  const Plan plan = plan_of(attrs_of<EinsumAttrs>(call).equation, types);
  const DType dtype = inputs[0].dtype(), wide = accumulator_dtype(dtype);
  const auto product_at = [&](const std::vector<loop::Var>& kept, const std::vector<loop::Var>& summed) {
    std::map<char, loop::Expr> index;
    for (size_t i = 0; i < kept.size(); ++i) index[plan.output[i]] = kept[i];
    for (size_t i = 0; i < summed.size(); ++i) index[plan.summed[i]] = summed[i];
    loop::Expr result;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Indices at;
      for (char name : plan.operands[i]) at.push_back(index.at(name));
      const loop::Expr value =
          loop::cast(inputs[i](broadcast_index(types[i]->shape, plan.shape_of(plan.operands[i]), at)), wide);
      result = result.defined() ? result * value : value;
    }
    return result;
  };
  const std::vector<loop::Expr> shape = loop::to_exprs(plan.shape_of(plan.output));
  const loop::Tensor sum =
      plan.summed.empty()
          ? loop::compute("einsum", shape, [&](const std::vector<loop::Var>& i) { return product_at(i, {}); })
          : loop::reduce("einsum", shape, loop::ReduceOp::Sum, loop::to_exprs(plan.shape_of(plan.summed)), product_at);
  if (wide == dtype) return {sum};
  return {elementwise("einsum", sum, [&](loop::Expr value) { return loop::cast(std::move(value), dtype); })};
}

}  // namespace

ir::Expr einsum(std::vector<ir::Expr> operands, const std::string& equation) {
  auto attrs = EinsumAttrs::defaults();
  attrs->equation = equation;
  return call_op("einsum", {ir::tuple(std::move(operands))}, std::move(attrs));
}

void register_tensor_einsum(ir::OpRegistry& registry) {
  registry.add<EinsumAttrs>("einsum", "tensor/einsum")
      .summary("Products of tensors summed over named axes.")
      .source("Relay 0.16; NumPy einsum")
      .tuple_input("operands", "numbers of one dtype")
      .fusion(ir::FusionKind::Reduction)
      .relation(einsum_relation)
      .compute(einsum_compute);
}

}  // namespace treadle::op
