// SPDX-License-Identifier: Apache-2.0
// The invariants of a loop function, by number; an error names the first that is broken, the function and the
// statement.
//
//  1  The function has a body; its buffers are distinct, of scope Param, and at least as many as its outputs; its
//  scalars are
//     distinct and int64.
//  2  A variable is used only inside the loop or let that binds it, or is a scalar; nobody binds it again inside.
//  3  A buffer is used only inside the Allocate that makes it, or is a parameter; what is allocated is Local or
//  Scratch. 4  Extents and strides are scalars of int64, one per axis; those of a Local buffer are constants. 5  An
//  access has one index per axis, of int64; indices that are vectors have the same lanes, and a load has these lanes.
//  6  A store has the dtype of its buffer and as many lanes as its indices; an input is not stored to.
//  7  A loop's variable, minimum and extent are scalars of int64; a vectorized or unrolled loop has a constant extent.
//  8  A condition of if and while is a bool and scalar.
//  9  A let's variable has the dtype and lanes of its value.
// 10  Operands have the same dtype and lanes, the operation exists for the dtype, and the node has the dtype that
// results. 11  A constant is a value of its dtype. 12  A ramp and a broadcast are made from scalars and have two lanes
// or more; what is reduced over lanes is a vector. 13  Extern and Address occur only in Evaluate, which holds an Extern
// that gives int32.
// 14  A loop bound to an axis has an extent that is known before the outermost bound loop around it starts: it reads no
//  memory and no variable from inside that loop. No loop around it is bound to the same axis, vectorized or unrolled,
//  and no loop of threads stands around a loop of blocks.
#include <cmath>
#include <unordered_set>

#include "base/error.h"
#include "loop/scalar.h"
#include "loop/stmt.h"
#include "loop/text.h"

namespace treadle::loop {
namespace {

// An expression as an error shows it; written out only when there is an error.
struct Shown {
  const Expr& expr;
};

}  // namespace
}  // namespace treadle::loop

template <>
struct fmt::formatter<treadle::loop::Shown> : fmt::formatter<std::string> {
  template <typename Context>
  auto format(const treadle::loop::Shown& shown, Context& context) const {
    return fmt::formatter<std::string>::format(treadle::loop::to_string(shown.expr), context);
  }
};

namespace treadle::loop {
namespace {

constexpr int kTextLimit = 300;  // bytes of the statement that an error shows

class Verifier {
 public:
  explicit Verifier(const Function& function) : function_(function) {}

  void run() {
    require(function_.body.defined(), 1, "no body");
    require(function_.num_outputs <= function_.buffers.size(), 1, "{} outputs of {} buffers", function_.num_outputs,
            function_.buffers.size());
    for (const Var& scalar : function_.scalars) {
      require(scalar.defined() && scalar.dtype() == dtype::int64_ && scalar.lanes() == 1, 1, "a scalar is no int64");
      require(vars_.insert(scalar.var()).second, 1, "scalar {} stands twice", scalar.name());
    }
    for (size_t i = 0; i < function_.buffers.size(); ++i) {
      const Buffer& buffer = function_.buffers[i];
      require(buffer != nullptr, 1, "buffer {} is missing", i);
      require(buffer->scope == Scope::Param, 1, "parameter {} is local or scratch", buffer->name);
      require(buffers_.insert(buffer.get()).second, 1, "parameter {} stands twice", buffer->name);
      if (i + function_.num_outputs < function_.buffers.size()) inputs_.insert(buffer.get());
      check_shape(*buffer);
    }
    statement(function_.body);
  }

 private:
  template <typename... Args>
  void require(bool condition, int rule, fmt::format_string<Args...> format, Args&&... args) const {
    if (condition) return;
    Error error(ErrorCode::LoopInvalid, fmt::format("function {}: rule {} of the loop IR is broken: {}", function_.name,
                                                    rule, fmt::format(format, std::forward<Args>(args)...)));
    if (at_) {
      std::string text = to_string(*at_);
      if (text.size() > kTextLimit) text = text.substr(0, kTextLimit) + "…";
      error.note("in: " + text);
    }
    throw error;
  }

  void check_shape(const BufferNode& buffer) {
    require(buffer.strides.empty() || buffer.strides.size() == buffer.shape.size(), 4, "{} has {} strides for {} axes",
            buffer.name, buffer.strides.size(), buffer.shape.size());
    for (const std::vector<Expr>* list : {&buffer.shape, &buffer.strides}) {
      for (const Expr& expr : *list) {
        require(expr.defined() && expr.dtype() == dtype::int64_ && expr.lanes() == 1, 4,
                "an extent or stride of {} is no int64", buffer.name);
        require(buffer.scope != Scope::Local || as_int(expr), 4, "local buffer {} has extent {}", buffer.name,
                Shown{expr});
        expression(expr);
      }
    }
  }

  // Each node once per set of variables and buffers in scope.
  void expression(const Expr& expr) {
    require(expr.defined(), 10, "an operand is missing");
    if (!seen_.insert(expr.get()).second) return;
    for (const Expr& operand : operands(expr)) expression(operand);
    check(expr);
  }

  void check(const Expr& expr) {
    switch (expr.kind()) {
      case ExprKind::IntImm: {
        const int64_t value = expr.as<IntImm>()->value;
        require(!expr.dtype().is_float() && wrap(value, expr.dtype()) == value, 11, "{} as {}", value,
                to_string(expr.dtype()));
        break;
      }
      case ExprKind::FloatImm: {
        const double value = expr.as<FloatImm>()->value;
        require(expr.dtype().is_float() && (std::isnan(value) || round_to(value, expr.dtype()) == value), 11,
                "{} as {}", value, to_string(expr.dtype()));
        break;
      }
      case ExprKind::Var:
        require(vars_.count(expr.as<VarNode>()), 2, "variable {} is not bound here", expr.as<VarNode>()->name);
        break;
      case ExprKind::Load: {
        const auto* e = expr.as<Load>();
        require(e->lanes == access(e->buffer, e->indices) && e->dtype == e->buffer->dtype, 5,
                "a load of {} with other lanes or dtype", e->buffer->name);
        break;
      }
      case ExprKind::Ramp: {
        const auto* e = expr.as<Ramp>();
        require(e->lanes > 1 && e->base.lanes() == 1 && e->stride.lanes() == 1, 12, "{}", Shown{expr});
        require(e->base.dtype() == e->stride.dtype() && e->dtype.is_integer(), 10, "{}", Shown{expr});
        break;
      }
      case ExprKind::Broadcast:
        require(expr.lanes() > 1 && expr.as<Broadcast>()->a.lanes() == 1, 12, "{}", Shown{expr});
        break;
      case ExprKind::VectorReduce: {
        const auto* e = expr.as<VectorReduce>();
        require(e->a.lanes() > 1, 12, "{}", Shown{expr});
        require(exists(binary_function(combiner(e->op), e->dtype), e->dtype), 10, "{} of {}", name_of(e->op),
                to_string(e->dtype));
        break;
      }
      case ExprKind::Address:
      case ExprKind::Extern:
        require(in_evaluate_, 13, "{}", Shown{expr});
        if (const auto* e = expr.as<Address>())
          require(access(e->buffer, e->indices) == 1, 5, "address of a vector of {}", e->buffer->name);
        break;
      default:
        check_operation(expr);
    }
  }

  static bool exists(ScalarFn function, DType dtype) { return function && dtype.code != TypeCode::Handle; }

  void check_operation(const Expr& expr) {
    const std::vector<Expr> args = operands(expr);
    const bool is_select = expr.kind() == ExprKind::Select;
    require(!args.empty(), 10, "no operands");
    const Expr& first = is_select ? args[1] : args[0];
    for (size_t i = is_select ? 1 : 0; i < args.size(); ++i) {
      require(args[i].dtype() == first.dtype() && args[i].lanes() == expr.lanes(), 10,
              "{}: operands of {} and {}, {} and {} lanes", Shown{expr}, to_string(first.dtype()),
              to_string(args[i].dtype()), expr.lanes(), args[i].lanes());
    }
    bool fits = true;
    if (const auto* e = expr.as<Binary>()) {
      fits = exists(binary_function(e->op, first.dtype()), first.dtype()) &&
             e->dtype == result_dtype(e->op, first.dtype());
    } else if (expr.kind() == ExprKind::Not) {
      fits = exists(not_function(first.dtype()), first.dtype());
    } else if (is_select) {
      fits = args[0].dtype().is_bool() && (args[0].lanes() == 1 || args[0].lanes() == expr.lanes());
    } else if (expr.kind() == ExprKind::Reinterpret) {
      fits = first.dtype().bits == expr.dtype().bits;
    } else if (const auto* call = expr.as<IntrinsicCall>()) {
      fits = static_cast<int>(args.size()) == arity(call->function) &&
             exists(intrinsic_function(call->function, first.dtype()), first.dtype()) &&
             call->dtype == result_dtype(call->function, first.dtype());
    }
    require(fits, 10, "{} does not exist for {}", Shown{expr}, to_string(first.dtype()));
  }

  // The lanes of an access.
  int access(const Buffer& buffer, const std::vector<Expr>& indices) {
    // A view is in scope where the buffer is whose memory it shows, a pointer where the buffer is that holds it.
    auto has_base = [](const Buffer& b) { return b && (b->scope == Scope::View || b->scope == Scope::Pointer); };
    Buffer memory = buffer;
    for (; has_base(memory); memory = memory->base) expression(memory->base_offset);
    require(memory && buffers_.count(memory.get()), 3, "buffer {} is not in scope", buffer ? buffer->name : "(none)");
    require(indices.size() == buffer->shape.size(), 5, "{} indices into {} of rank {}", indices.size(), buffer->name,
            buffer->shape.size());
    int lanes = 1;
    for (const Expr& index : indices) {
      require(index.dtype() == dtype::int64_, 5, "an index into {} is {}", buffer->name, to_string(index.dtype()));
      require(index.lanes() == 1 || lanes == 1 || index.lanes() == lanes, 5, "indices into {} of {} and {} lanes",
              buffer->name, lanes, index.lanes());
      lanes = std::max(lanes, index.lanes());
    }
    return lanes;
  }

  void bind(const Var& var, const Stmt& body, ForKind kind = ForKind::Serial) {
    require(vars_.insert(var.var()).second, 2, "variable {} is bound again inside its scope", var.name());
    seen_.clear();
    binders_.push_back({var, kind});
    statement(body);
    binders_.pop_back();
    vars_.erase(var.var());
    seen_.clear();
  }

  void statement(const Stmt& stmt) {
    require(stmt.defined(), 1, "a statement is missing");
    const Stmt* outer = at_;
    at_ = &stmt;
    switch (stmt.kind()) {
      case StmtKind::Store: {
        const auto* s = stmt.as<Store>();
        for (const Expr& index : s->indices) expression(index);
        expression(s->value);
        const int lanes = access(s->buffer, s->indices);
        require(s->value.dtype() == s->buffer->dtype && s->value.lanes() == lanes, 6, "{} x {} into {} x {} of {}",
                to_string(s->value.dtype()), s->value.lanes(), to_string(s->buffer->dtype), lanes, s->buffer->name);
        require(!inputs_.count(s->buffer.get()), 6, "{} is an input", s->buffer->name);
        break;
      }
      case StmtKind::For: {
        const auto* s = stmt.as<For>();
        expression(s->min);
        expression(s->extent);
        const Expr& var = s->var;
        for (const Expr* expr : {&var, &s->min, &s->extent}) {
          require(expr->defined() && expr->dtype() == dtype::int64_ && expr->lanes() == 1, 7,
                  "the range of {} is no int64", s->var.name());
        }
        const bool repeats = s->for_kind == ForKind::Vectorized || s->for_kind == ForKind::Unrolled;
        require(!repeats || s->extent.as<IntImm>(), 7, "extent {} of {} is not constant", Shown{s->extent},
                s->var.name());
        const std::string problem = binding_problem(binders_, s->for_kind, s->extent);
        require(problem.empty(), 14, "loop {} {}", s->var.name(), problem);
        bind(s->var, s->body, s->for_kind);
        break;
      }
      case StmtKind::While:
        condition(stmt.as<While>()->condition);
        statement(stmt.as<While>()->body);
        break;
      case StmtKind::If:
        condition(stmt.as<If>()->condition);
        statement(stmt.as<If>()->then_body);
        if (stmt.as<If>()->else_body.defined()) statement(stmt.as<If>()->else_body);
        break;
      case StmtKind::Let: {
        const auto* s = stmt.as<Let>();
        expression(s->value);
        require(s->var.dtype() == s->value.dtype() && s->var.lanes() == s->value.lanes(), 9, "{} is bound to {}",
                s->var.name(), Shown{s->value});
        bind(s->var, s->body);
        break;
      }
      case StmtKind::Allocate: {
        const Buffer& buffer = stmt.as<Allocate>()->buffer;
        require(buffer && buffer->scope != Scope::Param, 3, "an allocated buffer has scope Param");
        require(!buffers_.count(buffer.get()), 3, "{} is allocated inside its own scope", buffer->name);
        check_shape(*buffer);
        buffers_.insert(buffer.get());
        seen_.clear();
        statement(stmt.as<Allocate>()->body);
        buffers_.erase(buffer.get());
        seen_.clear();
        break;
      }
      case StmtKind::Block:
        for (const Stmt& inner : stmt.as<Block>()->stmts) statement(inner);
        break;
      case StmtKind::Evaluate: {
        const Expr& value = stmt.as<Evaluate>()->value;
        in_evaluate_ = true;
        expression(value);
        in_evaluate_ = false;
        seen_.clear();
        require(value.as<Extern>() && value.dtype() == dtype::int32_, 13, "evaluation of {}", Shown{value});
        break;
      }
    }
    at_ = outer;
  }

  void condition(const Expr& expr) {
    expression(expr);
    require(expr.dtype().is_bool() && expr.lanes() == 1, 8, "{} is {} x {}", Shown{expr}, to_string(expr.dtype()),
            expr.lanes());
  }

  const Function& function_;
  std::unordered_set<const VarNode*> vars_;
  std::unordered_set<const BufferNode*> buffers_, inputs_;
  std::unordered_set<const ExprNode*> seen_;
  std::vector<Binder> binders_;  // around this place
  const Stmt* at_ = nullptr;
  bool in_evaluate_ = false;
};

}  // namespace

void verify(const Function& function) { Verifier(function).run(); }

std::string binding_problem(const std::vector<Binder>& around, ForKind kind, const Expr& extent) {
  const auto axis = axis_of(kind);
  if (!axis) return "";
  struct Uses : ExprVisitor {
    void visit_expr(const Expr& e) override {
      reads_memory |= e.kind() == ExprKind::Load || e.kind() == ExprKind::Extern;
      if (const auto* var = e.as<VarNode>()) vars.insert(var);
      visit_children(e);
    }
    bool reads_memory = false;
    std::unordered_set<const VarNode*> vars;
  } uses;
  uses.visit(extent);
  if (uses.reads_memory) return fmt::format("is bound to {} and its extent reads memory", name_of(*axis));
  bool in_grid = false;
  for (const Binder& outer : around) {
    const std::string& name = outer.var.name();
    const auto outer_axis = axis_of(outer.kind);
    if (outer_axis == axis) return fmt::format("is bound to {}, as loop {} around it is", name_of(*axis), name);
    if (outer_axis && is_thread(*outer_axis) && !is_thread(*axis)) {
      return fmt::format("is bound to {} inside loop {} of {}, but blocks stand outside of threads", name_of(*axis),
                         name, name_of(*outer_axis));
    }
    if (outer.kind == ForKind::Vectorized || outer.kind == ForKind::Unrolled) {
      return fmt::format("is bound to {} inside loop {}, which is {}", name_of(*axis), name,
                         outer.kind == ForKind::Vectorized ? "vectorized" : "unrolled");
    }
    in_grid |= outer_axis.has_value();
    if (in_grid && uses.vars.count(outer.var.var())) {
      return fmt::format("is bound to {} but its extent {} depends on {}, known only inside the grid", name_of(*axis),
                         to_string(extent), name);
    }
  }
  return "";
}

}  // namespace treadle::loop
