// SPDX-License-Identifier: Apache-2.0
// Statements and functions of the loop IR. The grammar:
//
//   Stmt = Store(buffer, indices, value) | For(var, min, extent, kind, body) | While(condition, body) | If(condition,
//   then, else?)
//        | Let(var, value, body) | Allocate(buffer, body) | Block(stmts) | Evaluate(expr)
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/expr.h"
#include "loop/tensor.h"
#include "runtime/tensor.h"

namespace treadle::loop {

enum class StmtKind { Store, For, While, If, Let, Allocate, Block, Evaluate };

struct StmtNode {
  explicit StmtNode(StmtKind kind) : kind(kind) {}
  virtual ~StmtNode() = default;
  const StmtKind kind;
};

class Stmt {
 public:
  Stmt() = default;
  Stmt(std::shared_ptr<const StmtNode> node) : node_(std::move(node)) {}  // NOLINT(google-explicit-constructor)
  bool defined() const { return node_ != nullptr; }
  const StmtNode* get() const { return node_.get(); }
  StmtKind kind() const { return node_->kind; }
  bool same_as(const Stmt& other) const { return node_ == other.node_; }
  template <typename T>
  const T* as() const {
    return node_ && node_->kind == T::Kind ? static_cast<const T*>(node_.get()) : nullptr;
  }

 private:
  std::shared_ptr<const StmtNode> node_;
};

struct Store : StmtNode {
  static constexpr StmtKind Kind = StmtKind::Store;
  Store(Buffer buffer, std::vector<Expr> indices, Expr value)
      : StmtNode(Kind), buffer(std::move(buffer)), indices(std::move(indices)), value(std::move(value)) {}
  const Buffer buffer;
  const std::vector<Expr> indices;
  const Expr value;  // lanes as the indices'
};

enum class ForKind {
  Serial,
  Parallel,    // iterations are independent and may run at once, in any order
  Vectorized,  // a mark: all iterations become one statement on vectors; constant extent
  Unrolled,    // a mark: the body is repeated; constant extent
  // Bound to an axis of the grid of blocks that a GPU runs, or of the threads of one block: iterations as of Parallel.
  BlockX,
  BlockY,
  BlockZ,
  ThreadX,
  ThreadY,
  ThreadZ,
};

// The axes of a GPU, CUDA's blockIdx.x … threadIdx.z; as text block.x … thread.z.
enum class ThreadAxis { BlockX, BlockY, BlockZ, ThreadX, ThreadY, ThreadZ };
const char* name_of(ThreadAxis axis);
std::optional<ThreadAxis> find_thread_axis(std::string_view name);
bool is_thread(ThreadAxis axis);  // of the threads of a block
ForKind bound_to(ThreadAxis axis);
std::optional<ThreadAxis> axis_of(ForKind kind);  // nullopt: bound to none

struct For : StmtNode {
  static constexpr StmtKind Kind = StmtKind::For;
  For(Var var, Expr min, Expr extent, ForKind for_kind, Stmt body)
      : StmtNode(Kind),
        var(std::move(var)),
        min(std::move(min)),
        extent(std::move(extent)),
        for_kind(for_kind),
        body(std::move(body)) {}
  const Var var;           // runs over min … min + extent - 1
  const Expr min, extent;  // int64; a negative extent runs no iteration
  const ForKind for_kind;
  const Stmt body;
};

struct While : StmtNode {  // `condition` is evaluated before each iteration
  static constexpr StmtKind Kind = StmtKind::While;
  While(Expr condition, Stmt body) : StmtNode(Kind), condition(std::move(condition)), body(std::move(body)) {}
  const Expr condition;
  const Stmt body;
};

struct If : StmtNode {
  static constexpr StmtKind Kind = StmtKind::If;
  If(Expr condition, Stmt then_body, Stmt else_body = Stmt())
      : StmtNode(Kind),
        condition(std::move(condition)),
        then_body(std::move(then_body)),
        else_body(std::move(else_body)) {}
  const Expr condition;  // scalar
  const Stmt then_body, else_body;
};

struct Let : StmtNode {
  static constexpr StmtKind Kind = StmtKind::Let;
  Let(Var var, Expr value, Stmt body)
      : StmtNode(Kind), var(std::move(var)), value(std::move(value)), body(std::move(body)) {}
  const Var var;
  const Expr value;
  const Stmt body;
};

struct Allocate : StmtNode {  // the buffer (Local or Scratch) exists inside the body; contents undefined at first
  static constexpr StmtKind Kind = StmtKind::Allocate;
  Allocate(Buffer buffer, Stmt body) : StmtNode(Kind), buffer(std::move(buffer)), body(std::move(body)) {}
  const Buffer buffer;
  const Stmt body;
};

struct Block : StmtNode {
  static constexpr StmtKind Kind = StmtKind::Block;
  explicit Block(std::vector<Stmt> stmts) : StmtNode(Kind), stmts(std::move(stmts)) {}
  const std::vector<Stmt> stmts;
};

struct Evaluate : StmtNode {  // an Extern call whose int32 result, when not 0, ends the function with that result
  static constexpr StmtKind Kind = StmtKind::Evaluate;
  explicit Evaluate(Expr value) : StmtNode(Kind), value(std::move(value)) {}
  const Expr value;
};

Stmt store(const Buffer& buffer, std::vector<Expr> indices, Expr value);
Stmt for_loop(Var var, Expr min, Expr extent, Stmt body, ForKind kind = ForKind::Serial);
Stmt while_loop(Expr condition, Stmt body);
Stmt if_then(Expr condition, Stmt then_body, Stmt else_body = Stmt());
Stmt let(Var var, Expr value, Stmt body);
Stmt allocate(const Buffer& buffer, Stmt body);
Stmt block(std::vector<Stmt> stmts);  // flattens; one statement stays itself
Stmt evaluate(Expr value);

// A kernel, or a program's `main`. Kernels take buffers and int64 scalars; see docs in include/treadle/abi.h for how
// they are called.
struct Function {
  std::string name;
  std::vector<Buffer> buffers;  // Scope::Param; outputs after inputs
  size_t num_outputs = 0;       // how many of the last buffers are written
  std::vector<Var> scalars;     // int64
  Stmt body;
  std::string source;  // names of the model's nodes that it computes, for profiles and debug information
};

// ---- The straightforward loop nest of tensor expressions: the reference, and where schedules start. ----

// One serial nest per tensor, in topological order; `outputs` and `inputs` become parameters, tensors between are
// Scratch. Symbols (symbol_var) that occur become scalars, sorted by name.
Function lower_naive(std::string name, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs);
// The nest of one tensor into its buffer: loops over axes, initial value and reduction loops inside.
Stmt lower_stage(const Tensor& tensor);

// ---- Traversal: every pass over the loop IR derives from these; nodes that occur often are visited once per memo.
// ----

class ExprVisitor {
 public:
  virtual ~ExprVisitor() = default;
  void visit(const Expr& expr);  // each shared node once
 protected:
  // Called once per node; the default goes to the children.
  virtual void visit_expr(const Expr& expr);
  void visit_children(const Expr& expr);

 private:
  std::map<const ExprNode*, bool> seen_;
};

class Mutator {
 public:
  virtual ~Mutator() = default;
  Expr mutate(const Expr& expr);  // memoised until clear_memo
  Stmt mutate(const Stmt& stmt);

 protected:
  // Rewrite one node; the default rebuilds it (through the builders) from mutated children, or gives it back unchanged.
  virtual Expr mutate_expr(const Expr& expr);
  virtual Stmt mutate_stmt(const Stmt& stmt);
  Expr mutate_children(const Expr& expr);
  Stmt mutate_children(const Stmt& stmt);
  virtual Buffer mutate_buffer(const Buffer& buffer) { return buffer; }
  void clear_memo() { memo_.clear(); }

 private:
  std::map<const ExprNode*, std::pair<Expr, Expr>> memo_;  // keeps the key alive
};

// Calls f on every statement, and g on every expression of it, in order.
void for_each(const Stmt& stmt, const std::function<void(const Stmt&)>& f, const std::function<void(const Expr&)>& g);
// The symbols (symbol_var) that occur in extents and body, sorted by name: a function's scalars.
std::vector<Var> free_symbols(const Function& function);
// Replaces variables (by pointer).
Expr substitute(const Expr& expr, const std::map<const VarNode*, Expr>& values);
Stmt substitute(const Stmt& stmt, const std::map<const VarNode*, Expr>& values);
// Replaces every load of a tensor's buffer by its definition at the load's indices (inlining).
Expr inline_tensor(const Expr& expr, const Tensor& tensor);

// ---- Text, checks, meaning. ----

std::string to_string(const Expr& expr);
std::string to_string(const Stmt& stmt);
// "func @name(%a: float32[N, 16], …; N: int64) { … }": parse_function(to_string(f)) is structurally equal to f.
std::string to_string(const Function& function);
Function parse_function(std::string_view text, const std::string& source = "text");
std::vector<Function> parse_functions(std::string_view text, const std::string& source = "text");
// Equal up to names of variables and buffers.
bool structural_equal(const Function& a, const Function& b);
uint64_t structural_hash(const Function& function);
// Errors: LoopInvalid naming the function, the statement and the rule (the rules head verify.cc).
void verify(const Function& function);
// What binds a variable around a statement: a loop, or a let (then Serial).
struct Binder {
  Var var;
  ForKind kind;
};
// Which rule a loop of this kind and extent breaks by its axis when it stands inside `around`, outermost first: a
// sentence about the loop, empty when it breaks none.
std::string binding_problem(const std::vector<Binder>& around, ForKind kind, const Expr& extent);

// Runs a function without scheduling or code generation: the reference evaluator. `args`: one tensor per buffer,
// outputs included (allocated by the caller). `scalars` left out are read off the arguments' extents. Bounds of every
// access are checked. Errors: LoopInvalid out of bounds; InvalidArgument for arguments that do not fit the parameters.
void interpret(const Function& function, const std::vector<treadle::Tensor>& args,
               const std::vector<int64_t>& scalars = {});

}  // namespace treadle::loop
