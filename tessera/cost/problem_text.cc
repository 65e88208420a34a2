// Reading and printing problem strings: op_dtype_<letter><int>..._flags.
#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "tessera/cost/operands.h"
#include "tessera/cost/problem_rows.h"
#include "tessera/op/elementwise.h"

namespace tessera::cost {
namespace {

constexpr size_t kLongest = 512;                // bytes of a string
constexpr int64_t kLargest = int64_t{1} << 40;  // a size

// Other names, as ONNX and Tessera's own table have them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kAliases{{
    {"dot", "matmul"},
    {"gemm", "matmul"},
    {"layer_norm", "layernorm"},
    {"rms_norm", "rmsnorm"},
    {"log_softmax", "logsoftmax"},
    {"batch_norm", "batchnorm"},
    {"max_pool", "maxpool"},
    {"average_pool", "avgpool"},
    {"relayout", "convert"},
}};
constexpr std::string_view kReductions[] = {"sum", "prod", "max", "min"};

const ProblemRow* find_row(std::string_view name) {
  for (const auto& [alias, own] : kAliases)
    if (alias == name) name = own;
  for (const ProblemRow& row : problem_rows())
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
Result<ProblemSpec> read_operator(const std::vector<std::string>& tokens, size_t& used) {
  ProblemSpec s;
  for (size_t count = std::min<size_t>(tokens.size(), 4); count > 0; --count) {
    const std::string name = joined(tokens, 0, count);
    if (const ProblemRow* row = find_row(name); row && !row->op.empty()) {
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
  for (const ProblemRow& row : problem_rows()) known.push_back(row.name);
  return error(Code::kInvalidArgument,
               "no operator '{}'; strings begin with {} or an element-wise operator",
               tokens[0].substr(0, 40), fmt::join(known, ", "));
}

// "m4096n4096": letters of the row, each once.
Status read_sizes(ProblemSpec& s, std::string_view token) {
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
Status read_layouts(ProblemSpec& s, const std::vector<std::string>& tokens, size_t first) {
  const auto known = [&](const std::string& name) {
    if (name == "nd" || name == "nchw" || name == "nhwc" || name == "mn") return true;
    // Whether it fits the sizes is said when the problem is made.
    op::Operand square;
    square.dtype = s.dtype;
    square.dims = {16, 16};
    const auto tried = laid_out(std::move(square), name);
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

Status read_rest(ProblemSpec& s, const std::vector<std::string>& tokens, size_t at) {
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

Result<ProblemSpec> read(std::string_view text) {
  if (text.empty() || text.size() > kLongest)
    return error(Code::kInvalidArgument, "a problem string has 1 to {} bytes, not {}", kLongest,
                 text.size());
  const std::vector<std::string> tokens = split(lower(text));
  size_t at = 0;
  TRY_ASSIGN(ProblemSpec s, read_operator(tokens, at));
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

std::string print(const ProblemSpec& s) {
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
  TRY_ASSIGN(const ProblemSpec spec, read(text));
  TRY_ASSIGN(op::Problem problem, spec.row->make(spec));
  for (const auto* list : {&problem.in, &problem.out})
    for (const op::Operand& o : *list)
      if (auto count = op::element_count(o.dims); !count || packed_bytes(o.dtype, *count) < 0)
        return error(Code::kInvalidArgument, "{}[{}] is larger than any memory; in '{}'",
                     name_of(o.dtype), fmt::join(o.dims, ","), text.substr(0, 80));
  return problem;
}

Result<std::string> canonical(std::string_view text) {
  TRY_ASSIGN(const ProblemSpec spec, read(text));
  return print(spec);
}

}  // namespace tessera::cost
