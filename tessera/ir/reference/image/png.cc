// PNG by libpng's simplified interface.
#include <png.h>

#include "tessera/ir/reference/image/decode.h"

namespace tessera::ir::reference::image {

Result<Picture> decode_png(Encoded file, Bytes limit) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_memory(&png, file.data(), file.size()))
    return error(Code::kDataLoss, "png: {}", png.message);
  const bool colour = (png.format & PNG_FORMAT_FLAG_COLOR) != 0,
             alpha = (png.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  // Alpha is read and dropped: without it in the buffer, libpng would blend.
  png.format = colour ? (alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB)
                      : (alpha ? PNG_FORMAT_GA : PNG_FORMAT_GRAY);
  const int channels = colour ? 3 : 1, stored = channels + alpha;
  auto picture = canvas(png.height, png.width, stored, limit);
  if (!picture || !png_image_finish_read(&png, nullptr, picture->samples.data(), 0, nullptr)) {
    Result<Picture> failed = picture
                                 ? Result<Picture>(error(Code::kDataLoss, "png: {}", png.message))
                                 : std::move(picture);
    png_image_free(&png);
    return failed;
  }
  if (alpha) {
    const size_t pixels = picture->samples.size() / static_cast<size_t>(stored);
    for (size_t i = 0; i < pixels; ++i)
      for (size_t k = 0; k < static_cast<size_t>(channels); ++k)
        picture->samples[i * static_cast<size_t>(channels) + k] =
            picture->samples[i * static_cast<size_t>(stored) + k];
    picture->samples.resize(pixels * static_cast<size_t>(channels));
    picture->channels = channels;
  }
  return picture;
}

}  // namespace tessera::ir::reference::image
