// Names that vendors give to layouts, as a table of layout expressions.
//   Ascend   C0 = 32 bytes of elements (f16: 16, f32: 8, i8: 32, i4: 64); a fractal has 16 rows of
//   C0 TPU      tiles of 8 x 128 words of 32 bits; narrower types share a word between rows AMX
//   tiles of 16 rows of 64 bytes; what is summed over comes in words of 32 bits NVIDIA   shared
//   memory: pieces of 16 bytes, swizzled so that 8 rows of one column meet 32 banks
// Sources: CANN's guide on data formats; MindSpore's trans.cc for groups, C04 and RNN; XLA's notes
// on tiled layouts; Intel's manual, AMX; PTX's manual, matrix operands in shared memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/dtype.h"
#include "tessera/base/result.h"
#include "tessera/layout/bound.h"

namespace tessera::layout {

// What a format's expression may depend on.
struct FormatRequest {
  DType dtype = DType::kF16;
  std::vector<int64_t> extents = {};
  // Logical axes in order, in the format's own letters: "nhwc" for a channels-last NC1HWC0. Empty:
  // the format's default (FormatInfo::letters). Further letters are batch axes and go outermost.
  std::string letters = {};
  int64_t groups =
      1;  // FRACTAL_Z: of the convolution; n counts all output channels, c those of one group
  int64_t input = 0;   // RNN formats: input size, 0 if the rows are the hidden state alone
  int64_t hidden = 0;  // RNN formats: hidden size; LSTM: n / 4 if 0
};

struct FormatInfo {
  std::string_view name;     // "FRACTAL_NZ"
  int acl_format;            // number in aclFormat or ge::Format; -1: it has none
  std::string_view letters;  // default logical axes, without batch: "mn", "nchw"
  bool batched;              // takes leading batch axes
  std::string_view summary;
  std::string_view alias = {};  // a shorter name: "NZ"
};

std::span<const FormatInfo> formats();

// The format of that name or alias, in any case; nullptr: there is none.
const FormatInfo* find_format(std::string_view name);

// kNotFound for an unknown name; kInvalidArgument for types, axes, groups or sizes that the format
// does not take.
Result<Layout> format_layout(std::string_view name, const FormatRequest& request);

// Sizes that show what a format does, and that it takes: for lists and tests.
FormatRequest sample_request(const FormatInfo& format, DType dtype);

// A layout however it is written: a format's name, an expression ("mn: n m", or "n m" of axes
// request.letters, else `letters`), or XLA's notation ("{0,1:T(8,128)}"). Errors name the text.
Result<Layout> layout_from(std::string_view text, const FormatRequest& request,
                           std::string_view letters = {});

// Names of all formats that, for this request, place every element as `bound` does. Size-1 axes and
// small channels make formats coincide: all are returned.
Result<std::vector<std::string_view>> matching_formats(const BoundLayout& bound,
                                                       const FormatRequest& request);

}  // namespace tessera::layout
