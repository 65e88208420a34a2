// Portable bit, grey and pixel maps, as text (P1 to P3) and binary (P4 to P6).
#include <algorithm>
#include <cctype>

#include "tessera/ir/reference/image/decode.h"

namespace tessera::ir::reference::image {
namespace {

class Scanner {
 public:
  explicit Scanner(Encoded file) : file_(file) {}

  // The next number, behind spaces and comments; -1 if there is none.
  int64_t number(bool one_digit = false) {
    while (at_ < file_.size() && (std::isspace(file_[at_]) || file_[at_] == '#')) {
      if (file_[at_] == '#')
        while (at_ < file_.size() && file_[at_] != '\n') ++at_;
      else
        ++at_;
    }
    int64_t value = -1;
    while (at_ < file_.size() && std::isdigit(file_[at_]) && value < (1 << 30)) {
      value = std::max<int64_t>(value, 0) * 10 + (file_[at_++] - '0');
      if (one_digit) break;
    }
    return value;
  }
  void skip() { ++at_; }
  int64_t left() const { return static_cast<int64_t>(file_.size()) - static_cast<int64_t>(at_); }
  uint8_t byte() { return at_ < file_.size() ? file_[at_++] : uint8_t{0}; }

 private:
  Encoded file_;
  size_t at_ = 2;
};

}  // namespace

Result<Picture> decode_pnm(Encoded file, Bytes limit) {
  const int kind = file[1] - '0';
  const bool text = kind <= 3, bits = kind == 1 || kind == 4;
  Scanner in(file);
  const int64_t width = in.number(), height = in.number(), most = bits ? 1 : in.number();
  if (most < 1 || most > 65535)
    return error(Code::kDataLoss, "pnm: {} by {} pixels, samples up to {}", width, height, most);
  in.skip();
  TRY_ASSIGN(Picture picture, canvas(height, width, kind == 3 || kind == 6 ? 3 : 1, limit));
  const int64_t row = width * picture.channels,
                row_bytes = bits ? (width + 7) / 8 : row * (most > 255 ? 2 : 1);
  if (!text && in.left() < row_bytes * height)
    return error(Code::kDataLoss, "pnm: {} bytes of pixels, need {}", in.left(),
                 row_bytes * height);
  for (int64_t y = 0; y < height; ++y) {
    uint8_t* to = picture.row(y);
    uint8_t packed = 0;
    for (int64_t i = 0; i < row; ++i) {
      int64_t v;
      if (text) {
        v = in.number(bits);
      } else if (bits) {
        if (i % 8 == 0) packed = in.byte();
        v = (packed >> (7 - i % 8)) & 1;
      } else {
        v = in.byte();
        if (most > 255) v = v * 256 + in.byte();
      }
      if (v < 0 || v > most)
        return error(Code::kDataLoss, "pnm: sample {} of row {} is {}, the most is {}", i, y, v,
                     most);
      to[i] = static_cast<uint8_t>(bits ? (1 - v) * 255 : (v * 255 + most / 2) / most);
    }
  }
  return picture;
}

}  // namespace tessera::ir::reference::image
