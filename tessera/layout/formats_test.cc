// The worked examples are those of CANN's guide on data formats and of MindSpore's transformations.
#include "tessera/layout/formats.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tessera/layout/convert.h"
#include "tessera/layout/random_layout.h"

namespace tessera::layout {
namespace {

using Index = std::vector<int64_t>;
using Buffer = std::vector<std::byte>;

BoundLayout bind(std::string_view format, const FormatRequest& request) {
  const Result<Layout> layout = format_layout(format, request);
  EXPECT_TRUE(layout) << layout.error().message;
  const Result<BoundLayout> result = BoundLayout::bind(*layout, request.dtype, request.extents);
  EXPECT_TRUE(result) << result.error().message;
  return *result;
}

Index shape(std::string_view format, const FormatRequest& request) {
  const BoundLayout b = bind(format, request);
  return {b.physical_extents().begin(), b.physical_extents().end()};
}

// Values 1, 2, ... of a row-major tensor, in the layout's places; 0 is padding. Checks the way
// back, too.
std::vector<int32_t> numbered(const BoundLayout& to) {
  const BoundLayout rows = *BoundLayout::bind(
      Layout::row_major(static_cast<int>(to.extents().size())), to.dtype(), to.extents());
  std::vector<int32_t> values(static_cast<size_t>(rows.elements()));
  std::iota(values.begin(), values.end(), 1);
  std::vector<int32_t> result(static_cast<size_t>(to.places()), -1);
  EXPECT_TRUE(convert(rows, std::as_bytes(std::span(values)), to,
                      std::as_writable_bytes(std::span(result))));
  std::vector<int32_t> back(values.size(), -1);
  EXPECT_TRUE(
      convert(to, std::as_bytes(std::span(result)), rows, std::as_writable_bytes(std::span(back))));
  EXPECT_EQ(back, values);
  return result;
}

// The format of a 16-bit type, bound to 32-bit values so that numbers fit.
std::vector<int32_t> numbered(std::string_view format, const FormatRequest& request) {
  const Result<Layout> layout = format_layout(format, request);
  EXPECT_TRUE(layout) << layout.error().message;
  return numbered(*BoundLayout::bind(*layout, DType::kI32, request.extents));
}

TEST(Formats, ExampleA_NzOf20x28) {
  EXPECT_EQ(shape("NZ", {.extents = {20, 28}}), (Index{2, 2, 16, 16}));
  const std::vector<int32_t> nz = numbered("NZ", {.extents = {20, 28}});
  const auto row = [&](int n1, int m1, int m0, int length) {
    Index values;
    for (int n0 = 0; n0 < length; ++n0)
      values.push_back(nz[static_cast<size_t>(((n1 * 2 + m1) * 16 + m0) * 16 + n0)] - 1);
    return values;
  };
  const auto count_from = [](int64_t first, size_t length) {
    Index values(length);
    std::iota(values.begin(), values.end(), first);
    return values;
  };
  EXPECT_EQ(row(0, 0, 0, 16), count_from(0, 16));
  EXPECT_EQ(row(0, 0, 1, 16), count_from(28, 16));
  EXPECT_EQ(row(0, 1, 0, 16), count_from(448, 16));
  EXPECT_EQ(row(1, 0, 0, 12), count_from(16, 12));
  EXPECT_EQ(row(1, 1, 0, 12), count_from(464, 12));
  EXPECT_EQ(row(1, 0, 0, 16)[12], -1);
  for (int m0 = 4; m0 < 16; ++m0) EXPECT_EQ(row(0, 1, m0, 16), Index(16, -1));
}

TEST(Formats, ExampleB_NzWithFractalsOf2x2) {
  const BoundLayout nz =
      *BoundLayout::bind(*Layout::parse("mn: n/2 m/2 m%2 n%2"), DType::kI32, Index{4, 4});
  EXPECT_EQ(numbered(nz),
            (std::vector<int32_t>{1, 2, 5, 6, 9, 10, 13, 14, 3, 4, 7, 8, 11, 12, 15, 16}));
}

TEST(Formats, ExampleC_FractalZOfHwcn) {
  EXPECT_EQ(shape("FRACTAL_Z", {.extents = {2, 2, 32, 32}, .letters = "hwcn"}),
            (Index{8, 2, 16, 16}));
}

TEST(Formats, ExampleD_FractalZ3dOfNdhwc) {
  EXPECT_EQ(shape("FRACTAL_Z_3D", {.extents = {48, 2, 2, 2, 32}, .letters = "ndhwc"}),
            (Index{16, 3, 16, 16}));
}

TEST(Formats, ExampleE_FiveHdOfAnImage) {
  const BoundLayout b = bind("5HD", {.extents = {1, 3, 224, 224}});
  EXPECT_EQ(shape("5HD", {.extents = {1, 3, 224, 224}}), (Index{1, 1, 224, 224, 16}));
  EXPECT_NEAR(static_cast<double>(b.places()) / static_cast<double>(b.elements()), 5.33, 0.01);
}

TEST(Formats, C0FollowsTheType) {
  EXPECT_EQ(shape("NZ", {.dtype = DType::kF32, .extents = {16, 16}}), (Index{2, 1, 16, 8}));
  EXPECT_EQ(shape("NZ", {.dtype = DType::kI8, .extents = {16, 64}}), (Index{2, 1, 16, 32}));
  EXPECT_EQ(shape("NZ", {.dtype = DType::kI4, .extents = {3, 16, 64}}), (Index{3, 1, 1, 16, 64}));
  EXPECT_EQ(format_layout("NZ", {.extents = {3, 16, 64}})->to_string(),
            "amn: a n/16 m/16 m%16 n%16");
  EXPECT_EQ(format_layout("packed_dot_b", {.dtype = DType::kBF16, .extents = {8, 8}})->to_string(),
            "kn: k/2 n k%2");
}

// Every place as the formulas of MindSpore's trans.cc give it, for groups blocks of e, diagonal
// inside.
TEST(Formats, GroupedFractalZ) {
  struct Case {
    int64_t groups, outputs, inputs, h, w;
  };
  for (const Case& c : {Case{2, 6, 4, 1, 2},
                        {32, 32, 1, 3, 3},
                        {4, 64, 16, 2, 1},
                        {5, 15, 7, 1, 1},
                        {3, 96, 24, 1, 1},
                        {8, 8, 3, 2, 2}}) {
    const int64_t g = c.groups;
    const int64_t inputs = c.inputs;
    const int64_t per_group = c.outputs / g;
    const int64_t e =
        std::min(std::lcm(std::lcm(inputs, 16) / inputs, std::lcm(per_group, 16) / per_group), g);
    const int64_t c_opt = (e * inputs + 15) / 16 * 16;
    const int64_t n1 = (per_group * e + 15) / 16;
    const FormatRequest request{.extents = {c.outputs, inputs, c.h, c.w}, .groups = g};
    EXPECT_EQ(shape("FRACTAL_Z", request),
              (Index{(g + e - 1) / e * (c_opt / 16) * c.h * c.w, n1, 16, 16}));
    const std::vector<int32_t> got = numbered("FRACTAL_Z", request);
    std::vector<int32_t> expected(got.size(), 0);
    int32_t value = 1;
    for_each_index(request.extents, [&](const Index& i) {
      const int64_t group = i[0] / per_group;
      const int64_t row = group % e * per_group + i[0] % per_group;
      const int64_t column = group % e * inputs + i[1];
      const int64_t fractal = ((group / e * (c_opt / 16) + column / 16) * c.h + i[2]) * c.w + i[3];
      expected[static_cast<size_t>(((fractal * n1 + row / 16) * 16 + row % 16) * 16 +
                                   column % 16)] = value++;
    });
    EXPECT_EQ(got, expected) << g << " groups";
  }
}

TEST(Formats, FractalZC04) {
  const FormatRequest request{.extents = {20, 3, 3, 3}};
  EXPECT_EQ(shape("FRACTAL_Z_C04", request), (Index{3, 2, 16, 16}));
  const std::vector<int32_t> got = numbered("FRACTAL_Z_C04", request);
  std::vector<int32_t> expected(got.size(), 0);
  int32_t value = 1;
  for_each_index(request.extents, [&](const Index& i) {
    const int64_t k = (i[2] * 3 + i[3]) * 4 + i[1];
    expected[static_cast<size_t>(((k / 16 * 2 + i[0] / 16) * 16 + i[0] % 16) * 16 + k % 16)] =
        value++;
  });
  EXPECT_EQ(got, expected);
  EXPECT_FALSE(BoundLayout::bind(*format_layout("FRACTAL_Z_C04", {.extents = {20, 5, 3, 3}}),
                                 DType::kF16, Index{20, 5, 3, 3}));
}

TEST(Formats, RnnWeightsPadInputHiddenAndGates) {
  const int64_t input = 10;
  const int64_t hidden = 20;
  const FormatRequest request{
      .extents = {input + hidden, 4 * hidden}, .input = input, .hidden = hidden};
  for (const char* name : {"FRACTAL_ZN_RNN", "FRACTAL_ZN_LSTM"}) {
    EXPECT_EQ(shape(name, request), (Index{1 + 2, 4 * 2, 16, 16}));
    const std::vector<int32_t> got = numbered(name, request);
    std::vector<int32_t> expected(got.size(), 0);
    int32_t value = 1;
    for_each_index(request.extents, [&](const Index& i) {
      const int64_t k = i[0] < input ? i[0] : 16 + i[0] - input;
      const int64_t n = i[1] / hidden * 32 + i[1] % hidden;
      expected[static_cast<size_t>(((k / 16 * 8 + n / 16) * 16 + n % 16) * 16 + k % 16)] = value++;
    });
    EXPECT_EQ(got, expected) << name;
  }
  EXPECT_EQ(shape("FRACTAL_ZN_RNN", {.extents = {20, 60}, .input = 10, .hidden = 20}),
            (Index{2, 6, 16, 16}));
  EXPECT_EQ(shape("FRACTAL_ZN_RNN", {.extents = {10, 60}, .input = 10, .hidden = 20}),
            (Index{1, 6, 16, 16}));
  EXPECT_EQ(shape("ND_RNN_BIAS", {.extents = {60}, .hidden = 20}), (Index{96}));
}

TEST(Formats, DepthwiseWeightsLieOnADiagonal) {
  const FormatRequest request{.extents = {2, 20, 1, 3}};
  EXPECT_EQ(shape("C1HWNCoC0", request), (Index{2, 1, 3, 2, 16, 16}));
  const std::vector<int32_t> got = numbered("C1HWNCoC0", request);
  for (size_t place = 0; place < got.size(); ++place)
    EXPECT_TRUE(place / 16 % 16 == place % 16 || got[place] == 0) << "place " << place;
}

TEST(Formats, EveryRowRoundTripsForOddSizes) {
  for (const FormatInfo& format : formats()) {
    RandomLayouts random(9);
    for (int round = 0; round < 30; ++round) {
      FormatRequest request{.dtype = DType::kI32, .hidden = 6};
      const size_t rank =
          format.letters.size() + (format.batched ? static_cast<size_t>(random.below(3)) : 0);
      for (const int64_t extent : random.extents(static_cast<int>(rank)))
        request.extents.push_back(std::min<int64_t>(extent, 4));
      if (format.letters.size() > 1) request.extents.back() += 16;
      if (format.name == "NC1HWC0_C04") request.extents = {2, request.extents[1], 5, 7};
      if (format.name == "ND_RNN_BIAS") request.extents = {18};
      if (format.name.substr(0, 10) == "FRACTAL_ZN" && format.letters == "kn" && !format.batched) {
        request.input = request.extents[0];
        request.extents = {request.input + 6, 24};
      }
      const Result<Layout> layout = format_layout(format.name, request);
      ASSERT_TRUE(layout) << layout.error().message;
      EXPECT_EQ(*Layout::parse(layout->to_string()), *layout);
      const Result<BoundLayout> bound = BoundLayout::bind(*layout, DType::kI32, request.extents);
      ASSERT_TRUE(bound) << bound.error().message;
      numbered(*bound);
    }
  }
}

TEST(Formats, CoincideForSmallSizes) {
  const FormatRequest request{.extents = {2, 16, 1, 1}};
  const auto names = [&](const FormatRequest& r, std::string_view format) {
    return *matching_formats(bind(format, r), r);
  };
  EXPECT_EQ(names(request, "ND"),
            (std::vector<std::string_view>{"ND", "NC1HWC0", "C1HWNC0", "FRACTAL_Z"}));
  EXPECT_EQ(names({.extents = {20, 28}}, "NZ"),
            (std::vector<std::string_view>{"FRACTAL_NZ", "FRACTAL_NZ_L0C"}));
}

TEST(Formats, RefuseWhatTheyDoNotTake) {
  EXPECT_EQ(format_layout("NOPE", {}).error().code, Code::kNotFound);
  EXPECT_EQ(format_layout("NZ", {.extents = {4}}).error().code, Code::kInvalidArgument);
  EXPECT_FALSE(format_layout("NC1HWC0", {.extents = {4, 4}}));
  EXPECT_FALSE(format_layout("NC1HWC0", {.extents = {4, 4, 4, 4}, .letters = "abcd"}));
  EXPECT_FALSE(format_layout("NC1HWC0", {.extents = {4, 4, 4, 4}, .letters = "nchh"}));
  EXPECT_FALSE(format_layout("FRACTAL_Z", {.extents = {4, 4, 4, 4}, .groups = 3}));
  EXPECT_FALSE(format_layout("FRACTAL_Z", {.extents = {4, 4, 4, 4}, .groups = 0}));
  EXPECT_FALSE(format_layout("FRACTAL_ZN_RNN", {.extents = {4, 4}, .hidden = 3}));
  EXPECT_FALSE(format_layout("FRACTAL_ZN_LSTM", {.extents = {4, 7}}));
  EXPECT_FALSE(format_layout("NZ", {.dtype = DType::kString, .extents = {4, 4}}));
  EXPECT_FALSE(format_layout("NZ", {.extents = {4, -4}}));
}

}  // namespace
}  // namespace tessera::layout
