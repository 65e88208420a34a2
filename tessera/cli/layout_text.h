// Pictures of layouts for terminals and files.
#pragma once

#include <string>

#include "tessera/layout/picture.h"

namespace tessera::cli {

// Lines of at most `width` characters: the tensor with the place of each element, then memory with
// the number of the element in each place, "." for padding. Cut where it is larger.
std::string text_of(const layout::Picture& picture, int width);

// The picture's limits for lines of so many characters and so many rows of each part; what fits.
layout::PictureLimits limits_for(int width, int rows);

}  // namespace tessera::cli
