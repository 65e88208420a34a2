#include "tessera/kernels/chip/source.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tessera/layout/bound.h"
#include "tessera/op/elementwise.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::chip {
namespace {

using tessera::chip::VendorKernel;

template <size_t N>
bool any_of(std::string_view name, const std::string_view (&list)[N]) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

constexpr std::string_view kPools[] = {"max_pool",        "average_pool",
                                       "lp_pool",         "global_average_pool",
                                       "global_max_pool", "global_lp_pool"};
constexpr std::string_view kNorms[] = {"layer_norm", "rms_norm", "group_norm", "instance_norm"};
constexpr std::string_view kSoftmax[] = {"softmax", "log_softmax"};
constexpr std::string_view kReductions[] = {"reduce", "argmax", "argmin", "cumulative"};
constexpr std::string_view kMoves[] = {"transpose", "slice", "concat",       "pad",
                                       "tile",      "split", "broadcast_to", "relayout"};
constexpr std::string_view kGathers[] = {"gather", "gather_elements", "gather_nd",
                                         "scatter_elements", "scatter_nd"};
constexpr std::string_view kRecurrent[] = {"lstm", "gru", "rnn"};
// What works on each element where it lies, or along axes, in any layout of its operands.
constexpr std::string_view kKeepsLayout[] = {
    "reduce",   "concat",  "slice",       "pad",           "batch_norm", "resize",    "layer_norm",
    "rms_norm", "softmax", "log_softmax", "instance_norm", "lrn",        "group_norm"};

bool convolves(const op::OpDef& op) { return op.name == "conv" || op.name == "conv_transpose"; }

int64_t groups_of(const op::Problem& p) {
  return convolves(*p.op) ? std::max<int64_t>(1, p.attrs.i("groups", 1)) : 1;
}

bool depthwise(const op::Problem& p) {
  const int64_t groups = groups_of(p);
  return groups > 1 && p.in.size() > 1 && p.in[1].rank() > 1 && p.in[1].dims[1] == 1;
}

// Axes that the format takes apart, from the end for those of the last two, else the channels.
bool blocks_last_two(std::string_view format) { return format == "FRACTAL_NZ"; }
bool blocks_channels(std::string_view format) {
  return format == "NC1HWC0" || format == "NDC1HWC0" || format == "NC1HWC0_C04" ||
         format == "C1HWNC0";
}
bool is_channels_last(std::string_view format) { return format == "NHWC"; }

// The layout of `o` in the format; nothing if its shape does not take it.
std::optional<std::string> in_format(std::string_view format, const op::Operand& o,
                                     int64_t groups = 1) {
  if (!o.present) return std::string();
  if (format.empty() || format == "ND") return std::string();
  if (is_channels_last(format)) {
    std::string text(op::channels_last(o.rank()));
    if (text.empty()) return std::nullopt;
    const bool rows =
        std::all_of(o.dims.begin() + 2, o.dims.end(), [](int64_t d) { return d == 1; });
    return rows ? std::string() : text;
  }
  auto text = layout_in(format, o.dtype, o.dims, groups);
  if (!text) return std::nullopt;
  return *std::move(text);
}

// Which format a layout of `o` is, of those given; empty for none.
std::string format_of(const std::string& layout, const op::Operand& o, const Names& formats) {
  if (layout.empty()) return "ND";
  if (layout == op::channels_last(o.rank())) return "NHWC";
  for (const std::string& f : formats)
    if (auto text = in_format(f, o); text && *text == layout) return f;
  return {};
}

// An operand of an operator that keeps layouts, beside a result in a format: in the format, too,
// where the axes that the format takes apart are as long; else row-major.
std::string beside(std::string_view format, const op::Operand& o, const op::Operand& result) {
  if (!o.present || format == "ND" || o.rank() != result.rank()) return {};
  const auto same = [&](int axis) {
    return o.dims[static_cast<size_t>(axis)] == result.dims[static_cast<size_t>(axis)];
  };
  const int rank = o.rank();
  if (blocks_last_two(format) && !(rank >= 2 && same(rank - 1) && same(rank - 2))) return {};
  if (blocks_channels(format) && !same(1)) return {};
  return in_format(format, o).value_or("");
}

// The layout of a right side [k, n] whose k lies in the order in which a left side's columns lie,
// whatever that is: what a kernel that goes along both takes. Nothing where the left side is more
// than rows of columns in some order.
std::optional<std::string> matching_right(const op::Problem& p, const std::string& left) {
  if (p.op->name != "dot" || left.empty() || p.in.size() < 2 || !p.in[1].constant ||
      p.in[0].rank() != 2 || p.in[1].rank() != 2 || p.attrs.i("transpose_a") != 0)
    return std::nullopt;
  const auto parsed = layout::Layout::parse(left);
  if (!parsed || parsed->rank() != 2) return std::nullopt;
  const auto bound = layout::BoundLayout::bind(*parsed, p.in[0].dtype, p.in[0].dims);
  if (!bound || bound->padding() != 0) return std::nullopt;
  const bool turned = p.attrs.i("transpose_b") != 0;
  std::vector<layout::Expr> order;
  const std::function<bool(layout::Expr&)> rename = [&](layout::Expr& e) {
    if (e.kind == layout::ExprKind::kJoin || e.axis == 0) return false;
    if (e.axis == 1) e.axis = turned ? 1 : 0;
    return std::all_of(e.args.begin(), e.args.end(), rename);
  };
  for (const layout::Expr& axis : parsed->axes()) {
    if (axis.kind == layout::ExprKind::kLetter && axis.axis == 0) {
      if (!order.empty()) return std::nullopt;
      continue;
    }
    layout::Expr renamed = axis;
    if (!rename(renamed)) return std::nullopt;
    order.push_back(std::move(renamed));
  }
  order.insert(turned ? order.begin() : order.end(), layout::letter(turned ? 0 : 1));
  const auto right = layout::Layout::make("ab", std::move(order));
  if (!right) return std::nullopt;
  return right->to_string();
}

void add(std::vector<Wish>& list, Wish wish) {
  const bool there = std::any_of(list.begin(), list.end(), [&](const Wish& w) {
    return w.in == wish.in && w.out == wish.out;
  });
  if (!there) list.push_back(std::move(wish));
}

// The problem's operands behind the anchor's, and its results, beside an anchor's result in a
// format.
void add_steps(const op::Problem& p, std::string_view format, Wish& wish) {
  for (size_t i = p.anchor_inputs(); i < p.in.size(); ++i)
    wish.in.push_back(beside(format, p.in[i], p.anchor_result()));
  for (const op::Operand& o : p.out)
    wish.out.push_back(o.rank() == p.anchor_result().rank() ? in_format(format, o).value_or("")
                                                            : std::string());
}

Wish plain(const op::Problem& p) {
  return {std::vector<std::string>(p.in.size()), std::vector<std::string>(p.out.size())};
}

// Of an anchor: the format of each of its inputs, and of its result.
std::optional<Wish> wish_of(const op::Problem& p, const std::vector<std::string_view>& in,
                            std::string_view out, int64_t groups) {
  Wish wish;
  for (size_t i = 0; i < p.anchor_inputs(); ++i) {
    const std::string_view format = i < in.size() ? in[i] : std::string_view("ND");
    const bool weight = convolves(*p.op) && i == 1;
    auto text = in_format(format, p.in[i], weight ? groups : 1);
    if (!text) return std::nullopt;
    wish.in.push_back(*std::move(text));
  }
  const op::Operand& result = p.anchor_result();
  if (!in_format(out, result)) return std::nullopt;
  if (!p.fused()) {
    wish.out.push_back(*in_format(out, result));
    for (size_t k = 1; k < p.out.size(); ++k) wish.out.emplace_back();
  } else {
    add_steps(p, out, wish);
  }
  return wish;
}

// Blocks stay whole where an axis is put together or cut.
bool cuts_whole_blocks(const op::Problem& p, std::string_view format, const op::Operand& o) {
  if (p.op->name != "concat" && p.op->name != "slice") return true;
  const int64_t block = 256 / std::max(1, bits_of(o.dtype));
  const op::Operand& result = p.anchor_result();
  if (o.rank() != result.rank()) return false;
  for (int a = 0; a < o.rank(); ++a) {
    const int64_t mine = o.dims[static_cast<size_t>(a)],
                  theirs = result.dims[static_cast<size_t>(a)];
    if (mine == theirs) continue;
    if (blocks_last_two(format) && a == o.rank() - 1 && (mine % block || theirs % block))
      return false;
    if (blocks_last_two(format) && a == o.rank() - 2 && (mine % 16 || theirs % 16)) return false;
    if (blocks_channels(format) && a == 1 && (mine % block || theirs % block)) return false;
  }
  return true;
}

}  // namespace

std::string_view name_of(Set set) { return set == Set::kOwn ? "own" : "vendor"; }

std::string vendor_row(const op::Problem& p) {
  const std::string_view op = p.op->name;
  const int rank = p.in.empty() ? 0 : p.in[0].rank();
  if (op == "dot") return "matmul";
  if (op == "conv" && rank == 5) return "conv3d";
  if (op == "conv") return depthwise(p) ? "depthwise_conv" : "conv";
  if (op == "conv_transpose" || op == "batch_norm" || op == "resize" || op == "attention")
    return std::string(op);
  if (any_of(op, kPools)) return "pool";
  if (any_of(op, kRecurrent)) return "rnn";
  if (any_of(op, kNorms)) return "norm";
  if (any_of(op, kSoftmax)) return "softmax";
  if (any_of(op, kReductions)) return "reduce";
  if (any_of(op, kMoves)) return "move";
  if (any_of(op, kGathers)) return "gather";
  if (op == "top_k") return "top_k";
  if (op::elementwise(*p.op)) return "elementwise";
  return {};
}

Source::Source(std::shared_ptr<const tessera::chip::Chip> chip, Set set,
               const std::vector<std::string>& extra)
    : chip_(std::move(chip)),
      set_(set),
      formats_(set == Set::kOwn ? formats_of(*chip_) : vendor_formats_of(*chip_)) {
  formats_.insert(extra.begin(), extra.end());
}

Result<cost::Estimate> Source::estimate(const op::Problem& problem) const {
  if (const auto right =
          problem.in.empty() ? std::nullopt : matching_right(problem, problem.in[0].layout);
      right && *right == problem.in[1].layout) {
    op::Problem in_order = problem;
    in_order.in[0].layout.clear();
    in_order.in[1].layout.clear();
    return estimate(in_order);
  }
  std::string key = problem.str();
  for (const op::Operand& o : problem.in) key += o.constant ? 'c' : 'v';
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  Result<cost::Estimate> result = problem.op->name == "relayout" && !problem.fused()
                                      ? cost::conversion(*chip_, problem.in[0], problem.out[0])
                                      : cost::estimate(*chip_, problem);
  // What layouts of weights a vendor's kernel reads, and how, is the vendor's business.
  if (!result && set_ == Set::kVendor && convolves(*problem.op) && problem.in.size() > 1) {
    op::Problem other = problem;
    other.in[1].layout.clear();
    result = cost::estimate(*chip_, cost::in_own_layouts(*chip_, std::move(other)));
  }
  const std::lock_guard lock(mutex_);
  return known_.try_emplace(std::move(key), std::move(result)).first->second;
}

std::string Source::vendor_refusal(const op::Problem& p) const {
  if (p.op->name == "relayout") return {};
  const std::string name = vendor_row(p);
  const auto row = chip_->vendor_kernels.find(name);
  if (name.empty() || row == chip_->vendor_kernels.end())
    return fmt::format("the vendor of {} lists no kernel for {}", chip_->id, p.op->name);
  const VendorKernel& kernel = row->second;
  const auto type_of = [&](const op::Operand& o) -> std::string {
    const std::string type(tessera::name_of(o.dtype));
    if (kernel.types.empty() ||
        std::find(kernel.types.begin(), kernel.types.end(), type) != kernel.types.end())
      return {};
    return fmt::format("'{}' of the vendor takes {}, not {}", name, fmt::join(kernel.types, ", "),
                       type);
  };
  if (!p.in.empty() && p.in[0].present)
    if (std::string why = type_of(p.in[0]); !why.empty()) return why;
  // A bias goes with a product; anything else is a kernel of its own.
  for (size_t s = 0; s < p.steps.size(); ++s) {
    const op::Step& step = p.steps[s];
    const bool bias = (name == "matmul" || name.find("conv") != std::string::npos) && s == 0 &&
                      p.steps.size() == 1 && step.op->name == "add" && p.in.size() == p.arity + 1 &&
                      p.in.back().constant;
    if (!bias) return fmt::format("'{}' of the vendor takes no {} behind it", name, step.op->name);
  }
  return {};
}

std::vector<op::Claim> Source::probe(const op::Problem& problem) const {
  const std::string family(problem.op->name);
  if (problem.op->kind == op::OpClass::kHost)
    return {op::Claim::refuse(family, "it runs on the host by nature")};
  for (const op::Step& step : problem.steps)
    if (!op::elementwise(*step.op) && step.op->name != "quantize" && step.op->name != "dequantize")
      return {op::Claim::refuse(
          family, fmt::format("{} behind {} is a kernel of its own", step.op->name, family))};
  if (set_ == Set::kVendor)
    if (std::string why = vendor_refusal(problem); !why.empty())
      return {op::Claim::refuse(family, std::move(why))};
  Result<cost::Estimate> e = estimate(problem);
  if (!e) return {op::Claim::refuse(family, e.error().message)};
  op::Claim claim;
  claim.kernel = e->kernel.empty() ? family : e->kernel;
  claim.cost = Picoseconds(std::llround(e->time.expected.value * 1e12));
  claim.flops = e->padded_flops;
  for (const auto& [memory, bytes] : e->bytes) claim.bytes = std::max(claim.bytes, bytes);
  claim.numeric = op::NumericClass::kReassociated;
  return {claim};
}

Result<std::vector<op::LaunchSpec>> Source::prepare(const op::Problem&, const op::Claim&) const {
  return error(Code::kUnimplemented, "kernels of {} are planned with, not run", chip_->id);
}

Status Source::pack(const op::Problem&, const op::Claim&, int, const std::byte*, std::byte*) const {
  return error(Code::kUnimplemented, "kernels of {} are planned with, not run", chip_->id);
}

std::vector<Wish> Source::wishes(const op::Problem& p,
                                 const std::vector<std::string>& arriving) const {
  std::vector<Wish> list;
  const auto add_formats = [&](const std::vector<std::string_view>& in, std::string_view out) {
    if (auto wish = wish_of(p, in, out, groups_of(p))) add(list, *std::move(wish));
  };
  const auto has = [&](std::string_view format) { return holds(format); };
  const int rank = p.anchor_result().rank();

  if (set_ == Set::kVendor) {
    const auto row = chip_->vendor_kernels.find(vendor_row(p));
    if (row != chip_->vendor_kernels.end() && !row->second.layouts.empty()) {
      static constexpr std::string_view kOperands[][3] = {
          {"a", "b", "c"}, {"x", "w", "y"}, {"x", "", "y"}};
      const auto& names = kOperands[p.op->name == "dot" ? 0 : convolves(*p.op) ? 1 : 2];
      const auto of = [&](std::string_view operand) -> std::vector<std::string> {
        std::vector<std::string> formats;
        if (const auto found = row->second.layouts.find(operand);
            found != row->second.layouts.end())
          for (const std::string& f : found->second) formats.push_back(full_name(f));
        if (formats.empty()) formats.emplace_back("ND");
        return formats;
      };
      for (const std::string& a : of(names[0]))
        for (const std::string& b : of(names[1]))
          for (const std::string& c : of(names[2])) add_formats({a, b}, c);
      return list;
    }
  }

  if (convolves(*p.op)) {
    const std::string_view features = rank == 5 ? "NDC1HWC0" : "NC1HWC0";
    const std::string_view weights = rank == 5 ? "FRACTAL_Z_3D" : "FRACTAL_Z";
    if (rank >= 4 && has(features)) {
      add_formats({features, weights}, features);
      // Groups side by side, or each by itself.
      if (groups_of(p) > 1)
        if (auto wish = wish_of(p, {features, weights}, features, 1)) add(list, *std::move(wish));
      add_formats({features, weights}, "NHWC");
      if (has("NC1HWC0_C04")) add_formats({"NC1HWC0_C04", "FRACTAL_Z_C04"}, features);
    } else {
      add_formats({"NHWC", "NHWC"}, "NHWC");
      add_formats({"NHWC"}, "NHWC");
      add(list, plain(p));
    }
    if (list.empty()) add(list, plain(p));
    return list;
  }
  add(list, plain(p));
  if (p.op->name == "dot" || p.op->name == "attention") {
    if (has("FRACTAL_NZ")) {
      const std::string_view both[] = {"ND", "FRACTAL_NZ"};
      if (p.op->name == "attention") {
        add_formats({"FRACTAL_NZ", "FRACTAL_NZ", "FRACTAL_NZ"}, "FRACTAL_NZ");
        add_formats({"FRACTAL_NZ", "FRACTAL_NZ", "FRACTAL_NZ"}, "ND");
        add_formats({"ND", "ND", "ND"}, "FRACTAL_NZ");
      } else {
        for (std::string_view a : both)
          for (std::string_view b : both)
            for (std::string_view c : both) add_formats({a, b}, c);
      }
    }
    for (const std::string& left : arriving)
      if (auto right = matching_right(p, left)) {
        Wish wish = plain(p);
        wish.in[0] = left;
        wish.in[1] = *std::move(right);
        add(list, std::move(wish));
      }
    return list;
  }

  const bool any_layout = op::elementwise(*p.op) || any_of(p.op->name, kKeepsLayout);
  const bool pools = any_of(p.op->name, kPools);
  if ((!any_layout && !pools) || rank == 0) return list;
  std::vector<std::string> formats;
  for (const std::string& f : formats_)
    if (blocks_channels(f) || (blocks_last_two(f) && !pools)) formats.push_back(f);
  if (rank >= 3 && !has("NC1HWC0")) formats.emplace_back("NHWC");
  const auto keep = [&](std::string_view format) {
    if (!in_format(format, p.anchor_result())) return;
    Wish wish;
    for (size_t i = 0; i < p.anchor_inputs(); ++i) {
      const op::Operand& o = p.in[i];
      if (!o.present || o.rank() != rank ||
          (i > 0 && !op::elementwise(*p.op) && p.op->name != "concat")) {
        wish.in.emplace_back();
        continue;
      }
      if (!cuts_whole_blocks(p, format, o)) return;
      if (op::elementwise(*p.op)) {
        wish.in.push_back(beside(format, o, p.anchor_result()));
      } else {
        auto text = in_format(format, o);
        if (!text) return;
        wish.in.push_back(*std::move(text));
      }
    }
    if (p.fused()) {
      add_steps(p, format, wish);
    } else {
      for (size_t k = 0; k < p.out.size(); ++k)
        wish.out.push_back(p.out[k].rank() == rank ? in_format(format, p.out[k]).value_or("")
                                                   : std::string());
    }
    add(list, std::move(wish));
  };
  for (const std::string& f : formats) keep(f);
  // Where one place is left, blocks of channels end up side by side.
  if ((pools || p.op->name == "reduce") && !p.fused() && !p.in.empty() && p.in[0].rank() == rank &&
      rank >= 3 && in_format("NHWC", p.anchor_result()) == std::string())
    for (const std::string& f : formats)
      if (blocks_channels(f))
        if (auto in = in_format(f, p.in[0])) {
          Wish wish = plain(p);
          wish.in[0] = *std::move(in);
          add(list, std::move(wish));
        }
  // A layout without a name, as views leave it: kept by what is element-wise throughout.
  if (!op::elementwise(*p.op)) return list;
  for (const std::string& layout : arriving) {
    if (layout.empty() || !format_of(layout, p.anchor_result(), formats_).empty()) continue;
    Wish wish;
    bool fits = true;
    for (const op::Operand& o : p.in) {
      const bool same = o.present && o.dims == p.anchor_result().dims;
      wish.in.push_back(same ? layout : std::string());
    }
    for (const op::Operand& o : p.out) {
      fits = fits && o.dims == p.anchor_result().dims;
      wish.out.push_back(layout);
    }
    if (fits && list.size() < 8) add(list, std::move(wish));
  }
  return list;
}

namespace {

op::Problem with(op::Problem problem, const Wish& wish) {
  for (size_t i = 0; i < problem.in.size(); ++i) problem.in[i].layout = wish.in[i];
  for (size_t i = 0; i < problem.out.size(); ++i) problem.out[i].layout = wish.out[i];
  return problem;
}

}  // namespace

std::string Source::refusal(const op::Problem& problem) const {
  std::string why;
  for (const Wish& wish : wishes(problem)) {
    const op::Claim claim = probe(with(problem, wish)).front();
    if (claim.supported()) return {};
    if (why.empty()) why = claim.refusal;
  }
  return why.empty() ? fmt::format("no layouts of {} are known", problem.op->name) : why;
}

std::optional<Picoseconds> Source::least_cost(const op::Problem& problem) const {
  std::optional<Picoseconds> least;
  for (const Wish& wish : wishes(problem)) {
    const op::Claim claim = probe(with(problem, wish)).front();
    if (claim.supported()) least = least ? std::min(*least, claim.cost) : claim.cost;
  }
  return least;
}

}  // namespace tessera::kernels::chip
