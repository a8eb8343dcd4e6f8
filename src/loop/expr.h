// SPDX-License-Identifier: Apache-2.0
// Expressions of the loop IR and of tensor expressions. Immutable and shared: an expression is a directed acyclic
// graph, so passes keep a memo by node. The grammar:
//
//   Expr = IntImm | FloatImm | Var | Binary(op, a, b) | Not(a) | Select(c, a, b) | Cast(a) | Reinterpret(a)
//        | Intrinsic(f, args) | Load(buffer, indices) | Ramp(base, stride, lanes) | Broadcast(a, lanes)
//        | VectorReduce(op, a) | Address(buffer, indices) | Extern(name, args)
//
// Every expression has a dtype and a number of lanes (1: a scalar). Index arithmetic is int64.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/dtype.h"
#include "type/dim.h"

namespace treadle::loop {

enum class ExprKind {
  IntImm,
  FloatImm,
  Var,
  Binary,
  Not,
  Select,
  Cast,
  Reinterpret,
  Intrinsic,
  Load,
  Ramp,
  Broadcast,
  VectorReduce,
  Address,
  Extern
};

// Add, Sub, Mul: integers wrap. Min, Max: of floats, NaN when either is NaN. And, Or, Xor: logical for bool, bitwise
// for integers. Eq … Ge: give bool.
enum class BinaryOp {
  Add,
  Sub,
  Mul,
  Div,       // floats: quotient; integers: truncated toward zero
  FloorDiv,  // rounded toward minus infinity
  FloorMod,  // a - b*FloorDiv(a, b): sign of b; floats: the remainder is exact, as C fmod
  TruncMod,  // sign of a; floats: C fmod
  Min,
  Max,
  And,
  Or,
  Xor,
  Shl,  // a count outside 0 … bits-1 gives 0
  Shr,  // keeps the sign of signed integers; a count outside 0 … bits-1 gives 0, of a negative number -1
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
};
// Division by integer zero: the interpreter and the generated code give 0, and so does the remainder; no trap. The
// quotient of the smallest signed integer and -1 wraps to itself.

enum class Intrinsic {
#define TREADLE_INTRINSIC(name, text, arity, meaning) name,
#include "loop/intrinsics.def"
#undef TREADLE_INTRINSIC
};

enum class ReduceOp { Sum, Prod, Max, Min, Any, All };

struct ExprNode {
  ExprNode(ExprKind kind, DType dtype, int lanes) : kind(kind), dtype(dtype), lanes(lanes) {}
  virtual ~ExprNode() = default;
  const ExprKind kind;
  const DType dtype;
  const int lanes;
};

struct BufferNode;
// Identity is the pointer.
using Buffer = std::shared_ptr<const BufferNode>;

// A handle to an expression; never null but when default-made.
class Expr {
 public:
  Expr() = default;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  Expr(int64_t value);                                    // NOLINT: an int64 constant
  Expr(int value) : Expr(static_cast<int64_t>(value)) {}  // NOLINT
  bool defined() const { return node_ != nullptr; }
  const ExprNode* get() const { return node_.get(); }
  const ExprNode* operator->() const { return node_.get(); }
  const std::shared_ptr<const ExprNode>& node() const { return node_; }
  DType dtype() const { return node_->dtype; }
  int lanes() const { return node_->lanes; }
  ExprKind kind() const { return node_->kind; }
  bool same_as(const Expr& other) const { return node_ == other.node_; }
  // The node as T when its kind is T::Kind; null otherwise.
  template <typename T>
  const T* as() const {
    return node_ && node_->kind == T::Kind ? static_cast<const T*>(node_.get()) : nullptr;
  }

 private:
  std::shared_ptr<const ExprNode> node_;
};

struct IntImm : ExprNode {  // of bool, signed and unsigned integers (uint64: the bits)
  static constexpr ExprKind Kind = ExprKind::IntImm;
  IntImm(int64_t value, DType dtype) : ExprNode(Kind, dtype, 1), value(value) {}
  const int64_t value;
};

struct FloatImm : ExprNode {  // of any float dtype; the value is exact in it
  static constexpr ExprKind Kind = ExprKind::FloatImm;
  FloatImm(double value, DType dtype) : ExprNode(Kind, dtype, 1), value(value) {}
  const double value;
};

struct VarNode : ExprNode {  // identity is the pointer; the name is for people
  static constexpr ExprKind Kind = ExprKind::Var;
  VarNode(std::string name, DType dtype, int lanes = 1) : ExprNode(Kind, dtype, lanes), name(std::move(name)) {}
  const std::string name;
};

// A variable as a typed handle; converts to Expr.
class Var : public Expr {
 public:
  Var() = default;
  explicit Var(std::string name, DType dtype = dtype::int64_)
      : Expr(std::make_shared<VarNode>(std::move(name), dtype)) {}
  explicit Var(std::shared_ptr<const VarNode> node) : Expr(std::move(node)) {}
  const VarNode* var() const { return static_cast<const VarNode*>(get()); }
  const std::string& name() const { return var()->name; }
};

struct Binary : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Binary;
  Binary(BinaryOp op, Expr a, Expr b, DType dtype)
      : ExprNode(Kind, dtype, a.lanes()), op(op), a(std::move(a)), b(std::move(b)) {}
  const BinaryOp op;
  const Expr a, b;
};

struct Not : ExprNode {  // bool: logical; integers: bitwise
  static constexpr ExprKind Kind = ExprKind::Not;
  explicit Not(Expr a) : ExprNode(Kind, a.dtype(), a.lanes()), a(std::move(a)) {}
  const Expr a;
};

// Only the chosen side is evaluated, so the other may hold a load out of bounds: that is how padding is written.
struct Select : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Select;
  Select(Expr condition, Expr a, Expr b)
      : ExprNode(Kind, a.dtype(), a.lanes()), condition(std::move(condition)), a(std::move(a)), b(std::move(b)) {}
  const Expr condition, a, b;  // condition may be a scalar over vector sides
};

// Numeric conversion: float to integer truncates and saturates (NaN gives 0), to bool is `!= 0` (NaN gives true),
// integers wrap, to a float rounds to nearest even.
struct Cast : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Cast;
  Cast(Expr a, DType dtype) : ExprNode(Kind, dtype, a.lanes()), a(std::move(a)) {}
  const Expr a;
};

struct Reinterpret : ExprNode {  // the same bits as another dtype of the same width
  static constexpr ExprKind Kind = ExprKind::Reinterpret;
  Reinterpret(Expr a, DType dtype) : ExprNode(Kind, dtype, a.lanes()), a(std::move(a)) {}
  const Expr a;
};

struct IntrinsicCall : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Intrinsic;
  IntrinsicCall(Intrinsic function, std::vector<Expr> args, DType dtype)
      : ExprNode(Kind, dtype, args[0].lanes()), function(function), args(std::move(args)) {}
  const Intrinsic function;
  const std::vector<Expr> args;
};

struct Load : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Load;
  Load(Buffer buffer, std::vector<Expr> indices);
  const Buffer buffer;
  const std::vector<Expr> indices;  // one per axis; at most one or several may be vectors of the same lanes
};

struct Ramp : ExprNode {  // base, base + stride, …
  static constexpr ExprKind Kind = ExprKind::Ramp;
  Ramp(Expr base, Expr stride, int lanes)
      : ExprNode(Kind, base.dtype(), lanes), base(std::move(base)), stride(std::move(stride)) {}
  const Expr base, stride;
};

struct Broadcast : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Broadcast;
  Broadcast(Expr a, int lanes) : ExprNode(Kind, a.dtype(), lanes), a(std::move(a)) {}
  const Expr a;
};

struct VectorReduce : ExprNode {  // the lanes of `a` combined into one, as a balanced tree
  static constexpr ExprKind Kind = ExprKind::VectorReduce;
  VectorReduce(ReduceOp op, Expr a) : ExprNode(Kind, a.dtype(), 1), op(op), a(std::move(a)) {}
  const ReduceOp op;
  const Expr a;
};

struct Address : ExprNode {  // the place of an element, an argument of Extern; dtype Handle
  static constexpr ExprKind Kind = ExprKind::Address;
  Address(Buffer buffer, std::vector<Expr> indices)
      : ExprNode(Kind, DType{TypeCode::Handle, 64}, 1), buffer(std::move(buffer)), indices(std::move(indices)) {}
  const Buffer buffer;
  const std::vector<Expr> indices;
};

// A call that leaves the function; used by `main` only, inside Evaluate. By name and arguments:
//   "kernel:NAME"   Address of each buffer of the program's function NAME, then its scalars
//   "runtime:NAME"  IntImm n, n input Addresses, IntImm m, m output Addresses, IntImm p, p int64 params, and at the end
//   the Address
//                   of an int64 buffer for results if the kernel has any; rank, extents and dtype are those of the
//                   buffers
//   "profile"       IntImm kernel, IntImm begin (1) or end (0)
//   "reserve"       the Address of a slot (int64), bytes, IntImm keep: the slot becomes the address of so much memory
//   "give_output"   IntImm output, its Address; rank, extents and dtype are those of the buffer
//   "fail:MESSAGE"  no arguments; ends the function with that error
struct Extern : ExprNode {
  static constexpr ExprKind Kind = ExprKind::Extern;
  Extern(std::string name, std::vector<Expr> args, DType dtype)
      : ExprNode(Kind, dtype, 1), name(std::move(name)), args(std::move(args)) {}
  const std::string name;
  const std::vector<Expr> args;
};

enum class Scope {
  Param,    // memory of the caller
  Local,    // a few vectors, meant for registers: static shape, constant indices after unrolling
  Scratch,  // memory of this invocation (this iteration, inside a parallel loop)
  View,     // memory of another buffer, from a byte offset on; needs no Allocate
  Pointer,  // memory whose address stands in another buffer, at a byte offset; needs no Allocate
};

struct BufferNode {
  std::string name;
  DType dtype;
  std::vector<Expr> shape;    // int64
  std::vector<Expr> strides;  // elements; empty: row-major and dense
  Scope scope = Scope::Param;
  int alignment = 1;  // bytes to which the first element is known to be aligned; 1: as its dtype needs
  Buffer base;  // of a View: the buffer whose memory it shows, and where, in bytes; of a Pointer: where its address is
  Expr base_offset;
};

Buffer make_buffer(std::string name, DType dtype, std::vector<Expr> shape, Scope scope = Scope::Param);

// ---- Builders. They fold constants and drop identities that are exact, and check dtypes (Error Internal when they
// differ). A scalar operand beside a vector one is broadcast; there is no arithmetic, only logic and order, on bool.
// ----

Expr int_imm(int64_t value, DType dtype = dtype::int64_);
Expr float_imm(double value, DType dtype);
// `value` converted to `dtype`, integer, bool or float.
Expr constant(double value, DType dtype);
Expr bool_imm(bool value);
Expr binary(BinaryOp op, Expr a, Expr b);
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator&&(Expr a, Expr b);
Expr operator||(Expr a, Expr b);
Expr operator!(Expr a);
Expr operator==(Expr a, Expr b);
Expr operator!=(Expr a, Expr b);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
Expr div(Expr a, Expr b);
Expr floordiv(Expr a, Expr b);
Expr floormod(Expr a, Expr b);
Expr truncmod(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr select(Expr condition, Expr a, Expr b);
Expr cast(Expr a, DType dtype);  // `a` itself when it has that dtype
Expr reinterpret(Expr a, DType dtype);
Expr intrinsic(Intrinsic function, std::vector<Expr> args);
Expr load(const Buffer& buffer, std::vector<Expr> indices);
Expr ramp(Expr base, Expr stride, int lanes);
Expr broadcast(Expr a, int lanes);  // `a` itself when lanes is 1
Expr vector_reduce(ReduceOp op, Expr a);
Expr address(const Buffer& buffer, std::vector<Expr> indices);
Expr extern_call(std::string name, std::vector<Expr> args, DType dtype = dtype::int32_);
// The neutral element of a reduction in `dtype`; Max and Min of floats: -inf and +inf.
Expr reduce_identity(ReduceOp op, DType dtype);
Expr combine(ReduceOp op, Expr a, Expr b);

// The number when the expression is an integer constant (broadcast or not).
const int64_t* as_int(const Expr& expr);

// The one variable that stands for the symbol `name` in all loop IR of the process.
Var symbol_var(const std::string& name);
// An extent as int64 expression over symbol_var.
Expr to_expr(const Dim& dim);
std::vector<Expr> to_exprs(const Shape& shape);

const char* name_of(Intrinsic function);
const char* name_of(ReduceOp op);
const char* symbol_of(BinaryOp op);  // "+", "floordiv", "<", …

}  // namespace treadle::loop
