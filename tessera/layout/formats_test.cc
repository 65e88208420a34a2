// The worked examples are those of CANN's guide on data formats and of MindSpore's transformations.
#include "tessera/layout/formats.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "tessera/layout/convert.h"
#include "tessera/layout/random_layout.h"
#include "tessera/layout/view.h"

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
  EXPECT_EQ(format_layout("FRACTAL_Z_C04", {.extents = {20, 5, 3, 3}}).error().message,
            "FRACTAL_Z_C04 of 5 channels, at most 4");
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

TEST(Formats, AlignedRowsAreMultiplesOf32Bytes) {
  EXPECT_EQ(shape("ND_ALIGN", {.extents = {3, 20}}), (Index{3, 32}));
  EXPECT_EQ(shape("ND_ALIGN", {.dtype = DType::kI8, .extents = {2, 3, 33}}), (Index{2, 3, 64}));
  EXPECT_EQ(numbered("ND_ALIGN", {.extents = {2, 3}})[16], 4);
}

TEST(Formats, FixedFractalsHoldAnyType) {
  for (const int64_t c0 : {2, 4, 8, 16, 32})
    EXPECT_EQ(
        shape(fmt::format("FRACTAL_NZ_C0_{}", c0), {.dtype = DType::kF32, .extents = {17, 64}}),
        (Index{64 / c0, 2, 16, c0}));
}

// A tile is 16 rows of 64 bytes; a row of B holds 16 columns of 4 bytes each.
TEST(Formats, AmxTilesAreKibibytes) {
  EXPECT_EQ(shape("AMX_A", {.dtype = DType::kBF16, .extents = {20, 40}}), (Index{2, 2, 16, 32}));
  EXPECT_EQ(shape("AMX_A", {.dtype = DType::kI8, .extents = {20, 40}}), (Index{2, 1, 16, 64}));
  EXPECT_EQ(shape("AMX_C", {.dtype = DType::kF32, .extents = {20, 40}}), (Index{2, 3, 16, 16}));
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kI8, DType::kU8}) {
    const BoundLayout b = bind("AMX_B", {.dtype = dtype, .extents = {70, 33}});
    const int64_t bytes = bits_of(dtype) / 8, depth = 64 / bytes, word = 4 / bytes;
    EXPECT_EQ(b.bytes().value, (70 + depth - 1) / depth * 3 * 1024);
    for_each_index(b.extents(), [&](const Index& i) {
      const auto [k, n] = std::pair(i[0], i[1]);
      const int64_t tile = k / depth * 3 + n / 16;
      const int64_t row = k % depth / word, column = n % 16 * word + k % word;
      EXPECT_EQ(b.offset(i) * bytes, tile * 1024 + row * 64 + column * bytes);
    });
  }
  EXPECT_EQ(format_layout("AMX_A", {.dtype = DType::kF32, .extents = {4, 4}}).error().message,
            "AMX_A holds types of 8 or 16 bits, f32 has 32");
}

// Bits 4 and up of an address are exchanged with bits 7 and up, as many as a row has pieces of 16
// bytes; then 8 rows of one piece lie in different banks.
TEST(Formats, SwizzlesExchangeBitsOfTheAddress) {
  struct Case {
    const char* name;
    int64_t span, mask;
  };
  for (const Case& c : {Case{"SWIZZLE_128B", 128, 7},
                        {"SWIZZLE_64B", 64, 3},
                        {"SWIZZLE_32B", 32, 1},
                        {"CORE_MATRIX", 16, 0}})
    for (const DType dtype : {DType::kF16, DType::kF32, DType::kF8E4M3FN}) {
      const BoundLayout b = bind(c.name, {.dtype = dtype, .extents = {19, 150}});
      const int64_t bytes = bits_of(dtype) / 8, row = c.span / bytes;
      for_each_index(b.extents(), [&](const Index& i) {
        const int64_t plain = (i[1] / row * 24 + i[0]) * c.span + i[1] % row * bytes;
        EXPECT_EQ(b.offset(i) * bytes, plain ^ ((plain >> 7 & c.mask) << 4)) << c.name;
      });
      for (int64_t k = 0; k < 150; k += 16 / bytes) {
        uint32_t banks = 0;
        for (int64_t m = 8; m < 16; ++m)
          banks |= uint32_t{15} << b.offset(Index{m, k}) * bytes % 128 / 4;
        EXPECT_EQ(banks, ~uint32_t{0}) << c.name << ", column " << k;
      }
    }
}

TEST(Formats, TpuTilesAreXlasDefault) {
  const auto same = [](const FormatRequest& request, std::string_view xla) {
    const BoundLayout own = bind("TPU_TILED", request);
    const BoundLayout other =
        *BoundLayout::bind(*layout_from(xla, request), request.dtype, request.extents);
    return *same_places(own, other);
  };
  EXPECT_TRUE(same({.dtype = DType::kF32, .extents = {20, 300}}, "{1,0:T(8,128)}"));
  EXPECT_TRUE(same({.dtype = DType::kBF16, .extents = {20, 300}}, "{1,0:T(8,128)(2,1)}"));
  EXPECT_TRUE(same({.dtype = DType::kI8, .extents = {3, 20, 300}}, "{2,1,0:T(8,128)(4,1)}"));
  EXPECT_TRUE(same({.dtype = DType::kF32, .extents = {2, 300}}, "{1,0:T(2,128)}"));
  EXPECT_TRUE(same({.dtype = DType::kF32, .extents = {3, 300}}, "{1,0:T(4,128)}"));
  EXPECT_FALSE(same({.dtype = DType::kF32, .extents = {20, 300}}, "{1,0:T(8,128)(2,1)}"));
  // The tax: f32 is padded to 8 x 128.
  EXPECT_EQ(bind("TPU", {.dtype = DType::kF32, .extents = {9, 129}}).places(), 16 * 256);
}

TEST(Formats, AreFoundByAnyName) {
  EXPECT_EQ(find_format("nz"), find_format("Fractal_NZ"));
  EXPECT_EQ(find_format("5hd")->name, "NC1HWC0");
  EXPECT_EQ(find_format("nope"), nullptr);
  for (const FormatInfo& format : formats()) {
    EXPECT_EQ(find_format(format.name)->name, format.name);
    EXPECT_EQ(find_format(format.alias.empty() ? format.name : format.alias)->name, format.name);
  }
}

TEST(Formats, AreReadHoweverTheyAreWritten) {
  const FormatRequest request{.extents = {20, 28}};
  const std::string nz = "mn: n/16 m/16 m%16 n%16";
  EXPECT_EQ(layout_from("nz", request)->to_string(), nz);
  EXPECT_EQ(layout_from(nz, request)->to_string(), nz);
  EXPECT_EQ(layout_from("n m", {.extents = {2, 3}, .letters = "mn"})->to_string(), "mn: n m");
  EXPECT_EQ(layout_from("{0,1}", request)->to_string(), "ab: b a");
  EXPECT_EQ(layout_from("f16[20,28]{0,1}", request)->to_string(), "ab: b a");
  EXPECT_EQ(layout_from("xm: m[0:3]|m[3:5] x", request)->to_string(), "xm: m[0:3]|m[3:5] x");
  const auto says = [&](std::string_view text, std::string_view part) {
    const auto layout = layout_from(text, request);
    ASSERT_FALSE(layout) << text;
    EXPECT_NE(layout.error().message.find(part), std::string::npos) << layout.error().message;
  };
  says("n m", "does not name its logical axes");
  says("f32[20,28]{1,0}", "of another type than f16[20,28]");
  says("f16[20,29]{1,0}", "of another type");
  says("{1,0:E(4)}", "elements of 4 bits, f16 has 16");
  says("fractal", "no layout format 'fractal'; there is FRACTAL_NZ");
  says("", "does not name its logical axes");
}

// Sizes that a format may not take are left out by the format itself.
std::vector<std::pair<std::string_view, BoundLayout>> all_formats(DType dtype,
                                                                  const Index& extents) {
  std::vector<std::pair<std::string_view, BoundLayout>> layouts;
  for (const FormatInfo& format : formats()) {
    FormatRequest request{.dtype = dtype, .extents = extents};
    const int64_t last = extents.empty() ? 0 : extents.back();
    if (last % 4 == 0) request.hidden = last / 4;
    if (extents.size() == 2) request.input = std::max<int64_t>(extents[0] - request.hidden, 0);
    const Result<Layout> layout = format_layout(format.name, request);
    if (!layout) continue;
    EXPECT_EQ(*Layout::parse(layout->to_string()), *layout);
    const Result<BoundLayout> bound = BoundLayout::bind(*layout, dtype, extents);
    EXPECT_TRUE(bound) << format.name << ": " << bound.error().message;
    if (bound) layouts.emplace_back(format.name, *bound);
  }
  return layouts;
}

TEST(Formats, EveryPairConvertsWithoutLoss) {
  const std::vector<Index> shapes = {{},
                                     {1},
                                     {36},
                                     {0, 16},
                                     {1, 1},
                                     {1, 64},
                                     {15, 31},
                                     {16, 32},
                                     {17, 33},
                                     {8, 128},
                                     {30, 20},
                                     {20, 28},
                                     {2, 17, 15},
                                     {3, 1, 65},
                                     {2, 0, 16},
                                     {1, 3, 5, 7},
                                     {2, 16, 1, 1},
                                     {17, 33, 2, 3},
                                     {16, 15, 3, 1},
                                     {33, 4, 1, 2},
                                     {0, 3, 2, 2},
                                     {2, 17, 3, 2, 1},
                                     {16, 5, 1, 2, 3}};
  constexpr DType kTypes[] = {DType::kI4, DType::kI8, DType::kBF16, DType::kF32, DType::kF64};
  std::set<std::string_view> seen;
  size_t round = 0;
  for (const Index& extents : shapes)
    for (const DType dtype : kTypes) {
      const auto layouts = all_formats(dtype, extents);
      const BoundLayout rows = *BoundLayout::bind(
          Layout::plain(dtype, static_cast<int>(extents.size())), dtype, extents);
      Buffer values(static_cast<size_t>(rows.bytes().value));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::byte>(i * 151 + 7);
      if (rows.bits() < 8 && rows.elements() % 2 != 0) values.back() = std::byte{1};
      std::vector<Buffer> held;
      for (const auto& [name, layout] : layouts) {
        seen.insert(name);
        held.emplace_back(static_cast<size_t>(layout.bytes().value), std::byte{0x5a});
        ASSERT_TRUE(convert(rows, values, layout, held.back()));
        EXPECT_TRUE(*padding_is_zero(layout, held.back())) << name;
        Buffer back(values.size(), std::byte{0x5a});
        ASSERT_TRUE(convert(layout, held.back(), rows, back));
        EXPECT_EQ(back, values) << name << " of " << fmt::format("{}", fmt::join(extents, "x"));
      }
      // Each pair meets each type in some shapes and each shape in some types.
      if (round++ % std::size(kTypes) != (&extents - shapes.data()) % std::size(kTypes)) continue;
      for (size_t a = 0; a < layouts.size(); ++a)
        for (size_t b = 0; b < layouts.size(); ++b) {
          Buffer converted(held[b].size(), std::byte{0x5a});
          ASSERT_TRUE(convert(layouts[a].second, held[a], layouts[b].second, converted));
          ASSERT_EQ(converted, held[b])
              << layouts[a].first << " to " << layouts[b].first << ", " << name_of(dtype) << " of "
              << fmt::format("{}", fmt::join(extents, "x"));
        }
    }
  EXPECT_EQ(seen.size(), formats().size());
}

TEST(Formats, SamplesAreTaken) {
  for (const FormatInfo& format : formats()) {
    const DType dtype = format.name == "AMX_C" ? DType::kF32 : DType::kF16;
    const FormatRequest request = sample_request(format, dtype);
    const auto layout = format_layout(format.name, request);
    ASSERT_TRUE(layout) << layout.error().message;
    EXPECT_TRUE(BoundLayout::bind(*layout, dtype, request.extents)) << format.name;
  }
}

TEST(Formats, CoincideForSmallSizes) {
  const FormatRequest request{.extents = {2, 16, 1, 1}};
  const auto names = [&](const FormatRequest& r, std::string_view format) {
    return *matching_formats(bind(format, r), r);
  };
  EXPECT_EQ(
      names(request, "NC1HWC0"),
      (std::vector<std::string_view>{"ND", "NCHW", "NHWC", "NC1HWC0", "C1HWNC0", "FRACTAL_Z"}));
  EXPECT_EQ(names({.extents = {20, 28}}, "NZ"),
            (std::vector<std::string_view>{"FRACTAL_NZ", "FRACTAL_NZ_L0C", "FRACTAL_NZ_C0_16"}));
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
