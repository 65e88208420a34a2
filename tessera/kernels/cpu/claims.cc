#include "tessera/kernels/cpu/claims.h"

#include <algorithm>

#include "tessera/layout/layout.h"

namespace tessera::kernels::cpu {
bool Reason::input_is(const Problem& p, size_t i, DType dtype) {
  return need(p.has(i), "input {} is left out", i) &&
         need(p.in[i].dtype == dtype, "input {} is {}, need {}", i, name_of(p.in[i].dtype),
              name_of(dtype));
}

bool Reason::output_is(const Problem& p, size_t i, DType dtype) {
  return need(i < p.out.size(), "output {} is missing", i) &&
         need(p.out[i].dtype == dtype, "output {} is {}, need {}", i, name_of(p.out[i].dtype),
              name_of(dtype));
}

std::string not_packed(const Problem& p, bool first) {
  auto check = [](const Operand& o, std::string_view side, size_t i) -> std::string {
    if (!o.present) return {};
    if (!o.layout.empty())
      return fmt::format("{} {} has layout '{}', need row-major", side, i, o.layout);
    if (!o.strides.empty()) return fmt::format("{} {} is strided, need packed", side, i);
    if (o.dtype == DType::kString) return fmt::format("{} {} holds strings", side, i);
    if (!op::element_count(o.dims))
      return fmt::format("{} {} has impossible sizes {}", side, i, op::to_string(o.dims));
    return {};
  };
  for (size_t i = 0; i < p.in.size(); ++i)
    if (std::string why = check(p.in[i], "input", i); !why.empty()) return why;
  for (size_t i = 0; i < p.out.size(); ++i)
    if (std::string why = check(p.out[i], "output", i); !why.empty()) return why;
  return first && (p.out.empty() || !p.out[0].present) ? "nobody reads output 0" : "";
}

Claim claim(double flops, double bytes, double efficiency, NumericClass numeric) {
  Claim c;
  c.flops = flops;
  c.bytes = bytes;
  c.efficiency = efficiency;
  c.numeric = numeric;
  return c;
}

double bytes_of(const Operand& o) {
  return o.present ? static_cast<double>(o.count()) * bits_of(o.dtype) / 8 : 0;
}

double bytes_of(const Problem& p) {
  double sum = 0;
  for (const Operand& o : p.in) sum += bytes_of(o);
  for (const Operand& o : p.out) sum += bytes_of(o);
  return sum;
}

std::optional<Dims> logical_strides(const Operand& o) {
  if (!o.strides.empty())
    return o.strides.size() == o.dims.size() ? std::optional(o.strides) : std::nullopt;
  if (o.layout.empty()) return op::strides_of(o.dims);
  const auto layout = layout::Layout::parse(o.layout);
  if (!layout || layout->rank() != o.rank() || layout->physical_rank() != o.rank())
    return std::nullopt;
  Dims strides(o.dims.size());
  int64_t packed = 1;
  for (size_t k = o.dims.size(); k-- > 0;) {
    const layout::Expr& axis = layout->axes()[k];
    if (axis.kind != layout::ExprKind::kLetter) return std::nullopt;
    strides[static_cast<size_t>(axis.axis)] = packed;
    packed *= o.dims[static_cast<size_t>(axis.axis)];
  }
  return strides;
}

Dims broadcast_strides(const Dims& from, const Dims& to) {
  const Dims own = op::strides_of(from);
  Dims strides(to.size(), 0);
  for (size_t i = 0; i < from.size(); ++i)
    strides[to.size() - from.size() + i] = from[i] == 1 ? 0 : own[i];
  return strides;
}

void merge_axes(Dims& dims, std::vector<Dims>& strides) {
  auto erase = [&](size_t a) {
    dims.erase(dims.begin() + static_cast<int64_t>(a));
    for (Dims& s : strides) s.erase(s.begin() + static_cast<int64_t>(a));
  };
  for (size_t a = dims.size(); a-- > 0;)
    if (dims[a] == 1) erase(a);
  for (size_t a = dims.size(); a-- > 1;) {
    const bool one = std::all_of(strides.begin(), strides.end(),
                                 [&](const Dims& s) { return s[a - 1] == s[a] * dims[a]; });
    if (!one) continue;
    dims[a - 1] *= dims[a];
    for (Dims& s : strides) s[a - 1] = s[a];
    erase(a);
  }
  if (dims.empty()) {
    dims.push_back(1);
    for (Dims& s : strides) s.push_back(0);
  }
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

uint32_t items(int64_t count, int64_t chunk) {
  return static_cast<uint32_t>(std::clamp<int64_t>(ceil_div(count, chunk), 1, INT32_MAX));
}

std::vector<Argument> all_arguments(const Problem& p) {
  std::vector<Argument> list;
  for (size_t i = 0; i < p.in.size(); ++i)
    if (p.in[i].present) list.push_back({Argument::kInput, static_cast<int>(i), 0});
  for (size_t i = 0; i < p.out.size(); ++i)
    if (p.out[i].present) list.push_back({Argument::kOutput, static_cast<int>(i), 0});
  return list;
}

}  // namespace tessera::kernels::cpu
