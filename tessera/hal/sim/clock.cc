#include "tessera/hal/sim/clock.h"

#include <algorithm>
#include <cmath>

namespace tessera::hal::sim {
namespace {

// Memory moves no less than this at once.
constexpr double kSector = 32;

int64_t up(int64_t n, const std::optional<chip::Count>& step) {
  const int64_t s = step ? std::max<int64_t>(step->value, 1) : 1;
  return (n + s - 1) / s * s;
}
int64_t pieces(int64_t n, const std::optional<chip::Count>& of) {
  const int64_t s = of ? std::max<int64_t>(of->value, 1) : 1;
  return (n + s - 1) / s;
}
double value(const std::optional<chip::Real>& r) { return r ? r->value : 0; }

// Elements of an argument that lie side by side as the step walks it.
double run_of(const engine::Buffer& b, const engine::Operand& o, std::span<const int64_t> extents) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride, extent
  int64_t inner = 1;
  std::vector<int64_t> strides(b.dims.size(), 0);
  for (size_t d = b.dims.size(); d-- > 0;) {
    strides[d] = b.strides.empty() ? inner : b.strides[d];
    if (b.strides.empty() && b.dims[d].is_number()) inner *= b.dims[d].items[0].value;
  }
  for (size_t a = 0; a < extents.size(); ++a) {
    int64_t stride = 0;
    for (size_t d = 0; d < o.at.size(); ++d)
      if (a < o.at[d].coefficients.size()) stride += o.at[d].coefficients[a] * strides[d];
    axes.emplace_back(stride, extents[a]);
  }
  int64_t run = 1;
  for (bool grown = true; grown;) {
    grown = false;
    for (auto& [stride, extent] : axes)
      if (stride == run && extent > 1) {
        run *= extent;
        stride = 0;
        grown = true;
      }
  }
  return static_cast<double>(run);
}

}  // namespace

CopyTime copy_time(const Loaded& loaded, const EngineRate& e, const engine::Step& s,
                   std::span<const int64_t> extents, const Shares& shares) {
  const engine::Program& p = loaded.program();
  const engine::Buffer &to = p.buffer(s.out.buffer), &from = p.buffer(s.in[0].buffer);
  const auto device = engine::device_space(loaded.chip());
  const auto space = [&](const engine::Buffer& b) {
    return b.argument() ? device : std::string_view(b.space);
  };
  const chip::Route& route = *engine::find_route(*e.where.copies, space(from), space(to));
  double elements = 1;
  for (int64_t n : extents) elements *= static_cast<double>(n);
  const double bytes = elements * bits_of(to.dtype) / 8;
  double rate = route.bytes_per_cycle.value / e.cycle_ps;
  if (route.half_bytes)
    rate *= bytes / (bytes + static_cast<double>(route.half_bytes->value.value));
  CopyTime t;
  double moved = bytes;
  const bool reads = from.argument(), writes = to.argument();
  if (reads || writes) {
    const double run = (reads ? run_of(from, s.in[0], extents) : run_of(to, s.out, extents)) *
                       bits_of(to.dtype) / 8;
    moved *= std::max(1.0, kSector / run);
    t.device_bytes = static_cast<int64_t>(bytes);
  }
  double ps = moved / rate;
  if (reads || writes) {
    if (shares.device > 0) ps = std::max(ps, moved * (reads ? shares.missed : 1) / shares.device);
    if (shares.cache > 0) ps = std::max(ps, moved / shares.cache);
    const auto& latency = loaded.chip().device_memory().latency_seconds;
    if (latency) t.latency_ps = latency->value.value * 1e12;
  }
  t.busy_ps = value(route.start_cycles) * e.cycle_ps + ps;
  return t;
}

double matrix_time(const EngineRate& e, std::string_view compute, const ProductShape& shape,
                   bool idle) {
  const chip::Unit& u = *e.where.computes;
  const chip::Rate& r = u.rates.find(compute)->second;
  const auto units = static_cast<double>(u.per_core.value);
  const double start = idle ? value(u.start_cycles) : 0;
  const auto batch = static_cast<double>(shape.batch);
  const auto flow = u.dataflow.value_or(chip::Dataflow::kStep);
  if (flow == chip::Dataflow::kStep || !u.rows || !u.columns) {
    const double macs = static_cast<double>(up(shape.m, r.m)) *
                        static_cast<double>(up(shape.n, r.n)) *
                        static_cast<double>(up(shape.k, r.k)) * batch;
    return (start + macs / (r.macs_per_cycle.value * units)) * e.cycle_ps;
  }
  int64_t outer = shape.k, inner = shape.n, stream = shape.m;
  if (flow == chip::Dataflow::kOutputStationary) {
    outer = shape.m;
    stream = shape.k;
  } else if (flow == chip::Dataflow::kInputStationary) {
    inner = shape.m;
    stream = shape.n;
  }
  const auto rows = static_cast<double>(u.rows->value),
             columns = static_cast<double>(u.columns->value);
  const double faster = std::max(1.0, r.macs_per_cycle.value / (rows * columns));
  const double folds = std::ceil(
      static_cast<double>(pieces(outer, u.rows) * pieces(inner, u.columns)) * batch / units);
  const double each = std::max(static_cast<double>(stream), rows) / faster;
  return (start + folds * each + (idle ? 2 * rows + columns - 2 : 0)) * e.cycle_ps;
}

double vector_time(const EngineRate& e, tile::Function f, DType dtype, int64_t elements,
                   bool idle) {
  using tile::Function;
  const chip::Unit& u = *e.where.computes;
  const auto rate_of = [](const auto& named, DType d) -> double {
    const auto find = [&](std::string_view type) {
      const auto at = named.find(type);
      if constexpr (requires { at->second.macs_per_cycle; })
        return at == named.end() ? 0.0 : at->second.macs_per_cycle.value;
      else
        return at == named.end() ? 0.0 : at->second.value;
    };
    if (const double exact = find(name_of(d)); exact > 0) return exact;
    // As other types of its size, or as f32 in pieces of 32 bits.
    if (bits_of(d) == 16)
      if (const double half = find("f16"); half > 0) return half;
    if (bits_of(d) == 32)
      if (const double word = find("i32"); word > 0 && !is_float(d)) return word;
    return find("f32") * 32.0 / std::max(32, bits_of(d));
  };
  double lanes = 0;
  const std::string_view name = tile::name_of(f);
  if (const auto at = u.functions.find(name); at != u.functions.end())
    lanes = rate_of(at->second, dtype);
  if (lanes <= 0) {
    lanes = std::max(rate_of(u.rates, dtype), 1e-3);
    const bool simple = f <= Function::kMax || (f >= Function::kAnd && f <= Function::kTrunc) ||
                        f >= Function::kNot;
    if (!simple || f == Function::kDiv) lanes /= kSlowFunction;
  }
  const double start = idle ? value(u.start_cycles) : 0;
  return (start + static_cast<double>(elements) / (lanes * static_cast<double>(u.per_core.value))) *
         e.cycle_ps;
}

}  // namespace tessera::hal::sim
