// TIFF by libtiff, which turns every kind of samples into red, green, blue and alpha.
#include <algorithm>
#include <cstring>
#include <memory>

#include <tiffio.h>

#include "tessera/ir/reference/image/decode.h"

namespace tessera::ir::reference::image {
namespace {

// A file in memory, as libtiff's callbacks see it.
struct Source {
  Encoded file;
  uint64_t at = 0;
};

tmsize_t read(thandle_t handle, void* to, tmsize_t size) {
  auto& source = *static_cast<Source*>(handle);
  if (source.at >= source.file.size() || size < 0) return 0;
  const size_t count = std::min<size_t>(static_cast<size_t>(size), source.file.size() - source.at);
  std::memcpy(to, source.file.data() + source.at, count);
  source.at += count;
  return static_cast<tmsize_t>(count);
}
tmsize_t write(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek(thandle_t handle, toff_t offset, int whence) {
  auto& source = *static_cast<Source*>(handle);
  source.at = whence == SEEK_CUR   ? source.at + offset
              : whence == SEEK_END ? source.file.size() + offset
                                   : offset;
  return source.at;
}
int close(thandle_t) { return 0; }
toff_t size(thandle_t handle) { return static_cast<Source*>(handle)->file.size(); }
int silent(TIFF*, void*, const char*, const char*, va_list) { return 1; }

}  // namespace

Result<Picture> decode_tiff(Encoded file, Bytes limit) {
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  if (!options) return error(Code::kResourceExhausted, "tiff: no memory");
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), silent, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), silent, nullptr);
  TIFFOpenOptionsSetMaxSingleMemAlloc(
      options.get(), static_cast<tmsize_t>(std::min<int64_t>(limit.value, int64_t{1} << 40)));
  Source source{file, 0};
  const std::unique_ptr<TIFF, void (*)(TIFF*)> tiff(
      TIFFClientOpenExt("memory", "rm", &source, read, write, seek, close, size, nullptr, nullptr,
                        options.get()),
      TIFFClose);
  uint32_t width = 0, height = 0;
  if (!tiff || !TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) ||
      !TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height))
    return error(Code::kDataLoss, "tiff: no image in {} bytes", file.size());
  const Bytes half(limit.value / 2);
  TRY_ASSIGN(Picture picture, canvas(height, width, 3, half));
  TRY_ASSIGN(Picture words, canvas(height, width, 4, half));
  auto* raster = reinterpret_cast<uint32_t*>(words.samples.data());
  if (!TIFFReadRGBAImageOriented(tiff.get(), width, height, raster, ORIENTATION_TOPLEFT, 1))
    return error(Code::kDataLoss, "tiff: damaged pixels");
  for (size_t i = 0; i < static_cast<size_t>(width) * height; ++i) {
    picture.samples[3 * i] = static_cast<uint8_t>(TIFFGetR(raster[i]));
    picture.samples[3 * i + 1] = static_cast<uint8_t>(TIFFGetG(raster[i]));
    picture.samples[3 * i + 2] = static_cast<uint8_t>(TIFFGetB(raster[i]));
  }
  uint16_t photometric = PHOTOMETRIC_RGB;
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_PHOTOMETRIC, &photometric);
  return photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE
             ? to_grey(picture)
             : picture;
}

}  // namespace tessera::ir::reference::image
