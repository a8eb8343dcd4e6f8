// SPDX-License-Identifier: Apache-2.0
#include "pass/interpreter.h"

#include "ir/visitor.h"
#include "loop/stmt.h"
#include "pass/rewriter.h"
#include "runtime/kernels/kernels.h"
#include "runtime/run_state.h"
#include "runtime/session.h"

namespace treadle::pass {
namespace {

using ir::Expr;
using Values = std::vector<Tensor>;

class Interpreter {
 public:
  explicit Interpreter(const Bindings& bindings) : values_(bindings) {
    for (const auto& [node, tensors] : bindings) {
      const TensorType* type = as_tensor(node->type);
      for (size_t i = 0; type && i < type->shape.size(); ++i) {
        if (auto name = type->shape[i].as_symbol()) symbols_[*name] = tensors[0].shape()[i];
      }
    }
  }

  Values run(const Expr& root) {
    // Let and If decide what is evaluated, so operands are taken one by one instead of in post-order.
    std::vector<Expr> stack = {root};
    while (!stack.empty()) {
      Expr expr = stack.back();
      if (values_.count(expr.get())) {
        stack.pop_back();
        continue;
      }
      const Expr missing = missing_operand(expr);
      if (missing.defined()) {
        stack.push_back(missing);
      } else {
        values_[expr.get()] = evaluate(expr);
        stack.pop_back();
      }
    }
    return values_.at(root.get());
  }

 private:
  bool known(const Expr& expr) const { return values_.count(expr.get()) > 0; }

  Expr missing_operand(const Expr& expr) {
    if (const auto* let = expr.as<ir::Let>()) {
      if (!known(let->value)) return let->value;
      values_[let->var.get()] = values_.at(let->value.get());
      return known(let->body) ? Expr() : let->body;
    }
    if (const auto* branch = expr.as<ir::If>()) {
      if (!known(branch->condition)) return branch->condition;
      const Expr& taken = taken_branch(*branch);
      return known(taken) ? Expr() : taken;
    }
    if (expr.kind() == ir::ExprKind::Function || expr.kind() == ir::ExprKind::Loop) return Expr();
    for (const Expr& child : ir::children(expr)) {
      if (!known(child)) return child;
    }
    return Expr();
  }

  const Expr& taken_branch(const ir::If& branch) const {
    return values_.at(branch.condition.get()).at(0).int_at(0) ? branch.then_branch : branch.else_branch;
  }

  Values gather(const std::vector<Expr>& exprs) const {
    Values result;
    for (const Expr& expr : exprs) {
      const Values& part = values_.at(expr.get());
      result.insert(result.end(), part.begin(), part.end());
    }
    return result;
  }

  Values evaluate(const Expr& expr) {
    if (const auto* constant = expr.as<ir::Constant>()) return {constant->value};
    if (const auto* tuple = expr.as<ir::Tuple>()) return gather(tuple->fields);
    if (const auto* let = expr.as<ir::Let>()) return values_.at(let->body.get());
    if (const auto* branch = expr.as<ir::If>()) return values_.at(taken_branch(*branch).get());
    if (const auto* item = expr.as<ir::TupleGetItem>()) return {values_.at(item->tuple.get()).at(item->index)};
    const ir::Call* call = op_call(expr);
    if (!call) fail(ErrorCode::CodegenUnsupported, "the interpreter takes operators, tuples, let and if only");
    if (call->op()->compute) return compute(*call);
    if (call->op()->runtime) return run_kernel(*call);
    return Interpreter(values_).run(call->op()->decompose(*call));
  }

  std::vector<int64_t> extents(const Shape& shape) const {
    std::vector<int64_t> result;
    for (const Dim& dim : shape) result.push_back(dim.evaluate(symbols_));
    return result;
  }

  static std::vector<const TensorType*> leaves(const Type& type) {
    if (const TensorType* tensor = as_tensor(type)) return {tensor};
    std::vector<const TensorType*> result;
    const TupleType* tuple = as_tuple(type);
    if (!tuple) fail(ErrorCode::TypeUnresolved, "a value of type {} cannot be computed", to_string(type));
    for (const Type& field : tuple->fields) {
      for (const TensorType* leaf : leaves(field)) result.push_back(leaf);
    }
    return result;
  }

  Values compute(const ir::Call& call) {
    std::vector<loop::Tensor> inputs;
    for (const Expr& arg : call.args) {
      for (const TensorType* type : leaves(arg.type())) {
        inputs.push_back(
            loop::placeholder(fmt::format("x{}", inputs.size()), loop::to_exprs(type->shape), type->dtype));
      }
    }
    const loop::Function function = loop::lower_naive(call.op()->name, inputs, call.op()->compute(call, inputs));
    Values args = gather(call.args), results;
    for (const TensorType* type : leaves(call.type)) results.emplace_back(type->dtype, extents(type->shape));
    args.insert(args.end(), results.begin(), results.end());
    std::vector<int64_t> scalars;
    for (const loop::Var& scalar : function.scalars) scalars.push_back(symbols_.at(scalar.name()));
    loop::interpret(function, args, scalars);
    return results;
  }

  Values run_kernel(const ir::Call& call) {
    const ir::RuntimeCall kernel = call.op()->runtime(call);
    const TreadleRuntimeKernel function = find_runtime_kernel(kernel.kernel);
    TREADLE_CHECK(function, "there is no runtime kernel {}", kernel.kernel);
    const Values inputs = gather(call.args);
    Values results;
    const std::vector<const TensorType*> types = leaves(call.type);
    for (size_t i = 0; i < types.size(); ++i) {
      results.emplace_back(types[i]->dtype,
                           extents(kernel.output_bounds.empty() ? types[i]->shape : kernel.output_bounds[i]));
    }
    std::vector<TreadleTensorRef> input_refs, output_refs;
    for (const Tensor& tensor : inputs) input_refs.push_back(tensor_ref(tensor));
    for (const Tensor& tensor : results) output_refs.push_back(tensor_ref(tensor));
    std::vector<int64_t> late(kernel.result_symbols.size());
    RunState state;
    state.begin(1, nullptr);
    const int32_t code = function(state.context(), input_refs.data(), static_cast<int32_t>(input_refs.size()),
                                  output_refs.data(), static_cast<int32_t>(output_refs.size()), kernel.params.data(),
                                  static_cast<int32_t>(kernel.params.size()), late.data());
    state.end();
    if (code != 0) fail(ErrorCode::RuntimeKernel, "{}: {}", call.op()->name, state.message());
    for (size_t i = 0; i < late.size(); ++i) symbols_[kernel.result_symbols[i]] = late[i];
    if (late.empty()) return results;
    for (size_t i = 0; i < types.size(); ++i) {  // dense in the first part of the room given
      results[i] =
          Tensor(types[i]->dtype, extents(types[i]->shape), results[i].data(), std::make_shared<Tensor>(results[i]));
    }
    return results;
  }

  Bindings values_;
  std::map<std::string, int64_t> symbols_;
};

}  // namespace

std::vector<Tensor> interpret(const ir::Expr& expr, const Bindings& bindings) {
  return Interpreter(bindings).run(expr);
}

}  // namespace treadle::pass
