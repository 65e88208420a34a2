#include "tessera/session/calibration.h"

#include <gtest/gtest.h>

namespace tessera::session {
namespace {

TEST(Calibration, ReadsBackWhatItWrote) {
  Calibration c;
  c.cpu = "A processor";
  c.isa = "avx2";
  c.rates.flops_per_ps = 0.15;
  c.rates.bytes_per_ps = 0.02;
  c.rates.launch_ps = 250000;
  c.rates.narrow_flops_per_ps[DType::kBF16] = 2.5;
  c.rates.efficiency["cpu.conv"] = 0.75;
  auto back = calibration_from_json(to_json(c));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json(*back), to_json(c));
  EXPECT_DOUBLE_EQ(back->rates.flops_per_ps, 0.15);
  EXPECT_DOUBLE_EQ(back->rates.narrow_flops_per_ps.at(DType::kBF16), 2.5);
  EXPECT_DOUBLE_EQ(back->rates.efficiency.at("cpu.conv"), 0.75);
  EXPECT_TRUE(back->rates.origin.starts_with("calibration "));
}

TEST(Calibration, NamesTheFieldThatIsWrong) {
  const std::string good = to_json({"A processor", "avx2", {}});
  auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    auto c = calibration_from_json(text);
    return c ? "" : c.error().message;
  };
  EXPECT_EQ(with("{", "["), "calibration: not a JSON object");
  EXPECT_EQ(with("calibration/1", "calibration/2"),
            "calibration: 'schema' must be 'tessera.calibration/1'");
  EXPECT_EQ(with("\"avx2\"", "7"), "calibration: 'isa' must be a string");
  EXPECT_EQ(with("\"launch_seconds\": 1e-06", "\"launch_seconds\": -1"),
            "calibration: 'launch_seconds' must be a positive number");
  EXPECT_EQ(with("\"narrow_flops_per_second\": {}", "\"narrow_flops_per_second\": {\"f9\": 1}"),
            "calibration: no type 'f9'");
  EXPECT_EQ(with("\"narrow_flops_per_second\": {}", "\"narrow_flops_per_second\": {\"i8\": 0}"),
            "calibration: 'i8' must be a positive number");
  EXPECT_EQ(with("\"efficiency\": {}", "\"efficiency\": {\"cpu.conv\": 0}"),
            "calibration: 'cpu.conv' must be a positive number");
}

// Twice the efficiency, half the time above a launch. Memory adds the part that does not overlap,
// or takes over; caches are faster.
TEST(Calibration, TurnsWorkIntoTime) {
  kernels::Rates rates;
  rates.flops_per_ps = 0.1;
  rates.bytes_per_ps = 0.01;
  rates.launch_ps = 1000;
  op::Claim claim;
  claim.kernel = "k";
  claim.flops = 1e6;
  claim.efficiency = 0.5;
  EXPECT_EQ(rates.cost(claim).value, 1000 + 20'000'000);
  rates.efficiency["k"] = 1;
  EXPECT_EQ(rates.cost(claim).value, 1000 + 10'000'000);
  claim.bytes = 1e5;
  EXPECT_EQ(rates.cost(claim).value, 1000 + 10'000'000 + 500'000);
  claim.bytes = 1e6;
  EXPECT_EQ(rates.cost(claim).value, 1000 + 25'000'000 + 2'000'000);
  claim.bytes = 1e8;
  EXPECT_GT(rates.cost(claim).value, 9'000'000'000);
}

// A kernel of another type has the peak of that, if it is known.
TEST(Calibration, KnowsPeaksOfNarrowTypes) {
  kernels::Rates rates;
  rates.flops_per_ps = 0.1;
  rates.launch_ps = 1000;
  rates.multiplies = {{"k", DType::kI8}};
  op::Claim claim;
  claim.kernel = "k";
  claim.flops = 1e6;
  EXPECT_EQ(rates.cost(claim).value, 1000 + 10'000'000);
  rates.narrow_flops_per_ps[DType::kI8] = 0.4;
  EXPECT_EQ(rates.cost(claim).value, 1000 + 2'500'000);
  EXPECT_DOUBLE_EQ(rates.peak_of("another"), 0.1);
}

}  // namespace
}  // namespace tessera::session
