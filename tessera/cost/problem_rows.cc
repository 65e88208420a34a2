#include "tessera/cost/problem_rows.h"

#include "tessera/cost/operands.h"
#include "tessera/op/layouts.h"

namespace tessera::cost {
namespace {

constexpr std::string_view kFlagsOfDot = "ta tb";

op::Operand operand(DType dtype, op::Dims dims) {
  op::Operand o;
  o.dtype = dtype;
  o.dims = std::move(dims);
  return o;
}

op::Operand numbers(op::Ints values) {
  op::Operand o = operand(DType::kI64, {static_cast<int64_t>(values.size())});
  o.constant = true;
  o.values = std::move(values);
  return o;
}

Result<op::Problem> problem(const ProblemSpec& s, std::vector<op::Operand> in,
                            std::vector<op::Operand> out, op::Attrs attrs = {}) {
  op::Problem p;
  p.op = op::find(s.op);
  if (!p.op) return error(Code::kInternal, "no operator '{}'", s.op);
  p.attrs = std::move(attrs);
  p.in = std::move(in);
  p.out = std::move(out);
  return p;
}

// The sizes that are there, in the order of `letters`.
op::Dims dims_of(const ProblemSpec& s, std::string_view letters) {
  op::Dims dims;
  for (const char c : letters)
    if (s.has(c)) dims.push_back(s.of(c, 1));
  return dims;
}

Result<op::Problem> matmul(const ProblemSpec& s) {
  const auto side = [&](char rows, char columns, bool turned) {
    op::Dims dims;
    if (s.has('b')) dims.push_back(s.of('b', 1));
    dims.push_back(s.of(turned ? columns : rows, 1));
    dims.push_back(s.of(turned ? rows : columns, 1));
    return dims;
  };
  const bool ta = s.flag("ta"), tb = s.flag("tb");
  op::Attrs attrs;
  if (s.out && *s.out != s.dtype) attrs.set("accumulate", *s.out);
  if (ta) attrs.set("transpose_a", int64_t{1});
  if (tb) attrs.set("transpose_b", int64_t{1});
  return problem(s, {operand(s.dtype, side('m', 'k', ta)), operand(s.dtype, side('k', 'n', tb))},
                 {operand(s.out.value_or(s.dtype), side('m', 'n', false))}, std::move(attrs));
}

Result<op::Problem> same(const ProblemSpec& s) {
  const op::Dims dims = dims_of(s, "bmn");
  return problem(s, {operand(s.dtype, dims)}, {operand(s.out.value_or(s.dtype), dims)});
}

Result<op::Problem> layer_norm(const ProblemSpec& s) {
  const op::Dims dims = dims_of(s, "bmn");
  const op::Operand weight = operand(s.dtype, {s.of('n', 1)});
  std::vector<op::Operand> in{operand(s.dtype, dims), weight};
  if (s.op == "layer_norm") in.push_back(weight);
  return problem(s, std::move(in), {operand(s.dtype, dims)}, {{"axis", int64_t{-1}}});
}

Result<op::Problem> elementwise(const ProblemSpec& s) {
  const op::OpDef* def = op::find(s.op);
  const op::Dims dims = dims_of(s, "bmn");
  std::vector<op::Operand> in(static_cast<size_t>(std::max(def->min_inputs, 1)),
                              operand(s.dtype, dims));
  if (s.op == "select") in[0].dtype = DType::kBool;
  return problem(s, std::move(in), {operand(s.out.value_or(s.dtype), dims)});
}

Result<op::Problem> reduce(const ProblemSpec& s) {
  op::Dims dims = dims_of(s, "bmn");
  op::Dims less(dims.begin(), dims.end() - 1);
  const auto axis = static_cast<int64_t>(dims.size()) - 1;
  return problem(s, {operand(s.dtype, dims), numbers({axis})}, {operand(s.dtype, std::move(less))},
                 {{"kind", s.kind}, {"keepdims", int64_t{0}}});
}

Result<op::Problem> transpose(const ProblemSpec& s) {
  const op::Dims dims = dims_of(s, "bmn");
  op::Dims turned = dims;
  std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
  op::Ints perm(dims.size());
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return problem(s, {operand(s.dtype, dims)}, {operand(s.dtype, std::move(turned))},
                 {{"perm", std::move(perm)}});
}

Result<op::Operand> in_layout(op::Operand o, std::string_view name) {
  if (name == "nd" || name == "nchw" || name == "mn") return o;
  if (name == "nhwc") {
    if (op::channels_last(o.rank()).empty())
      return error(Code::kInvalidArgument, "nhwc needs 3 to 5 axes, got {}", o.rank());
    o.layout = op::channels_last(o.rank());
    return o;
  }
  return laid_out(std::move(o), name);
}

Result<op::Problem> convert(const ProblemSpec& s) {
  const op::Dims dims = s.has('c')
                            ? op::Dims{s.of('n', 1), s.of('c', 1), s.of('h', 1), s.of('w', 1)}
                            : dims_of(s, "bmn");
  ProblemSpec changed = s;
  if (s.layouts.empty()) {
    if (!s.out)
      return error(Code::kInvalidArgument,
                   "convert needs two layouts, or another type: convert_f16_m64n64_nd_nz, "
                   "convert_f32_n64_outf16");
    changed.op = "convert";
    return problem(changed, {operand(s.dtype, dims)}, {operand(*s.out, dims)}, {{"to", *s.out}});
  }
  changed.op = "relayout";
  TRY_ASSIGN(op::Operand from, in_layout(operand(s.dtype, dims), s.layouts[0]));
  TRY_ASSIGN(op::Operand to, in_layout(operand(s.dtype, dims), s.layouts[1]));
  return problem(changed, {std::move(from)}, {std::move(to)});
}

Result<op::Problem> attention(const ProblemSpec& s) {
  const int64_t b = s.of('b', 1), h = s.of('h', 1), g = s.of('g', h), keys = s.of('s', 1),
                q = s.of('q', keys), d = s.of('d', 1), v = s.of('v', d);
  if (g < 1 || h % g != 0)
    return error(Code::kInvalidArgument, "{} query heads are no multiple of {} key heads", h, g);
  op::Attrs attrs;
  if (s.flag("causal")) attrs.set("causal", int64_t{1});
  return problem(s,
                 {operand(s.dtype, {b, h, q, d}), operand(s.dtype, {b, g, keys, d}),
                  operand(s.dtype, {b, g, keys, v})},
                 {operand(s.dtype, {b, h, q, v})}, std::move(attrs));
}

struct Windows {
  int64_t h = 0, w = 0, taps_h = 0, taps_w = 0;
  op::Attrs attrs;
};

Result<Windows> windows_of(const ProblemSpec& s, char taps) {
  Windows r;
  const int64_t h = s.of('h', 1), w = s.of('w', h), pad = s.of('p', 0), stride = s.of('t', 1),
                dilation = s.of('l', 1);
  r.taps_h = s.of(taps, 1);
  r.taps_w = s.of('s', r.taps_h);
  if (stride < 1 || dilation < 1)
    return error(Code::kInvalidArgument, "stride {} and dilation {} need 1 or more", stride,
                 dilation);
  const auto count = [&](int64_t size, int64_t k) {
    const int64_t room = size + 2 * pad - (dilation * (k - 1) + 1);
    return room < 0 ? int64_t{-1} : room / stride + 1;
  };
  r.h = count(h, r.taps_h);
  r.w = count(w, r.taps_w);
  if (r.h < 0 || r.w < 0)
    return error(Code::kInvalidArgument, "a window of {} x {} does not fit {} x {} with padding {}",
                 r.taps_h, r.taps_w, h, w, pad);
  r.attrs.set("strides", op::Ints{stride, stride});
  r.attrs.set("dilations", op::Ints{dilation, dilation});
  r.attrs.set("pads_begin", op::Ints{pad, pad});
  r.attrs.set("pads_end", op::Ints{pad, pad});
  return r;
}

Result<op::Problem> conv(const ProblemSpec& s) {
  TRY_ASSIGN(Windows w, windows_of(s, 'r'));
  const int64_t n = s.of('n', 1), c = s.of('c', 1), k = s.of('k', 1), groups = s.of('g', 1);
  if (groups < 1 || c % groups != 0 || k % groups != 0)
    return error(Code::kInvalidArgument, "{} and {} channels do not divide into {} groups", c, k,
                 groups);
  if (groups > 1) w.attrs.set("groups", groups);
  return problem(s,
                 {operand(s.dtype, {n, c, s.of('h', 1), s.of('w', s.of('h', 1))}),
                  operand(s.dtype, {k, c / groups, w.taps_h, w.taps_w})},
                 {operand(s.out.value_or(s.dtype), {n, k, w.h, w.w})}, std::move(w.attrs));
}

Result<op::Problem> pool(const ProblemSpec& s) {
  TRY_ASSIGN(Windows w, windows_of(s, 'r'));
  const int64_t n = s.of('n', 1), c = s.of('c', 1);
  w.attrs.set("kernel", op::Ints{w.taps_h, w.taps_w});
  return problem(s, {operand(s.dtype, {n, c, s.of('h', 1), s.of('w', s.of('h', 1))})},
                 {operand(s.dtype, {n, c, w.h, w.w})}, std::move(w.attrs));
}

Result<op::Problem> batch_norm(const ProblemSpec& s) {
  const op::Dims dims{s.of('n', 1), s.of('c', 1), s.of('h', 1), s.of('w', s.of('h', 1))};
  std::vector<op::Operand> in(5, operand(s.dtype, {s.of('c', 1)}));
  in[0] = operand(s.dtype, dims);
  return problem(s, std::move(in), {operand(s.dtype, dims)});
}

Result<op::Problem> gather(const ProblemSpec& s) {
  return problem(
      s, {operand(s.dtype, {s.of('m', 1), s.of('n', 1)}), operand(DType::kI64, {s.of('k', 1)})},
      {operand(s.dtype, {s.of('k', 1), s.of('n', 1)})}, {{"axis", int64_t{0}}});
}

Result<op::Problem> concat(const ProblemSpec& s) {
  const op::Dims dims = dims_of(s, "bmn");
  op::Dims wide = dims;
  wide.back() *= 2;
  return problem(s, {operand(s.dtype, dims), operand(s.dtype, dims)},
                 {operand(s.dtype, std::move(wide))},
                 {{"axis", static_cast<int64_t>(dims.size()) - 1}});
}

Result<op::Problem> recurrent(const ProblemSpec& s) {
  const int64_t steps = s.of('s', 1), batch = s.of('b', 1), input = s.of('i', 1),
                hidden = s.of('h', 1);
  const int64_t gates = s.op == "lstm" ? 4 : s.op == "gru" ? 3 : 1;
  op::Strings activations = s.op == "lstm"  ? op::Strings{"sigmoid", "tanh", "tanh"}
                            : s.op == "gru" ? op::Strings{"sigmoid", "tanh"}
                                            : op::Strings{"tanh"};
  const size_t count = activations.size();
  return problem(
      s,
      {operand(s.dtype, {steps, batch, input}), operand(s.dtype, {1, gates * hidden, input}),
       operand(s.dtype, {1, gates * hidden, hidden})},
      {operand(s.dtype, {steps, 1, batch, hidden})},
      {{"activations", std::move(activations)},
       {"alpha", op::Floats(count, 0)},
       {"beta", op::Floats(count, 0)}});
}

// clang-format off
constexpr ProblemRow kRows[] = {
    {"matmul", "dot", "bmnk", "mnk", "", "", kFlagsOfDot, false, matmul},
    {"attention", "attention", "bhgqsdv", "sd", "", "", "causal", true, attention},
    {"softmax", "softmax", "bmn", "n", "", "", "", true, same},
    {"logsoftmax", "log_softmax", "bmn", "n", "", "", "", true, same},
    {"layernorm", "layer_norm", "bmn", "n", "", "", "", true, layer_norm},
    {"rmsnorm", "rms_norm", "bmn", "n", "", "", "", true, layer_norm},
    {"batchnorm", "batch_norm", "nchw", "c", "", "", "", true, batch_norm},
    {"conv", "conv", "nchw_krsptlg", "chkr", "ptlg", "0111", "", false, conv},
    {"maxpool", "max_pool", "nchw_rsptl", "chr", "ptl", "011", "", false, pool},
    {"avgpool", "average_pool", "nchw_rsptl", "chr", "ptl", "011", "", true, pool},
    {"convert", "relayout", "bmnchw", "n", "", "", "", false, convert},
    {"reduce", "reduce", "bmn", "n", "", "", "", false, reduce},
    {"transpose", "transpose", "bmn", "mn", "", "", "", false, transpose},
    {"gather", "gather", "mnk", "mnk", "", "", "", false, gather},
    {"concat", "concat", "bmn", "n", "", "", "", false, concat},
    {"lstm", "lstm", "sbih", "ih", "", "", "", true, recurrent},
    {"gru", "gru", "sbih", "ih", "", "", "", true, recurrent},
    {"rnn", "rnn", "sbih", "ih", "", "", "", true, recurrent},
    {"elementwise", "", "bmn", "n", "", "", "", false, elementwise},
};
// clang-format on

}  // namespace

std::span<const ProblemRow> problem_rows() { return kRows; }

}  // namespace tessera::cost
