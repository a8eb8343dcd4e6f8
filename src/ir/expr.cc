// SPDX-License-Identifier: Apache-2.0
// Nodes of the graph IR: destruction without recursion, and the builders, which infer the types of calls.
#include "ir/expr.h"

#include <algorithm>

#include "ir/op.h"
#include "ir/unify.h"

namespace treadle::ir {
namespace {

// Destruction of a long chain must not recurse: each node's destructor moves its operands to a list that the outermost
// destructor of the thread empties. The pointer is trivially destructible, so nodes may die at any time of the thread's
// end.
thread_local std::vector<Expr>* dying = nullptr;

class Release {
 public:
  Release() : outermost_(dying == nullptr) {
    if (outermost_) dying = &list_;
  }
  ~Release() {
    if (!outermost_) return;
    while (!list_.empty()) {
      const Expr last = std::move(list_.back());
      list_.pop_back();
    }
    dying = nullptr;
  }
  // The members are const for users; the node they belong to is being destroyed.
  Release& operator()(const Expr& operand) {
    if (operand.defined()) dying->push_back(std::move(const_cast<Expr&>(operand)));
    return *this;
  }
  Release& operator()(const std::vector<Expr>& operands) {
    for (const Expr& operand : operands) (*this)(operand);
    return *this;
  }

 private:
  std::vector<Expr> list_;
  bool outermost_;
};

Type type_of_fields(const std::vector<Expr>& fields) {
  std::vector<Type> types;
  types.reserve(fields.size());
  for (const Expr& field : fields) types.push_back(field.type());
  return tuple_type(std::move(types));
}

Type type_of_function(const std::vector<Expr>& params, const Expr& body, const Type& ret_type,
                      std::vector<std::string> type_params) {
  std::vector<Type> types;
  types.reserve(params.size());
  for (const Expr& param : params) types.push_back(param.type());
  return func_type(std::move(types), ret_type ? ret_type : body.type(), std::move(type_params));
}

// Runs f; an error gets the span as context.
template <typename F>
auto with_span(const Span& span, F f) {
  try {
    return f();
  } catch (Error& error) {
    if (span) error.at(to_string(span));
    throw;
  }
}

}  // namespace

Dim trip_extent(const Expr& trip_count, const Expr& condition) {
  const auto* constant = trip_count.as<Constant>();
  if (!constant || condition.defined() || constant->value.size() != 1) return Dim::any();
  return Dim(std::max<int64_t>(0, constant->value.int_at(0)));
}

const TensorType& Expr::tensor_type() const {
  const TensorType* tensor = node_ ? as_tensor(node_->type) : nullptr;
  if (!tensor)
    fail(ErrorCode::TypeUnresolved, "a tensor is expected, but the type is {}",
         node_ ? to_string(node_->type) : "missing");
  return *tensor;
}

Constant::Constant(Tensor value, Span span)
    : ExprNode(Kind, treadle::tensor_type(to_shape(value.shape()), value.dtype()), std::move(span)),
      value(std::move(value)) {}

Call::~Call() { Release()(callee)(args); }
const Op* Call::op() const {
  const auto* node = callee.as<OpExpr>();
  return node ? node->op : nullptr;
}

Tuple::Tuple(std::vector<Expr> fields, Span span)
    : ExprNode(Kind, type_of_fields(fields), std::move(span)), fields(std::move(fields)) {}
Tuple::~Tuple() { Release()(fields); }

TupleGetItem::~TupleGetItem() { Release()(tuple); }

Let::Let(Expr var, Expr value, Expr body, Span span)
    : ExprNode(Kind, body.type(), std::move(span)),
      var(std::move(var)),
      value(std::move(value)),
      body(std::move(body)) {}
Let::~Let() { Release()(var)(value)(body); }

If::If(Expr condition, Expr then_branch, Expr else_branch, Type type, Span span)
    : ExprNode(Kind, std::move(type), std::move(span)),
      condition(std::move(condition)),
      then_branch(std::move(then_branch)),
      else_branch(std::move(else_branch)) {}
If::~If() { Release()(condition)(then_branch)(else_branch); }

Function::Function(std::vector<Expr> params, Expr body, Type ret_type, std::vector<std::string> type_params,
                   AttrMap attrs, Span span)
    : ExprNode(Kind, type_of_function(params, body, ret_type, type_params), std::move(span)),
      params(std::move(params)),
      body(std::move(body)),
      ret_type(std::move(ret_type)),
      type_params(std::move(type_params)),
      attrs(std::move(attrs)) {}
Function::~Function() { Release()(body)(params); }
bool Function::is_primitive() const {
  const auto found = attrs.find("Primitive");
  if (found == attrs.end()) return false;
  const auto* flag = std::get_if<int64_t>(&found->second);
  const auto* boolean = std::get_if<bool>(&found->second);
  return (flag && *flag != 0) || (boolean && *boolean);
}

Loop::Loop(Expr trip_count, Expr condition, Expr body, std::vector<Expr> initial, int num_scanned, Type type, Span span)
    : ExprNode(Kind, std::move(type), std::move(span)),
      trip_count(std::move(trip_count)),
      condition(std::move(condition)),
      body(std::move(body)),
      initial(std::move(initial)),
      num_scanned(num_scanned) {}
Loop::~Loop() { Release()(trip_count)(condition)(body)(initial); }

Expr var(std::string name, Type type, Span span) {
  return std::make_shared<Var>(std::move(name), std::move(type), std::move(span));
}

Expr global_var(std::string name, Type type, Span span) {
  return std::make_shared<GlobalVar>(std::move(name), std::move(type), std::move(span));
}

Expr op_expr(const Op* op) { return std::make_shared<OpExpr>(op); }

Expr constant(Tensor value, Span span) { return std::make_shared<Constant>(std::move(value), std::move(span)); }

Expr call(const Op* op, std::vector<Expr> args, AttrsRef attrs, Span span) {
  return with_span(span, [&]() -> Expr {
    if (!attrs) attrs = op->make_attrs({});
    std::vector<Type> types;
    types.reserve(args.size());
    for (const Expr& arg : args) {
      if (!arg.defined()) fail(ErrorCode::InvalidArgument, "{}: argument {} is missing", op->name, types.size());
      types.push_back(arg.type());
    }
    Type type = infer_call(*op, *attrs, types);
    return std::make_shared<Call>(op_expr(op), std::move(args), std::move(attrs), std::move(type), span);
  });
}

Expr call(Expr callee, std::vector<Expr> args, Span span) {
  if (const auto* op = callee.as<OpExpr>()) return call(op->op, std::move(args), nullptr, std::move(span));
  return with_span(span, [&]() -> Expr {
    Type type;
    if (callee.type()) {
      Unifier unifier;
      std::vector<Type> types;
      types.reserve(args.size());
      for (const Expr& arg : args) types.push_back(unifier.open(arg.type()));
      type = unifier.close(unifier.apply(unifier.open(callee.type()), types));
    }
    return std::make_shared<Call>(std::move(callee), std::move(args), nullptr, std::move(type), span);
  });
}

Expr call(std::string_view op, std::vector<Expr> args, const AttrMap& attrs, Span span) {
  return with_span(span, [&] {
    const Op& found = OpRegistry::instance().get(op);
    return call(&found, std::move(args), found.make_attrs(attrs), nullptr);
  });
}

Expr tuple(std::vector<Expr> fields, Span span) { return std::make_shared<Tuple>(std::move(fields), std::move(span)); }

Expr tuple_get(Expr tuple, int index, Span span) {
  return with_span(span, [&]() -> Expr {
    Type type;
    if (tuple.type()) {
      const TupleType* fields = as_tuple(tuple.type());
      if (!fields)
        fail(ErrorCode::TypeMismatch, "field {} is taken of a value of type {}", index, to_string(tuple.type()));
      if (index < 0 || index >= static_cast<int>(fields->fields.size())) {
        fail(ErrorCode::TypeMismatch, "field {} is taken of a tuple of {} fields", index, fields->fields.size());
      }
      type = fields->fields[static_cast<size_t>(index)];
    }
    return std::make_shared<TupleGetItem>(std::move(tuple), index, std::move(type), span);
  });
}

Expr let(Expr var, Expr value, Expr body, Span span) {
  if (!var.as<Var>()) fail(ErrorCode::InvalidArgument, "a let binds a variable only");
  return std::make_shared<Let>(std::move(var), std::move(value), std::move(body), std::move(span));
}

Expr if_expr(Expr condition, Expr then_branch, Expr else_branch, Span span) {
  return with_span(span, [&]() -> Expr {
    if (const Type& type = condition.type()) {
      const TensorType* tensor = as_tensor(type);
      if (!tensor || !tensor->shape.empty() || !tensor->dtype.is_bool()) {
        fail(ErrorCode::TypeMismatch, "the condition of an if must be a bool scalar, but is {}", to_string(type));
      }
    }
    Type type;
    try {
      type = join_types(then_branch.type(), else_branch.type());
    } catch (Error& error) {
      error.at("the two branches of an if");
      throw;
    }
    return std::make_shared<If>(std::move(condition), std::move(then_branch), std::move(else_branch), std::move(type),
                                span);
  });
}

Expr function(std::vector<Expr> params, Expr body, Type ret_type, AttrMap attrs, std::vector<std::string> type_params,
              Span span) {
  for (const Expr& param : params) {
    if (!param.as<Var>()) fail(ErrorCode::InvalidArgument, "a parameter of a function must be a variable");
  }
  return std::make_shared<Function>(std::move(params), std::move(body), std::move(ret_type), std::move(type_params),
                                    std::move(attrs), std::move(span));
}

Expr loop(Expr trip_count, Expr condition, Expr body, std::vector<Expr> initial, int num_scanned, Span span) {
  return with_span(span, [&]() -> Expr {
    const auto* function = body.as<Function>();
    if (!function) fail(ErrorCode::InvalidArgument, "the body of a loop must be a function");
    if (condition.defined() && !condition.as<Function>())
      fail(ErrorCode::InvalidArgument, "the condition of a loop must be a function");
    if (!condition.defined() && !trip_count.defined())
      fail(ErrorCode::InvalidArgument, "a loop needs a trip count or a condition");
    if (num_scanned < 0) fail(ErrorCode::InvalidArgument, "a loop has {} scanned values", num_scanned);
    Unifier unifier;
    std::vector<Type> initial_types, args{tensor_type({}, dtype::int64_)};
    for (const Expr& value : initial) initial_types.push_back(value.type());
    for (const Type& type : initial_types) args.push_back(unifier.open(type));
    Type type;
    try {
      if (condition.defined())
        unifier.unify(unifier.apply(unifier.open(condition.type()), args, false), tensor_type({}, dtype::bool_));
      const Type result = unifier.close(unifier.apply(unifier.open(body.type()), args, false));
      type = loop_type(initial_types, result, num_scanned, trip_extent(trip_count, condition));
    } catch (Error& error) {
      error.at("a loop");
      throw;
    }
    return std::make_shared<Loop>(std::move(trip_count), std::move(condition), std::move(body), std::move(initial),
                                  num_scanned, std::move(type), span);
  });
}

const Function& Module::function(const std::string& name) const {
  const auto found = functions.find(name);
  if (found == functions.end()) fail(ErrorCode::InvalidArgument, "the module has no function \"@{}\"", name);
  const auto* function = found->second.as<Function>();
  if (!function) fail(ErrorCode::InvalidArgument, "\"@{}\" is no function", name);
  return *function;
}

const Function& Module::main() const { return function("main"); }

}  // namespace treadle::ir
