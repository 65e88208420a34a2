// Problem strings: op_dtype_<letter><int>..._flags. A row per operator says which letters it has
// and makes the problem of them.
#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "tessera/cost/cost.h"
#include "tessera/cost/operands.h"
#include "tessera/op/elementwise.h"
#include "tessera/op/layouts.h"

namespace tessera::cost {
namespace {

constexpr size_t kLongest = 512;                // bytes of a string
constexpr int64_t kLargest = int64_t{1} << 40;  // a size
constexpr std::string_view kFlagsOfDot = "ta tb";

struct Row;

// What a string says, before it is a problem.
struct Spec {
  const Row* row = nullptr;
  std::string name;  // as it is printed
  std::string op;    // of the table of operators
  std::string kind;  // of a reduction
  DType dtype = DType::kF16;
  std::optional<DType> out;
  std::array<std::optional<int64_t>, 26> sizes{};
  std::vector<std::string> flags;    // sorted
  std::vector<std::string> layouts;  // of convert

  bool has(char letter) const { return sizes[static_cast<size_t>(letter - 'a')].has_value(); }
  int64_t of(char letter, int64_t otherwise) const {
    return sizes[static_cast<size_t>(letter - 'a')].value_or(otherwise);
  }
  bool flag(std::string_view name_of_flag) const {
    return std::find(flags.begin(), flags.end(), name_of_flag) != flags.end();
  }
};

using Make = Result<op::Problem> (*)(const Spec&);

struct Row {
  std::string_view name;      // in strings
  std::string_view op;        // the operator; "": the builder's business
  std::string_view letters;   // in the order of printing; '_' between groups
  std::string_view needed;    // of them
  std::string_view dropped;   // letters that are not printed where they have their default...
  std::string_view defaults;  // ... which is this digit
  std::string_view flags;     // separated by blanks
  bool floats = false;        // takes floats alone
  Make make = nullptr;
};

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

Result<op::Problem> problem(const Spec& s, std::vector<op::Operand> in,
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
op::Dims dims_of(const Spec& s, std::string_view letters) {
  op::Dims dims;
  for (const char c : letters)
    if (s.has(c)) dims.push_back(s.of(c, 1));
  return dims;
}

Result<op::Problem> matmul(const Spec& s) {
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

Result<op::Problem> same(const Spec& s) {
  const op::Dims dims = dims_of(s, "bmn");
  return problem(s, {operand(s.dtype, dims)}, {operand(s.out.value_or(s.dtype), dims)});
}

Result<op::Problem> layer_norm(const Spec& s) {
  const op::Dims dims = dims_of(s, "bmn");
  const op::Operand weight = operand(s.dtype, {s.of('n', 1)});
  std::vector<op::Operand> in{operand(s.dtype, dims), weight};
  if (s.op == "layer_norm") in.push_back(weight);
  return problem(s, std::move(in), {operand(s.dtype, dims)}, {{"axis", int64_t{-1}}});
}

Result<op::Problem> elementwise(const Spec& s) {
  const op::OpDef* def = op::find(s.op);
  const op::Dims dims = dims_of(s, "bmn");
  std::vector<op::Operand> in(static_cast<size_t>(std::max(def->min_inputs, 1)),
                              operand(s.dtype, dims));
  if (s.op == "select") in[0].dtype = DType::kBool;
  return problem(s, std::move(in), {operand(s.out.value_or(s.dtype), dims)});
}

Result<op::Problem> reduce(const Spec& s) {
  op::Dims dims = dims_of(s, "bmn");
  op::Dims less(dims.begin(), dims.end() - 1);
  const auto axis = static_cast<int64_t>(dims.size()) - 1;
  return problem(s, {operand(s.dtype, dims), numbers({axis})}, {operand(s.dtype, std::move(less))},
                 {{"kind", s.kind}, {"keepdims", int64_t{0}}});
}

Result<op::Problem> transpose(const Spec& s) {
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

Result<op::Problem> convert(const Spec& s) {
  const op::Dims dims = s.has('c')
                            ? op::Dims{s.of('n', 1), s.of('c', 1), s.of('h', 1), s.of('w', 1)}
                            : dims_of(s, "bmn");
  Spec changed = s;
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

Result<op::Problem> attention(const Spec& s) {
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

Result<Windows> windows_of(const Spec& s, char taps) {
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

Result<op::Problem> conv(const Spec& s) {
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

Result<op::Problem> pool(const Spec& s) {
  TRY_ASSIGN(Windows w, windows_of(s, 'r'));
  const int64_t n = s.of('n', 1), c = s.of('c', 1);
  w.attrs.set("kernel", op::Ints{w.taps_h, w.taps_w});
  return problem(s, {operand(s.dtype, {n, c, s.of('h', 1), s.of('w', s.of('h', 1))})},
                 {operand(s.dtype, {n, c, w.h, w.w})}, std::move(w.attrs));
}

Result<op::Problem> batch_norm(const Spec& s) {
  const op::Dims dims{s.of('n', 1), s.of('c', 1), s.of('h', 1), s.of('w', s.of('h', 1))};
  std::vector<op::Operand> in(5, operand(s.dtype, {s.of('c', 1)}));
  in[0] = operand(s.dtype, dims);
  return problem(s, std::move(in), {operand(s.dtype, dims)});
}

Result<op::Problem> gather(const Spec& s) {
  return problem(
      s, {operand(s.dtype, {s.of('m', 1), s.of('n', 1)}), operand(DType::kI64, {s.of('k', 1)})},
      {operand(s.dtype, {s.of('k', 1), s.of('n', 1)})}, {{"axis", int64_t{0}}});
}

Result<op::Problem> concat(const Spec& s) {
  const op::Dims dims = dims_of(s, "bmn");
  op::Dims wide = dims;
  wide.back() *= 2;
  return problem(s, {operand(s.dtype, dims), operand(s.dtype, dims)},
                 {operand(s.dtype, std::move(wide))},
                 {{"axis", static_cast<int64_t>(dims.size()) - 1}});
}

Result<op::Problem> recurrent(const Spec& s) {
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
constexpr Row kRows[] = {
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
// Other names, as ONNX and Tessera's own table have them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kAliases{{
    {"dot", "matmul"}, {"gemm", "matmul"}, {"layer_norm", "layernorm"}, {"rms_norm", "rmsnorm"},
    {"log_softmax", "logsoftmax"}, {"batch_norm", "batchnorm"}, {"max_pool", "maxpool"},
    {"average_pool", "avgpool"}, {"relayout", "convert"},
}};
constexpr std::string_view kReductions[] = {"sum", "prod", "max", "min"};
// clang-format on

const Row* find_row(std::string_view name) {
  for (const auto& [alias, own] : kAliases)
    if (alias == name) name = own;
  for (const Row& row : kRows)
    if (row.name == name) return &row;
  return nullptr;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> tokens;
  while (true) {
    const size_t at = text.find('_');
    tokens.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return tokens;
    text.remove_prefix(at + 1);
  }
}

std::string joined(const std::vector<std::string>& tokens, size_t first, size_t last) {
  std::string text;
  for (size_t i = first; i < last; ++i) text += (i > first ? "_" : "") + tokens[i];
  return text;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::optional<DType> type_called(std::string_view name) {
  if (name == "f8") return DType::kF8E4M3FN;
  const auto found = dtype_from_name(name);
  return found && *found != DType::kString ? found : std::nullopt;
}

// The operator that the first tokens name; `used` counts them. Element-wise operators may do
// without their family's name.
Result<Spec> read_operator(const std::vector<std::string>& tokens, size_t& used) {
  Spec s;
  for (size_t count = std::min<size_t>(tokens.size(), 4); count > 0; --count) {
    const std::string name = joined(tokens, 0, count);
    if (const Row* row = find_row(name); row && !row->op.empty()) {
      s.row = row;
      s.name = row->name;
      s.op = row->op;
      used = count;
      if (s.op != "reduce") return s;
      s.kind = "sum";
      if (count < tokens.size() && std::find(std::begin(kReductions), std::end(kReductions),
                                             tokens[count]) != std::end(kReductions)) {
        s.kind = tokens[count];
        ++used;
      }
      s.name = "reduce_" + s.kind;
      return s;
    }
    const bool prefixed = name.starts_with("elementwise_");
    const std::string own = prefixed ? name.substr(12) : name;
    const op::OpDef* def = op::find(own);
    if (!def || !op::elementwise(*def) || def->max_inputs > 3 || def->name == "convert") continue;
    s.row = find_row("elementwise");
    s.op = own;
    s.name = def->min_inputs == 1 ? own : "elementwise_" + own;
    used = count;
    return s;
  }
  std::vector<std::string_view> known;
  for (const Row& row : kRows) known.push_back(row.name);
  return error(Code::kInvalidArgument,
               "no operator '{}'; strings begin with {} or an element-wise operator",
               tokens[0].substr(0, 40), fmt::join(known, ", "));
}

// "m4096n4096": letters of the row, each once.
Status read_sizes(Spec& s, std::string_view token) {
  for (size_t i = 0; i < token.size();) {
    const char letter = token[i++];
    const char* first = token.data() + i;
    const char* last = token.data() + token.size();
    int64_t value = 0;
    const auto [end, problem] = std::from_chars(first, last, value);
    if (problem != std::errc() || value < 0 || value > kLargest)
      return error(Code::kInvalidArgument, "'{}' needs a size from 0 to {} behind '{}'",
                   token.substr(0, 60), kLargest, letter);
    i += static_cast<size_t>(end - first);
    if (letter == '_' || s.row->letters.find(letter) == std::string_view::npos)
      return error(Code::kInvalidArgument, "{} has no size '{}'; its letters are {}", s.name,
                   letter, s.row->letters);
    auto& size = s.sizes[static_cast<size_t>(letter - 'a')];
    if (size) return error(Code::kInvalidArgument, "size '{}' is given twice", letter);
    size = value;
  }
  return {};
}

bool looks_like_sizes(std::string_view token) {
  bool digits = false;
  for (size_t i = 0; i < token.size(); ++i) {
    const bool letter = token[i] >= 'a' && token[i] <= 'z',
               digit = token[i] >= '0' && token[i] <= '9';
    if (!letter && !digit) return false;
    if (letter && i > 0 && !digits) return false;  // two letters in a row
    if (i == 0 && !letter) return false;
    digits = digit;
  }
  return digits;
}

std::string shorter(std::string name) {
  if (name == "fractal_nz") return "nz";
  if (name == "5hd") return "nc1hwc0";
  if (name == "mn") return "nd";
  return name;
}

// The two layouts of a conversion, whose names may have several tokens.
Status read_layouts(Spec& s, const std::vector<std::string>& tokens, size_t first) {
  const auto known = [&](const std::string& name) {
    if (name == "nd" || name == "nchw" || name == "nhwc" || name == "mn") return true;
    // Whether it fits the sizes is said when the problem is made.
    const auto tried = laid_out(operand(s.dtype, {16, 16}), name);
    return tried || tried.error().code != Code::kNotFound;
  };
  for (size_t cut = first + 1; cut < tokens.size(); ++cut) {
    const std::string from = joined(tokens, first, cut), to = joined(tokens, cut, tokens.size());
    if (!known(from) || !known(to)) continue;
    s.layouts = {shorter(from), shorter(to)};
    return {};
  }
  return error(Code::kInvalidArgument, "'{}' are no two layouts, as in nd_nz",
               joined(tokens, first, tokens.size()).substr(0, 60));
}

Status read_rest(Spec& s, const std::vector<std::string>& tokens, size_t at) {
  for (; at < tokens.size(); ++at) {
    const std::string& token = tokens[at];
    if (looks_like_sizes(token) && s.layouts.empty()) {
      TRY(read_sizes(s, token));
      continue;
    }
    if (token.starts_with("out")) {
      size_t taken = 1;
      std::optional<DType> type = type_called(token.substr(3));
      if (at + 1 < tokens.size())
        if (auto longer = type_called(token.substr(3) + "_" + tokens[at + 1]))
          type = longer, taken = 2;
      if (!type)
        return error(Code::kInvalidArgument, "'{}' is no type of results", token.substr(0, 40));
      s.out = type;
      at += taken - 1;
      continue;
    }
    bool flag = false;
    for (std::string_view rest = s.row->flags; !rest.empty() && !flag;) {
      const size_t blank = rest.find(' ');
      flag = rest.substr(0, blank) == token;
      rest = blank == std::string_view::npos ? "" : rest.substr(blank + 1);
    }
    if (flag) {
      if (!s.flag(token)) s.flags.push_back(token);
      continue;
    }
    if (s.row->name == "convert") return read_layouts(s, tokens, at);
    return error(
        Code::kInvalidArgument, "{} takes no '{}'; sizes are letters with numbers ({}){}{}", s.name,
        token.substr(0, 40), s.row->letters, s.row->flags.empty() ? "" : ", flags ", s.row->flags);
  }
  return {};
}

Result<Spec> read(std::string_view text) {
  if (text.empty() || text.size() > kLongest)
    return error(Code::kInvalidArgument, "a problem string has 1 to {} bytes, not {}", kLongest,
                 text.size());
  const std::vector<std::string> tokens = split(lower(text));
  size_t at = 0;
  TRY_ASSIGN(Spec s, read_operator(tokens, at));
  std::optional<DType> type;
  for (const size_t count : {2u, 1u}) {
    if (at + count > tokens.size()) continue;
    type = type_called(joined(tokens, at, at + count));
    if (!type) continue;
    at += count;
    break;
  }
  if (!type)
    return error(Code::kInvalidArgument, "{} needs a type behind it, as in {}_f16_...; got '{}'",
                 s.name, s.name, at < tokens.size() ? tokens[at].substr(0, 40) : "");
  s.dtype = *type;
  TRY(read_rest(s, tokens, at));
  for (const char letter : s.row->needed)
    if (!s.has(letter))
      return error(Code::kInvalidArgument, "{} needs a size '{}'; its letters are {}", s.name,
                   letter, s.row->letters);
  if (s.row->floats && !is_float(s.dtype))
    return error(Code::kInvalidArgument, "{} needs floats, got {}", s.name, name_of(s.dtype));
  std::sort(s.flags.begin(), s.flags.end());
  return s;
}

std::string print(const Spec& s) {
  std::string text = s.name + "_" + std::string(name_of(s.dtype));
  std::string sizes;
  for (const char letter : s.row->letters) {
    if (letter == '_') {
      if (!sizes.empty()) text += "_" + sizes;
      sizes.clear();
      continue;
    }
    if (!s.has(letter)) continue;
    const int64_t size = s.of(letter, 0);
    const size_t at = s.row->dropped.find(letter);
    if (at != std::string_view::npos && size == s.row->defaults[at] - '0') continue;
    sizes += letter + std::to_string(size);
  }
  if (!sizes.empty()) text += "_" + sizes;
  for (const std::string& flag : s.flags) text += "_" + flag;
  for (const std::string& layout : s.layouts) text += "_" + layout;
  if (s.out && *s.out != s.dtype) text += "_out" + std::string(name_of(*s.out));
  return text;
}

}  // namespace

Result<op::Problem> parse_problem(std::string_view text) {
  TRY_ASSIGN(const Spec spec, read(text));
  TRY_ASSIGN(op::Problem problem, spec.row->make(spec));
  for (const auto* list : {&problem.in, &problem.out})
    for (const op::Operand& o : *list)
      if (auto count = op::element_count(o.dims); !count || packed_bytes(o.dtype, *count) < 0)
        return error(Code::kInvalidArgument, "{}[{}] is larger than any memory; in '{}'",
                     name_of(o.dtype), fmt::join(o.dims, ","), text.substr(0, 80));
  return problem;
}

Result<std::string> canonical(std::string_view text) {
  TRY_ASSIGN(const Spec spec, read(text));
  return print(spec);
}

}  // namespace tessera::cost
