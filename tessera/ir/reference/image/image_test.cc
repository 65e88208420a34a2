#include <gtest/gtest.h>

#include <string>

#include "tessera/ir/reference/image/decode.h"

namespace tessera::ir::reference::image {
namespace {

constexpr Bytes kPlenty{1 << 20};

Result<Picture> decode_text(const std::string& file, Bytes limit = kPlenty) {
  return decode({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, limit);
}
std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (int v : values) text.push_back(static_cast<char>(v));
  return text;
}
std::string le(uint64_t v, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text.push_back(static_cast<char>(i < 8 ? v >> (8 * i) : 0));
  return text;
}
// A bitmap: header of 40 bytes, then `rest` (palette and pixels); pixels begin at `offset`.
std::string bmp(uint32_t width, uint32_t height, int bits, uint32_t offset,
                const std::string& rest) {
  return "BM" + le(0, 8) + le(offset, 4) + le(40, 4) + le(width, 4) + le(height, 4) + le(1, 2) +
         le(static_cast<uint32_t>(bits), 2) + le(0, 24) + rest;
}

TEST(Pnm, ReadsTextAndBinary) {
  auto p = decode_text("P2 # a comment\n3 1 10\n0 5 10\n");
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(p->channels, 1);
  EXPECT_EQ(p->samples, (std::vector<uint8_t>{0, 128, 255}));
  p = decode_text("P6\n1 2\n255\n" + bytes({1, 2, 3, 4, 5, 6}));
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(p->height, 2);
  EXPECT_EQ(p->samples, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  p = decode_text("P5 1 1 65535\n" + bytes({255, 255}));
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(p->samples, (std::vector<uint8_t>{255}));
  p = decode_text("P4 9 1\n" + bytes({0x80, 0x80}));
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(p->samples, (std::vector<uint8_t>{0, 255, 255, 255, 255, 255, 255, 255, 0}));
  EXPECT_EQ(decode_text("P1 2 1\n01")->samples, (std::vector<uint8_t>{255, 0}));
}

TEST(Bmp, ReadsRowsFromTheBottomAndPalettes) {
  // Rows are padded to 4 bytes; pixels are blue, green, red.
  auto p = decode_text(bmp(1, 2, 24, 54, bytes({3, 2, 1, 0, 6, 5, 4, 0})));
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(p->samples, (std::vector<uint8_t>{4, 5, 6, 1, 2, 3}));
  p = decode_text(bmp(1, static_cast<uint32_t>(-2), 24, 54, bytes({3, 2, 1, 0, 6, 5, 4, 0})));
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(p->samples, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  p = decode_text(bmp(3, 1, 1, 62, bytes({3, 2, 1, 0, 6, 5, 4, 0, 0x40, 0, 0, 0})));
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(p->samples, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 1, 2, 3}));
}

TEST(Decode, RefusesWhatIsDamagedOrTooLarge) {
  for (const char* text :
       {"", "BM", "P6", "P6 1 1 255\n", "P2 1 1 9 10", "P5 -1 1 1 ", "\xff\xd8\xff", "GIF89a",
        "RIFF....WEBP", "\x89PNG\r\n\x1a\n", "\xff\x4f\xff\x51"})
    EXPECT_EQ(decode_text(text).error().code, Code::kDataLoss) << text;
  EXPECT_EQ(decode_text(std::string("II*\0\x08\0\0\0", 8)).error().code, Code::kDataLoss);
  EXPECT_EQ(decode_text(std::string("\0\0\0\x0cjP  \r\n", 10)).error().code, Code::kDataLoss);
  EXPECT_EQ(decode_text("P6 100000 100000 255\n").error().code, Code::kResourceExhausted);
  // A directory of width, height, a strip's offset and its size: 2^16 by 2^16 pixels in 1 byte.
  auto entry = [](uint32_t tag, uint32_t value) {
    return le(tag, 2) + le(4, 2) + le(1, 4) + le(value, 4);
  };
  const std::string tiff = "II*" + le(0, 1) + le(8, 4) + le(4, 2) + entry(256, 1 << 16) +
                           entry(257, 1 << 16) + entry(273, 8) + entry(279, 1) + le(0, 4);
  EXPECT_EQ(decode_text(tiff).error().code, Code::kResourceExhausted);
  EXPECT_EQ(decode_text(bmp(0x7fffffff, 0x7fffffff, 24, 54, "")).error().code, Code::kDataLoss);
  EXPECT_EQ(decode_text(bmp(1, 0x80000000u, 24, 54, "")).error().code, Code::kDataLoss);
}

TEST(ToGrey, WeighsColours) {
  EXPECT_EQ(to_grey(Picture{1, 3, 3, {255, 0, 0, 0, 255, 0, 255, 255, 255}}).samples,
            (std::vector<uint8_t>{76, 150, 255}));
}

}  // namespace
}  // namespace tessera::ir::reference::image
