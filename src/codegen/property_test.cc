// SPDX-License-Identifier: Apache-2.0
// Random expressions, compiled and interpreted: both must agree, for every dtype, several lanes, and processors with
// and without the instructions that the emitter makes use of.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "codegen/test_runtime.h"
#include "loop/scalar.h"
#include "loop/stmt.h"

namespace treadle::codegen {
namespace {

using loop::BinaryOp;
using loop::Expr;
using loop::Intrinsic;

constexpr int kElements = 96;
constexpr int kRounds = 8;

class Generator {
 public:
  Generator(DType dtype, uint64_t seed, int lanes) : dtype_(dtype), lanes_(lanes), random_(seed) {}

  // out[i] = f(a[i], b[i]) over kElements.
  loop::Function function(int depth) {
    for (const char* name : {"a", "b"}) inputs_.push_back(loop::make_buffer(name, dtype_, {Expr(kElements)}));
    const loop::Buffer out = loop::make_buffer("out", dtype_, {Expr(kElements)});
    loop::Var i("i");
    index_ = lanes_ == 1 ? Expr(i) : loop::ramp(i * Expr(lanes_), Expr(1), lanes_);
    const loop::Stmt body = loop::store(out, {index_}, value(dtype_, depth));
    return {"f", {inputs_[0], inputs_[1], out}, 1, {}, loop::for_loop(i, 0, kElements / lanes_, body), ""};
  }

  Tensor input() {
    Tensor tensor(dtype_, {kElements});
    for (int64_t k = 0; k < kElements; ++k) {
      loop::Scalar s;
      if (dtype_.is_float()) {
        const double choices[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 1e-7, 300.0, -70000.0};
        const double v = pick(4) == 0 ? choices[pick(10)] : std::uniform_real_distribution<double>(-8, 8)(random_);
        s = loop::float_scalar(loop::round_to(v, dtype_));
      } else {
        const int64_t bits = static_cast<int64_t>(random_());
        s = loop::int_scalar(loop::wrap(pick(2) ? bits : bits % 9, dtype_));
      }
      loop::write_element(dtype_, tensor.data(), k, s);
    }
    return tensor;
  }

 private:
  uint64_t pick(uint64_t n) { return random_() % n; }

  Expr leaf(DType dtype) {
    if (dtype == dtype_ && pick(4) != 0) return loop::load(inputs_[pick(2)], {index_});
    const double value =
        dtype.is_bool() ? static_cast<double>(pick(2)) : static_cast<double>(pick(7)) - (dtype.is_uint() ? 0 : 3);
    return loop::broadcast(loop::constant(value, dtype), lanes_);
  }

  Expr condition(int depth) {
    const BinaryOp ops[] = {BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge};
    return loop::binary(ops[pick(6)], value(dtype_, depth - 1), value(dtype_, depth - 1));
  }

  Expr value(DType dtype, int depth) {
    if (depth <= 0) return leaf(dtype);
    if (dtype.is_bool()) {
      if (pick(3) == 0) return !value(dtype, depth - 1);
      const BinaryOp ops[] = {BinaryOp::And, BinaryOp::Or, BinaryOp::Xor, BinaryOp::Min, BinaryOp::Max, BinaryOp::Eq};
      return loop::binary(ops[pick(6)], value(dtype, depth - 1), value(dtype, depth - 1));
    }
    switch (pick(8)) {
      case 0:
        return loop::select(condition(depth), value(dtype, depth - 1), value(dtype, depth - 1));
      case 1: {  // through another dtype and back
        const DType other = all_dtypes()[pick(all_dtypes().size())];
        return loop::cast(loop::cast(value(dtype, depth - 1), other), dtype);
      }
      case 2:
        return unary(dtype, depth);
      default:
        break;
    }
    const BinaryOp of_floats[] = {BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul,     BinaryOp::Div,
                                  BinaryOp::Min, BinaryOp::Max, BinaryOp::TruncMod};
    const BinaryOp of_integers[] = {BinaryOp::Add,      BinaryOp::Sub,      BinaryOp::Mul,      BinaryOp::Div,
                                    BinaryOp::FloorDiv, BinaryOp::FloorMod, BinaryOp::TruncMod, BinaryOp::Min,
                                    BinaryOp::Max,      BinaryOp::And,      BinaryOp::Or,       BinaryOp::Xor,
                                    BinaryOp::Shl,      BinaryOp::Shr};
    const BinaryOp op = dtype.is_float() ? of_floats[pick(7)] : of_integers[pick(14)];
    return loop::binary(op, value(dtype, depth - 1), value(dtype, depth - 1));
  }

  Expr unary(DType dtype, int depth) {
    if (dtype.is_float()) {
      const Intrinsic functions[] = {Intrinsic::Abs,       Intrinsic::Floor,     Intrinsic::Ceil, Intrinsic::Trunc,
                                     Intrinsic::RoundEven, Intrinsic::RoundAway, Intrinsic::Sqrt};
      return loop::intrinsic(functions[pick(7)], {value(dtype, depth - 1)});
    }
    if (pick(3) == 0) return loop::intrinsic(Intrinsic::Pow, {value(dtype, depth - 1), value(dtype, depth - 1)});
    return loop::intrinsic(pick(2) ? Intrinsic::Abs : Intrinsic::Popcount, {value(dtype, depth - 1)});
  }

  const DType dtype_;
  const int lanes_;
  std::mt19937_64 random_;
  std::vector<loop::Buffer> inputs_;
  Expr index_;
};

// Equal, both NaN, or (a product and a sum that were fused differ in one rounding) close.
bool agree(DType dtype, loop::Scalar got, loop::Scalar wanted) {
  if (!dtype.is_float()) return got.i == wanted.i;
  if (std::isnan(wanted.f) || std::isnan(got.f)) return std::isnan(wanted.f) && std::isnan(got.f);
  return got.f == wanted.f;
}

class PropertyTest : public testing::TestWithParam<const char*> {};

TEST_P(PropertyTest, CompiledCodeAgreesWithTheInterpreter) {
  Target target = parse_target(GetParam());
  for (const DType dtype : all_dtypes()) {
    for (const int lanes : {1, 4, 16}) {
      std::vector<loop::Function> functions;
      std::vector<std::vector<Tensor>> inputs;
      for (int round = 0; round < kRounds; ++round) {
        Generator generator(dtype, static_cast<uint64_t>(round * 1000 + lanes), lanes);
        functions.push_back(generator.function(1 + round % 4));
        functions.back().name = "f" + std::to_string(round);
        inputs.push_back({generator.input(), generator.input()});
      }
      Jit jit = compile(functions, target);
      for (size_t round = 0; round < functions.size(); ++round) {
        Tensor got(dtype, {kElements}), wanted(dtype, {kElements});
        std::vector<Tensor> args{inputs[round][0], inputs[round][1], got};
        TestContext context;
        ASSERT_EQ(run(jit, functions[round].name, context, args), 0);
        loop::interpret(functions[round], {inputs[round][0], inputs[round][1], wanted});
        for (int64_t k = 0; k < kElements; ++k) {
          const loop::Scalar a = loop::read_element(dtype, got.data(), k),
                             b = loop::read_element(dtype, wanted.data(), k);
          ASSERT_TRUE(agree(dtype, a, b))
              << to_string(dtype) << " lanes " << lanes << " element " << k << ": " << got.at(k) << " instead of "
              << wanted.at(k) << ", inputs " << args[0].at(k) << " and " << args[1].at(k) << "\n"
              << loop::to_string(functions[round]);
        }
      }
    }
  }
}

// Without -fma, so that nothing is fused and floats can be compared exactly; the last is what processors without SSE4.1
// get.
INSTANTIATE_TEST_SUITE_P(Targets, PropertyTest,
                         testing::Values("llvm -mcpu=x86-64-v4 -mattr=-fma", "llvm -mcpu=x86-64-v3 -mattr=-fma",
                                         "llvm"));

}  // namespace
}  // namespace treadle::codegen
