// WebP by libwebp.
#include <webp/decode.h>

#include "tessera/ir/reference/image/decode.h"

namespace tessera::ir::reference::image {

Result<Picture> decode_webp(Encoded file, Bytes limit) {
  int width = 0, height = 0;
  if (!WebPGetInfo(file.data(), file.size(), &width, &height))
    return error(Code::kDataLoss, "webp: no image in {} bytes", file.size());
  TRY_ASSIGN(Picture picture, canvas(height, width, 3, limit));
  if (!WebPDecodeRGBInto(file.data(), file.size(), picture.samples.data(), picture.samples.size(),
                         width * 3))
    return error(Code::kDataLoss, "webp: damaged pixels");
  return picture;
}

}  // namespace tessera::ir::reference::image
