// Image files to pixels: BMP, JPEG, JPEG 2000, PNG, PNM, TIFF, WebP, told apart by their first
// bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/units.h"

namespace tessera::ir::reference::image {

// Rows from the top, samples of a pixel together: grey, or red, green and blue.
struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 3;  // 1 or 3
  std::vector<uint8_t> samples;

  uint8_t* row(int64_t y) { return samples.data() + y * width * channels; }
};

using Encoded = std::span<const uint8_t>;

// The first picture of a file. Alpha is dropped, palettes are looked up, deeper samples keep their
// upper 8 bits. kDataLoss for what cannot be decoded, kUnimplemented for kinds that are not,
// kResourceExhausted where the pixels take more than `limit`.
Result<Picture> decode(Encoded file, Bytes limit);

// ITU-R BT.601 luma in 16 fractional bits, rounded.
Picture to_grey(const Picture& picture);

// A zeroed picture within the limit. For decoders.
Result<Picture> canvas(int64_t height, int64_t width, int channels, Bytes limit);

// One format: whether the file begins like one, and how to decode it. decode.cc lists them.
Result<Picture> decode_bmp(Encoded file, Bytes limit);
Result<Picture> decode_jpeg(Encoded file, Bytes limit);
Result<Picture> decode_jpeg2000(Encoded file, Bytes limit);
Result<Picture> decode_png(Encoded file, Bytes limit);
Result<Picture> decode_pnm(Encoded file, Bytes limit);
Result<Picture> decode_tiff(Encoded file, Bytes limit);
Result<Picture> decode_webp(Encoded file, Bytes limit);

}  // namespace tessera::ir::reference::image
