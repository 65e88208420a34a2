// Attributes that ONNX's convolutions and poolings share.
#pragma once

#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {

// strides, dilations, pads_begin and pads_end of `kernel.size()` numbers, and ceil_mode, from
// strides, dilations, pads, auto_pad and ceil_mode. SAME padding becomes numbers where the sizes of
// input 0 (its last axes) and of the kernel are known, else it stays as auto_pad.
Result<op::Attrs> window_attrs(const NodeContext& c, const op::Shape& kernel);

}  // namespace tessera::import::onnx
