// SPDX-License-Identifier: Apache-2.0
#include "lower/kernel.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/op.h"
#include "ir/visitor.h"

namespace treadle::lower {
namespace {

constexpr size_t kMaxName = 80;

using Leaves = std::vector<loop::Tensor>;

// A scalar constant inside a kernel is a literal of the code.
loop::Tensor literal(const Tensor& value) {
  const loop::Expr element = value.dtype().is_float() ? loop::float_imm(value.at(0), value.dtype())
                                                      : loop::int_imm(value.int_at(0), value.dtype());
  return loop::compute("literal", std::vector<loop::Expr>(value.shape().size(), loop::Expr(1)),
                       [&](const std::vector<loop::Var>&) { return element; });
}

class GraphBuilder {
 public:
  TensorGraph build(const ir::Function& function) {
    for (const ir::Expr& param : function.params) {
      Leaves leaves;
      for (const TensorType* type : tensors_of(param.type())) {
        leaves.push_back(loop::placeholder(param.as<ir::Var>()->name, loop::to_exprs(type->shape), type->dtype));
      }
      graph_.inputs.insert(graph_.inputs.end(), leaves.begin(), leaves.end());
      values_[param.get()] = leaves;
    }
    ir::post_order(function.body, [&](const ir::Expr& expr) {
      if (!values_.count(expr.get())) values_[expr.get()] = convert(expr);
    });
    graph_.outputs = values_.at(function.body.get());
    finish_names();
    return std::move(graph_);
  }

 private:
  Leaves convert(const ir::Expr& expr) {
    switch (expr.kind()) {
      case ir::ExprKind::Constant:
        return {literal(expr.as<ir::Constant>()->value)};
      case ir::ExprKind::Tuple: {
        Leaves leaves;
        for (const ir::Expr& field : expr.as<ir::Tuple>()->fields) {
          const Leaves& part = values_.at(field.get());
          leaves.insert(leaves.end(), part.begin(), part.end());
        }
        return leaves;
      }
      case ir::ExprKind::TupleGetItem: {
        const auto* item = expr.as<ir::TupleGetItem>();
        const Leaves& tuple = values_.at(item->tuple.get());
        const auto begin = tuple.begin() + leaf_offset(*as_tuple(item->tuple.type()), item->index);
        return Leaves(begin, begin + static_cast<int64_t>(flatten_tuple_type(expr.type()).size()));
      }
      case ir::ExprKind::Call:
        return convert_call(*expr.as<ir::Call>());
      case ir::ExprKind::Op:
        return {};
      default:
        fail(ErrorCode::Internal, "a primitive function holds an expression that is no operator call");
    }
  }

  Leaves convert_call(const ir::Call& call) {
    const ir::Op* op = call.op();
    TREADLE_CHECK(op && op->compute, "operator {} of a primitive function has no compute", op ? op->name : "?");
    Leaves inputs;
    for (const ir::Expr& arg : call.args) {
      const Leaves& part = values_.at(arg.get());
      inputs.insert(inputs.end(), part.begin(), part.end());
    }
    std::string_view short_name = op->name;
    if (size_t dot = short_name.rfind('.'); dot != std::string_view::npos) short_name.remove_prefix(dot + 1);
    operators_.emplace_back(short_name);
    if (call.span && !call.span->node.empty()) nodes_.push_back(call.span->node);
    return op->compute(call, inputs);
  }

  void finish_names() {
    for (const std::string& op : operators_) {
      if (graph_.name.size() + op.size() > kMaxName) break;
      graph_.name += (graph_.name.empty() ? "" : "_") + op;
    }
    if (graph_.name.empty()) graph_.name = "copy";
    std::set<std::string> seen;
    for (const std::string& node : nodes_) {
      if (seen.insert(node).second) graph_.source += (graph_.source.empty() ? "" : ", ") + node;
    }
  }

  TensorGraph graph_;
  std::map<const ir::ExprNode*, Leaves> values_;
  std::vector<std::string> operators_, nodes_;
};

// Rebuilds a primitive function with other types; calls keep theirs, since inference would give the old expressions
// again.
class ExtentReplacer {
 public:
  PlainExtents run(const ir::Expr& expr) {
    const auto& function = *expr.as<ir::Function>();
    std::vector<ir::Expr> params;
    for (const ir::Expr& param : function.params) {
      params.push_back(ir::var(param.as<ir::Var>()->name, plain(param.type()), param->span));
      made_[param.get()] = params.back();
    }
    ir::post_order(function.body, [&](const ir::Expr& node) {
      if (!made_.count(node.get())) made_[node.get()] = rebuild(node);
    });
    result_.function =
        ir::function(std::move(params), made_.at(function.body.get()), nullptr, function.attrs, {}, function.span);
    return std::move(result_);
  }

 private:
  ir::Expr rebuild(const ir::Expr& node) {
    if (const auto* call = node.as<ir::Call>()) {
      return std::make_shared<ir::Call>(call->callee, replaced(call->args), call->attrs, plain(call->type), call->span);
    }
    if (const auto* tuple = node.as<ir::Tuple>()) return ir::tuple(replaced(tuple->fields), tuple->span);
    if (const auto* item = node.as<ir::TupleGetItem>()) {
      return std::make_shared<ir::TupleGetItem>(made_.at(item->tuple.get()), item->index, plain(item->type),
                                                item->span);
    }
    return node;
  }

  std::vector<ir::Expr> replaced(std::vector<ir::Expr> exprs) const {
    for (ir::Expr& expr : exprs) expr = made_.at(expr.get());
    return exprs;
  }

  Type plain(const Type& type) {
    if (const TupleType* tuple = as_tuple(type)) {
      std::vector<Type> fields = tuple->fields;
      for (Type& field : fields) field = plain(field);
      return tuple_type(std::move(fields));
    }
    const TensorType* tensor = as_tensor(type);
    if (!tensor || is_static(tensor->shape)) return type;
    Shape shape = tensor->shape;
    for (Dim& dim : shape) dim = plain(dim);
    return tensor_type(std::move(shape), tensor->dtype);
  }

  Dim plain(const Dim& dim) {
    if (dim.is_const()) return dim;
    auto [found, added] = symbols_.try_emplace(to_string(dim), "");
    if (added) {
      found->second = fmt::format("n.{}", symbols_.size() - 1);
      result_.values[found->second] = dim;
    }
    return Dim::symbol(found->second);
  }

  PlainExtents result_;
  std::map<const ir::ExprNode*, ir::Expr> made_;
  std::map<std::string, std::string> symbols_;  // by the extent's canonical text
};

// An extent as the types wrote it.
Dim to_dim(const loop::Expr& extent) {
  if (const int64_t* value = loop::as_int(extent)) return *value;
  if (const auto* var = extent.as<loop::VarNode>()) return Dim::symbol(var->name);
  const auto* binary = extent.as<loop::Binary>();
  TREADLE_CHECK(binary, "an extent is {}", loop::to_string(extent));
  const Dim a = to_dim(binary->a), b = to_dim(binary->b);
  switch (binary->op) {
    case loop::BinaryOp::Add:
      return a + b;
    case loop::BinaryOp::Sub:
      return a - b;
    case loop::BinaryOp::Mul:
      return a * b;
    case loop::BinaryOp::FloorDiv:
      return floordiv(a, b);
    case loop::BinaryOp::FloorMod:
      return mod(a, b);
    case loop::BinaryOp::Min:
      return min(a, b);
    case loop::BinaryOp::Max:
      return max(a, b);
    default:
      TREADLE_CHECK(false, "an extent is {}", loop::to_string(extent));
      return 0;
  }
}

// Counts the arithmetic of a definition's expression, not its index arithmetic.
class OperationCounter : public loop::ExprVisitor {
 public:
  int count = 0;

 protected:
  void visit_expr(const loop::Expr& expr) override {
    if (expr.kind() == loop::ExprKind::Load) return;
    const bool arithmetic = expr.kind() == loop::ExprKind::Binary || expr.kind() == loop::ExprKind::Intrinsic;
    if (arithmetic && expr.dtype().is_float()) ++count;
    visit_children(expr);
  }
};

}  // namespace

std::vector<const TensorType*> tensors_of(const Type& type) {
  std::vector<const TensorType*> tensors = flatten_tuple_type(type);
  if (std::find(tensors.begin(), tensors.end(), nullptr) != tensors.end()) {
    fail(ErrorCode::CodegenUnsupported, "a value of type {} cannot be compiled: only tensors and tuples can",
         to_string(type));
  }
  return tensors;
}

PlainExtents plain_extents(const ir::Expr& function) { return ExtentReplacer().run(function); }

TensorGraph tensor_graph(const ir::Function& function) { return GraphBuilder().build(function); }

Dim count_operations(const TensorGraph& graph, const std::map<std::string, Dim>& values) {
  try {
    Dim total = 0;
    for (const loop::Tensor& tensor : loop::topological_order(graph.outputs)) {
      if (tensor->is_placeholder()) continue;
      OperationCounter counter;
      counter.visit(tensor->value);
      std::vector<loop::Expr> extents = tensor.shape();
      if (tensor->reduction) {
        ++counter.count;
        extents.insert(extents.end(), tensor->reduction->extents.begin(), tensor->reduction->extents.end());
      }
      Dim operations = counter.count;
      for (const loop::Expr& extent : extents) operations = operations * to_dim(extent).substitute(values);
      total = total + operations;
    }
    return total;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Limit) throw;
    return 0;  // a number beyond int64 or a formula beyond all bounds: speeds are not shown
  }
}

}  // namespace treadle::lower
