// attention in f32: row cpu.attention; with products of bf16: row cpu.attention_bf16. Online
// softmax over blocks of keys, so that scores never leave the cache.
#include <algorithm>
#include <cmath>

#include "tessera/kernels/cpu/attention_args.h"
#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/narrow.h"
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

// Keys or values with their past: an output, if it is wanted; part of the workspace, where they
// must lie together.
struct Joined {
  bool needed = false;
  KeyRows rows{};
  std::vector<Argument> arguments;  // past, fresh, target
};

struct Plan {
  AttentionArgs args{};
  Joined keys, values;
  int64_t floats = 0;  // of the workspace
  bool narrow = false;

  bool few() const { return args.S <= kFewQueries; }
};

bool wanted(const Problem& p, size_t output) {
  return output < p.out.size() && p.out[output].present;
}

void check_operands(const Problem& p, Reason& why) {
  for (size_t i : {0, 1, 2, 4, 5}) {
    if (i > 2 && !p.has(i)) continue;
    why.input_is(p, i, DType::kF32) &&
        why.need(p.in[i].rank() == 4, "input {} has rank {}, need 4", i, p.in[i].rank());
  }
  why.output_is(p, 0, DType::kF32) && why.need(p.out[0].present, "nobody reads output 0");
  why.need(!wanted(p, 3), "output 3 is wanted: the scores, which are never whole");
  why.need(p.has(4) == p.has(5), "past keys and values go together");
  if (why.fine() && p.has(6))
    why.need(
        (p.in[6].dtype == DType::kI64 || p.in[6].dtype == DType::kI32) && p.in[6].strides.empty(),
        "lengths are {}, need packed i32 or i64", name_of(p.in[6].dtype));
  const DType softmax = p.attrs.dtype("softmax", DType::kF32);
  why.need(softmax == DType::kF32, "softmax in {}, need f32", name_of(softmax));
}

void fill_mask(const Problem& p, AttentionArgs& a, Reason& why) {
  a.mask = AttentionMask::kNone;
  if (!p.has(3)) return;
  const Operand& mask = p.in[3];
  why.need(mask.dtype == DType::kBool || mask.dtype == DType::kF32,
           "the mask is {}, need bool or f32", name_of(mask.dtype));
  a.mask = mask.dtype == DType::kBool ? AttentionMask::kBool : AttentionMask::kAdded;
  const auto own = logical_strides(mask);
  why.need(own.has_value(), "the mask has layout '{}'", mask.layout);
  why.need(mask.rank() <= 4 && (mask.rank() == 0 || mask.dims.back() <= a.T),
           "the mask is [{}], need rank 4 or less and at most {} columns",
           fmt::join(mask.dims, ","), a.T);
  if (!why.fine()) return;
  a.mask_keys = mask.rank() == 0 ? a.T : mask.dims.back();
  const size_t lead = 4 - mask.dims.size();
  for (size_t i = 0; i < mask.dims.size(); ++i)
    if (mask.dims[i] != 1) a.mask_strides[lead + i] = (*own)[i];
  why.need(a.mask_strides[3] == 0 || a.mask_strides[3] == 1, "the columns of the mask are strided");
}

// Keys (input 1) or values (input 2) and what came before them; `strides` become those of both
// together.
void join(const Problem& p, size_t input, Plan& plan, Joined& joined, int64_t (&strides)[3],
          Reason& why) {
  const Operand& fresh = p.in[input];
  const bool past = p.has(input + 3);
  KeyRows& r = joined.rows;
  r.T = fresh.dims[2];
  r.E = fresh.dims[3];
  why.need(strides_of_rows(fresh, r.fresh), "the innermost axis of input {} is not packed", input);
  if (past) {
    r.P = p.in[input + 3].dims[2];
    why.need(strides_of_rows(p.in[input + 3], r.past),
             "the innermost axis of input {} is not packed", input + 3);
  }
  r.written = wanted(p, input);
  if (r.written) {
    why.output_is(p, input, DType::kF32) &&
        why.need(strides_of_rows(p.out[input], r.target),
                 "the innermost axis of output {} is not packed", input);
  }
  joined.needed = r.written || (past && !plan.few());
  if (!why.fine()) return;
  if (r.P > 0) joined.arguments.push_back({Argument::kInput, static_cast<int>(input) + 3, 0});
  joined.arguments.push_back({Argument::kInput, static_cast<int>(input), 0});
  std::copy_n(r.fresh, 3, strides);
  if (r.written) {
    joined.arguments.push_back({Argument::kOutput, static_cast<int>(input), 0});
    std::copy_n(r.target, 3, strides);
  } else if (joined.needed) {
    strides[2] = r.E;
    strides[1] = (r.P + r.T) * r.E;
    strides[0] = fresh.dims[1] * strides[1];
    std::copy_n(strides, 3, r.target);
    joined.arguments.push_back({Argument::kWorkspace, 0, plan.floats * 4});
    plan.floats += ceil_div(fresh.dims[0] * strides[0], 16) * 16;
  }
}

// Cuts long caches of few heads into runs of keys, where that leaves each enough to read.
void split(Plan& plan) {
  constexpr int64_t kItems = 32, kBytes = 1 << 18, kKeys = 64;
  AttentionArgs& a = plan.args;
  const int64_t most = a.T * (a.E + a.F) * 4 / kBytes;
  const int64_t wanted =
      std::clamp<int64_t>(kItems / std::max<int64_t>(a.B * a.K, 1), 1, std::max<int64_t>(most, 1));
  a.split_keys = ceil_div(ceil_div(a.T, wanted), kKeys) * kKeys;
  a.splits = ceil_div(a.T, a.split_keys);
  if (a.splits > 1) plan.floats += a.B * a.H * a.S * a.splits * partial_size(a.F);
}

Reason fill(const Problem& p, Plan& plan) {
  AttentionArgs& a = plan.args;
  Reason why;
  check_operands(p, why);
  if (!why.fine()) return why;
  const Dims &q = p.in[0].dims, &k = p.in[1].dims, &v = p.in[2].dims;
  a.B = q[0];
  a.H = q[1];
  a.S = q[2];
  a.E = q[3];
  a.K = k[1];
  a.past = p.has(4) ? p.in[4].dims[2] : 0;
  a.T = k[2] + a.past;
  a.F = v[3];
  why.need(a.K > 0 && a.H % a.K == 0, "{} query heads for {} key heads", a.H, a.K);
  why.need(a.E >= 1 && a.E <= kMaxHeadSize && a.F >= 1 && a.F <= kMaxHeadSize,
           "head sizes {} and {}, need 1 to {}", a.E, a.F, kMaxHeadSize);
  why.need(a.T >= 1, "no keys");
  why.need(strides_of_rows(p.in[0], a.q), "the innermost axis of input 0 is not packed");
  why.need(strides_of_rows(p.out[0], a.y), "the innermost axis of output 0 is not packed");
  if (why.fine()) join(p, 1, plan, plan.keys, a.k, why);
  if (why.fine()) join(p, 2, plan, plan.values, a.v, why);
  if (why.fine()) fill_mask(p, a, why);
  if (!why.fine()) return why;
  a.scale = static_cast<float>(p.attrs.has("scale") ? p.attrs.f("scale")
                                                    : 1 / std::sqrt(static_cast<double>(a.E)));
  a.softcap = static_cast<float>(p.attrs.f("softcap"));
  a.causal = p.attrs.i("causal") != 0;
  a.length_bytes = p.has(6) ? bits_of(p.in[6].dtype) / 8 : 0;
  a.keys = plan.keys.rows;
  a.values = plan.values.rows;
  if (plan.few()) {
    split(plan);
    return why;
  }
  if (plan.narrow) {
    a.keys_size = narrow_size(a.E, a.T);
    a.values_size = narrow_size(a.T, a.F);
    a.rows = ceil_div(a.S, ceil_div(a.S, kNarrowQueries));
    return why;
  }
  a.keys_size = packed_size(a.E, a.T);
  a.values_size = a.F % kPanel == 0 ? 0 : packed_size(a.T, a.F);
  // Blocks of about the same size, in multiples of the rows of a tile.
  const int64_t blocks = ceil_div(a.S, kQueryBlock);
  a.rows = std::min(kQueryBlock, ceil_div(ceil_div(a.S, blocks), 6) * 6);
  return why;
}

template <bool kNarrow>
Claim probe(const Problem& p) {
  Plan plan;
  plan.narrow = kNarrow;
  Reason why = fill(p, plan);
  why.need(!kNarrow || !plan.few(), "{} queries, need more than {}", plan.args.S, kFewQueries);
  if (!why.fine()) return why.refusal();
  const AttentionArgs& a = plan.args;
  // What causality hides is not computed.
  const double hidden = a.causal ? 0.5 * static_cast<double>(std::min(a.S, a.T)) : 0;
  const double pairs =
      static_cast<double>(a.B * a.H * a.S) * std::max(1.0, static_cast<double>(a.T) - hidden);
  Claim c = claim(pairs * static_cast<double>(2 * (a.E + a.F) + 20), bytes_of(p),
                  plan.few() || kNarrow ? 0.3 : 0.8, NumericClass::kApproximate);
  c.workspace = Bytes(plan.floats * 4);
  if (!plan.few())
    c.workspace += Bytes(a.B * a.K * (a.keys_size + a.values_size) * (kNarrow ? 2 : 4));
  return c;
}

template <bool kNarrow>
Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  Plan plan;
  plan.narrow = kNarrow;
  const Reason why = fill(p, plan);
  if (!why.fine()) return error(Code::kInternal, "prepare without a claim: {}", why.text());
  const AttentionArgs& a = plan.args;
  auto launch = [&](std::string_view entry, int64_t grid, std::vector<Argument> arguments,
                    const auto& args) {
    if (grid == 0) return;
    LaunchSpec spec;
    spec.entry = entry;
    spec.grid = items(grid, 1);
    spec.arguments = std::move(arguments);
    spec.set_constants(args);
    launches.push_back(std::move(spec));
  };
  const Argument q{Argument::kInput, 0, 0}, y{Argument::kOutput, 0, 0};
  std::vector<Argument> extras;
  if (p.has(3)) extras.push_back({Argument::kInput, 3, 0});
  if (p.has(6)) extras.push_back({Argument::kInput, 6, 0});
  auto append = [](std::vector<Argument>& list, const std::vector<Argument>& more) {
    list.insert(list.end(), more.begin(), more.end());
  };
  if (plan.few()) {
    std::vector<Argument> arguments{q};
    append(arguments, plan.keys.arguments);
    append(arguments, plan.values.arguments);
    const bool joins = a.splits > 1;
    const Argument parts{Argument::kWorkspace, 0, 0};
    arguments.push_back(joins ? parts : y);
    append(arguments, extras);
    launch("cpu.attention_few", a.B * a.K * a.splits, std::move(arguments), a);
    if (joins) launch("cpu.attention_join", a.B * a.K, {parts, y}, a);
    return launches;
  }
  for (const Joined* joined : {&plan.keys, &plan.values})
    if (joined->needed)
      launch("cpu.attention_append", a.B * a.K, joined->arguments, AppendArgs{a.K, joined->rows});
  if (p.out[0].count() == 0) return launches;
  const Argument k = plan.keys.arguments.back(), v = plan.values.arguments.back(),
                 workspace{Argument::kWorkspace, 0, plan.floats * 4};
  launch(kNarrow ? "cpu.narrow_keys" : "cpu.attention_keys", a.B * a.K, {k, v, workspace}, a);
  std::vector<Argument> arguments{q, v, workspace, y};
  if (kNarrow) arguments = {q, workspace, y};
  append(arguments, extras);
  launch(kNarrow ? "cpu.narrow_attention" : "cpu.attention", a.B * a.H * ceil_div(a.S, a.rows),
         std::move(arguments), a);
  return launches;
}

constexpr Row kRows[] = {
    {"attention", "cpu.attention", probe<false>, prepare<false>},
    {"attention", "cpu.attention_bf16", probe<true>, prepare<true>, nullptr, false, DType::kBF16},
};

}  // namespace

std::span<const Row> attention_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
