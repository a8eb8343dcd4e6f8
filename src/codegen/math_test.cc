// SPDX-License-Identifier: Apache-2.0
// Errors of the emitted functions in units in the last place, against <cmath> in a wider type, over all exponents: on
// this machine's features, on AVX2 with FMA, and on SSE2, where nothing is fused. TREADLE_MATH_STRIDE=97 samples ten
// times as densely.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
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
    {Intrinsic::Sin, [](long double x) { return std::sin(x); }, 1.5, 2.5, 1e6},
    {Intrinsic::Cos, [](long double x) { return std::cos(x); }, 1.5, 1.5, 1e6},
    {Intrinsic::Tan, [](long double x) { return std::tan(x); }, 1, 3, 1e6},
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

class MathTest : public testing::TestWithParam<const char*> {};

TEST_P(MathTest, Float32StaysWithinItsBounds) { measure<float>(parse_target(GetParam()), float_samples()); }
TEST_P(MathTest, Float64StaysWithinItsBounds) { measure<double>(parse_target(GetParam()), double_samples()); }

INSTANTIATE_TEST_SUITE_P(Targets, MathTest, testing::Values("llvm -mcpu=native", "llvm -mcpu=x86-64-v3", "llvm"));

}  // namespace
}  // namespace treadle::codegen
