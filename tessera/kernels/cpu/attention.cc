// attention(q, k, v, mask?) in f32: row cpu.attention. Online softmax over blocks of keys, so that
// scores never leave the cache.
#include <algorithm>
#include <cmath>

#include "tessera/kernels/cpu/attention_args.h"
#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/panel.h"

namespace tessera::kernels::cpu {
namespace {

// Batch, head and row strides of an operand whose innermost axis is packed.
bool strides_of_rows(const Operand& o, int64_t (&strides)[3]) {
  const auto all = logical_strides(o);
  if (!all || (o.dims[3] != 1 && (*all)[3] != 1)) return false;
  std::copy_n(all->begin(), 3, strides);
  return true;
}

Reason fill(const Problem& p, AttentionArgs& a) {
  Reason why;
  for (size_t i = 0; i < 3 && why.fine(); ++i) {
    why.input_is(p, i, DType::kF32) &&
        why.need(p.in[i].rank() == 4, "input {} has rank {}, need 4", i, p.in[i].rank());
  }
  why.output_is(p, 0, DType::kF32) && why.need(p.out[0].present, "nobody reads output 0");
  for (size_t i = 1; i < p.out.size() && why.fine(); ++i)
    why.need(!p.out[i].present, "output {} is wanted, need output 0 alone", i);
  for (size_t i = 4; i < p.in.size() && why.fine(); ++i)
    why.need(!p.has(i), "input {} is given: {}", i, i == 6 ? "lengths" : "a past");
  const DType softmax = p.attrs.dtype("softmax", DType::kF32);
  why.need(softmax == DType::kF32, "softmax in {}, need f32", name_of(softmax));
  if (!why.fine()) return why;
  const Dims &q = p.in[0].dims, &k = p.in[1].dims, &v = p.in[2].dims;
  a.B = q[0];
  a.H = q[1];
  a.S = q[2];
  a.E = q[3];
  a.K = k[1];
  a.T = k[2];
  a.F = v[3];
  why.need(a.K > 0 && a.H % a.K == 0, "{} query heads for {} key heads", a.H, a.K);
  why.need(a.E >= 1 && a.E <= kMaxHeadSize && a.F >= 1 && a.F <= kMaxHeadSize,
           "head sizes {} and {}, need 1 to {}", a.E, a.F, kMaxHeadSize);
  why.need(a.T >= 1, "no keys");
  why.need(strides_of_rows(p.in[0], a.q) && strides_of_rows(p.in[1], a.k) &&
               strides_of_rows(p.in[2], a.v) && strides_of_rows(p.out[0], a.y),
           "an operand's innermost axis is not packed");
  a.scale = static_cast<float>(p.attrs.has("scale")
                                   ? p.attrs.f("scale")
                                   : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(a.E, 1))));
  a.softcap = static_cast<float>(p.attrs.f("softcap"));
  a.causal = p.attrs.i("causal") != 0;
  a.mask = AttentionMask::kNone;
  if (why.fine() && p.has(3)) {
    const Operand& mask = p.in[3];
    why.need(mask.dtype == DType::kBool || mask.dtype == DType::kF32,
             "the mask is {}, need bool or f32", name_of(mask.dtype));
    a.mask = mask.dtype == DType::kBool ? AttentionMask::kBool : AttentionMask::kAdded;
    const auto own = logical_strides(mask);
    why.need(own.has_value(), "the mask has layout '{}'", mask.layout);
    why.need(mask.rank() >= 1 && mask.rank() <= 4 && mask.dims.back() == a.T,
             "the mask is {}, need {} columns", op::to_string(mask.dims), a.T);
    if (!why.fine()) return why;
    for (size_t i = 0; i < 4; ++i) a.mask_strides[i] = 0;
    const size_t lead = 4 - mask.dims.size();
    for (size_t i = 0; i < mask.dims.size(); ++i)
      if (mask.dims[i] != 1) a.mask_strides[lead + i] = (*own)[i];
  }
  a.keys_size = packed_size(a.E, a.T);
  a.values_size = a.F % kPanel == 0 ? 0 : packed_size(a.T, a.F);
  return why;
}

Claim probe(const Problem& p) {
  AttentionArgs a{};
  const Reason why = fill(p, a);
  if (!why.fine()) return why.refusal();
  const double pairs = static_cast<double>(a.B * a.H * a.S) * static_cast<double>(a.T);
  Claim c = claim(2 * pairs * static_cast<double>(a.E + a.F) * (a.causal ? 0.6 : 1), bytes_of(p),
                  0.6, NumericClass::kReassociated);
  if (a.S > kFewQueries) c.workspace = Bytes(a.B * a.K * (a.keys_size + a.values_size) * 4);
  return c;
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  AttentionArgs a{};
  const Reason why = fill(p, a);
  if (!why.fine()) return error(Code::kInternal, "prepare without a claim: {}", why.text());
  const Argument q{Argument::kInput, 0, 0}, k{Argument::kInput, 1, 0}, v{Argument::kInput, 2, 0},
      y{Argument::kOutput, 0, 0}, workspace{Argument::kWorkspace, 0, 0};
  LaunchSpec main;
  main.set_constants(a);
  if (a.S <= kFewQueries) {
    main.entry = "cpu.attention_few";
    main.grid = items(a.B * a.H, 1);
    main.arguments = {q, k, v};
  } else {
    LaunchSpec keys;
    keys.entry = "cpu.attention_keys";
    keys.grid = items(a.B * a.K, 1);
    keys.arguments = {k, v, workspace};
    keys.set_constants(a);
    launches.push_back(std::move(keys));
    main.entry = "cpu.attention";
    main.grid = items(a.B * a.H * ceil_div(a.S, kQueryBlock), 1);
    main.arguments = {q, v, workspace};
  }
  if (a.mask != AttentionMask::kNone) main.arguments.push_back({Argument::kInput, 3, 0});
  main.arguments.push_back(y);
  launches.push_back(std::move(main));
  return launches;
}

constexpr Row kRows[] = {{"attention", "cpu.attention", probe, prepare}};

}  // namespace

std::span<const Row> attention_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
