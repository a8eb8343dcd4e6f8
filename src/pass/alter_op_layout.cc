// SPDX-License-Identifier: Apache-2.0
// Chooses blocked layouts for the target, and lets them flow through what follows.
//
//   nn.relu(nn.conv2d(%x, w))   =>   layout_transform(nn.relu(nn.conv2d(layout_transform(%x, NCHW, NCHW16c), w', …)),
//   NCHW16c, NCHW)
//
// When:   an operator offers an alternative for the target (Op::alter); operators behind it keep the layout when their
// layout rule
//         says how (Op::layout); every other user gets the original order back. A transform is made once per value and
//         layout.
// Not:    across control flow and function boundaries, where values have their original order.
// Values: equal up to the order of summation inside the alternative's kernel.
#include <map>
#include <unordered_map>

#include "op/tensor/transform.h"
#include "pass/passes.h"
#include "pass/rewriter.h"

namespace treadle::pass {
namespace {

using ir::Expr;

// One tensor as it is now. `now` undefined: in its original order.
struct Placed {
  Expr expr;
  Layout old, now;
};

class LayoutAlterer {
 public:
  explicit LayoutAlterer(PassContext& context) : context_(context) {}

  Expr run(const Expr& function) {
    ir::post_order(function, [&](const Expr& expr) { values_[expr.get()] = convert(expr); });
    return original(function);
  }

 private:
  using Values = std::vector<Placed>;  // one per tensor of a tuple, one level deep; one otherwise

  Values convert(const Expr& expr) {
    if (const auto* tuple = expr.as<ir::Tuple>()) {
      Values fields;
      for (const Expr& field : tuple->fields) {
        if (!as_tensor(field.type())) return {{rebuilt(expr), {}, {}}};
        fields.push_back(values_.at(field.get()).at(0));
      }
      return fields;
    }
    if (const auto* item = expr.as<ir::TupleGetItem>()) {
      const Values& tuple = values_.at(item->tuple.get());
      const TupleType* type = as_tuple(item->tuple.type());
      if (type && tuple.size() == type->fields.size() && is_split(item->tuple)) return {tuple[item->index]};
      return {{rebuilt(expr), {}, {}}};
    }
    const ir::Call* call = op_call(expr);
    if (!call) return {{rebuilt(expr), {}, {}}};
    if (std::optional<Values> altered = alter(*call, expr)) return *altered;
    if (std::optional<Values> kept = keep_layout(*call, expr)) return *kept;
    return outputs_of(rebuilt(expr), {}, {});
  }

  // True when values_ of the tuple holds its fields and not the tuple itself.
  bool is_split(const Expr& tuple) const {
    const Values& values = values_.at(tuple.get());
    return (tuple.as<ir::Tuple>() || op_call(tuple)) && (values.empty() || as_tensor(values[0].expr.type()));
  }

  // The expression with all operands in their original order.
  Expr rebuilt(const Expr& expr) {
    std::vector<Expr> operands;
    for (const Expr& child : ir::children(expr)) operands.push_back(original(child));
    return ir::with_children(expr, operands);
  }

  Expr original(const Expr& expr) {
    const Values& values = values_.at(expr.get());
    if (!as_tuple(expr.type()) || !is_split(expr)) return to_original(values.at(0));
    if (const auto* tuple = expr.as<ir::Tuple>()) {
      std::vector<Expr> fields;
      for (const Placed& value : values) fields.push_back(to_original(value));
      return ir::tuple(std::move(fields), tuple->span);
    }
    std::vector<Expr> fields;
    for (const Placed& value : values) fields.push_back(to_original(value));
    return ir::tuple(std::move(fields), expr->span);
  }

  Expr to_original(const Placed& value) {
    return value.now.defined() ? transform(value.expr, value.now, value.old) : value.expr;
  }

  // The value in layout `wanted`; `old` names its axes when it is still in its original order.
  Expr to_layout(const Placed& value, const Layout& old, const Layout& wanted) {
    if (!wanted.defined()) return to_original(value);
    return transform(value.expr, value.now.defined() ? value.now : old, wanted);
  }

  Expr transform(const Expr& expr, const Layout& from, const Layout& to) {
    if (from == to) return expr;
    Expr& known = transforms_[{expr.get(), from.text(), to.text()}];
    if (!known.defined()) {
      known = op::layout_transform(expr, from.text(), to.text());
      keep_alive_.push_back(expr);
    }
    return known;
  }

  // One entry per output tensor of a call.
  Values outputs_of(const Expr& call, const std::vector<Layout>& old, const std::vector<Layout>& now) const {
    auto layout = [](const std::vector<Layout>& layouts, size_t i) {
      return i < layouts.size() ? layouts[i] : Layout();
    };
    const TupleType* tuple = as_tuple(call.type());
    if (!tuple) return {{call, layout(old, 0), layout(now, 0)}};
    Values values;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      values.push_back({ir::tuple_get(call, static_cast<int>(i), call->span), layout(old, i), layout(now, i)});
    }
    return values;
  }

  std::optional<Values> alter(const ir::Call& call, const Expr& expr) {
    if (!call.op()->alter) return std::nullopt;
    std::optional<ir::Alternative> alternative = call.op()->alter(call, context_.target);
    if (!alternative || !context_.allow_rewrite()) return std::nullopt;
    std::vector<Expr> args;
    for (size_t i = 0; i < call.args.size(); ++i) {
      args.push_back(
          to_layout(values_.at(call.args[i].get()).at(0), alternative->inputs_old[i], alternative->inputs[i]));
    }
    Expr result = ir::call(alternative->op, std::move(args), alternative->attrs, expr->span);
    return outputs_of(result, alternative->outputs_old, alternative->outputs);
  }

  // The call in the layout in which its arguments come, when its layout rule knows how.
  std::optional<Values> keep_layout(const ir::Call& call, const Expr& expr) {
    if (!call.op()->layout) return std::nullopt;
    Values args;
    for (const Expr& arg : call.args) {
      const Values& values = values_.at(arg.get());
      args.insert(args.end(), values.begin(), values.end());
    }
    ir::LayoutRequest request{call, {}};
    bool any = false;
    for (const Placed& arg : args) {
      request.wanted.push_back(arg.now);
      any = any || arg.now.defined();
    }
    if (!any) return std::nullopt;
    const ir::LayoutAnswer answer = call.op()->layout(request);
    if (answer.inputs.size() != args.size() || answer.outputs.empty()) return std::nullopt;
    bool changes = false;
    for (const Layout& layout : answer.inputs) changes = changes || layout.defined();
    if (!changes || !answer.outputs[0].defined() || !context_.allow_rewrite()) return std::nullopt;

    std::vector<Expr> converted;
    for (size_t i = 0; i < args.size(); ++i)
      converted.push_back(to_layout(args[i], original_names(args[i], answer.inputs[i]), answer.inputs[i]));
    std::vector<Expr> call_args;
    size_t next = 0;
    for (const Expr& arg : call.args) {
      const size_t count = values_.at(arg.get()).size();
      if (as_tensor(arg.type()))
        call_args.push_back(converted[next]);
      else
        call_args.push_back(
            ir::tuple(std::vector<Expr>(converted.begin() + next, converted.begin() + next + count), arg->span));
      next += count;
    }
    Expr result = ir::call(call.op(), std::move(call_args), answer.attrs ? answer.attrs : call.attrs, expr->span);
    std::vector<Layout> old;
    for (const Layout& layout : answer.outputs) old.push_back(layout.primal());
    return outputs_of(result, old, answer.outputs);
  }

  static Layout original_names(const Placed& value, const Layout& wanted) {
    return value.old.defined() || !wanted.defined() ? value.old : wanted.primal();
  }

  PassContext& context_;
  std::unordered_map<const ir::ExprNode*, Values> values_;
  std::map<std::tuple<const ir::ExprNode*, std::string, std::string>, Expr> transforms_;
  std::vector<Expr> keep_alive_;  // keys of transforms_
};

}  // namespace

ir::Module alter_op_layout(const ir::Module& module, PassContext& context) {
  ir::Module result = module;
  for (auto& [name, function] : result.functions) function = LayoutAlterer(context).run(function);
  return result;
}

}  // namespace treadle::pass
