#include "tessera/ir/reference/image/decode.h"

#include <algorithm>
#include <new>
#include <string_view>

namespace tessera::ir::reference::image {
namespace {

using std::string_view_literals::operator""sv;

bool at(Encoded file, size_t offset, std::string_view bytes) {
  return file.size() >= offset + bytes.size() &&
         std::equal(bytes.begin(), bytes.end(), file.begin() + static_cast<int64_t>(offset),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

struct Format {
  bool (*matches)(Encoded file);
  Result<Picture> (*decode)(Encoded file, Bytes limit);
};

constexpr Format kFormats[] = {
    {[](Encoded f) { return at(f, 0, "BM"); }, decode_bmp},
    {[](Encoded f) { return at(f, 0, "\xff\xd8\xff"); }, decode_jpeg},
    {[](Encoded f) {
       return at(f, 0, "\x00\x00\x00\x0cjP  \r\n"sv) || at(f, 0, "\xff\x4f\xff\x51");
     },
     decode_jpeg2000},
    {[](Encoded f) { return at(f, 0, "\x89PNG\r\n\x1a\n"); }, decode_png},
    {[](Encoded f) { return f.size() > 2 && f[0] == 'P' && f[1] >= '1' && f[1] <= '6'; },
     decode_pnm},
    {[](Encoded f) { return at(f, 0, "II*\0"sv) || at(f, 0, "MM\0*"sv); }, decode_tiff},
    {[](Encoded f) { return at(f, 0, "RIFF") && at(f, 8, "WEBP"); }, decode_webp},
};

}  // namespace

Result<Picture> decode(Encoded file, Bytes limit) {
  for (const Format& format : kFormats)
    if (format.matches(file)) return format.decode(file, limit);
  return error(Code::kDataLoss, "{} bytes in none of the known image formats", file.size());
}

Result<Picture> canvas(int64_t height, int64_t width, int channels, Bytes limit) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (height < 1 || width < 1 || height > kMost || width > kMost)
    return error(Code::kDataLoss, "an image of {} by {} pixels", height, width);
  if (height > limit.value / width / channels)
    return error(Code::kResourceExhausted,
                 "an image of {} by {} pixels is beyond the memory limit, {}", height, width,
                 to_string(limit));
  Picture picture{height, width, channels, {}};
  try {
    picture.samples.resize(static_cast<size_t>(height * width * channels));
  } catch (const std::bad_alloc&) {
    return error(Code::kResourceExhausted, "no memory for an image of {} by {} pixels", height,
                 width);
  }
  return picture;
}

Picture to_grey(const Picture& picture) {
  if (picture.channels == 1) return picture;
  Picture grey{picture.height, picture.width, 1, {}};
  grey.samples.reserve(picture.samples.size() / 3);
  for (size_t i = 0; i + 2 < picture.samples.size(); i += 3) {
    const uint8_t* p = picture.samples.data() + i;
    grey.samples.push_back(
        static_cast<uint8_t>((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16));
  }
  return grey;
}

}  // namespace tessera::ir::reference::image
