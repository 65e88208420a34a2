// JPEG by libjpeg: accurate integer transform, smooth upsampling of colours.
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include "tessera/ir/reference/image/decode.h"

namespace tessera::ir::reference::image {
namespace {

// libjpeg reports errors by a call that must not return.
struct Failure {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

void on_error(j_common_ptr info) {
  auto* failure = reinterpret_cast<Failure*>(info->err);
  info->err->format_message(info, failure->message);
  std::longjmp(failure->jump, 1);
}
void on_message(j_common_ptr, int) {}

// Nothing with a destructor lives here between setjmp and what may jump back. Returns whether it
// went well.
bool read_header(jpeg_decompress_struct& jpeg, Failure& failure, Encoded file) {
  if (setjmp(failure.jump)) return false;
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, file.data(), file.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = jpeg.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  return true;
}

bool read_rows(jpeg_decompress_struct& jpeg, Failure& failure, Picture& picture) {
  if (setjmp(failure.jump)) return false;
  jpeg_start_decompress(&jpeg);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = picture.row(jpeg.output_scanline);
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  return true;
}

}  // namespace

Result<Picture> decode_jpeg(Encoded file, Bytes limit) {
  jpeg_decompress_struct jpeg{};
  Failure failure{};
  jpeg.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = on_error;
  failure.manager.emit_message = on_message;
  Result<Picture> result = error(Code::kDataLoss, "jpeg");
  if (read_header(jpeg, failure, file)) {
    result =
        jpeg.num_components == 1 || jpeg.num_components == 3
            ? canvas(jpeg.image_height, jpeg.image_width, jpeg.num_components == 1 ? 1 : 3, limit)
            : Result<Picture>(
                  error(Code::kUnimplemented, "jpeg: {} components", jpeg.num_components));
    if (result && !read_rows(jpeg, failure, *result))
      result = error(Code::kDataLoss, "jpeg: {}", failure.message);
  } else {
    result = error(Code::kDataLoss, "jpeg: {}", failure.message);
  }
  jpeg_destroy_decompress(&jpeg);
  return result;
}

}  // namespace tessera::ir::reference::image
