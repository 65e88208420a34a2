#include "tessera/kernels/chip/formats.h"

#include <algorithm>

#include "tessera/layout/bound.h"
#include "tessera/layout/formats.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::chip {

using tessera::chip::Chip;
using tessera::chip::MemoryKind;

std::string full_name(std::string_view format) {
  if (format == "NZ") return "FRACTAL_NZ";
  if (format == "5HD") return "NC1HWC0";
  if (format == "6HD") return "NDC1HWC0";
  for (const layout::FormatInfo& info : layout::formats())
    if (info.name == format) return std::string(format);
  return {};
}

Names formats_of(const Chip& chip) {
  Names names;
  const auto device = [&](const std::string& memory) {
    const auto found = chip.memory.find(memory);
    return found != chip.memory.end() && found->second.kind == MemoryKind::kDevice;
  };
  const auto add = [&](const std::string& format) {
    if (std::string name = full_name(format); !name.empty() && name != "ND")
      names.insert(std::move(name));
  };
  for (const auto& [engine_name, engine] : chip.engines)
    for (const auto& [route_name, route] : engine.routes)
      for (const tessera::chip::Change& change : route.changes) {
        if (device(route.from)) add(change.from);
        if (device(route.to)) add(change.to);
      }
  return names;
}

Names vendor_formats_of(const Chip& chip) {
  Names names = formats_of(chip);
  for (const auto& [kernel_name, kernel] : chip.vendor_kernels)
    for (const auto& [operand, formats] : kernel.layouts)
      for (const std::string& format : formats)
        if (std::string name = full_name(format); !name.empty() && name != "ND")
          names.insert(std::move(name));
  return names;
}

Result<std::string> layout_in(std::string_view format, DType dtype, const op::Dims& dims,
                              int64_t groups) {
  if (format == "ND") return std::string();
  layout::FormatRequest request;
  request.dtype = dtype;
  request.extents = dims;
  request.groups = groups;
  TRY_ASSIGN(const layout::Layout layout, layout::format_layout(format, request));
  return layout.to_string();
}

Result<Bytes> stored_bytes(const op::Operand& o) {
  if (o.layout.find('/') == std::string::npos) return Bytes(packed_bytes(o.dtype, o.count()));
  TRY_ASSIGN(const layout::Layout layout, layout::Layout::parse(o.layout));
  TRY_ASSIGN(const auto bound, layout::BoundLayout::bind(layout, o.dtype, o.dims));
  return bound.bytes();
}

std::string name_of_layout(std::string_view layout, DType dtype, const op::Dims& dims,
                           int64_t groups) {
  if (layout.empty()) return "ND";
  if (layout == op::channels_last(static_cast<int>(dims.size())))
    return dims.size() == 3 ? "NWC" : dims.size() == 4 ? "NHWC" : "NDHWC";
  for (const layout::FormatInfo& info : layout::formats())
    if (auto text = layout_in(info.name, dtype, dims, groups); text && *text == layout)
      return info.name == "FRACTAL_NZ" ? "NZ" : std::string(info.name);
  return std::string(layout);
}

}  // namespace tessera::kernels::chip
