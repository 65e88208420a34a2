// Operators whose places are data: rows cpu.gather, cpu.gather_elements, cpu.gather_nd,
// cpu.scatter_elements, cpu.scatter_nd, cpu.arg_extreme, cpu.cumulative, cpu.top_k, cpu.range.
#include <algorithm>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/index_args.h"
#include "tessera/kernels/cpu/index_entries.h"
#include "tessera/kernels/cpu/move_args.h"
#include "tessera/op/rules.h"

namespace tessera::kernels::cpu {
namespace {

constexpr int64_t kItemBytes = 32768;

int64_t product(const Dims& d, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t i = first; i < last; ++i) n *= d[i];
  return n;
}

void whole_bytes(const Problem& p, Reason& why) {
  why.need(bits_of(p.in[0].dtype) >= 8, "input 0 is {}, need elements of whole bytes",
           name_of(p.in[0].dtype));
}

void integer_indices(const Problem& p, size_t i, Reason& why) {
  const DType d = p.in[i].dtype;
  why.need(d == DType::kI32 || d == DType::kI64, "indices are {}, need i32 or i64", name_of(d));
}

bool wide(const Problem& p) { return p.in[1].dtype == DType::kI64; }

Result<size_t> axis_of(const Problem& p, int64_t otherwise) {
  TRY_ASSIGN(const int axis, op::normalize_axis(p.attrs.i("axis", otherwise), p.in[0].rank()));
  return static_cast<size_t>(axis);
}

template <class Args>
std::vector<LaunchSpec> launch_of(std::string_view entry, uint32_t grid,
                                  std::vector<Argument> arguments, const Args& args) {
  LaunchSpec launch;
  launch.entry = entry;
  launch.grid = grid;
  launch.arguments = std::move(arguments);
  launch.set_constants(args);
  return {std::move(launch)};
}

// ---- gather

Claim probe_gather(const Problem& p) {
  Reason why;
  whole_bytes(p, why);
  integer_indices(p, 1, why);
  why.need(axis_of(p, 0).has_value(), "axis {} is outside rank {}", p.attrs.i("axis"),
           p.in[0].rank());
  return why.fine() ? claim(0, 2 * bytes_of(p.out[0]) + bytes_of(p.in[1])) : why.refusal();
}

Result<std::vector<LaunchSpec>> prepare_gather(const Problem& p, const Claim&) {
  if (p.out[0].count() == 0) return std::vector<LaunchSpec>();
  TRY_ASSIGN(const size_t axis, axis_of(p, 0));
  const Dims& x = p.in[0].dims;
  GatherArgs args{};
  args.outer = product(x, 0, axis);
  args.n = x[axis];
  args.inner = product(x, axis + 1, x.size());
  args.count = p.in[1].count();
  args.bytes = bits_of(p.in[0].dtype) / 8;
  args.wide = wide(p);
  args.chunk = std::max<int64_t>(1, kItemBytes / (args.inner * args.bytes));
  return launch_of("cpu.gather", items(args.outer * args.count, args.chunk), all_arguments(p),
                   args);
}

// ---- gather_elements, scatter_elements

Claim probe_elements(const Problem& p) {
  Reason why;
  whole_bytes(p, why);
  integer_indices(p, 1, why);
  const Dims &x = p.in[0].dims, &indices = p.in[1].dims;
  const auto axis = axis_of(p, 0);
  why.need(axis.has_value(), "axis {} is outside rank {}", p.attrs.i("axis"), x.size());
  why.need(x.size() == indices.size() && x.size() <= kIndexRank,
           "ranks {} and {}, need equal ones up to {}", x.size(), indices.size(), kIndexRank);
  for (size_t a = 0; why.fine() && a < x.size(); ++a)
    why.need(a == *axis || indices[a] <= x[a], "axis {} has {} indices for {} elements", a,
             indices[a], x[a]);
  return why.fine() ? claim(10 * static_cast<double>(p.in[1].count()), bytes_of(p), 0.1)
                    : why.refusal();
}

GatherElementsArgs elements_args(const Problem& p) {
  const Dims &x = p.in[0].dims, &indices = p.in[1].dims, strides = op::strides_of(x);
  GatherElementsArgs args{};
  args.rank = static_cast<int32_t>(x.size());
  args.axis = static_cast<int32_t>(axis_of(p, 0).value_or(0));
  args.bytes = bits_of(p.in[0].dtype) / 8;
  args.wide = wide(p);
  std::copy(indices.begin(), indices.end(), args.dims);
  std::copy(strides.begin(), strides.end(), args.strides);
  args.n = x[static_cast<size_t>(args.axis)];
  args.count = p.in[1].count();
  args.chunk = 4096;
  return args;
}

Result<std::vector<LaunchSpec>> prepare_gather_elements(const Problem& p, const Claim&) {
  if (p.out[0].count() == 0) return std::vector<LaunchSpec>();
  const GatherElementsArgs args = elements_args(p);
  return launch_of("cpu.gather_elements", items(args.count, args.chunk), all_arguments(p), args);
}

// ---- scatter

struct KindName {
  std::string_view name;
  ScatterKind kind;
};
constexpr KindName kKinds[] = {{"none", ScatterKind::kNone},
                               {"add", ScatterKind::kAdd},
                               {"mul", ScatterKind::kMul},
                               {"max", ScatterKind::kMax},
                               {"min", ScatterKind::kMin}};

std::optional<ScatterKind> kind_of(const Problem& p) {
  for (const KindName& k : kKinds)
    if (k.name == p.attrs.s("reduction", "none")) return k.kind;
  return std::nullopt;
}

std::optional<ScatterType> scatter_type(const Problem& p, ScatterKind kind) {
  if (kind == ScatterKind::kNone) return ScatterType::kRaw;
  switch (p.in[0].dtype) {
    case DType::kF32:
      return ScatterType::kF32;
    case DType::kF64:
      return ScatterType::kF64;
    case DType::kI32:
      return ScatterType::kI32;
    case DType::kI64:
      return ScatterType::kI64;
    default:
      return std::nullopt;
  }
}

void check_scatter(const Problem& p, Reason& why) {
  const auto kind = kind_of(p);
  why.need(kind.has_value(), "unknown reduction '{}'", p.attrs.s("reduction"));
  if (why.fine())
    why.need(scatter_type(p, *kind).has_value(), "reduction of {}, need f32, f64, i32 or i64",
             name_of(p.in[0].dtype));
  why.need(p.in[2].dtype == p.in[0].dtype, "types {} and {} differ", name_of(p.in[0].dtype),
           name_of(p.in[2].dtype));
}

// x, brought to y: the first launch of a scatter.
LaunchSpec copy_of_x(const Problem& p) {
  CopyArgs args{};
  args.rank = 1;
  args.bytes = bits_of(p.in[0].dtype) / 8;
  args.across = -1;
  args.dims[0] = p.in[0].count();
  args.in_strides[0] = args.out_strides[0] = 1;
  args.units = ceil_div(args.dims[0], kRowPiece / args.bytes);
  args.chunk = 1;
  return launch_of("cpu.copy", items(args.units, 1),
                   {{Argument::kInput, 0, 0}, {Argument::kOutput, 0, 0}}, args)[0];
}

std::vector<Argument> scatter_arguments() {
  return {{Argument::kInput, 2, 0}, {Argument::kInput, 1, 0}, {Argument::kOutput, 0, 0}};
}

Claim probe_scatter_elements(const Problem& p) {
  Claim c = probe_elements(p);
  Reason why;
  check_scatter(p, why);
  why.need(p.in[2].dims == p.in[1].dims, "updates are {}, indices {}", op::to_string(p.in[2].dims),
           op::to_string(p.in[1].dims));
  return c.supported() && !why.fine() ? why.refusal() : c;
}

Result<std::vector<LaunchSpec>> prepare_scatter_elements(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0 && p.in[1].count() == 0) return launches;
  if (p.out[0].count() > 0) launches.push_back(copy_of_x(p));
  if (p.in[1].count() == 0) return launches;
  ScatterElementsArgs args{};
  args.places = elements_args(p);
  args.kind = kind_of(p).value_or(ScatterKind::kNone);
  args.type = scatter_type(p, args.kind).value_or(ScatterType::kRaw);
  launches.push_back(launch_of("cpu.scatter_elements", 1, scatter_arguments(), args)[0]);
  return launches;
}

// ---- gather_nd, scatter_nd

Result<PlacesArgs> places_args(const Problem& p, int64_t batch) {
  const Dims &x = p.in[0].dims, &indices = p.in[1].dims;
  if (indices.empty()) return error(Code::kInvalidArgument, "indices are a scalar");
  const int64_t length = indices.back();
  if (length > kIndexRank)
    return error(Code::kInvalidArgument, "places of {} numbers, need at most {}", length,
                 kIndexRank);
  if (batch + length > std::ssize(x))
    return error(Code::kInvalidArgument, "places of {} numbers after {} axes of rank {}", length,
                 batch, x.size());
  for (size_t a = 0; a < static_cast<size_t>(batch); ++a)
    if (x[a] != indices[a])
      return error(Code::kInvalidArgument, "batch axis {} is {} and {}", a, x[a], indices[a]);
  PlacesArgs args{};
  args.length = static_cast<int32_t>(length);
  args.bytes = bits_of(p.in[0].dtype) / 8;
  args.wide = wide(p);
  const Dims strides = op::strides_of(x);
  for (int64_t k = 0; k < length; ++k) {
    args.n[k] = x[static_cast<size_t>(batch + k)];
    args.strides[k] = strides[static_cast<size_t>(batch + k)];
  }
  args.count = product(indices, 0, indices.size() - 1);
  args.inner = product(x, static_cast<size_t>(batch + length), x.size());
  args.per_batch =
      batch == 0 ? 0 : product(indices, static_cast<size_t>(batch), indices.size() - 1);
  args.batch_stride = product(x, static_cast<size_t>(batch), x.size());
  args.chunk = std::max<int64_t>(1, kItemBytes / std::max<int64_t>(1, args.inner * args.bytes));
  return args;
}

Claim probe_places(const Problem& p, bool scatter) {
  Reason why;
  whole_bytes(p, why);
  integer_indices(p, 1, why);
  const auto args = places_args(p, p.attrs.i("batch_dims"));
  why.need(args.has_value(), "{}", args ? "" : args.error().message);
  if (scatter) {
    check_scatter(p, why);
    if (why.fine())
      why.need(p.in[2].count() == args->count * args->inner, "{} updates, need {}", p.in[2].count(),
               args->count * args->inner);
  }
  return why.fine() ? claim(10 * static_cast<double>(p.in[1].count()),
                            2 * bytes_of(p.out[0]) + bytes_of(p.in[1]), 0.1)
                    : why.refusal();
}
Claim probe_gather_nd(const Problem& p) { return probe_places(p, false); }
Claim probe_scatter_nd(const Problem& p) { return probe_places(p, true); }

Result<std::vector<LaunchSpec>> prepare_gather_nd(const Problem& p, const Claim&) {
  if (p.out[0].count() == 0) return std::vector<LaunchSpec>();
  TRY_ASSIGN(const PlacesArgs args, places_args(p, p.attrs.i("batch_dims")));
  return launch_of("cpu.gather_nd", items(args.count, args.chunk), all_arguments(p), args);
}

Result<std::vector<LaunchSpec>> prepare_scatter_nd(const Problem& p, const Claim&) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  launches.push_back(copy_of_x(p));
  TRY_ASSIGN(PlacesArgs args, places_args(p, 0));
  args.kind = kind_of(p).value_or(ScatterKind::kNone);
  args.type = scatter_type(p, args.kind).value_or(ScatterType::kRaw);
  if (args.count > 0)
    launches.push_back(launch_of("cpu.scatter_nd", 1, scatter_arguments(), args)[0]);
  return launches;
}

// ---- Lines along an axis

std::optional<LineType> line_type(DType d) {
  switch (d) {
    case DType::kF32:
      return LineType::kF32;
    case DType::kF64:
      return LineType::kF64;
    case DType::kI32:
      return LineType::kI32;
    case DType::kI64:
      return LineType::kI64;
    case DType::kI8:
      return LineType::kI8;
    case DType::kU8:
      return LineType::kU8;
    default:
      return std::nullopt;
  }
}

void known_type(const Problem& p, Reason& why) {
  why.need(line_type(p.in[0].dtype).has_value(), "input 0 is {}, need f32, f64, i32, i64, i8 or u8",
           name_of(p.in[0].dtype));
}

LinesArgs lines_args(const Problem& p, size_t axis) {
  const Dims& x = p.in[0].dims;
  LinesArgs args{};
  args.outer = product(x, 0, axis);
  args.n = x[axis];
  args.inner = product(x, axis + 1, x.size());
  args.chunk = std::max<int64_t>(1, 8192 / std::max<int64_t>(args.n, 1));
  args.type = line_type(p.in[0].dtype).value_or(LineType::kF32);
  return args;
}

Claim probe_arg(const Problem& p) {
  Reason why;
  known_type(p, why);
  const auto axis = axis_of(p, 0);
  why.need(axis.has_value(), "axis {} is outside rank {}", p.attrs.i("axis"), p.in[0].rank());
  if (why.fine()) why.need(p.in[0].dims[*axis] > 0, "axis {} is empty", *axis);
  return why.fine() ? claim(4 * static_cast<double>(p.in[0].count()), bytes_of(p), 0.1)
                    : why.refusal();
}

Result<std::vector<LaunchSpec>> prepare_arg(const Problem& p, const Claim&) {
  if (p.out[0].count() == 0) return std::vector<LaunchSpec>();
  TRY_ASSIGN(const size_t axis, axis_of(p, 0));
  LinesArgs args = lines_args(p, axis);
  args.flag[0] = p.op->name == "argmax";
  args.flag[1] = p.attrs.i("select_last") != 0;
  return launch_of("cpu.arg_extreme", items(args.outer * args.inner, args.chunk), all_arguments(p),
                   args);
}

Result<size_t> cumulative_axis(const Problem& p) {
  if (!p.has(1) || !p.in[1].values || p.in[1].values->size() != 1)
    return error(Code::kInvalidArgument, "axis unknown");
  TRY_ASSIGN(const int axis, op::normalize_axis(p.in[1].values->front(), p.in[0].rank()));
  return static_cast<size_t>(axis);
}

Claim probe_cumulative(const Problem& p) {
  Reason why;
  known_type(p, why);
  const auto axis = cumulative_axis(p);
  why.need(axis.has_value(), "{}", axis ? "" : axis.error().message);
  const std::string kind = p.attrs.s("kind");
  why.need(kind == "sum" || kind == "prod", "unknown kind '{}'", kind);
  // Sums are kept in double and rounded once, as in the reference.
  return why.fine() ? claim(8 * static_cast<double>(p.in[0].count()), bytes_of(p), 0.1)
                    : why.refusal();
}

Result<std::vector<LaunchSpec>> prepare_cumulative(const Problem& p, const Claim&) {
  if (p.out[0].count() == 0) return std::vector<LaunchSpec>();
  TRY_ASSIGN(const size_t axis, cumulative_axis(p));
  LinesArgs args = lines_args(p, axis);
  args.flag[0] = p.attrs.s("kind") == "prod";
  args.flag[1] = p.attrs.i("exclusive") != 0;
  args.flag[2] = p.attrs.i("reverse") != 0;
  return launch_of("cpu.cumulative", items(args.outer * args.inner, args.chunk),
                   {{Argument::kInput, 0, 0}, {Argument::kOutput, 0, 0}}, args);
}

// Lines are spread over few items, each with its own workspace.
LinesArgs top_k_args(const Problem& p, size_t axis) {
  LinesArgs args = lines_args(p, axis);
  args.chunk = std::max(args.chunk, ceil_div(args.outer * args.inner, 16));
  args.flag[0] = p.attrs.i("largest", 1) != 0;
  args.k = p.out[0].dims[axis];
  return args;
}

Claim probe_top_k(const Problem& p) {
  Reason why;
  known_type(p, why);
  const auto axis = axis_of(p, -1);
  why.need(axis.has_value(), "axis {} is outside rank {}", p.attrs.i("axis", -1), p.in[0].rank());
  why.need(p.out.size() > 1 && p.out[1].present, "output 1 is not wanted");
  if (why.fine())
    why.need(p.out[0].dims[*axis] <= p.in[0].dims[*axis], "{} of {} elements", p.out[0].dims[*axis],
             p.in[0].dims[*axis]);
  if (!why.fine()) return why.refusal();
  const LinesArgs args = top_k_args(p, *axis);
  Claim c = claim(60 * static_cast<double>(p.in[0].count()), bytes_of(p), 0.1);
  c.workspace = Bytes(int64_t{items(args.outer * args.inner, args.chunk)} * args.n * 8);
  return c;
}

Result<std::vector<LaunchSpec>> prepare_top_k(const Problem& p, const Claim&) {
  if (p.out[0].count() == 0) return std::vector<LaunchSpec>();
  TRY_ASSIGN(const size_t axis, axis_of(p, -1));
  const LinesArgs args = top_k_args(p, axis);
  return launch_of("cpu.top_k", items(args.outer * args.inner, args.chunk),
                   {{Argument::kInput, 0, 0},
                    {Argument::kOutput, 0, 0},
                    {Argument::kOutput, 1, 0},
                    {Argument::kWorkspace, 0, 0}},
                   args);
}

Claim probe_range(const Problem& p) {
  Reason why;
  known_type(p, why);
  for (size_t i = 0; i < 3; ++i)
    why.need(p.in[i].count() == 1, "input {} has {} elements, need 1", i, p.in[i].count());
  return why.fine() ? claim(static_cast<double>(p.out[0].count()), bytes_of(p)) : why.refusal();
}

Result<std::vector<LaunchSpec>> prepare_range(const Problem& p, const Claim&) {
  if (p.out[0].count() == 0) return std::vector<LaunchSpec>();
  const RangeArgs args{p.out[0].count(), line_type(p.in[0].dtype).value_or(LineType::kF32)};
  return launch_of("cpu.range", 1,
                   {{Argument::kInput, 0, 0}, {Argument::kInput, 2, 0}, {Argument::kOutput, 0, 0}},
                   args);
}

constexpr Row kRows[] = {
    {"gather", "cpu.gather", row_major<probe_gather>, prepare_gather},
    {"gather_elements", "cpu.gather_elements", row_major<probe_elements>, prepare_gather_elements},
    {"gather_nd", "cpu.gather_nd", row_major<probe_gather_nd>, prepare_gather_nd},
    {"scatter_elements", "cpu.scatter_elements", row_major<probe_scatter_elements>,
     prepare_scatter_elements},
    {"scatter_nd", "cpu.scatter_nd", row_major<probe_scatter_nd>, prepare_scatter_nd},
    {"argmax", "cpu.arg_extreme", row_major<probe_arg>, prepare_arg},
    {"argmin", "cpu.arg_extreme", row_major<probe_arg>, prepare_arg},
    {"cumulative", "cpu.cumulative", row_major<probe_cumulative>, prepare_cumulative},
    {"top_k", "cpu.top_k", row_major<probe_top_k>, prepare_top_k},
    {"range", "cpu.range", row_major<probe_range>, prepare_range},
};

constexpr Entry kEntries[] = {
    {"cpu.gather", gather},         {"cpu.gather_elements", gather_elements},
    {"cpu.gather_nd", gather_nd},   {"cpu.scatter_elements", scatter_elements},
    {"cpu.scatter_nd", scatter_nd}, {"cpu.arg_extreme", arg_extreme},
    {"cpu.cumulative", cumulative}, {"cpu.top_k", top_k},
    {"cpu.range", range},
};

}  // namespace

Family index_family() { return {kRows, kEntries}; }

}  // namespace tessera::kernels::cpu
