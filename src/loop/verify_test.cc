// SPDX-License-Identifier: Apache-2.0
// One function per invariant of verify.cc that breaks it. Most are made from raw nodes, because the builders refuse
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "loop/stmt.h"

namespace treadle::loop {
namespace {

class Verify : public testing::Test {
 protected:
  Buffer in = make_buffer("in", dtype::float32_, {8}), out = make_buffer("out", dtype::float32_, {8});
  Var i{"i"};
  Expr one = constant(1, dtype::float32_);

  Function function(Stmt body) { return Function{"f", {in, out}, 1, {}, std::move(body), {}}; }

  void breaks(int rule, const Function& f) {
    try {
      verify(f);
      ADD_FAILURE() << "rule " << rule << " is not checked:\n" << (f.body.defined() ? to_string(f) : "no body");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::LoopInvalid);
      EXPECT_THAT(error.message(), testing::StartsWith("function f: rule " + std::to_string(rule) + " of"))
          << error.what();
    }
  }
  void breaks(int rule, Stmt body) { breaks(rule, function(std::move(body))); }

  Stmt put(const Expr& value) { return Stmt(std::make_shared<Store>(out, std::vector<Expr>{Expr(0)}, value)); }
};

TEST_F(Verify, AcceptsWhatIsRight) {
  verify(function(for_loop(i, 0, 8, store(out, {i}, load(in, {i})))));
  verify(function(block({})));
}

TEST_F(Verify, Rule1Parameters) {
  breaks(1, function(Stmt()));
  Function f = function(put(one));
  f.num_outputs = 3;
  breaks(1, f);
  f = function(put(one));
  f.buffers = {out, out};
  breaks(1, f);
  f.buffers = {make_buffer("t", dtype::float32_, {8}, Scope::Scratch), out};
  breaks(1, f);
  f = function(put(one));
  f.scalars = {i, i};
  breaks(1, f);
  f.scalars = {Var("x", dtype::float32_)};
  breaks(1, f);
}

TEST_F(Verify, Rule2Variables) {
  breaks(2, store(out, {i}, one));
  breaks(2, block({for_loop(i, 0, 8, store(out, {i}, one)), store(out, {i}, one)}));
  breaks(2, for_loop(i, 0, 8, for_loop(i, 0, 8, store(out, {i}, one))));
  breaks(2, for_loop(i, 0, Expr(i) + 1, put(one)));
}

TEST_F(Verify, Rule3Buffers) {
  Buffer t = make_buffer("t", dtype::float32_, {8}, Scope::Scratch);
  breaks(3, store(t, {0}, one));
  breaks(3, block({allocate(t, store(t, {0}, one)), put(load(t, {0}))}));
  breaks(3, allocate(t, allocate(t, put(one))));
  breaks(3, Stmt(std::make_shared<Allocate>(make_buffer("p", dtype::float32_, {8}), put(one))));
}

TEST_F(Verify, Rule4Extents) {
  auto odd = std::make_shared<BufferNode>(*out);
  odd->strides = {1, 1};
  Function f = function(block({}));
  f.buffers = {in, odd};
  breaks(4, f);
  odd->strides = {one};
  breaks(4, f);
  Function g = function(allocate(make_buffer("t", dtype::float32_, {symbol_var("N")}, Scope::Local), put(one)));
  g.scalars = {symbol_var("N")};
  breaks(4, g);
}

TEST_F(Verify, Rule5Accesses) {
  breaks(5, put(Expr(std::make_shared<Load>(in, std::vector<Expr>{0, 0}))));
  breaks(5, put(Expr(std::make_shared<Load>(in, std::vector<Expr>{int_imm(0, dtype::int32_)}))));
  Buffer square = make_buffer("square", dtype::float32_, {8, 8});
  Function f = function(put(vector_reduce(
      ReduceOp::Sum, Expr(std::make_shared<Load>(square, std::vector<Expr>{ramp(0, 1, 2), ramp(0, 1, 4)})))));
  f.buffers = {square, out};
  breaks(5, f);
}

TEST_F(Verify, Rule6Stores) {
  breaks(6, put(constant(1, dtype::float64_)));
  breaks(6, put(broadcast(one, 4)));
  breaks(6, store(in, {0}, one));
}

TEST_F(Verify, Rule7Loops) {
  breaks(7, Stmt(std::make_shared<For>(i, 0, int_imm(8, dtype::int32_), ForKind::Serial, put(one))));
  breaks(7, Stmt(std::make_shared<For>(Var("j", dtype::int32_), 0, 8, ForKind::Serial, put(one))));
  for (ForKind kind : {ForKind::Vectorized, ForKind::Unrolled}) {
    Function f = function(for_loop(i, 0, symbol_var("N"), put(one), kind));
    f.scalars = {symbol_var("N")};
    breaks(7, f);
  }
}

TEST_F(Verify, Rule14Axes) {
  const ForKind block = bound_to(ThreadAxis::BlockX), thread = bound_to(ThreadAxis::ThreadX);
  const Var j("j");
  const auto nest = [&](ForKind outer, ForKind inner, const Expr& extent) {
    return for_loop(i, 0, 2, for_loop(j, 0, extent, store(out, {i * 4 + j}, one), inner), outer);
  };
  verify(function(nest(block, thread, 4)));
  verify(function(nest(ForKind::Serial, thread, i + 1)));  // the grid starts anew in each iteration
  breaks(14, nest(thread, block, 4));
  breaks(14, nest(thread, thread, 4));
  breaks(14, nest(ForKind::Unrolled, thread, 4));
  breaks(14, nest(block, thread, i + 1));
}

TEST_F(Verify, Rule8Conditions) {
  breaks(8, Stmt(std::make_shared<If>(Expr(1), put(one), Stmt())));
  breaks(8, Stmt(std::make_shared<While>(broadcast(bool_imm(true), 4), put(one))));
}

TEST_F(Verify, Rule9Lets) { breaks(9, Stmt(std::make_shared<Let>(i, one, put(one)))); }

TEST_F(Verify, Rule10Operations) {
  auto raw = [&](BinaryOp op, Expr a, Expr b, DType dtype) {
    return put(Expr(std::make_shared<Binary>(op, a, b, dtype)));
  };
  breaks(10, raw(BinaryOp::Add, one, Expr(1), dtype::float32_));
  breaks(10, raw(BinaryOp::Shl, one, one, dtype::float32_));
  breaks(10, raw(BinaryOp::Lt, one, one, dtype::float32_));
  breaks(10, raw(BinaryOp::Add, bool_imm(true), bool_imm(true), dtype::bool_));
  breaks(10, raw(BinaryOp::Add, one, broadcast(one, 4), dtype::float32_));
  breaks(10, put(Expr(std::make_shared<Not>(one))));
  breaks(10, put(Expr(std::make_shared<Select>(one, one, one))));
  breaks(10, put(Expr(std::make_shared<Reinterpret>(Expr(1), dtype::float32_))));
  breaks(10, put(Expr(std::make_shared<IntrinsicCall>(Intrinsic::Exp, std::vector<Expr>{one, one}, dtype::float32_))));
  breaks(10, put(Expr(std::make_shared<IntrinsicCall>(Intrinsic::Exp, std::vector<Expr>{1}, dtype::int64_))));
}

TEST_F(Verify, Rule11Constants) {
  breaks(11, put(Expr(std::make_shared<IntImm>(300, dtype::uint8_))));
  breaks(11, put(Expr(std::make_shared<FloatImm>(0.1, dtype::float32_))));
  breaks(11, put(Expr(std::make_shared<IntImm>(1, dtype::float32_))));
}

TEST_F(Verify, Rule12Vectors) {
  breaks(12, put(Expr(std::make_shared<Broadcast>(broadcast(one, 4), 8))));
  breaks(12, put(Expr(std::make_shared<Ramp>(Expr(0), Expr(1), 1))));
  breaks(12, put(Expr(std::make_shared<VectorReduce>(ReduceOp::Sum, one))));
}

TEST_F(Verify, Rule13Calls) {
  breaks(13, put(extern_call("x", {}, dtype::float32_)));
  breaks(13, evaluate(one));
  breaks(13, evaluate(extern_call("x", {}, dtype::int64_)));
  verify(function(evaluate(extern_call("x", {address(out, {0})}))));
}

TEST_F(Verify, Rule14ExtentsKnownBeforeTheGrid) {
  const Var j("j"), k("k");
  const Expr n = symbol_var("N");
  const auto bound = [](const Var& var, const Expr& extent, ThreadAxis axis, Stmt body) {
    return for_loop(var, 0, extent, std::move(body), bound_to(axis));
  };
  const auto grid = [&](Stmt body) { return bound(i, 8, ThreadAxis::BlockX, std::move(body)); };
  breaks(14, grid(for_loop(k, 0, 2, bound(j, 8, ThreadAxis::BlockX, put(one)))));
  breaks(14, for_loop(j, 0, 4, grid(put(one)), ForKind::Vectorized));
  breaks(14, grid(for_loop(k, 0, 2, bound(j, Expr(k) + 1, ThreadAxis::ThreadX, put(one)))));
  breaks(14, grid(let(k, Expr(i) + 1, bound(j, k, ThreadAxis::ThreadX, put(one)))));
  breaks(14, bound(j, cast(load(in, {0}), dtype::int64_), ThreadAxis::BlockX, put(one)));
  // Known before the grid starts: constants, scalars, variables of loops around it. Loops side by side share an axis.
  const Stmt threads =
      bound(j, Expr(k) + n, ThreadAxis::ThreadX, for_loop(Var("u"), 0, 4, put(one), ForKind::Unrolled));
  const Stmt again = bound(Var("t"), n, ThreadAxis::ThreadX, put(one));
  Function f = function(for_loop(k, 0, 2, grid(block({threads, again})), ForKind::Parallel));
  f.scalars = {symbol_var("N")};
  verify(f);
}

}  // namespace
}  // namespace treadle::loop
