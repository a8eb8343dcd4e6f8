// SPDX-License-Identifier: Apache-2.0
// The graph IR: Relay's expressions, and one structured loop. Immutable and shared; a rewrite makes new ones. A value
// used twice is one node with two users: the graph is a directed acyclic graph (recursion goes through names), and
// every traversal is iterative.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/span.h"
#include "ir/attrs.h"
#include "runtime/tensor.h"
#include "type/type.h"

namespace treadle::ir {

class Op;

enum class ExprKind { Var, GlobalVar, Op, Constant, Call, Tuple, TupleGetItem, Let, If, Function, Loop };

struct ExprNode {
  ExprNode(ExprKind kind, Type type, Span span) : kind(kind), type(std::move(type)), span(std::move(span)) {}
  virtual ~ExprNode() = default;
  const ExprKind kind;
  const Type type;  // null: not inferred yet
  const Span span;
};

class Expr {
 public:
  Expr() = default;
  template <typename T>
    requires std::is_convertible_v<T*, const ExprNode*>
  Expr(std::shared_ptr<T> node) : node_(std::move(node)) {}  // NOLINT(google-explicit-constructor)
  bool defined() const { return node_ != nullptr; }
  const ExprNode* get() const { return node_.get(); }
  const ExprNode* operator->() const { return node_.get(); }
  const std::shared_ptr<const ExprNode>& node() const { return node_; }
  std::shared_ptr<const ExprNode>& mutable_node() { return node_; }
  ExprKind kind() const { return node_->kind; }
  const Type& type() const { return node_->type; }
  // Its tensor type. Errors: TypeUnresolved when it is not known or no tensor.
  const TensorType& tensor_type() const;
  bool same_as(const Expr& other) const { return node_ == other.node_; }
  template <typename T>
  const T* as() const {
    return node_ && node_->kind == T::Kind ? static_cast<const T*>(node_.get()) : nullptr;
  }
  friend bool operator<(const Expr& a, const Expr& b) { return a.node_ < b.node_; }

 private:
  std::shared_ptr<const ExprNode> node_;
};

// A parameter or a let-bound name; identity is the pointer.
struct Var : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Var;
  Var(std::string name, Type type, Span span)
      : ExprNode(Kind, std::move(type), std::move(span)), name(std::move(name)) {}
  const std::string name;
};

// The name of a function of the module: `@main`. Looked up by name.
struct GlobalVar : ExprNode {
  static constexpr ExprKind Kind = ExprKind::GlobalVar;
  GlobalVar(std::string name, Type type, Span span)
      : ExprNode(Kind, std::move(type), std::move(span)), name(std::move(name)) {}
  const std::string name;
};

// An operator as a callee.
struct OpExpr : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Op;
  explicit OpExpr(const Op* op) : ExprNode(Kind, nullptr, nullptr), op(op) {}
  const Op* const op;
};

struct Constant : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Constant;
  Constant(Tensor value, Span span);
  const Tensor value;
};

struct Call : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Call;
  Call(Expr callee, std::vector<Expr> args, AttrsRef attrs, Type type, Span span)
      : ExprNode(Kind, std::move(type), std::move(span)),
        callee(std::move(callee)),
        args(std::move(args)),
        attrs(std::move(attrs)) {}
  ~Call() override;
  const Expr callee;  // OpExpr, GlobalVar, Function, or an expression of function type
  const std::vector<Expr> args;
  const AttrsRef attrs;  // of the operator; null otherwise
  // The operator; null when the callee is none.
  const Op* op() const;
};

struct Tuple : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Tuple;
  Tuple(std::vector<Expr> fields, Span span);
  ~Tuple() override;
  const std::vector<Expr> fields;
};

struct TupleGetItem : ExprNode {
  static constexpr ExprKind Kind = ExprKind::TupleGetItem;
  TupleGetItem(Expr tuple, int index, Type type, Span span)
      : ExprNode(Kind, std::move(type), std::move(span)), tuple(std::move(tuple)), index(index) {}
  ~TupleGetItem() override;
  const Expr tuple;
  const int index;
};

struct Let : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Let;
  Let(Expr var, Expr value, Expr body, Span span);
  ~Let() override;
  const Expr var;  // a Var; in `value` it may occur when that is a function (recursion)
  const Expr value, body;
};

struct If : ExprNode {
  static constexpr ExprKind Kind = ExprKind::If;
  If(Expr condition, Expr then_branch, Expr else_branch, Type type, Span span);
  ~If() override;
  const Expr condition;  // a bool scalar
  const Expr then_branch, else_branch;
};

// Attributes of a function by name: Primitive (int 1: one kernel), and what texts carry.
struct Function : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Function;
  Function(std::vector<Expr> params, Expr body, Type ret_type, std::vector<std::string> type_params, AttrMap attrs,
           Span span);
  ~Function() override;
  const std::vector<Expr> params;  // Vars
  const Expr body;
  const Type ret_type;  // null: as the body's
  const std::vector<std::string> type_params;
  const AttrMap attrs;
  bool is_primitive() const;
};

// ONNX's Loop and Scan, Keras' recurrent layers. Iteration i = 0, 1, … runs while i < trip_count (if given) and
// condition(i, carried…) (if given); then (carried', …, scanned…) = body(i, carried…, …). Both functions may use outer
// values directly.
//   result  a tuple: the carried values at the end, then for each scanned value its values of all iterations, stacked
//   along a new
//           axis 0 whose extent is the number of iterations
struct Loop : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Loop;
  Loop(Expr trip_count, Expr condition, Expr body, std::vector<Expr> initial, int num_scanned, Type type, Span span);
  ~Loop() override;
  const Expr trip_count;  // an int64 scalar, or undefined
  const Expr condition;   // Function (int64, carried…) -> bool, or undefined; at least one of the two is there
  const Expr body;        // Function (int64, carried…) -> (carried…, scanned…), a tuple
  const std::vector<Expr> initial;
  const int num_scanned;
};

// ---- Builders. A call whose arguments have types is inferred at once: an ill-typed call cannot be built. ----

Expr var(std::string name, Type type = nullptr, Span span = nullptr);
Expr global_var(std::string name, Type type = nullptr, Span span = nullptr);
Expr op_expr(const Op* op);
Expr constant(Tensor value, Span span = nullptr);
// Errors: TypeMismatch, TypeAttribute from the operator's relation, with operator, argument types and span in the
// context.
Expr call(const Op* op, std::vector<Expr> args, AttrsRef attrs = nullptr, Span span = nullptr);
Expr call(Expr callee, std::vector<Expr> args, Span span = nullptr);
// By the operator's name. Errors: InvalidArgument for an unknown name.
Expr call(std::string_view op, std::vector<Expr> args, const AttrMap& attrs = {}, Span span = nullptr);
Expr tuple(std::vector<Expr> fields, Span span = nullptr);
Expr tuple_get(Expr tuple, int index, Span span = nullptr);
Expr let(Expr var, Expr value, Expr body, Span span = nullptr);
Expr if_expr(Expr condition, Expr then_branch, Expr else_branch, Span span = nullptr);
Expr function(std::vector<Expr> params, Expr body, Type ret_type = nullptr, AttrMap attrs = {},
              std::vector<std::string> type_params = {}, Span span = nullptr);
// The number of iterations when a constant tells it, else an anonymous extent.
Dim trip_extent(const Expr& trip_count, const Expr& condition);
Expr loop(Expr trip_count, Expr condition, Expr body, std::vector<Expr> initial, int num_scanned, Span span = nullptr);

// A set of named functions; the entry is "main". Immutable in use; a pass copies and changes.
struct Module {
  std::map<std::string, Expr> functions;
  std::string source;  // file it came from

  // Errors: InvalidArgument when absent.
  const Function& main() const;
  const Function& function(const std::string& name) const;
};

}  // namespace treadle::ir
