#include "tessera/layout/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "tessera/layout/boxes.h"
#include "tessera/layout/random_layout.h"

namespace tessera::layout {
namespace {

using Index = std::vector<int64_t>;
using Buffer = std::vector<std::byte>;

BoundLayout bound(std::string_view text, Index extents, DType dtype) {
  return *BoundLayout::bind(*Layout::parse(text), dtype, extents);
}

Buffer buffer_for(const BoundLayout& layout, std::byte value) {
  return Buffer(static_cast<size_t>(layout.bytes().value) + 3, value);
}

// The element with row-major number k.
ElementBits pattern(int64_t k, int bits) {
  const uint64_t x = static_cast<uint64_t>(k + 1) * 0x9e3779b97f4a7c15u;
  if (bits == 128) return {x, ~x};
  return {bits == 64 ? x : x >> (64 - bits), 0};
}

void store(const BoundLayout& layout, Buffer* buffer) {
  int64_t k = 0;
  for_each_index(layout.extents(), [&](const Index& i) {
    write_element(*buffer, layout.bits(), layout.offset(i), pattern(k++, layout.bits()));
  });
}

// at(t, i) == pattern(i); padding is zero if the layout says so, else still `before`; gaps are
// still `before`.
void check(const BoundLayout& layout, const Buffer& buffer, std::byte before) {
  const int bits = layout.bits();
  int64_t k = 0;
  for_each_index(layout.extents(), [&](const Index& i) {
    ASSERT_EQ(read_element(buffer, bits, layout.offset(i)), pattern(k, bits)) << "element " << k;
    ++k;
  });
  Buffer expected(buffer.size(), before);
  if (layout.layout().padding() == Padding::kZero) {
    if (bits < 8 && layout.is_packed() && layout.places() > 0 && layout.offset() * bits % 8 == 0)
      std::fill(expected.begin() + layout.offset() * bits / 8,
                expected.begin() + layout.bytes().value, std::byte{0});
    Index sizes(layout.physical_extents().begin(), layout.physical_extents().end());
    for_each_index(sizes, [&](const Index& place) {
      write_element(
          expected, bits,
          std::inner_product(place.begin(), place.end(), layout.strides().begin(), layout.offset()),
          {});
    });
  }
  store(layout, &expected);
  ASSERT_EQ(buffer, expected);
}

Stored stored(const Layout& layout, const Index& extents, DType dtype, RandomLayouts* random) {
  Stored result{.layout = layout};
  if (random->below(3) != 0) return result;
  const BoundLayout packed = *BoundLayout::bind(layout, dtype, extents);
  Index strides(packed.physical_extents().size());
  int64_t stride = 1 + random->below(2);
  for (size_t a = strides.size(); a-- > 0; stride += random->below(3)) {
    const int64_t size = std::max<int64_t>(packed.physical_extents()[a], 1);
    strides[a] = stride;
    if (random->below(4) == 0) {
      strides[a] = -stride;
      result.offset += stride * (size - 1);
    }
    stride *= size;
  }
  result.offset += random->below(5);
  result.strides = strides;
  return result;
}

// @post at(convert(t, L), i) == at(t, i), there and back, by the whole and by parts
TEST(Convert, LosslessBetweenRandomLayouts) {
  RandomLayouts random(7);
  int done = 0;
  for (int round = 0; round < 3000; ++round) {
    const Index extents = random.extents(random.below(4));
    const DType dtype = random.dtype();
    const Layout layouts[] = {random.layout(extents), random.layout(extents)};
    SCOPED_TRACE(fmt::format("{} -> {} of {} {}", layouts[0].to_string(), layouts[1].to_string(),
                             name_of(dtype), fmt::join(extents, "x")));
    const BoundLayout a =
        *BoundLayout::bind(stored(layouts[0], extents, dtype, &random), dtype, extents);
    const BoundLayout b =
        *BoundLayout::bind(stored(layouts[1], extents, dtype, &random), dtype, extents);
    if (a.bytes() > Bytes(100000) || b.bytes() > Bytes(100000)) continue;
    ++done;
    const std::byte junk{0x5a};
    Buffer source = buffer_for(a, junk);
    store(a, &source);
    Buffer target = buffer_for(b, junk);
    ASSERT_TRUE(convert(a, source, b, target));
    check(b, target, junk);
    Buffer back = buffer_for(a, junk);
    ASSERT_TRUE(convert(b, target, a, back));
    check(a, back, junk);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(done, 2000);
}

// The copies of a conversion, tile by tile from the last to the first.
void run_backwards(const std::vector<Copy>& copies, Isa isa, const Buffer& source, Buffer* target) {
  int64_t tiles = 0;
  for (const Copy& c : copies) tiles += c.tiles;
  while (tiles-- > 0) run_copies(copies, isa, source.data(), target->data(), tiles, tiles + 1);
}

// Both ways, by every instruction set, through the caches and past them. Returns whether the
// layouts come apart into boxes.
bool moves_in_boxes(const BoundLayout& a, const BoundLayout& b) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    const auto boxes = boxes_of(from, to);
    if (!boxes || boxes->moved.empty()) return false;
    Buffer source = buffer_for(from, std::byte{0x5a});
    store(from, &source);
    for (const Isa isa : available_isas())
      for (const bool streamed : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {}", name_of(isa), streamed ? "streamed" : "cached"));
        Buffer target = buffer_for(to, std::byte{0x33});
        if (!boxes->padded) Conversion::make(from, to)->fill(target);
        run_backwards(plan_copies(*boxes, streamed), isa, source, &target);
        check(to, target, std::byte{0x33});
        if (testing::Test::HasFatalFailure()) return true;
      }
  }
  return true;
}

TEST(Convert, BoxesMoveWhatRandomLayoutsHold) {
  RandomLayouts random(11);
  int done = 0;
  for (int round = 0; round < 4000; ++round) {
    const Index extents = random.extents(1 + random.below(3));
    const DType dtype = random.dtype();
    const Layout layouts[] = {random.layout(extents), random.layout(extents)};
    SCOPED_TRACE(fmt::format("{} -> {} of {} {}", layouts[0].to_string(), layouts[1].to_string(),
                             name_of(dtype), fmt::join(extents, "x")));
    const BoundLayout a =
        *BoundLayout::bind(stored(layouts[0], extents, dtype, &random), dtype, extents);
    const BoundLayout b =
        *BoundLayout::bind(stored(layouts[1], extents, dtype, &random), dtype, extents);
    if (a.bytes() > Bytes(20000) || b.bytes() > Bytes(20000)) continue;
    done += moves_in_boxes(a, b);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(done, 700);
}

TEST(Convert, BoxesMoveWhatHardwareWants) {
  constexpr std::string_view kMatrices[] = {
      "mn: n m",   "mn: n/16 m/16 m%16 n%16", "mn: m/2 n m%2",          "mn: m/4 n m%4",
      "mn: (m n)", "mn: m/16 n/3 n%3 m%16",   "mn: m/32 n/16 n%16 m%32"};
  constexpr std::string_view kImages[] = {"nchw: n h w c", "nchw: n c/16 h w c%16",
                                          "nchw: (c/16 h w) n/16 n%16 c%16", "nchw: c h w n"};
  const auto all = [](std::string_view plain, std::span<const std::string_view> texts,
                      std::span<const Index> sizes) {
    for (const DType dtype : {DType::kI8, DType::kF16, DType::kF32, DType::kC128})
      for (const Index& extents : sizes)
        for (const std::string_view text : texts) {
          SCOPED_TRACE(fmt::format("{} of {} {}", text, name_of(dtype), fmt::join(extents, "x")));
          EXPECT_TRUE(moves_in_boxes(bound(plain, extents, dtype), bound(text, extents, dtype)));
          if (testing::Test::HasFatalFailure()) return;
        }
  };
  const Index matrices[] = {{1, 1},   {2, 3},   {16, 16},  {17, 15},
                            {64, 64}, {31, 67}, {150, 97}, {1037, 7}};
  all("mn: m n", kMatrices, matrices);
  const Index images[] = {{1, 3, 5, 7}, {2, 16, 3, 3}, {17, 33, 1, 9}, {2, 4, 6, 11}};
  all("nchw: n c h w", kImages, images);
}

// More pages than are taken at a time.
TEST(Convert, BoxesMoveInBlocks) {
  const Index extents = {701, 503};
  EXPECT_TRUE(moves_in_boxes(bound("mn: m n", extents, DType::kC128),
                             bound("mn: n m", extents, DType::kC128)));
}

TEST(Convert, PartsWriteWhatTheWholeWrites) {
  const std::pair<const char*, Index> cases[] = {{"nchw: n c/16 h w c%16", {2, 19, 37, 41}},
                                                 {"nchw: n h w c", {3, 17, 40, 23}},
                                                 {"nchw: w c n h", {2, 64, 33, 35}},
                                                 {"nchw: (n c)/7 h w (n c)%7", {3, 33, 20, 31}},
                                                 {"nchw: c h w n/16 n%16", {70, 3, 30, 30}},
                                                 {"nchw: n c h (w/8)^(h%8) w%8", {1, 5, 100, 130}}};
  for (const auto& [text, extents] : cases) {
    const BoundLayout from = bound("nchw: n c h w", extents, DType::kF16);
    const BoundLayout to = bound(text, extents, DType::kF16);
    const Conversion conversion = *Conversion::make(from, to);
    EXPECT_GT(conversion.parts(), 1);
    Buffer source = buffer_for(from, std::byte{0});
    store(from, &source);
    Buffer target = buffer_for(to, std::byte{0x77});
    conversion.fill(target);
    for (int part = conversion.parts(); part-- > 0;) conversion.run(source, target, part, 1);
    check(to, target, std::byte{0x77});
    Buffer back = buffer_for(from, std::byte{0x77});
    ASSERT_TRUE(convert(to, target, from, back));
    check(from, back, std::byte{0x77});
  }
}

TEST(Convert, TablesLongerThanATile) {
  const Index extents = {3, 10007};
  const BoundLayout rows = bound("mn: m n", extents, DType::kI8);
  for (const char* text : {"mn: n m", "mn: n/16 m n%16", "mn: (n m)/13 (n m)%13",
                           "mn: (n[0:5000]|n[5000:10007])/64 m (n[0:5000]|n[5000:10007])%64"}) {
    const BoundLayout other = bound(text, extents, DType::kI8);
    Buffer source = buffer_for(rows, std::byte{0});
    store(rows, &source);
    Buffer target = buffer_for(other, std::byte{1});
    ASSERT_TRUE(convert(rows, source, other, target));
    check(other, target, std::byte{1});
  }
}

TEST(Convert, RefusesWhatDoesNotMatch) {
  const BoundLayout a = bound("mn: m n", {3, 4}, DType::kF16);
  Buffer small(23);
  Buffer right(24);
  Buffer other(24);
  EXPECT_FALSE(convert(a, right, bound("mn: n m", {4, 3}, DType::kF16), other));
  EXPECT_FALSE(convert(a, right, bound("mn: n m", {3, 4}, DType::kBF16), other));
  EXPECT_FALSE(convert(a, small, bound("mn: n m", {3, 4}, DType::kF16), other));
  EXPECT_FALSE(convert(a, right, bound("mn: n m", {3, 4}, DType::kF16), small));
  EXPECT_FALSE(convert(a, right, bound("mn: n m", {3, 4}, DType::kF16), right));
  EXPECT_TRUE(convert(a, right, bound("mn: n m", {3, 4}, DType::kF16), other));
}

TEST(Convert, PaddingIsWrittenAndChecked) {
  RandomLayouts random(7);
  for (int round = 0; round < 300; ++round) {
    const Index extents = random.extents(random.below(4));
    const DType dtype = random.dtype();
    const Layout layout = random.layout(extents).with_padding(Padding::kAny);
    SCOPED_TRACE(layout.to_string());
    const BoundLayout b =
        *BoundLayout::bind(stored(layout, extents, dtype, &random), dtype, extents);
    if (b.bytes() > Bytes(20000)) continue;
    Buffer buffer = buffer_for(b, std::byte{0xff});
    store(b, &buffer);
    ASSERT_EQ(*padding_is_zero(b, buffer), b.padding() == 0);
    ASSERT_TRUE(zero_padding(b, buffer));
    ASSERT_TRUE(*padding_is_zero(b, buffer));
    int64_t k = 0;
    for_each_index(extents, [&](const Index& i) {
      ASSERT_EQ(read_element(buffer, b.bits(), b.offset(i)), pattern(k++, b.bits()));
    });
  }
}

}  // namespace
}  // namespace tessera::layout
