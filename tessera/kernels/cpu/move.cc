// Operators that move elements, as strided copies and pads: rows cpu.copy, cpu.pad, cpu.store; and
// cpu.convert.
#include <algorithm>

#include "tessera/base/float.h"
#include "tessera/kernels/cpu/box_args.h"
#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/move_args.h"
#include "tessera/kernels/cpu/move_entries.h"
#include "tessera/op/rules.h"

namespace tessera::kernels::cpu {
namespace {

// ---- Strided copies

// One walk: every element of `dims` from x at in_offset to y at out_offset.
struct Walk {
  Dims dims, in, out;
  int64_t in_offset = 0, out_offset = 0;
  int input = 0;
  int output = 0;
};
using Walks = std::vector<Walk>;

int64_t product(const Dims& d) {
  int64_t n = 1;
  for (int64_t v : d) n *= v;
  return n;
}

std::optional<CopyArgs> copy_args(const Walk& w, int bytes) {
  Dims dims = w.dims;
  std::vector<Dims> strides{w.in, w.out};
  merge_axes(dims, strides);
  if (dims.size() > kMoveRank) return std::nullopt;
  // Axes in the order of falling out strides: outputs are written in order.
  std::vector<size_t> order(dims.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::abs(strides[1][a]) > std::abs(strides[1][b]);
  });
  CopyArgs args{};
  args.rank = static_cast<int32_t>(dims.size());
  args.bytes = bytes;
  args.across = -1;
  args.in_offset = w.in_offset;
  args.out_offset = w.out_offset;
  for (size_t i = 0; i < order.size(); ++i) {
    args.dims[i] = dims[order[i]];
    args.in_strides[i] = strides[0][order[i]];
    args.out_strides[i] = strides[1][order[i]];
  }
  const int inner = args.rank - 1;
  for (int i = 0; i < inner; ++i)
    if (args.in_strides[i] == 1 && args.in_strides[inner] > 1) args.across = i;
  int64_t lines = 1;
  for (int i = 0; i < inner; ++i)
    if (i != args.across) lines *= args.dims[i];
  const int64_t piece = args.across >= 0 ? kStripe : kRowPiece / bytes;
  const int64_t height = args.across >= 0 ? args.dims[args.across] : 1;
  args.units = lines * ceil_div(args.dims[inner], piece) * ceil_div(height, kAcross);
  const int64_t unit = std::min(piece, args.dims[inner]) * bytes * std::min(height, kAcross);
  args.chunk = std::max<int64_t>(1, kRowPiece / std::max<int64_t>(unit, 1));
  return args;
}

using WalksFn = Result<Walks> (*)(const Problem&);

Claim probe_copy(const Problem& p, WalksFn walks_of) {
  Reason why;
  const DType d = p.out[0].dtype;
  why.need(bits_of(d) >= 8, "output 0 is {}, need elements of whole bytes", name_of(d));
  if (!why.fine()) return why.refusal();
  const auto walks = walks_of(p);
  if (!walks) return Claim::refuse("", walks.error().message);
  double bytes = 0;
  for (const Walk& w : *walks) {
    const auto args = copy_args(w, bits_of(d) / 8);
    why.need(args.has_value(), "more than {} axes that do not merge", kMoveRank);
    if (!why.fine()) return why.refusal();
    const bool rows = args->across < 0 && std::abs(args->in_strides[args->rank - 1]) <= 1;
    bytes += 2.0 * static_cast<double>(product(w.dims)) * bits_of(d) / 8 * (rows ? 1 : 3);
  }
  return claim(0, bytes);
}

// Where both sides step forwards, and nothing is read twice: layout's copies.
std::optional<layout::Copy> box_copy(const Walk& w, int bytes) {
  if (std::any_of(w.in.begin(), w.in.end(), [](int64_t s) { return s <= 0; })) return std::nullopt;
  if (std::any_of(w.out.begin(), w.out.end(), [](int64_t s) { return s <= 0; }))
    return std::nullopt;
  const auto box = layout::box_of(w.dims, w.in, w.out, w.in_offset, w.out_offset);
  if (!box) return std::nullopt;
  return layout::plan_copy(*box, bytes, layout::beyond_caches(2 * product(w.dims) * bytes));
}

Result<std::vector<LaunchSpec>> prepare_copy(const Problem& p, WalksFn walks_of) {
  TRY_ASSIGN(const Walks walks, walks_of(p));
  std::vector<LaunchSpec> launches;
  for (const Walk& w : walks) {
    if (product(w.dims) == 0) continue;
    const int bytes = bits_of(p.out[0].dtype) / 8;
    if (const auto copy = box_copy(w, bytes)) {
      launches.push_back(move_boxes({&*copy, 1}, 2 * product(w.dims) * bytes, w.input, w.output));
      continue;
    }
    const auto args = copy_args(w, bytes);
    if (!args) return error(Code::kInternal, "prepare without a claim: {}", p.str());
    LaunchSpec launch;
    launch.entry = "cpu.copy";
    launch.grid = items(args->units, args->chunk);
    launch.arguments = {{Argument::kInput, w.input, 0}, {Argument::kOutput, w.output, 0}};
    launch.set_constants(*args);
    launches.push_back(std::move(launch));
  }
  return launches;
}

template <WalksFn kWalks>
Claim probe_walks(const Problem& p) {
  return probe_copy(p, kWalks);
}
template <WalksFn kWalks>
Result<std::vector<LaunchSpec>> prepare_walks(const Problem& p, const Claim&) {
  return prepare_copy(p, kWalks);
}
template <WalksFn kWalks>
constexpr Row copying(std::string_view name) {
  return {name, "cpu.copy", row_major<probe_walks<kWalks>>, prepare_walks<kWalks>};
}

// Walks that go by logical_strides, whatever the layouts.
template <WalksFn kWalks>
Claim probe_anywhere(const Problem& p) {
  if (p.out.empty() || !p.out[0].present) return Claim::refuse("", "nobody reads output 0");
  for (const auto* side : {&p.in, &p.out})
    for (const Operand& o : *side) {
      if (!o.present) continue;
      if (o.dtype == DType::kString) return Claim::refuse("", "an operand holds strings");
      if (!op::element_count(o.dims))
        return Claim::refuse("", fmt::format("impossible sizes {}", op::to_string(o.dims)));
      if (!logical_strides(o))
        return Claim::refuse("", fmt::format("an operand has layout '{}'", o.layout));
    }
  return probe_copy(p, kWalks);
}
template <WalksFn kWalks>
constexpr Row copying_anywhere(std::string_view name) {
  return {name, "cpu.copy", probe_anywhere<kWalks>, prepare_walks<kWalks>};
}

Dims strides(const Operand& o) { return *logical_strides(o); }

Walk whole(const Problem& p) { return {p.out[0].dims, Dims(), strides(p.out[0])}; }

// The same elements under the same indices.
Result<Walks> relayout(const Problem& p) {
  Walk w = whole(p);
  w.in = strides(p.in[0]);
  return Walks{w};
}

// identity, reshape, squeeze, unsqueeze: the same elements in the same order
Result<Walks> same_order(const Problem& p) {
  if (p.in[0].count() != p.out[0].count())
    return error(Code::kInvalidArgument, "{} elements become {}", p.in[0].count(),
                 p.out[0].count());
  Walk w = whole(p);
  w.in = w.out;
  return Walks{w};
}

Result<Walks> transpose(const Problem& p) {
  Walk w = whole(p);
  const Dims own = strides(p.in[0]);
  for (int64_t axis : p.attrs.ints("perm")) w.in.push_back(own[static_cast<size_t>(axis)]);
  return Walks{w};
}

Result<Walks> broadcast(const Problem& p) {
  Walk w = whole(p);
  w.in = broadcast_strides(p.in[0].dims, p.out[0].dims);
  return Walks{w};
}

// tile: each axis of y is (repeat, size)
Result<Walks> tile(const Problem& p) {
  const Dims &x = p.in[0].dims, &y = p.out[0].dims;
  const Dims in = op::strides_of(x), out = op::strides_of(y);
  Walk w;
  for (size_t a = 0; a < x.size(); ++a) {
    w.dims.insert(w.dims.end(), {x[a] == 0 ? 0 : y[a] / x[a], x[a]});
    w.in.insert(w.in.end(), {0, in[a]});
    w.out.insert(w.out.end(), {out[a] * x[a], out[a]});
  }
  return Walks{w};
}

Result<Walks> slice(const Problem& p) {
  for (size_t i = 1; i < p.in.size(); ++i)
    if (p.has(i) && !p.in[i].values && i != 2)
      return error(Code::kInvalidArgument, "{} unknown",
                   i == 1   ? "starts"
                   : i == 3 ? "axes"
                            : "steps");
  const Dims& x = p.in[0].dims;
  Walk w = whole(p);
  w.in = strides(p.in[0]);
  const op::Ints& starts = *p.in[1].values;
  for (size_t i = 0; i < starts.size(); ++i) {
    TRY_ASSIGN(const int axis,
               op::normalize_axis(p.has(3) ? (*p.in[3].values)[i] : static_cast<int64_t>(i),
                                  p.in[0].rank()));
    const auto a = static_cast<size_t>(axis);
    const int64_t step = p.has(4) ? (*p.in[4].values)[i] : 1, n = x[a];
    const int64_t start = std::clamp<int64_t>(starts[i] < 0 ? starts[i] + n : starts[i], 0,
                                              std::max<int64_t>(0, step > 0 ? n : n - 1));
    w.in_offset += w.in[a] * start;
    w.in[a] *= std::clamp(step, -n - 1, n + 1);
  }
  return Walks{w};
}

Result<Walks> concat(const Problem& p) {
  TRY_ASSIGN(const int axis, op::normalize_axis(p.attrs.i("axis"), p.out[0].rank()));
  const Dims out = strides(p.out[0]);
  Walks walks;
  int64_t offset = 0;
  for (size_t i = 0; i < p.in.size(); ++i) {
    if (!p.has(i)) return error(Code::kInvalidArgument, "input {} is left out", i);
    const Dims& x = p.in[i].dims;
    walks.push_back({x, strides(p.in[i]), out, 0, offset, static_cast<int>(i)});
    offset += x[static_cast<size_t>(axis)] * out[static_cast<size_t>(axis)];
  }
  return walks;
}

// ---- pad

struct PadName {
  std::string_view name;
  PadMode mode;
};
constexpr PadName kPadNames[] = {{"constant", PadMode::kConstant},
                                 {"reflect", PadMode::kReflect},
                                 {"edge", PadMode::kEdge},
                                 {"wrap", PadMode::kWrap}};

Result<PadArgs> pad_args(const Problem& p) {
  const std::string name = p.attrs.s("mode", "constant");
  const auto mode = std::find_if(std::begin(kPadNames), std::end(kPadNames),
                                 [&](const PadName& m) { return m.name == name; });
  if (mode == std::end(kPadNames)) return error(Code::kInvalidArgument, "unknown mode '{}'", name);
  if (!p.in[1].values) return error(Code::kInvalidArgument, "pads unknown");
  if (p.has(3) && !p.in[3].values) return error(Code::kInvalidArgument, "axes unknown");
  if (bits_of(p.in[0].dtype) < 8)
    return error(Code::kInvalidArgument, "input 0 is {}, need elements of whole bytes",
                 name_of(p.in[0].dtype));
  if (p.has(2) && (p.in[2].count() != 1 || p.in[2].dtype != p.in[0].dtype))
    return error(Code::kInvalidArgument, "the value is {} {}, need one {}", p.in[2].count(),
                 name_of(p.in[2].dtype), name_of(p.in[0].dtype));
  Dims x = p.in[0].dims, y = p.out[0].dims, begin(x.size(), 0);
  const op::Ints& pads = *p.in[1].values;
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    TRY_ASSIGN(const int axis,
               op::normalize_axis(p.has(3) ? (*p.in[3].values)[i] : static_cast<int64_t>(i),
                                  p.in[0].rank()));
    begin[static_cast<size_t>(axis)] += pads[i];
  }
  if (mode->mode != PadMode::kConstant && p.in[0].count() == 0)
    return error(Code::kInvalidArgument, "nothing to pad with");
  // Trailing axes that are not padded join the one before.
  while (mode->mode == PadMode::kConstant && x.size() > 1 && x.back() == y.back() &&
         begin.back() == 0) {
    const int64_t n = x.back();
    for (Dims* d : {&x, &y, &begin}) {
      d->pop_back();
      d->back() *= n;
    }
  }
  if (x.empty()) x = y = {1}, begin = {0};
  if (x.size() > kMoveRank)
    return error(Code::kInvalidArgument, "{} axes, need at most {}", x.size(), kMoveRank);
  PadArgs args{};
  args.rank = static_cast<int32_t>(x.size());
  args.bytes = bits_of(p.in[0].dtype) / 8;
  args.has_value = p.has(2);
  args.mode = mode->mode;
  args.rows = 1;
  for (size_t a = 0; a < x.size(); ++a) {
    args.in[a] = x[a];
    args.out[a] = y[a];
    args.begin[a] = begin[a];
    if (a + 1 < x.size()) args.rows *= y[a];
  }
  args.chunk = std::max<int64_t>(1, kRowPiece / std::max<int64_t>(1, y.back() * args.bytes));
  return args;
}

Claim probe_pad(const Problem& p) {
  const auto args = pad_args(p);
  return args ? claim(0, bytes_of(p)) : Claim::refuse("", args.error().message);
}

Result<std::vector<LaunchSpec>> prepare_pad(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  TRY_ASSIGN(const PadArgs args, pad_args(p));
  LaunchSpec launch;
  launch.entry = "cpu.pad";
  launch.grid = items(args.rows, args.chunk);
  launch.arguments = {{Argument::kInput, 0, 0}};
  if (args.has_value) launch.arguments.push_back({Argument::kInput, 2, 0});
  launch.arguments.push_back({Argument::kOutput, 0, 0});
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

// ---- shape_of

Claim probe_shape(const Problem& p) {
  Reason why;
  why.need(p.in[0].rank() <= 64, "rank {}, need at most 64", p.in[0].rank());
  return why.fine() ? claim(0, 8.0 * p.in[0].rank()) : why.refusal();
}

Result<std::vector<LaunchSpec>> prepare_shape(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.in[0].rank() == 0) return launches;
  StoreArgs args{};
  args.count = p.in[0].rank();
  std::copy(p.in[0].dims.begin(), p.in[0].dims.end(), args.values);
  LaunchSpec launch;
  launch.entry = "cpu.store";
  launch.arguments = {{Argument::kOutput, 0, 0}};
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

// ---- convert

struct RoundName {
  std::string_view name;
  Rounding rounding;
};
constexpr RoundName kRoundNames[] = {{"even", Rounding::kNearestEven},
                                     {"away", Rounding::kNearestAway},
                                     {"zero", Rounding::kTowardZero},
                                     {"up", Rounding::kUp},
                                     {"down", Rounding::kDown}};

Claim probe_convert(const Problem& p) {
  Reason why;
  const std::string round = p.attrs.s("round", "even");
  why.need(std::any_of(std::begin(kRoundNames), std::end(kRoundNames),
                       [&](const RoundName& r) { return r.name == round; }),
           "unknown rounding '{}'", round);
  return why.fine() ? claim(4 * static_cast<double>(p.in[0].count()), bytes_of(p), 0.05)
                    : why.refusal();
}

Result<std::vector<LaunchSpec>> prepare_convert(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  ConvertArgs args{};
  const DType to = p.out[0].dtype;
  const std::string round = p.attrs.s("round", "even");
  args.count = p.in[0].count();
  args.from = static_cast<int32_t>(p.in[0].dtype);
  args.to = static_cast<int32_t>(to);
  args.rounding = static_cast<int32_t>(
      std::find_if(std::begin(kRoundNames), std::end(kRoundNames), [&](const RoundName& r) {
        return r.name == round;
      })->rounding);
  args.saturate = is_float(to) && bits_of(to) == 8 && p.attrs.i("saturate", 1) != 0;
  LaunchSpec launch;
  launch.entry = "cpu.convert";
  launch.grid = items(args.count, kConvertChunk);
  launch.arguments = all_arguments(p);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

constexpr Row kRows[] = {
    copying_anywhere<relayout>("relayout"),
    copying_anywhere<relayout>("identity"),
    copying<same_order>("reshape"),
    copying<same_order>("squeeze"),
    copying<same_order>("unsqueeze"),
    copying_anywhere<transpose>("transpose"),
    copying<broadcast>("broadcast_to"),
    copying<tile>("tile"),
    copying_anywhere<slice>("slice"),
    copying_anywhere<concat>("concat"),
    {"pad", "cpu.pad", row_major<probe_pad>, prepare_pad},
    {"shape_of", "cpu.store", row_major<probe_shape>, prepare_shape},
    {"convert", "cpu.convert", row_major<probe_convert>, prepare_convert},
};

constexpr Entry kEntries[] = {
    {"cpu.copy", copy}, {"cpu.pad", pad}, {"cpu.store", store}, {"cpu.convert", convert}};

}  // namespace

Family move_family() { return {kRows, kEntries}; }

}  // namespace tessera::kernels::cpu
