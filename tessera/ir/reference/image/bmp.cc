// Windows bitmaps without compression: palettes of 1, 4 or 8 bits, 16, 24 and 32 bits, masks of
// bits.
#include <bit>

#include "tessera/ir/reference/image/decode.h"

namespace tessera::ir::reference::image {
namespace {

class Reader {
 public:
  explicit Reader(Encoded file) : file_(file) {}
  // Little-endian; 0 beyond the end.
  uint32_t u(size_t offset, size_t bytes) const {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes && offset + i < file_.size(); ++i)
      value |= static_cast<uint32_t>(file_[offset + i]) << (8 * i);
    return value;
  }
  int32_t i32(size_t offset) const { return static_cast<int32_t>(u(offset, 4)); }

 private:
  Encoded file_;
};

// The bits of a mask as 8 bits.
uint8_t channel(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const uint64_t most = mask >> shift;
  return static_cast<uint8_t>((static_cast<uint64_t>((pixel & mask) >> shift) * 255 + most / 2) /
                              most);
}

}  // namespace

Result<Picture> decode_bmp(Encoded file, Bytes limit) {
  const Reader in(file);
  const uint32_t pixels = in.u(10, 4), header = in.u(14, 4);
  if (file.size() < 26 || (header != 12 && header < 40))
    return error(Code::kDataLoss, "bmp: a header of {} bytes", header);
  const bool core = header == 12;
  const int64_t width = core ? in.u(18, 2) : in.i32(18),
                signed_height = core ? static_cast<int64_t>(in.u(20, 2)) : in.i32(22);
  const int64_t height = signed_height < 0 ? -signed_height : signed_height;
  const uint32_t bits = in.u(core ? 24 : 28, 2), compression = core ? 0 : in.u(30, 4);
  if (compression != 0 && compression != 3)
    return error(Code::kUnimplemented, "bmp: compression {}", compression);
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
    return error(Code::kDataLoss, "bmp: {} bits per pixel", bits);
  TRY_ASSIGN(Picture picture, canvas(height, width, 3, limit));
  const int64_t stride = (width * bits + 31) / 32 * 4;
  if (static_cast<int64_t>(file.size()) < pixels + stride * height)
    return error(Code::kDataLoss, "bmp: {} bytes, need {}", file.size(), pixels + stride * height);
  uint32_t mask[3] = {0xff0000, 0xff00, 0xff};
  if (bits == 16) mask[0] = 0x7c00, mask[1] = 0x3e0, mask[2] = 0x1f;
  if (compression == 3)
    for (size_t i = 0; i < 3; ++i) mask[i] = in.u(54 + 4 * i, 4);
  const size_t palette = 14 + header + (compression == 3 && header == 40 ? 12 : 0),
               entry = core ? 3 : 4;
  for (int64_t y = 0; y < height; ++y) {
    const size_t from = pixels + static_cast<size_t>(stride * y);
    uint8_t* to = picture.row(signed_height < 0 ? y : height - 1 - y);
    for (int64_t x = 0; x < width; ++x, to += 3) {
      const size_t bit = static_cast<size_t>(x) * bits;
      if (bits <= 8) {
        const uint32_t index =
            (in.u(from + bit / 8, 1) >> (8 - bits - bit % 8)) & ((1u << bits) - 1);
        for (size_t i = 0; i < 3; ++i)
          to[i] = static_cast<uint8_t>(in.u(palette + index * entry + 2 - i, 1));
      } else {
        const uint32_t pixel = in.u(from + bit / 8, bits / 8);
        for (size_t i = 0; i < 3; ++i) to[i] = channel(pixel, mask[i]);
      }
    }
  }
  return picture;
}

}  // namespace tessera::ir::reference::image
