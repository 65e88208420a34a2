#include "tessera/import/onnx/windows.h"

#include "tessera/op/window.h"

namespace tessera::import::onnx {
namespace {

// The pads that SAME stands for, if all sizes are numbers.
void resolve_same(const NodeContext& c, const op::Shape& kernel, op::Attrs& attrs) {
  const op::Type& x = c.type(0);
  auto window = op::window_of(attrs, kernel.size());
  if (!window || !x.ranked() || x.shape->size() < kernel.size()) return;
  op::Ints begin, end;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const auto size = (*x.shape)[x.shape->size() - kernel.size() + i].constant(),
               taps = kernel[i].constant();
    if (!size || !taps || *taps < 1 || *taps > INT32_MAX) return;
    const auto [before, after] = window->pads(i, *size, *taps);
    begin.push_back(before);
    end.push_back(after);
  }
  op::Attrs resolved;
  for (const auto& [name, value] : attrs.all())
    if (name != "auto_pad") resolved.set(name, value);
  resolved.set("pads_begin", begin);
  resolved.set("pads_end", end);
  attrs = std::move(resolved);
}

}  // namespace

Result<op::Attrs> window_attrs(const NodeContext& c, const op::Shape& kernel) {
  const size_t axes = kernel.size();
  op::Attrs attrs;
  attrs.set("strides", c.ints("strides", op::Ints(axes, 1)));
  attrs.set("dilations", c.ints("dilations", op::Ints(axes, 1)));
  op::Ints pads = c.ints("pads", op::Ints(2 * axes, 0));
  const std::string auto_pad = c.s("auto_pad", "NOTSET");
  if (auto_pad != "NOTSET") pads.assign(2 * axes, 0);
  if (pads.size() != 2 * axes)
    return error(Code::kInvalidArgument, "{}: pads has {} numbers, need {}", c.node.op_type,
                 pads.size(), 2 * axes);
  const auto middle = pads.begin() + static_cast<int64_t>(axes);
  attrs.set("pads_begin", op::Ints(pads.begin(), middle));
  attrs.set("pads_end", op::Ints(middle, pads.end()));
  if (c.i("ceil_mode", 0) != 0 && auto_pad == "NOTSET") attrs.set("ceil_mode", int64_t{1});
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    attrs.set("auto_pad", std::string(auto_pad == "SAME_UPPER" ? "same_upper" : "same_lower"));
    resolve_same(c, kernel, attrs);
  } else if (auto_pad != "NOTSET" && auto_pad != "VALID") {
    return error(Code::kInvalidArgument, "{}: auto_pad is '{}'", c.node.op_type, auto_pad);
  }
  return attrs;
}

}  // namespace tessera::import::onnx
