// SPDX-License-Identifier: Apache-2.0
// Errors of the emitted functions in units in the last place, against <cmath> in a wider type, over all exponents: on
// this machine's features, on AVX2 with FMA, and on SSE2, where nothing is fused. TREADLE_MATH_STRIDE=97 samples ten
// times as densely.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>

#include "codegen/codegen.h"
#include "loop/stmt.h"
#include "treadle/abi.h"

namespace treadle::codegen {
namespace {

using loop::Intrinsic;
using LongFunction = long double (*)(long double);

struct Case {
  Intrinsic function;
  LongFunction reference;
  double float_bound, double_bound;  // ULP, as math.h states them
  double limit;                      // arguments up to this magnitude are judged
};

constexpr double kEverywhere = std::numeric_limits<double>::infinity();

const Case kCases[] = {
    {Intrinsic::Exp, [](long double x) { return std::exp(x); }, 1, 1, kEverywhere},
    {Intrinsic::Log, [](long double x) { return std::log(x); }, 1, 1, kEverywhere},
    {Intrinsic::Log2, [](long double x) { return std::log2(x); }, 2, 2, kEverywhere},
    {Intrinsic::Log10, [](long double x) { return std::log10(x); }, 2, 2, kEverywhere},
    {Intrinsic::Tanh, [](long double x) { return std::tanh(x); }, 2.5, 2.5, kEverywhere},
    {Intrinsic::Sigmoid, [](long double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); },
     2.5, 2.5, kEverywhere},
    {Intrinsic::Erf, [](long double x) { return std::erf(x); }, 2, 2, kEverywhere},
    {Intrinsic::Sin, [](long double x) { return std::sin(x); }, 1.5, 2.5, kEverywhere},
    {Intrinsic::Cos, [](long double x) { return std::cos(x); }, 1.5, 1.5, kEverywhere},
    {Intrinsic::Tan, [](long double x) { return std::tan(x); }, 1, 3, kEverywhere},
    {Intrinsic::Asin, [](long double x) { return std::asin(x); }, 1, 2.5, kEverywhere},
    {Intrinsic::Acos, [](long double x) { return std::acos(x); }, 1, 2, kEverywhere},
    {Intrinsic::Atan, [](long double x) { return std::atan(x); }, 1, 2, kEverywhere},
    {Intrinsic::Sinh, [](long double x) { return std::sinh(x); }, 1, 3, kEverywhere},
    {Intrinsic::Cosh, [](long double x) { return std::cosh(x); }, 1, 3, kEverywhere},
    {Intrinsic::Asinh, [](long double x) { return std::asinh(x); }, 1, 3, kEverywhere},
    {Intrinsic::Acosh, [](long double x) { return std::acosh(x); }, 1, 3, kEverywhere},
    {Intrinsic::Atanh, [](long double x) { return std::atanh(x); }, 1, 3, kEverywhere},
    {Intrinsic::Rsqrt, [](long double x) { return 1 / std::sqrt(x); }, 1.5, 1.5, kEverywhere},
    {Intrinsic::Sqrt, [](long double x) { return std::sqrt(x); }, 0.5, 0.501, kEverywhere},
    {Intrinsic::Floor, [](long double x) { return std::floor(x); }, 0, 0, kEverywhere},
    {Intrinsic::Ceil, [](long double x) { return std::ceil(x); }, 0, 0, kEverywhere},
    {Intrinsic::Trunc, [](long double x) { return std::trunc(x); }, 0, 0, kEverywhere},
    {Intrinsic::RoundEven, [](long double x) { return std::nearbyint(x); }, 0, 0, kEverywhere},
    {Intrinsic::RoundAway, [](long double x) { return std::round(x); }, 0, 0, kEverywhere},
};

// In units of T's last place at `wanted`; 0 when both are the same, infinity when one is no number or infinite and the
// other is not.
template <typename T>
double ulp_error(T got, long double wanted) {
  const T nearest = static_cast<T>(wanted);
  if (std::isnan(wanted)) return std::isnan(got) ? 0 : kEverywhere;
  if (std::isnan(got)) return kEverywhere;
  if (got == nearest && std::isinf(got)) return 0;
  constexpr T largest = std::numeric_limits<T>::max();
  // Infinity counts as the number after the largest.
  const long double value = std::isinf(got)
                                ? std::copysign(static_cast<long double>(largest) * 2, static_cast<long double>(got))
                                : static_cast<long double>(got);
  if (std::isinf(got) && std::fabs(wanted) > largest * (1 - 2 * std::numeric_limits<T>::epsilon())) return 1;
  int exponent = std::numeric_limits<T>::min_exponent - 1;
  if (wanted != 0) exponent = std::max(exponent, std::ilogb(wanted));
  const long double unit = std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits + 1);
  return static_cast<double>(std::fabs(value - std::clamp<long double>(wanted, -2.0L * largest, 2.0L * largest)) /
                             unit);
}

// A kernel that applies `function` to n vectors of `lanes` elements.
loop::Function map_function(Intrinsic function, DType dtype, int lanes) {
  loop::Var n("n"), i("i");
  const loop::Buffer a = loop::make_buffer("a", dtype, {n * loop::Expr(lanes)}),
                     b = loop::make_buffer("b", dtype, {n * loop::Expr(lanes)});
  const loop::Expr index = lanes == 1 ? loop::Expr(i) : loop::ramp(i * loop::Expr(lanes), loop::Expr(1), lanes);
  const loop::Stmt body = loop::store(b, {index}, loop::intrinsic(function, {loop::load(a, {index})}));
  return {"map", {a, b}, 1, {n}, loop::for_loop(i, 0, n, body), ""};
}

template <typename T>
void apply(Intrinsic function, const Target& target, const std::vector<T>& in, std::vector<T>& out) {
  const int lanes = target.lanes(sizeof(T));
  Jit jit(target);
  jit.add(emit_object({map_function(function, dtype_of<T>(), lanes)}, target));
  auto* kernel = reinterpret_cast<TreadleKernel>(jit.lookup("map"));
  const void* buffers[] = {in.data(), out.data()};
  const int64_t scalars[] = {static_cast<int64_t>(in.size()) / lanes};
  TreadleContext context{};
  ASSERT_EQ(kernel(&context, const_cast<void* const*>(buffers), scalars), 0);
}

uint64_t stride() {
  const char* text = std::getenv("TREADLE_MATH_STRIDE");
  return text == nullptr ? 4999 : std::strtoull(text, nullptr, 10);
}

std::vector<float> float_samples() {
  std::vector<float> samples;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += stride())
    samples.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (float x = -20; x < 20; x += 0.001f) samples.push_back(x);  // where most of the functions live
  for (float special :
       {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, INFINITY, -INFINITY, NAN, 88.72284f, 88.8f, -87.4f, -103.9f, -104.5f})
    samples.push_back(special);
  samples.resize(samples.size() / 64 * 64 + 64, 1.0f);
  return samples;
}

std::vector<double> double_samples() {
  std::vector<double> samples;
  uint64_t state = 1;
  for (int k = 0; k < 200000; ++k) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    samples.push_back(std::bit_cast<double>(state));
  }
  for (double x = -30; x < 30; x += 0.00037) samples.push_back(x);
  for (double x = -750; x < 750; x += 0.037) samples.push_back(x);
  for (double special :
       {0.0, -0.0, 1.0, -1.0, 0.5, double{INFINITY}, -double{INFINITY}, double{NAN}, 709.79, -745.0, -746.5})
    samples.push_back(special);
  samples.resize(samples.size() / 64 * 64 + 64, 1.0);
  return samples;
}

template <typename T>
void measure(const Target& target, const std::vector<T>& in) {
  std::vector<T> out(in.size());
  for (const Case& c : kCases) {
    apply<T>(c.function, target, in, out);
    double worst = 0;
    T worst_at = 0;
    for (size_t k = 0; k < in.size(); ++k) {
      if (std::fabs(in[k]) > c.limit) continue;
      const double error = ulp_error(out[k], c.reference(static_cast<long double>(in[k])));
      if (error > worst) {
        worst = error;
        worst_at = in[k];
      }
    }
    const double bound = sizeof(T) == 4 ? c.float_bound : c.double_bound;
    std::printf("%-8s %-10s %-24s %.3f ULP at %.9g\n", to_string(dtype_of<T>()).c_str(), loop::name_of(c.function),
                target.text.c_str(), worst, static_cast<double>(worst_at));
    EXPECT_LE(worst, bound) << loop::name_of(c.function) << " of " << to_string(dtype_of<T>()) << " at " << worst_at
                            << " for " << target.text;
  }
}

// Applies f(a, b, c) of one dtype, lane by lane, to three inputs of equal length, a multiple of 16.
template <typename T>
std::vector<T> apply_three(const Target& target, const std::vector<std::vector<T>>& in,
                           const std::function<loop::Expr(loop::Expr, loop::Expr, loop::Expr)>& f) {
  const int lanes = target.lanes(sizeof(T));
  const int64_t size = static_cast<int64_t>(in[0].size());
  std::vector<loop::Buffer> buffers;
  for (const char* name : {"a", "b", "c", "out"})
    buffers.push_back(loop::make_buffer(name, dtype_of<T>(), {loop::Expr(size)}));
  loop::Var i("i");
  const loop::Expr index = loop::ramp(i * loop::Expr(lanes), loop::Expr(1), lanes);
  const auto element = [&](int k) { return loop::load(buffers[static_cast<size_t>(k)], {index}); };
  const loop::Stmt body = loop::for_loop(i, 0, loop::Expr(size / lanes),
                                         loop::store(buffers[3], {index}, f(element(0), element(1), element(2))));
  Jit jit(target);
  jit.add(emit_object({{"three", buffers, 1, {}, body, ""}}, target));
  std::vector<T> out(in[0].size());
  const void* pointers[] = {in[0].data(), in[1].data(), in[2].data(), out.data()};
  TreadleContext context{};
  EXPECT_EQ(reinterpret_cast<TreadleKernel>(jit.lookup("three"))(&context, const_cast<void* const*>(pointers), nullptr),
            0);
  return out;
}

// Numbers of every size and kind, reproducible.
template <typename T>
std::vector<T> any_numbers(size_t count, uint64_t state) {
  const T special[] = {0,
                       -T{0},
                       1,
                       -1,
                       2,
                       -2,
                       3,
                       -3,
                       T{0.5},
                       T{-0.5},
                       T{1.5},
                       1000,
                       -1001,
                       std::numeric_limits<T>::infinity(),
                       -std::numeric_limits<T>::infinity(),
                       std::numeric_limits<T>::quiet_NaN(),
                       std::numeric_limits<T>::denorm_min(),
                       std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::min()};
  std::vector<T> numbers;
  while (numbers.size() < count) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t kind = state >> 61;
    if (kind == 0) {
      numbers.push_back(special[(state >> 32) % std::size(special)]);
    } else if (kind < 4) {
      numbers.push_back(static_cast<T>(static_cast<double>(static_cast<int64_t>(state << 3)) * 0x1p-60));  // -8 ... 8
    } else if constexpr (sizeof(T) == 4) {
      numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(state >> 20)));
    } else {
      numbers.push_back(std::bit_cast<double>(state << 3 ^ state >> 20));
    }
  }
  return numbers;
}

template <typename T>
void check_power(const Target& target, double bound) {
  constexpr size_t kCount = 1 << 17;
  std::vector<T> x = any_numbers<T>(kCount, 1), y = any_numbers<T>(kCount, 2);
  for (size_t k = 0; k < kCount; k += 2) {  // half of them where the result is an ordinary number
    x[k] = std::fabs(x[k]);
    y[k] = std::fmod(y[k], T{60});
  }
  const std::vector<T> out =
      apply_three<T>(target, {x, y, x}, [](auto a, auto b, auto) { return loop::intrinsic(Intrinsic::Pow, {a, b}); });
  double worst = 0;
  for (size_t k = 0; k < kCount; ++k) {
    const double error = ulp_error(out[k], std::pow(static_cast<long double>(x[k]), static_cast<long double>(y[k])));
    worst = std::max(worst, error);
    ASSERT_LE(error, bound) << "pow(" << x[k] << ", " << y[k] << ") gave " << out[k] << " for " << target.text;
  }
  std::printf("%-8s %-10s %-24s %.3f ULP\n", to_string(dtype_of<T>()).c_str(), "pow", target.text.c_str(), worst);
  for (const double exponent : {0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5, 4.0}) {
    const std::vector<T> powers = apply_three<T>(target, {x, y, x}, [&](auto a, auto, auto) {
      return loop::intrinsic(Intrinsic::Pow, {a, loop::broadcast(loop::constant(exponent, dtype_of<T>()), a.lanes())});
    });
    for (size_t k = 0; k < kCount; ++k) {
      const double error =
          ulp_error(powers[k], std::pow(static_cast<long double>(x[k]), static_cast<long double>(exponent)));
      ASSERT_LE(error, bound) << "pow(" << x[k] << ", constant " << exponent << ") gave " << powers[k] << " for "
                              << target.text;
    }
  }
}

template <typename T>
void check_exact(const Target& target) {
  const auto same = [](T a, T b) {
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
  };
  const std::vector<T> x = any_numbers<T>(1 << 14, 3), y = any_numbers<T>(1 << 14, 4), z = any_numbers<T>(1 << 14, 5);
  const std::vector<T> rest =
      apply_three<T>(target, {x, y, z}, [](auto a, auto b, auto) { return loop::truncmod(a, b); });
  const std::vector<T> fused = apply_three<T>(
      target, {x, y, z}, [](auto a, auto b, auto c) { return loop::intrinsic(Intrinsic::Fma, {a, b, c}); });
  for (size_t k = 0; k < x.size(); ++k) {
    ASSERT_TRUE(same(rest[k], std::fmod(x[k], y[k])))
        << "fmod(" << x[k] << ", " << y[k] << ") gave " << rest[k] << " for " << target.text;
    if (sizeof(T) == 8 && !target.fma &&
        !(std::fabs(x[k] * y[k]) < 1e290 && std::fabs(x[k] * y[k]) > 1e-250 && std::fabs(x[k]) < 1e290 &&
          std::fabs(y[k]) < 1e290 && std::fabs(z[k]) < 1e290))
      continue;
    ASSERT_TRUE(same(fused[k], std::fma(x[k], y[k], z[k])))
        << "fma(" << x[k] << ", " << y[k] << ", " << z[k] << ") gave " << fused[k] << " for " << target.text;
  }
}

class MathTest : public testing::TestWithParam<const char*> {};

TEST_P(MathTest, PowerOfAnyTwoNumbers) {
  check_power<float>(parse_target(GetParam()), 1);
  check_power<double>(parse_target(GetParam()), 1);
}
TEST_P(MathTest, RemainderAndFusedMultiplyAddAreExact) {
  check_exact<float>(parse_target(GetParam()));
  check_exact<double>(parse_target(GetParam()));
}

TEST_P(MathTest, Float32StaysWithinItsBounds) { measure<float>(parse_target(GetParam()), float_samples()); }
TEST_P(MathTest, Float64StaysWithinItsBounds) { measure<double>(parse_target(GetParam()), double_samples()); }

INSTANTIATE_TEST_SUITE_P(Targets, MathTest, testing::Values("llvm -mcpu=native", "llvm -mcpu=x86-64-v3", "llvm"));

}  // namespace
}  // namespace treadle::codegen
