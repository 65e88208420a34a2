// Matrix units against an oracle of exact numbers, and the kernels against the definition.
#include "tessera/hal/sim/numerics.h"

#include <bit>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "tessera/chip/catalog.h"
#include "tessera/hal/sim/oracle_for_test.h"
#include "tessera/hal/sim/rule.h"

namespace tessera::hal::sim {
namespace {

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

// NaNs are equal: their bits have a test of their own.
bool same(float x, float y) { return bits(x) == bits(y) || (std::isnan(x) && std::isnan(y)); }

DType storage_of(std::string_view type) {
  const auto dtype = dtype_from_name(type);
  return dtype ? *dtype : DType::kF32;
}

// Values of an element type, of a kind: what sums meet in practice, and where rules differ.
class Values {
 public:
  enum Kind { kSmall, kWide, kCancelling, kTiny, kHuge, kAny, kKinds };

  Values(DType dtype, int seed) : dtype_(dtype), random_(seed) {}

  float next(Kind kind) {
    const FloatFormat& f = float_format(dtype_);
    if (kind == kAny)
      return static_cast<float>(decode(f, random_() & ((uint64_t{1} << f.width()) - 1)));
    const int least = 1 - f.bias, largest = (1 << f.exponent_bits) - 2 - f.bias;
    const auto between = [&](int low, int high) {
      low = std::clamp(low, least - f.mantissa_bits, largest);
      high = std::clamp(high, low, largest);
      return low + static_cast<int>(random_() % (high - low + 1));
    };
    int exponent = 0;
    switch (kind) {
      case kSmall:
        exponent = between(-3, 1);
        break;
      case kWide:
        exponent = between(-14, 14);
        break;
      case kCancelling:
        exponent = random_() % 2 ? between(10, 12) : between(-14, -2);
        break;
      case kTiny:
        exponent = between(least - f.mantissa_bits, least + 4);
        break;
      case kHuge:
        exponent = between(largest - 3, largest);
        break;
      default:
        break;
    }
    const double significand = 1 + static_cast<double>(random_() & 0x7fffff) * 0x1p-23;
    const double value = std::ldexp(significand, exponent) * (random_() % 2 ? 1 : -1);
    const float result = static_cast<float>(
        decode(f, encode(f, random_() % 8 == 0 ? 0.0 : value, {.saturate = true})));
    return std::isnan(result) ? 0 : result;
  }

 private:
  DType dtype_;
  std::mt19937 random_;
};

struct Case {
  std::string chip, type, accumulate = {}, overflow = {};
};

// All units of the catalog whose sums are f32 or f16, each with all its modes.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  const auto ids = chip::Catalog().ids();
  for (const std::string& id : *ids) {
    const auto chip = chip::Catalog().load(id);
    if (!chip) continue;
    for (const auto& [type, n] : chip->numerics) {
      if (n.accumulate != "f32") continue;
      cases.push_back({id, type});
      if (n.f16_rounding) cases.push_back({id, type, "f16"});
      for (size_t i = 1; i < n.overflow.size(); ++i) cases.push_back({id, type, "", n.overflow[i]});
    }
  }
  return cases;
}

std::string name_of(const Case& c) {
  return c.chip + " " + c.type + (c.accumulate.empty() ? "" : " to " + c.accumulate) +
         (c.overflow.empty() ? "" : " " + c.overflow);
}

oracle::Oracle oracle_of(const Case& c) {
  const chip::Chip chip = *chip::Catalog().load(c.chip);
  oracle::Oracle oracle{.numerics = chip.numerics.find(c.type)->second};
  const bool mode = c.type == "tf32" || c.type == "hf32" || c.type == "xf32";
  if (!mode) oracle.operand_least = 1 - float_format(storage_of(c.type)).bias;
  oracle.half = c.accumulate == "f16";
  const auto& overflow = oracle.numerics.overflow;
  oracle.saturate =
      (c.overflow.empty() ? (overflow.empty() ? "" : overflow.front()) : c.overflow) == "saturate";
  return oracle;
}

MatrixUnit unit_of(const Case& c) {
  auto unit = MatrixUnit::make(*chip::Catalog().load(c.chip), c.type,
                               {.accumulate = c.accumulate, .overflow = c.overflow});
  EXPECT_TRUE(unit) << unit.error().message;
  return *unit;
}

struct Problem {
  int m, n, k;
  std::vector<float> a, b, c;

  Problem(const Case& at, Values::Kind kind, int m_, int n_, int k_, int seed)
      : m(m_), n(n_), k(k_) {
    Values operands(storage_of(at.type), seed);
    Values sums(at.accumulate == "f16" ? DType::kF16 : DType::kF32, seed + 1);
    for (int i = 0; i < m * k; ++i) a.push_back(operands.next(kind));
    for (int i = 0; i < k * n; ++i) b.push_back(operands.next(kind));
    for (int i = 0; i < m * n; ++i)
      c.push_back(seed % 3 == 0 ? 0.0f : sums.next(kind == Values::kWide ? Values::kSmall : kind));
    // Sums that cancel what the accumulator holds.
    for (int i = 0; kind == Values::kCancelling && i < m * n; ++i) c[i] = -a[i / n * k] * b[i % n];
  }

  std::vector<float> multiplied(const MatrixUnit& unit) const {
    std::vector<float> result = c;
    unit.multiply(m, n, k, a.data(), k, b.data(), n, result.data(), n);
    return result;
  }
  std::vector<float> column(int j) const {
    std::vector<float> result;
    for (int p = 0; p < k; ++p) result.push_back(b[p * n + j]);
    return result;
  }
  std::span<const float> row(int i) const { return {a.data() + i * k, static_cast<size_t>(k)}; }
};

TEST(MatrixUnit, EqualsTheOracle) {
  const std::vector<Case> cases = all_cases();
  ASSERT_GT(cases.size(), 60u);
  int seed = 0;
  for (const Case& at : cases) {
    const MatrixUnit unit = unit_of(at);
    const oracle::Oracle oracle = oracle_of(at);
    const int group = static_cast<int>(unit.group());
    for (int kind = 0; kind < Values::kKinds; ++kind) {
      // Two groups and a short one, or a few products.
      const int k = group == 1 ? 7 : 2 * group + group / 2 + 1;
      const Problem p(at, static_cast<Values::Kind>(kind), 3, 5, k, ++seed);
      const std::vector<float> results = p.multiplied(unit);
      for (int i = 0; i < p.m; ++i)
        for (int j = 0; j < p.n; ++j) {
          const float expected = oracle.dot(p.row(i), p.column(j), p.c[i * p.n + j]);
          const float result = results[i * p.n + j];
          ASSERT_TRUE(same(result, expected))
              << name_of(at) << " kind " << kind << " seed " << seed << " at (m=" << i
              << ", n=" << j << "): " << result << " (" << std::hex << bits(result) << "), need "
              << expected << " (" << bits(expected) << ")";
        }
    }
  }
}

// What the kernels compute is what the definition does, on each instruction set, for whole strips.
TEST(MatrixUnit, KernelsEqualTheDefinition) {
  const Case cases[] = {
      {"v100_sxm", "f16"},     {"a100_sxm_80gb", "bf16"},  {"a100_sxm_80gb", "tf32"},
      {"h100_sxm", "f16"},     {"h100_sxm", "f16", "f16"}, {"h100_sxm", "f8e4m3fn"},
      {"b200", "f4e2m1"},      {"mi100", "f16"},           {"mi250x", "bf16"},
      {"mi300x", "bf16"},      {"mi300x", "f8e5m2fnuz"},   {"mi300x", "xf32"},
      {"ascend910b2", "f16"},  {"ascend910b2", "bf16"},    {"ascend910b2", "f32"},
      {"ascend910b2", "hf32"}, {"ascend910a", "f16"},      {"cpu_amx", "bf16"},
      {"tpu_v5e", "bf16"},     {"cpu_avx2", "f32"}};
  int seed = 1000;
  for (const char* isa : {"generic", "avx2", "avx512"}) {
    setenv("TESSERA_ISA", isa, 1);
    for (const Case& at : cases)
      for (int kind = 0; kind < Values::kKinds; ++kind) {
        const MatrixUnit unit = unit_of(at);
        const Problem p(at, static_cast<Values::Kind>(kind), 2, 70,
                        3 * static_cast<int>(unit.group()), ++seed);
        const std::vector<float> results = p.multiplied(unit);
        for (int i = 0; i < p.m; ++i)
          for (int j = 0; j < p.n; ++j) {
            std::vector<float> a(p.row(i).begin(), p.row(i).end()), b = p.column(j);
            unit.round_operands(a);
            unit.round_operands(b);
            float expected = p.c[i * p.n + j];
            for (size_t g = 0; g < a.size(); g += unit.group())
              expected = group_sum(unit.rule(), std::span(a).subspan(g, unit.group()), b.data() + g,
                                   1, expected);
            ASSERT_EQ(bits(results[i * p.n + j]), bits(expected))
                << isa << " " << name_of(at) << " kind " << kind << " at (m=" << i << ", n=" << j
                << "): " << results[i * p.n + j] << ", need " << expected;
          }
      }
  }
  unsetenv("TESSERA_ISA");
}

// Blocks of k and strips are no part of the arithmetic.
TEST(MatrixUnit, SlicesOfWholeGroupsChangeNothing) {
  for (const Case& at :
       {Case{"h100_sxm", "f16"}, Case{"ascend910b2", "f16"}, Case{"tpu_v4", "bf16"}}) {
    const MatrixUnit unit = unit_of(at);
    const Problem p(at, Values::kSmall, 3, 67, 1100, 5);
    std::vector<float> sliced = p.c;
    for (int k0 = 0; k0 < p.k; k0 += 48) {
      const int count = std::min(48, p.k - k0);
      for (int j0 = 0; j0 < p.n; j0 += 9)
        unit.multiply(p.m, std::min(9, p.n - j0), count, p.a.data() + k0, p.k,
                      p.b.data() + k0 * p.n + j0, p.n, sliced.data() + j0, p.n);
    }
    const std::vector<float> whole = p.multiplied(unit);
    for (size_t i = 0; i < whole.size(); ++i)
      EXPECT_EQ(bits(whole[i]), bits(sliced[i])) << name_of(at);
  }
}

TEST(MatrixUnit, EmptyExtents) {
  const MatrixUnit unit = unit_of({"h100_sxm", "f16"});
  float c[] = {1.5f, -0.0f};
  const float* none = nullptr;
  unit.multiply(1, 2, 0, none, 0, none, 0, c, 2);
  EXPECT_EQ(bits(c[0]), bits(1.5f));
  EXPECT_EQ(bits(c[1]), bits(-0.0f));
  unit.multiply(0, 2, 3, none, 3, c, 2, c, 2);
}

TEST(MatrixUnit, IntegersWrap) {
  const auto unit = MatrixUnit::make(*chip::Catalog().load("ascend910b2"), "i8");
  ASSERT_TRUE(unit) << unit.error().message;
  EXPECT_EQ(unit->accumulate(), DType::kI32);
  const std::vector<float> a(600, -128), b(600 * 2, 127);
  int32_t c[] = {5, std::numeric_limits<int32_t>::min() + 600 * 128 * 127 - 1};
  unit->multiply(1, 2, 600, a.data(), 600, b.data(), 2, c, 2);
  EXPECT_EQ(c[0], 5 - 600 * 128 * 127);
  EXPECT_EQ(c[1], std::numeric_limits<int32_t>::max());
}

TEST(MatrixUnit, Doubles) {
  const auto unit = MatrixUnit::make(*chip::Catalog().load("h100_sxm"), "f64");
  ASSERT_TRUE(unit) << unit.error().message;
  const double a[] = {1 + 0x1p-30, -1}, b[] = {1 - 0x1p-30, 1};
  double c = 0;
  unit->multiply(1, 1, 2, a, 2, b, 1, &c, 1);
  EXPECT_EQ(c, 0.0);  // the product rounds to 1
  c = -1;
  unit->multiply(1, 1, 1, a, 1, b, 1, &c, 1);
  EXPECT_EQ(c, -0x1p-60);  // and is exact where it is added at once
}

TEST(MatrixUnit, UnknownTypesAndModesAreToldWithWhatThereIs) {
  const auto chip = *chip::Catalog().load("v100_sxm");
  const auto none = MatrixUnit::make(chip, "bf16");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kUnimplemented);
  EXPECT_NE(none.error().message.find("v100_sxm does not tell how it multiplies bf16"),
            std::string::npos)
      << none.error().message;
  EXPECT_NE(none.error().message.find("f16"), std::string::npos);
  EXPECT_FALSE(MatrixUnit::make(chip, "f16", {.accumulate = "bf16"}));
  EXPECT_FALSE(MatrixUnit::make(chip, "f16", {.overflow = "saturate"}));
  EXPECT_FALSE(MatrixUnit::make(chip, "f16", {.operand_rounding = Rounding::kNearestAway}));
  EXPECT_FALSE(
      MatrixUnit::make(*chip::Catalog().load("ascend910b2"), "f16", {.accumulate = "f16"}));
  chip::Numerics numerics = chip.numerics.at("f16");
  numerics.group.value = 1000;
  EXPECT_FALSE(MatrixUnit::make(numerics, "f16"));
  numerics.group.value = 4;
  EXPECT_FALSE(MatrixUnit::make(numerics, "hif8"));
}

}  // namespace
}  // namespace tessera::hal::sim
