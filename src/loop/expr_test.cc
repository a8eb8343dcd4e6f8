// SPDX-License-Identifier: Apache-2.0
// Meaning of the operations, per class of dtype; folding gives what interpreting gives; the identities that builders
// drop.
#include "loop/expr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "base/error.h"
#include "loop/scalar.h"
#include "loop/stmt.h"

namespace treadle::loop {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

double value(const Expr& expr) {
  if (const auto* f = expr.as<FloatImm>()) return f->value;
  EXPECT_TRUE(expr.as<IntImm>()) << to_string(expr);
  return expr.as<IntImm>() ? static_cast<double>(expr.as<IntImm>()->value) : kNan;
}

double apply(BinaryOp op, DType dtype, double a, double b) {
  return value(binary(op, constant(a, dtype), constant(b, dtype)));
}

TEST(Scalar, IntegersWrap) {
  EXPECT_EQ(apply(BinaryOp::Add, dtype::int8_, 127, 1), -128);
  EXPECT_EQ(apply(BinaryOp::Mul, dtype::int16_, 300, 300), 90000 - 65536);
  EXPECT_EQ(apply(BinaryOp::Sub, dtype::uint8_, 0, 1), 255);
  EXPECT_EQ(apply(BinaryOp::Mul, dtype::int32_, 65536, 65536), 0);
  EXPECT_EQ(*as_int(int_imm(std::numeric_limits<int64_t>::max()) + 1), std::numeric_limits<int64_t>::min());
}

TEST(Scalar, Divisions) {
  struct Case {
    double a, b, div, floordiv, floormod, truncmod;
  };
  for (const Case& c : {Case{7, 2, 3, 3, 1, 1}, Case{-7, 2, -3, -4, 1, -1}, Case{7, -2, -3, -4, -1, 1},
                        Case{-7, -2, 3, 3, -1, -1}, Case{5, 0, 0, 0, 0, 0}, Case{-128, -1, -128, -128, 0, 0}}) {
    EXPECT_EQ(apply(BinaryOp::Div, dtype::int8_, c.a, c.b), c.div) << c.a << " " << c.b;
    EXPECT_EQ(apply(BinaryOp::FloorDiv, dtype::int8_, c.a, c.b), c.floordiv) << c.a << " " << c.b;
    EXPECT_EQ(apply(BinaryOp::FloorMod, dtype::int8_, c.a, c.b), c.floormod) << c.a << " " << c.b;
    EXPECT_EQ(apply(BinaryOp::TruncMod, dtype::int8_, c.a, c.b), c.truncmod) << c.a << " " << c.b;
  }
  const int64_t smallest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(*as_int(div(int_imm(smallest), -1)), smallest);
  EXPECT_EQ(*as_int(truncmod(int_imm(smallest), -1)), 0);
  EXPECT_EQ(value(div(int_imm(-1, dtype::uint64_), int_imm(2, dtype::uint64_))),
            static_cast<double>(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(apply(BinaryOp::Div, dtype::float32_, 1, 0), kInf);
  EXPECT_EQ(apply(BinaryOp::FloorDiv, dtype::float32_, -7, 2), -4);
  EXPECT_EQ(apply(BinaryOp::FloorMod, dtype::float32_, -7, 2), 1);
  EXPECT_EQ(apply(BinaryOp::TruncMod, dtype::float32_, -7, 2), -1);
}

TEST(Scalar, Shifts) {
  EXPECT_EQ(apply(BinaryOp::Shl, dtype::int8_, 1, 7), -128);
  EXPECT_EQ(apply(BinaryOp::Shl, dtype::int8_, 1, 8), 0);
  EXPECT_EQ(apply(BinaryOp::Shl, dtype::int8_, 1, -1), 0);
  EXPECT_EQ(apply(BinaryOp::Shr, dtype::int8_, -128, 3), -16);
  EXPECT_EQ(apply(BinaryOp::Shr, dtype::int8_, -5, 100), -1);
  EXPECT_EQ(apply(BinaryOp::Shr, dtype::uint8_, 128, 7), 1);
  EXPECT_EQ(*as_int(binary(BinaryOp::Shr, int_imm(-1, dtype::uint64_), int_imm(63, dtype::uint64_))), 1);
}

TEST(Scalar, NanSpreadsThroughMinAndMax) {
  for (DType dtype : {dtype::float16_, dtype::bfloat16_, dtype::float32_, dtype::float64_}) {
    for (BinaryOp op : {BinaryOp::Min, BinaryOp::Max}) {
      EXPECT_TRUE(std::isnan(apply(op, dtype, kNan, 1)));
      EXPECT_TRUE(std::isnan(apply(op, dtype, 1, kNan)));
    }
    EXPECT_EQ(apply(BinaryOp::Eq, dtype, kNan, kNan), 0);
    EXPECT_EQ(apply(BinaryOp::Ne, dtype, kNan, kNan), 1);
  }
}

TEST(Scalar, FloatsRoundToTheirDtype) {
  EXPECT_EQ(apply(BinaryOp::Add, dtype::float32_, 16777216, 1), 16777216);
  EXPECT_EQ(apply(BinaryOp::Add, dtype::float16_, 2048, 1), 2048);
  EXPECT_EQ(apply(BinaryOp::Add, dtype::bfloat16_, 256, 1), 256);
  EXPECT_EQ(apply(BinaryOp::Mul, dtype::float16_, 60000, 2), kInf);
  // 1 + 2^-11 + 2^-40 lies above the middle of two float16; by way of float it would be the middle, and round down.
  EXPECT_EQ(value(constant(1 + std::ldexp(1, -11) + std::ldexp(1, -40), dtype::float16_)), 1 + std::ldexp(1, -10));
}

TEST(Scalar, Casts) {
  auto convert = [](double v, DType from, DType to) { return value(cast(constant(v, from), to)); };
  EXPECT_EQ(convert(300, dtype::float32_, dtype::uint8_), 255);
  EXPECT_EQ(convert(-1, dtype::float32_, dtype::uint8_), 0);
  EXPECT_EQ(convert(-1.9, dtype::float64_, dtype::int32_), -1);
  EXPECT_EQ(convert(kNan, dtype::float32_, dtype::int32_), 0);
  EXPECT_EQ(*as_int(cast(constant(kInf, dtype::float32_), dtype::int64_)), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(*as_int(cast(constant(-kInf, dtype::float32_), dtype::int64_)), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(*as_int(cast(constant(1e30, dtype::float64_), dtype::uint64_)), -1);
  EXPECT_EQ(convert(kNan, dtype::float32_, dtype::bool_), 1);
  EXPECT_EQ(convert(0.25, dtype::float32_, dtype::bool_), 1);
  EXPECT_EQ(convert(-0.0, dtype::float32_, dtype::bool_), 0);
  EXPECT_EQ(convert(300, dtype::int32_, dtype::int8_), 44);
  EXPECT_EQ(convert(-1, dtype::int32_, dtype::uint16_), 65535);
  EXPECT_EQ(convert(16777217, dtype::int32_, dtype::float32_), 16777216);
  EXPECT_EQ(value(cast(int_imm(-1, dtype::uint64_), dtype::float64_)), std::ldexp(1, 64));
  EXPECT_EQ(convert(65520, dtype::int32_, dtype::float16_), kInf);
  EXPECT_EQ(*as_int(reinterpret(constant(1, dtype::float32_), dtype::int32_)), 0x3f800000);
  EXPECT_EQ(value(reinterpret(int_imm(0x3c00, dtype::uint16_), dtype::float16_)), 1);
}

TEST(Scalar, Intrinsics) {
  auto call = [](Intrinsic f, DType dtype, double a, double b = 0) {
    std::vector<Expr> args = {constant(a, dtype)};
    if (arity(f) == 2) args.push_back(constant(b, dtype));
    return value(intrinsic(f, args));
  };
  EXPECT_EQ(call(Intrinsic::Exp, dtype::float32_, 1), static_cast<double>(static_cast<float>(std::exp(1.0))));
  EXPECT_EQ(call(Intrinsic::Exp, dtype::float64_, 1), std::exp(1.0));
  EXPECT_EQ(call(Intrinsic::RoundEven, dtype::float32_, 2.5), 2);
  EXPECT_EQ(call(Intrinsic::RoundAway, dtype::float32_, 2.5), 3);
  EXPECT_EQ(call(Intrinsic::Sigmoid, dtype::float32_, -1000), 0);
  EXPECT_EQ(call(Intrinsic::Abs, dtype::int8_, -128), -128);
  EXPECT_EQ(call(Intrinsic::Pow, dtype::int32_, 3, 4), 81);
  EXPECT_EQ(call(Intrinsic::Pow, dtype::int32_, -1, -3), -1);
  EXPECT_EQ(call(Intrinsic::Pow, dtype::int32_, 2, -1), 0);
  EXPECT_EQ(call(Intrinsic::Popcount, dtype::int8_, -1), 8);
  EXPECT_EQ(call(Intrinsic::IsNan, dtype::float16_, kNan), 1);
  EXPECT_EQ(call(Intrinsic::IsFinite, dtype::float16_, kInf), 0);
  EXPECT_THROW(intrinsic(Intrinsic::Exp, {Expr(1)}), Error);
  EXPECT_THROW(intrinsic(Intrinsic::Pow, {constant(1, dtype::float32_)}), Error);
}

// The same expression over constants, and over loads that the interpreter evaluates.
class Property : public testing::Test {
 protected:
  std::mt19937_64 random{7};

  double sample(DType dtype) {
    if (dtype.is_bool()) return static_cast<double>(random() % 2);
    const double special[] = {0, 1, -1, 2, 127, -128, 255, kInf, -kInf, kNan, 1e9, 0.5};
    if (random() % 3 == 0) return special[random() % std::size(special)];
    return static_cast<double>(static_cast<int64_t>(random() % 400) - 200) / (dtype.is_float() ? 8 : 1);
  }

  void compare(DType dtype, size_t count, const std::function<Expr(const std::vector<Expr>&)>& make) {
    Buffer in = make_buffer("in", dtype, {3});
    std::vector<Expr> loads, constants;
    treadle::Tensor args(dtype, {3});
    for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
      loads.push_back(load(in, {i}));
      constants.push_back(constant(sample(dtype), dtype));
      Scalar s;
      if (dtype.is_float())
        s.f = constants.back().as<FloatImm>()->value;
      else
        s.i = constants.back().as<IntImm>()->value;
      write_element(dtype, args.data(), i, s);
    }
    Expr folded = make(constants), open = make(loads);
    Buffer out = make_buffer("out", open.dtype(), {});
    treadle::Tensor result(open.dtype(), {});
    interpret(Function{"f", {in, out}, 1, {}, store(out, {}, open), {}}, {args, result});
    Scalar seen = read_element(open.dtype(), result.data(), 0);
    if (open.dtype().is_float()) {
      ASSERT_TRUE(folded.as<FloatImm>());
      const double a = seen.f, b = folded.as<FloatImm>()->value;
      EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << to_string(open) << ": " << a << " and " << b;
    } else {
      ASSERT_TRUE(as_int(folded));
      EXPECT_EQ(seen.i, *as_int(folded)) << to_string(open) << " of " << to_string(dtype);
    }
  }
};

TEST_F(Property, FoldingEqualsInterpreting) {
  for (DType dtype : all_dtypes()) {
    for (int round = 0; round < 20; ++round) {
      for (int op = 0; op <= static_cast<int>(BinaryOp::Ge); ++op) {
        if (!binary_function(static_cast<BinaryOp>(op), dtype)) continue;
        compare(dtype, 2, [&](auto& x) { return binary(static_cast<BinaryOp>(op), x[0], x[1]); });
      }
      for (int f = 0; f <= static_cast<int>(Intrinsic::Trunc); ++f) {
        const auto function = static_cast<Intrinsic>(f);
        if (!intrinsic_function(function, dtype)) continue;
        compare(dtype, static_cast<size_t>(arity(function)), [&](auto& x) { return intrinsic(function, x); });
      }
      for (DType to : all_dtypes()) {
        compare(dtype, 1, [&](auto& x) { return cast(x[0], to); });
        if (to.bits == dtype.bits && !to.is_bool()) compare(dtype, 1, [&](auto& x) { return reinterpret(x[0], to); });
      }
      compare(dtype, 3, [&](auto& x) { return select(x[0] < x[1], max(x[1], x[2]), min(x[0], x[2])); });
    }
  }
}

// Each identity: one operand a constant, the other unknown; interpreted it must give what the operation itself gives.
TEST_F(Property, IdentitiesAreExact) {
  const double constants[] = {0, -0.0, 1, -1};
  for (DType dtype : all_dtypes()) {
    for (int i = 0; i <= static_cast<int>(BinaryOp::Ge); ++i) {
      const auto op = static_cast<BinaryOp>(i);
      ScalarFn function = binary_function(op, dtype);
      if (!function) continue;
      for (double c : constants) {
        for (double v : {0.0, -0.0, 1.0, 3.0, -7.0, 127.0, kInf, kNan}) {
          Expr known = constant(c, dtype), x = constant(v, dtype);
          auto scalar = [](const Expr& e) {
            return e.dtype().is_float() ? float_scalar(e.as<FloatImm>()->value) : int_scalar(*as_int(e));
          };
          Var var("x", dtype);
          for (bool left : {false, true}) {
            Expr got = substitute(left ? binary(op, known, var) : binary(op, var, known), {{var.var(), x}});
            Scalar want = left ? function(scalar(known), scalar(x), {}) : function(scalar(x), scalar(known), {});
            if (got.dtype().is_float()) {
              const double a = got.as<FloatImm>()->value;
              EXPECT_TRUE((std::isnan(a) && std::isnan(want.f)) ||
                          (a == want.f && std::signbit(a) == std::signbit(want.f)))
                  << symbol_of(op) << " " << to_string(dtype) << " " << c << " " << v << " " << left;
            } else {
              EXPECT_EQ(*as_int(got), want.i)
                  << symbol_of(op) << " " << to_string(dtype) << " " << c << " " << v << " " << left;
            }
          }
        }
      }
    }
  }
}

TEST(Builders, DropIdentities) {
  Var n("n"), x("x", dtype::float32_);
  Expr zero = constant(0, dtype::float32_), one = constant(1, dtype::float32_);
  EXPECT_TRUE((n + 0).same_as(n));
  EXPECT_TRUE((Expr(0) + n).same_as(n));
  EXPECT_TRUE((n * 1).same_as(n));
  EXPECT_EQ(*as_int(n * 0), 0);
  EXPECT_EQ(*as_int(n - n), 0);
  EXPECT_TRUE(floordiv(n, 1).same_as(n));
  EXPECT_EQ(*as_int(floormod(n, 1)), 0);
  EXPECT_EQ(to_string(2 + n + 3), "n + 5");
  EXPECT_TRUE((x * one).same_as(x));
  EXPECT_FALSE((x * zero).as<FloatImm>());
  EXPECT_FALSE((x + zero).same_as(x));
  EXPECT_TRUE((x - zero).same_as(x));
  EXPECT_TRUE(select(bool_imm(true), x, one).same_as(x));
  EXPECT_TRUE((Expr(n) < 4 && bool_imm(true)).as<Binary>());
  EXPECT_EQ(*as_int(Expr(n) < 4 && bool_imm(false)), 0);
  EXPECT_EQ(broadcast(Expr(2), 4).lanes(), 4);
  EXPECT_EQ(*as_int(broadcast(Expr(2), 4) * 3), 6);
  EXPECT_EQ((ramp(n, 1, 8) + 1).lanes(), 8);
}

TEST(Builders, RefuseWhatDoesNotFit) {
  Var n("n"), x("x", dtype::float32_);
  EXPECT_THROW(n + x, Error);
  EXPECT_THROW(bool_imm(true) + bool_imm(true), Error);
  EXPECT_THROW(!Expr(x), Error);
  EXPECT_THROW(ramp(n, 1, 4) + ramp(n, 1, 8), Error);
  EXPECT_THROW(select(n, x, x), Error);
  EXPECT_THROW(reinterpret(n, dtype::float32_), Error);
  EXPECT_THROW(load(make_buffer("a", dtype::int8_, {2, 2}), {Expr(0)}), Error);
  EXPECT_THROW(int_imm(1, dtype::float32_), Error);
}

TEST(Builders, SymbolsOfExtents) {
  Dim h = Dim::symbol("H");
  EXPECT_TRUE(to_expr(h).same_as(symbol_var("H")));
  EXPECT_EQ(to_string(to_expr(floordiv(h * 2 + 3, 4) + 1)), "floordiv(H + 1, 2) + 1");
  std::vector<std::thread> threads;
  std::vector<Var> vars(4);
  for (size_t i = 0; i < vars.size(); ++i) threads.emplace_back([&, i] { vars[i] = symbol_var("made_by_threads"); });
  for (std::thread& thread : threads) thread.join();
  for (const Var& var : vars) EXPECT_TRUE(var.same_as(vars[0]));
}

TEST(Traversal, EachNodeOnceAndSubstitutionInExtents) {
  Var n("n"), m("m"), i("i");
  Buffer t = make_buffer("t", dtype::int64_, {n}, Scope::Scratch);
  Expr shared = Expr(i) * 3;
  Stmt body = allocate(t, for_loop(i, 0, n, store(t, {i}, shared + shared * shared)));
  int statements = 0, products = 0;
  for_each(
      body, [&](const Stmt&) { ++statements; },
      [&](const Expr& e) { products += e.as<Binary>() && e.as<Binary>()->op == BinaryOp::Mul; });
  EXPECT_EQ(statements, 3);
  EXPECT_EQ(products, 2);
  Stmt changed = substitute(body, {{n.var(), m}});
  EXPECT_TRUE(changed.as<Allocate>()->buffer->shape[0].same_as(m));
  EXPECT_TRUE(substitute(body, {}).same_as(body));
}

}  // namespace
}  // namespace treadle::loop
