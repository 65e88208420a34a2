// The bounds that isa/math.h states, in units in the last place of f32, over floats spread evenly
// over their bit patterns.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tessera/kernels/cpu/testing.h"

namespace tessera::kernels::cpu::testing {
namespace {

struct Bound {
  const char* op;
  double (*exact)(double);
  double ulps;
};

double ulp_of(double v) {
  const float f = std::max(std::fabs(static_cast<float>(v)), 0x1p-126f);
  return std::nextafter(f, INFINITY) - f;
}

TEST(Math, KeepsItsBounds) {
  const Bound bounds[] = {{"exp", [](double x) { return std::exp(x); }, 1.5},
                          {"log", [](double x) { return std::log(x); }, 1.5},
                          {"tanh", [](double x) { return std::tanh(x); }, 2.5},
                          {"erf", [](double x) { return std::erf(x); }, 2.5},
                          {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 3.5}};
  constexpr uint32_t kStep = 12289;
  std::vector<float> inputs;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += kStep)
    inputs.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (float x = -105; x < 105; x += 0.0009765625f * 1.7f) inputs.push_back(x);
  Tensor x = *Tensor::make(DType::kF32, {std::ssize(inputs)});
  for (size_t i = 0; i < inputs.size(); ++i) x.mutable_as<float>()[i] = inputs[i];
  std::mt19937_64 random(1);
  for (Isa isa : available_isas())
    for (const Bound& b : bounds) {
      const Case c{.op = b.op, .in = {x}};
      const op::Problem p = *problem_of(c, {x});
      const Tensor y = (*run_claim(table(isa), p, table(isa).probe(p)[0], c.in, random))[0];
      double worst = 0;
      float where = 0;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const double got = y.as<float>()[i], want = b.exact(inputs[i]);
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(got)) << b.op << "(" << inputs[i] << ")";
          continue;
        }
        if (b.op == std::string_view("sigmoid") && want < 0x1p-126 && got < 0x1p-126) continue;
        if (got == want || (std::isinf(static_cast<float>(want)) && std::isinf(got))) continue;
        const double off = std::fabs(got - want) / ulp_of(want);
        if (!(off <= worst)) worst = off, where = inputs[i];
      }
      EXPECT_LE(worst, b.ulps) << name_of(isa) << " " << b.op << "(" << where << ")";
    }
}

}  // namespace
}  // namespace tessera::kernels::cpu::testing
