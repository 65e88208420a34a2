// Any bytes: a picture of the promised size or an error.
#include <cstdlib>

#include "tessera/ir/reference/image/decode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera::ir::reference::image;
  auto picture = decode({data, size}, tessera::Bytes(int64_t{1} << 24));
  if (picture && picture->samples.size() !=
                     static_cast<size_t>(picture->height * picture->width * picture->channels))
    std::abort();
  return 0;
}
