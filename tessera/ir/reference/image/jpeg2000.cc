// JPEG 2000 by OpenJPEG: 1 to 4 components of the image's full size.
#include <algorithm>
#include <cstring>
#include <memory>

#include <openjpeg.h>

#include "tessera/ir/reference/image/decode.h"

namespace tessera::ir::reference::image {
namespace {

// A file in memory, as OpenJPEG's callbacks see it.
struct Source {
  Encoded file;
  size_t at = 0;
};

OPJ_SIZE_T read(void* to, OPJ_SIZE_T size, void* user) {
  auto& source = *static_cast<Source*>(user);
  if (source.at >= source.file.size()) return static_cast<OPJ_SIZE_T>(-1);
  const size_t count = std::min<size_t>(size, source.file.size() - source.at);
  std::memcpy(to, source.file.data() + source.at, count);
  source.at += count;
  return count;
}
OPJ_OFF_T skip(OPJ_OFF_T count, void* user) {
  auto& source = *static_cast<Source*>(user);
  const auto left = static_cast<OPJ_OFF_T>(source.file.size() - source.at);
  const OPJ_OFF_T step = std::clamp<OPJ_OFF_T>(count, 0, left);
  source.at += static_cast<size_t>(step);
  return step;
}
OPJ_BOOL seek(OPJ_OFF_T to, void* user) {
  auto& source = *static_cast<Source*>(user);
  if (to < 0 || static_cast<size_t>(to) > source.file.size()) return OPJ_FALSE;
  source.at = static_cast<size_t>(to);
  return OPJ_TRUE;
}
void silent(const char*, void*) {}

// Upper 8 bits of a sample of `precision` bits.
uint8_t sample(const opj_image_comp_t& component, size_t i) {
  const int64_t value =
      component.data[i] + (component.sgnd ? int64_t{1} << (component.prec - 1) : 0);
  const int64_t scaled = component.prec > 8    ? value >> (component.prec - 8)
                         : component.prec == 8 ? value
                                               : value * 255 / ((1 << component.prec) - 1);
  return static_cast<uint8_t>(std::clamp<int64_t>(scaled, 0, 255));
}

// YCbCr, full range, to red, green, blue.
void from_ycc(uint8_t* p) {
  const double y = p[0], cb = p[1] - 128.0, cr = p[2] - 128.0;
  const double rgb[] = {y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb};
  for (int i = 0; i < 3; ++i) p[i] = static_cast<uint8_t>(std::clamp(rgb[i] + 0.5, 0.0, 255.0));
}

}  // namespace

Result<Picture> decode_jpeg2000(Encoded file, Bytes limit) {
  Source source{file, 0};
  const std::unique_ptr<opj_codec_t, void (*)(opj_codec_t*)> codec(
      opj_create_decompress(file[0] == 0 ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K), opj_destroy_codec);
  const std::unique_ptr<opj_stream_t, void (*)(opj_stream_t*)> stream(
      opj_stream_default_create(OPJ_TRUE), opj_stream_destroy);
  if (!codec || !stream) return error(Code::kResourceExhausted, "jpeg 2000: no memory");
  opj_set_info_handler(codec.get(), silent, nullptr);
  opj_set_warning_handler(codec.get(), silent, nullptr);
  opj_set_error_handler(codec.get(), silent, nullptr);
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), file.size());
  opj_stream_set_read_function(stream.get(), read);
  opj_stream_set_skip_function(stream.get(), skip);
  opj_stream_set_seek_function(stream.get(), seek);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* header = nullptr;
  const bool begun = opj_setup_decoder(codec.get(), &parameters) &&
                     opj_read_header(stream.get(), codec.get(), &header);
  const std::unique_ptr<opj_image_t, void (*)(opj_image_t*)> image(header, opj_image_destroy);
  if (!begun || !image || image->numcomps < 1)
    return error(Code::kDataLoss, "jpeg 2000: no image in {} bytes", file.size());
  const int64_t width = int64_t{image->x1} - image->x0, height = int64_t{image->y1} - image->y0;
  const int channels = image->numcomps >= 3 ? 3 : 1;
  // OpenJPEG holds 4 bytes a sample.
  TRY(canvas(height, width, channels, Bytes(limit.value / 5)));
  TRY_ASSIGN(Picture picture, canvas(height, width, channels, limit));
  if (!opj_decode(codec.get(), stream.get(), image.get()))
    return error(Code::kDataLoss, "jpeg 2000: damaged pixels");
  for (int c = 0; c < channels; ++c) {
    const opj_image_comp_t& component = image->comps[c];
    if (!component.data || int64_t{component.w} != width || int64_t{component.h} != height ||
        component.prec < 1 || component.prec > 31)
      return error(Code::kUnimplemented,
                   "jpeg 2000: component {} of {} by {} and {} bits in an image of {} by {}", c,
                   component.w, component.h, component.prec, width, height);
    for (size_t i = 0; i < static_cast<size_t>(width * height); ++i)
      picture.samples[i * static_cast<size_t>(channels) + static_cast<size_t>(c)] =
          sample(component, i);
  }
  if (image->color_space == OPJ_CLRSPC_SYCC && channels == 3)
    for (size_t i = 0; i < picture.samples.size(); i += 3) from_ycc(picture.samples.data() + i);
  return picture;
}

}  // namespace tessera::ir::reference::image
