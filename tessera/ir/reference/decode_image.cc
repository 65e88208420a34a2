// decode_image: files to pixels.
#include <algorithm>

#include "tessera/ir/reference/image/decode.h"
#include "tessera/ir/reference/loops.h"

namespace tessera::ir::reference {
namespace {

// What cannot be decoded is an empty image; what is too large is an error.
Result<std::vector<Value>> decode_image(const Call& call) {
  const std::string format = call.attrs().s("format", "rgb");
  const int64_t channels = format == "grey" ? 1 : 3;
  auto decoded = image::decode(call.t(0).as<uint8_t>(), call.options.memory_limit);
  if (!decoded && decoded.error().code == Code::kResourceExhausted) return error(decoded.error());
  image::Picture picture = decoded ? *std::move(decoded) : image::Picture{};
  if (channels == 1) picture = image::to_grey(picture);
  TRY_ASSIGN(Tensor y, Tensor::make(DType::kU8, {picture.height, picture.width, channels}));
  auto to = y.mutable_as<uint8_t>();
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t channel = i % static_cast<size_t>(channels),
                 pixel = i / static_cast<size_t>(channels);
    const size_t from = format == "bgr" ? 2 - channel : channel;
    to[i] = picture.samples[picture.channels == 1 ? pixel : pixel * 3 + from];
  }
  return one(std::move(y));
}

constexpr Row kRows[] = {{"decode_image", decode_image}};

}  // namespace

std::span<const Row> decode_image_rows() { return kRows; }

}  // namespace tessera::ir::reference
