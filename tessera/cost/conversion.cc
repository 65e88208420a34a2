// Copies: between layouts on one chip, and between two chips.
#include <algorithm>
#include <cmath>

#include "tessera/cost/families.h"
#include "tessera/cost/operands.h"
#include "tessera/cost/stream.h"
#include "tessera/layout/bound.h"
#include "tessera/layout/layout.h"

namespace tessera::cost {
namespace {

// Bytes that lie together on one side when a tile of the scratchpad's size is copied at a time. A
// packed side is read or written in whole rows of the tile; one with strides of its own in as many
// bytes as its innermost places make up.
double run_of(const Machine& machine, const op::Operand& o) {
  const double bits = bits_of_elements(o);
  if (o.strides.empty()) {
    // A tile of V bytes is as long as wide, so that both sides have runs of sqrt(V) bytes or more.
    double scratch = 0;
    for (const auto& entry : machine.chip().memory)
      if (entry.second.kind == chip::MemoryKind::kScratchpad ||
          entry.second.kind == chip::MemoryKind::kCache)
        scratch = std::max(scratch, static_cast<double>(entry.second.capacity_bytes.value.value));
    return std::max(std::sqrt(scratch / 2), machine.line());
  }
  double together = 1;
  int64_t expected = 1;
  for (size_t i = o.strides.size(); i-- > 0;) {
    const int64_t extent = i < o.dims.size() ? o.dims[i] : 1;
    if (o.strides[i] != expected && extent != 1) break;
    together *= static_cast<double>(extent);
    expected *= extent;
  }
  return std::max(together * bits / 8, 1.0);
}

// Whether elements within the smallest copy change their order, which a vector unit must do.
bool shuffles(const op::Operand& from, const op::Operand& to) {
  const auto innermost = [](const op::Operand& o) -> std::string {
    if (o.layout.empty()) return "last";
    const auto parsed = layout::Layout::parse(o.layout);
    if (!parsed || parsed->physical_rank() == 0) return "";
    const layout::Expr* e = &parsed->axes().back();
    while (!e->args.empty()) e = &e->args.back();
    return e->axis == parsed->rank() - 1 ? "last" : std::to_string(e->axis);
  };
  return innermost(from) != innermost(to);
}

}  // namespace

Result<Tally> conversion_tally(const Machine& machine, const op::Operand& from,
                               const op::Operand& to) {
  if (from.dims != to.dims)
    return error(Code::kInvalidArgument, "a conversion keeps sizes: {} to {}",
                 op::to_string(from.dims), op::to_string(to.dims));
  for (const op::Operand* o : {&from, &to}) {
    if (o->layout.empty()) continue;
    TRY_ASSIGN(const layout::Layout parsed, layout::Layout::parse(o->layout));
    TRY(layout::BoundLayout::bind(parsed, o->dtype, o->dims));
  }
  Pass pass{.kernel = "convert", .family = "convert"};
  pass.read = bytes_of(from);
  pass.written = bytes_of(to);
  const double run = std::min(run_of(machine, from), run_of(machine, to));
  // Runs that are whole lines cost nothing; packed sides are cut into lines.
  pass.run = run >= machine.line() && from.strides.empty() && to.strides.empty() ? 0 : run;
  if (from.dtype != to.dtype || shuffles(from, to)) {
    pass.elements = elements_of(to);
    pass.work.plain = from.dtype != to.dtype ? 2 : 1;
    if (!machine.vector("f32")) pass.elements = 0;
  }
  return stream(machine, pass);
}

Result<Estimate> conversion(const chip::Chip& chip, const op::Operand& from,
                            const op::Operand& to) {
  const Machine machine(chip);
  TRY_ASSIGN(Tally tally, conversion_tally(machine, from, to));
  return finish(machine, std::move(tally));
}

Interval transfer(const chip::Chip& from, const chip::Chip& to, Bytes bytes) {
  double rate = 0, latency = 0;
  for (const chip::Chip* chip : {&from, &to})
    for (const auto& entry : chip->links) {
      const chip::Link& link = entry.second;
      if (link.kind != chip::LinkKind::kHost) continue;
      const double one = link.bytes_per_second.value * static_cast<double>(link.count.value);
      if (rate == 0 || one < rate) rate = one;
      latency = std::max(latency, link.latency_seconds ? link.latency_seconds->value.value : 0);
    }
  // A host's own memory has no link: what the other's link carries.
  if (rate == 0)
    rate = std::min(from.bandwidth_of(from.device_memory()), to.bandwidth_of(to.device_memory()));
  if (latency <= 0) latency = 1e-5;  // a copy through a driver
  constexpr double kPayload = 0.85;  // of a PCIe link, after headers
  const double seconds = latency + static_cast<double>(bytes.value) / (rate * kPayload);
  return {Seconds(latency / 2 + static_cast<double>(bytes.value) / rate), Seconds(seconds),
          Seconds(seconds * 1.3)};
}

}  // namespace tessera::cost
