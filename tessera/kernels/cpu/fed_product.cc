// f(x) w: a product behind a depthwise convolution, or behind functions of x, in one: row
// cpu.fed_product of all operators that it may begin with. The parts are problems of their own:
// whether they fit and what they cost, the rows of their operators say.
#include <algorithm>

#include "tessera/kernels/cpu/chain.h"
#include "tessera/kernels/cpu/conv_last.h"
#include "tessera/kernels/cpu/elementwise.h"
#include "tessera/kernels/cpu/epilogue.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/fed_args.h"
#include "tessera/op/layouts.h"

namespace tessera::kernels::cpu {
namespace {

struct Parts {
  Problem first;   // up to the product
  Problem second;  // the product, on what the first yields, and the steps behind it
  // Their inputs: which of the whole they are; what the first yields: -1.
  std::vector<int> first_from, second_from;
};

bool is_product(const op::Step& step) { return step.op->name == "conv" || step.op->name == "dot"; }

// Input v of the whole becomes one of the part.
int take(const Problem& p, int v, Problem& part, std::vector<int>& from) {
  part.in.push_back(v < 0 ? Operand() : p.in[static_cast<size_t>(v)]);
  part.in.back().present = v >= 0 && part.in.back().present;
  from.push_back(v);
  return static_cast<int>(part.in.size()) - 1;
}

// Makes `steps`, whose values from `result` on are the part's anchor's result and those behind it,
// steps of the part. What they read beside comes behind the inputs that are there.
void take_steps(const Problem& p, std::span<const op::Step> steps, int result, Problem& part,
                std::vector<int>& from) {
  if (steps.empty()) return;
  const int inputs = static_cast<int>(p.in.size());
  part.arity = part.in.size();
  part.steps.assign(steps.begin(), steps.end());
  for (op::Step& step : part.steps)
    for (int& v : step.in)
      if (v >= 0 && v < inputs) v = take(p, v, part, from);
  const int shift = static_cast<int>(part.in.size()) - result;
  for (size_t k = 0; k < steps.size(); ++k)
    for (size_t i = 0; i < steps[k].in.size(); ++i)
      if (steps[k].in[i] >= inputs) part.steps[k].in[i] = steps[k].in[i] + shift;
  part.results = {static_cast<int>(part.in.size() + steps.size())};
}

Reason split(const Problem& p, Parts& parts) {
  Reason why;
  const auto found = std::find_if(p.steps.begin(), p.steps.end(), is_product);
  if (!why.need(found != p.steps.end(), "no product behind it")) return why;
  const int inputs = static_cast<int>(p.in.size()),
            before = static_cast<int>(found - p.steps.begin()), between = inputs + before,
            last = inputs + static_cast<int>(p.steps.size());
  why.need(std::count(found->in.begin(), found->in.end(), between) == 1 && found->in[0] == between,
           "the product does not read the step before it once, on its left side");
  why.need(p.results.size() == 1 && p.results[0] == last,
           "another result than the last leaves the group");
  for (auto step = found; step != p.steps.end(); ++step)
    for (size_t i = step == found; i < step->in.size(); ++i)
      why.need(step->in[i] < inputs || (step != found && step->in[i] > between),
               "a step behind the product reads one before it");
  if (!why.fine()) return why;

  Problem& f = parts.first;
  f.op = p.op;
  f.attrs = p.attrs;
  for (size_t i = 0; i < p.arity; ++i) take(p, static_cast<int>(i), f, parts.first_from);
  take_steps(p, {p.steps.begin(), found}, inputs, f, parts.first_from);
  if (f.fused()) f.result = p.result;
  f.out = {before == 0 ? p.result : (found - 1)->out};
  if (found->op->name == "conv") f.out[0].layout = op::channels_last(f.out[0].rank());

  Problem& s = parts.second;
  s.op = found->op;
  s.attrs = found->attrs;
  s.in = f.out;
  parts.second_from = {-1};
  for (size_t i = 1; i < found->in.size(); ++i) take(p, found->in[i], s, parts.second_from);
  take_steps(p, {found + 1, p.steps.end()}, between + 1, s, parts.second_from);
  if (s.fused()) s.result = found->out;
  s.out = p.out;
  return why;
}

// The functions of the first part, all as steps behind its input x.
Problem chained(const Problem& first, size_t x) {
  Problem c = first;
  const int inputs = static_cast<int>(first.in.size());
  op::Step anchor{first.op, first.attrs, {}, first.anchor_result()};
  for (size_t i = 0; i < first.anchor_inputs(); ++i)
    anchor.in.push_back(!first.in[i].present ? -1 : i == x ? inputs : static_cast<int>(i));
  for (op::Step& step : c.steps)
    for (int& v : step.in) v += v >= inputs;
  c.steps.insert(c.steps.begin(), std::move(anchor));
  c.arity = first.anchor_inputs();
  c.result = first.in[x];
  c.results = {inputs + static_cast<int>(c.steps.size())};
  return c;
}

// How an operand lies as a matrix whose columns are K channels, or the last axis.
std::string not_rows(const Operand& o, bool channels_last, int64_t& ld) {
  if (channels_last) return not_channels_last(o, "an operand", ld);
  if (!o.layout.empty()) return fmt::format("an operand has layout '{}', need row-major", o.layout);
  if (o.rank() < 1) return "an operand has no axes";
  ld = o.dims.back();
  if (o.strides.empty()) return {};
  Dims dims(o.dims.begin(), o.dims.end() - 1);
  std::vector<Dims> strides{Dims(o.strides.begin(), o.strides.end() - 1)};
  merge_axes(dims, strides);
  if (dims.size() > 1 || (o.strides.back() != 1 && o.dims.back() != 1))
    return "an operand is strided beyond the distance between rows";
  if (dims[0] > 1) ld = strides[0][0];
  return ld < o.dims.back() ? "rows of an operand overlap" : "";
}

struct Fed {
  Parts parts;
  bool depthwise = false;
  Problem chain;  // if not depthwise
  size_t x = 0;   // input of the first part
  ConvShape conv{};
  int64_t x_ld = 0, y_ld = 0;
  int64_t K = 0, M = 0, pixels = 0;
};

ResultShape middle_shape(const Fed& f) {
  const Operand& middle = f.parts.first.out[0];
  return {middle.dims, !middle.layout.empty()};
}

Reason check_functions(Fed& f) {
  const Problem& first = f.parts.first;
  const ResultShape shape = middle_shape(f);
  std::string text = "no input has the product's rows and columns";
  for (f.x = 0; f.x < first.anchor_inputs(); ++f.x) {
    const Operand& x = first.in[f.x];
    if (!x.present || x.dims != shape.dims || x.dtype != DType::kF32) continue;
    text = not_rows(x, shape.channels_last, f.x_ld);
    if (!text.empty()) continue;
    f.chain = chained(first, f.x);
    text = no_epilogue(f.chain, shape);
    if (text.empty()) break;
  }
  Reason why;
  why.need(text.empty(), "{}", text);
  return why;
}

const Row& row_of(const Problem& product) {
  return product.op->name == "conv" ? conv_last_rows()[0] : gemm_row();
}

Reason check(const Problem& p, Fed& f) {
  Reason why = split(p, f.parts);
  if (!why.fine()) return why;
  const Problem &first = f.parts.first, &second = f.parts.second;
  const bool conv = second.op->name == "conv";
  f.depthwise = p.op->name == "conv";
  const Claim taken = row_of(second).probe(second);
  why.need(taken.supported(), "{}", taken.refusal);
  why.need(taken.packed.size() == 1, "the weights are not packed");
  if (!why.fine()) return why;
  if (conv) {
    ConvShape s{};
    if (auto filled = fill_shape(second, s); !filled) why.need(false, "{}", filled.error().message);
    why.need(s.G == 1 && is_flat(s), "the convolution behind it is not of single pixels");
    f.K = s.C;
    f.M = s.M;
  } else {
    why.need(second.in[1].rank() == 2 && second.attrs.i("transpose_a") == 0,
             "the product's left side is turned, or its right side more than a matrix");
    if (why.fine()) f.K = second.in[0].dims.back(), f.M = second.out[0].dims.back();
  }
  if (!why.fine()) return why;
  why.need(first.out[0].dtype == DType::kF32 && first.out[0].rank() > 1 && f.K > 0 && f.M > 0 &&
               p.out[0].count() > 0,
           "no rows, or no columns");
  if (!why.fine()) return why;
  f.pixels = first.out[0].count() / f.K;
  const std::string text = not_rows(p.out[0], conv, f.y_ld);
  why.need(text.empty(), "{}", text);
  if (!why.fine()) return why;
  if (!f.depthwise) return check_functions(f);
  why.need(conv, "a product behind a convolution");
  LastConv last;
  if (why.fine()) why = check_last(first, last);
  if (!why.fine()) return why;
  f.conv = last.shape;
  f.x_ld = last.x_ld;
  return why;
}

// Rows between which a cache line is not always in the same set.
int64_t ld_of(int64_t columns) {
  const int64_t ld = ceil_div(columns, kPanel) * kPanel;
  return ld % 256 == 0 ? ld + kPanel : ld;
}

// Blocks that fit, of at least kLeast pixels where there are so many.
constexpr int64_t kLeastPixels = 8;

void cut(const Fed& f, double flops, FedArgs& a) {
  constexpr double kItemFlops = 2e6;
  a.ld = ld_of(f.K);
  const int64_t most = kFedFloats / a.ld;  // pixels
  const int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(flops / kItemFlops), 1, 32);
  const int64_t unit = f.depthwise ? f.conv.out[2] : 1,
                units = f.depthwise ? f.conv.out[1] : f.pixels, images = f.depthwise ? f.conv.N : 1;
  const int64_t least = std::min(units, ceil_div(kLeastPixels, unit));
  a.blocks = std::clamp<int64_t>(
      std::max(ceil_div(units, std::max<int64_t>(most / unit, 1)), ceil_div(wanted, images)), 1,
      std::max<int64_t>(units / least, 1));
  a.block = ceil_div(units, a.blocks);
  a.blocks = ceil_div(units, a.block);
  a.all = a.blocks * images;
  a.per_item = ceil_div(a.all, wanted);
}

Claim probe(const Problem& p) {
  Fed f;
  Reason why = check(p, f);
  if (!why.fine()) return why.refusal();
  const Claim first = f.depthwise ? conv_last_depthwise_rows()[0].probe(f.parts.first)
                                  : probe_chain(f.parts.first),
              second = row_of(f.parts.second).probe(f.parts.second);
  why.need(first.supported(), "{}", first.refusal);
  const double flops = first.flops + second.flops;
  FedArgs a{};
  cut(f, flops, a);
  const int64_t pixels = f.depthwise ? a.block * f.conv.out[2] : a.block;
  why.need(pixels * a.ld <= kFedFloats, "{} pixels of {} channels, need at most {} numbers", pixels,
           f.K, kFedFloats);
  if (!why.fine()) return why.refusal();
  // Weights beyond the second cache are read again for each block.
  constexpr double kNearBytes = 1 << 20;
  const double weights = static_cast<double>(second.packed[0].size.value);
  Claim c = claim(
      flops, bytes_of(p) + (weights > kNearBytes ? weights * static_cast<double>(a.all - 1) : 0.0),
      flops / (first.flops / first.efficiency + second.flops / second.efficiency),
      NumericClass::kReassociated);
  c.packed = {{f.parts.second_from[1], second.packed[0].size}};
  if (f.depthwise) c.packed.push_back({1, first.packed[0].size});
  return c;
}

// Takes over the arguments of a part from the fourth on, with the epilogue that refers to them.
void append(std::vector<Argument>& list, const std::vector<Argument>& part, Epilogue& epilogue,
            const std::vector<int>& from) {
  const auto shift = static_cast<int32_t>(list.size()) - 3;
  for (EpilogueStep& s : std::span(epilogue.steps, static_cast<size_t>(epilogue.count)))
    if (s.broadcast != Broadcast::kNone) s.range += shift;
  for (size_t i = 3; i < part.size(); ++i) {
    Argument a = part[i];
    a.index = from[static_cast<size_t>(a.index)];
    list.push_back(a);
  }
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim& claim) {
  std::vector<LaunchSpec> launches;
  if (p.out[0].count() == 0) return launches;
  Fed f;
  if (Reason why = check(p, f); !why.fine())
    return error(Code::kInternal, "prepare without a claim: {}", why.text());
  FedArgs args{};
  cut(f, claim.flops, args);
  args.conv = f.conv;
  args.K = f.K;
  args.M = f.M;
  args.x_ld = f.x_ld;
  args.y_ld = f.y_ld;
  args.pixels = f.pixels;
  args.depthwise = f.depthwise;
  LaunchSpec launch;
  launch.entry = "cpu.fed_product";
  launch.grid = items(args.all, args.per_item);
  std::vector<Argument>& list = launch.arguments;
  list = {{Argument::kInput, static_cast<int>(f.x), 0},
          {Argument::kPacked, 0, 0},
          {Argument::kOutput, 0, 0}};
  if (f.depthwise) {
    // Of so many channels the rows of x that an output row reads stay in L1.
    constexpr int64_t kRowFloats = 6 << 10, kLeastChannels = 64;
    const int64_t row_floats = std::max<int64_t>(1, f.conv.kernel[1] * f.conv.in[2]);
    args.channels =
        std::max(kRowFloats / row_floats / kChannelBlock * kChannelBlock, kLeastChannels);
    list.push_back({Argument::kPacked, 1, 0});
    append(list, last_arguments(f.parts.first, args.before), args.before, f.parts.first_from);
  } else {
    std::vector<Argument> part(3);
    make_epilogue(f.chain, middle_shape(f), part, args.before);
    append(list, part, args.before, f.parts.first_from);
  }
  std::vector<Argument> part(3);
  if (f.parts.second.op->name == "conv")
    part = last_arguments(f.parts.second, args.behind);
  else
    make_epilogue(f.parts.second, {f.parts.second.anchor_result().dims}, part, args.behind);
  append(list, part, args.behind, f.parts.second_from);
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

Status pack(const Problem& p, int index, const std::byte* source, std::byte* target) {
  Parts parts;
  if (Reason why = split(p, parts); !why.fine())
    return error(Code::kInternal, "packing without a claim: {}", why.text());
  if (index == 1) return conv_last_depthwise_rows()[0].pack(parts.first, 0, source, target);
  return row_of(parts.second).pack(parts.second, 0, source, target);
}

}  // namespace

std::span<const Row> fed_product_rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> list{{"conv", "cpu.fed_product", probe, prepare, pack, true}};
    for (const FunctionRow& row : function_rows())
      list.push_back({row.op, "cpu.fed_product", probe, prepare, pack, true});
    return list;
  }();
  return rows;
}

}  // namespace tessera::kernels::cpu
