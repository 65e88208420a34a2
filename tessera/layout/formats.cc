#include "tessera/layout/formats.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <optional>

#include "tessera/layout/view.h"

namespace tessera::layout {
namespace {

constexpr int64_t kRows = 16;  // of a fractal: M0 = N0 in all formats

// What a row's function sees: extents by letter, and the request.
struct Sizes {
  const FormatRequest& request;
  std::string_view letters;

  int64_t of(char name) const { return request.extents[letters.find(name)]; }
  int64_t c0() const { return 256 / bits_of(request.dtype); }
};

using Expression = Result<std::string> (*)(const Sizes&);

struct Row {
  FormatInfo info;
  std::string_view alias;
  std::string_view fixed;  // the expression, with @ for C0; empty if `expression` gives it
  Expression expression;
};

std::string replaced(std::string_view text, int64_t c0) {
  std::string result;
  for (const char c : text) c == '@' ? result.append(std::to_string(c0)) : result.append(1, c);
  return result;
}

Result<std::string> nc1hwc0_c04(const Sizes& s) {
  if (s.of('c') > 4)
    return error(Code::kInvalidArgument, "NC1HWC0_C04 of {} channels, at most 4", s.of('c'));
  return "n c/4 h w c%4";
}

// e groups share a block of fractals, each on the block's diagonal: its own rows and its own
// columns.
Result<std::string> fractal_z(const Sizes& s) {
  const int64_t groups = s.request.groups;
  const int64_t c0 = s.c0();
  if (groups == 1) return replaced("(c/@ h w) n/16 n%16 c%@", c0);
  const int64_t outputs = s.of('n');
  const int64_t inputs = s.of('c');
  if (groups < 1 || outputs < 1 || inputs < 1 || outputs % groups != 0)
    return error(Code::kInvalidArgument,
                 "FRACTAL_Z of {} output channels, {} input channels in {} groups", outputs, inputs,
                 groups);
  const int64_t per_group = outputs / groups;
  const int64_t inputs_fit = c0 / std::gcd(inputs, c0);
  const int64_t outputs_fit = kRows / std::gcd(per_group, kRows);
  const int64_t e = std::min(std::lcm(inputs_fit, outputs_fit), groups);
  const std::string channel = fmt::format("(n/{}%{} c)", per_group, e);
  const int64_t block = per_group * e;
  return fmt::format("(n/{1} {0}/{2} h w) n%{1}/16 n%{1}%16 {0}%{2}", channel, block, c0);
}

// Rows are the input part, then the hidden part, each padded by itself. An absent part is not
// written.
std::string gate_rows(int64_t input, int64_t hidden) {
  return input == 0 ? "k" : fmt::format("(k[0:{0}]|k[{0}:{1}])", input, input + hidden);
}

std::string rnn(const std::string& rows, int64_t hidden) {
  return fmt::format("{0}/16 (n/{1} n%{1}/16) n%{1}%16 {0}%16", rows, hidden);
}

Result<std::string> fractal_zn_lstm(const Sizes& s) {
  const int64_t hidden = s.request.hidden > 0 ? s.request.hidden : s.of('n') / 4;
  const int64_t input = s.of('k') - hidden;
  if (hidden < 1 || input < 0 || s.of('n') != 4 * hidden)
    return error(Code::kInvalidArgument,
                 "FRACTAL_ZN_LSTM of {} x {}: needs input + hidden rows and 4 hidden columns",
                 s.of('k'), s.of('n'));
  return rnn(gate_rows(input, hidden), hidden);
}

Result<std::string> fractal_zn_rnn(const Sizes& s) {
  const auto [input, hidden] = std::pair(s.request.input, s.request.hidden);
  if (hidden < 1 || s.of('n') % hidden != 0)
    return error(Code::kInvalidArgument,
                 "FRACTAL_ZN_RNN: {} columns are no multiple of hidden size {}", s.of('n'), hidden);
  if (s.of('k') == hidden || s.of('k') == input) return rnn("k", hidden);
  if (input > 0 && s.of('k') - hidden == input) return rnn(gate_rows(input, hidden), hidden);
  return error(Code::kInvalidArgument,
               "FRACTAL_ZN_RNN: {} rows are neither input {}, hidden {} nor their sum", s.of('k'),
               input, hidden);
}

Result<std::string> nd_rnn_bias(const Sizes& s) {
  const int64_t hidden = s.request.hidden;
  if (hidden < 1 || s.of('n') % hidden != 0)
    return error(Code::kInvalidArgument, "ND_RNN_BIAS: {} values are no multiple of hidden size {}",
                 s.of('n'), hidden);
  return fmt::format("(n/{0} n%{0}/16 n%{0}%16)", hidden);
}

// Pairs or quadruples of k that fill 32 bits, side by side for each n: the B operand of AMX, VNNI
// and the like.
Result<std::string> packed_dot_b(const Sizes& s) {
  const int64_t lanes = std::max<int64_t>(32 / bits_of(s.request.dtype), 1);
  return fmt::format("k/{0} n k%{0}", lanes);
}

// clang-format off
constexpr Row kFormats[] = {
    {{"ND", 2, "", true, "row-major"}, "", "", nullptr},
    {{"FRACTAL_NZ", 29, "mn", true, "matrices: columns of fractals, rows inside"},
     "NZ", "n/@ m/16 m%16 n%@", nullptr},
    {{"FRACTAL_NZ_L0C", -1, "mn", true, "NZ with 16 x 16 fractals of any type"},
     "", "n/16 m/16 m%16 n%16", nullptr},
    {{"FRACTAL_ZZ", 28, "mk", true, "left operand in L0A"}, "ZZ", "m/16 k/@ m%16 k%@", nullptr},
    {{"FRACTAL_ZN", -1, "kn", true, "right operand in L0B"}, "ZN", "k/@ n/16 n%16 k%@", nullptr},
    {{"NC1HWC0", 3, "nchw", false, "feature maps"}, "5HD", "n c/@ h w c%@", nullptr},
    {{"NC1HWC0_C04", 12, "nchw", false, "feature maps of at most 4 channels"}, "", "", nc1hwc0_c04},
    {{"C1HWNC0", 9, "nchw", false, "feature maps, batch inside"}, "", "c/@ h w n c%@", nullptr},
    {{"NDC1HWC0", 32, "ncdhw", false, "feature maps of 3-D convolution"},
     "6HD", "n d c/@ h w c%@", nullptr},
    {{"FRACTAL_Z", 4, "nchw", false, "weights of convolution, grouped or not"}, "", "", fractal_z},
    {{"FRACTAL_Z_3D", 33, "ncdhw", false, "weights of 3-D convolution"},
     "", "(d c/@ h w) n/16 n%16 c%@", nullptr},
    {{"FRACTAL_Z_C04", 13, "nchw", false, "weights of a first convolution of at most 4 channels"},
     "", "(h w c%4)/16 n/16 n%16 (h w c%4)%16", nullptr},
    {{"C1HWNCOC0", 25, "nchw", false, "weights of depthwise convolution, on a diagonal"},
     "", "c/16 h w n c%16 c%16", nullptr},
    {{"FRACTAL_ZN_LSTM", 38, "kn", false, "weights of LSTM, gates padded one by one"},
     "", "", fractal_zn_lstm},
    {{"FRACTAL_ZN_RNN", 44, "kn", false, "weights of DynamicRNN and GRU, gates padded one by one"},
     "", "", fractal_zn_rnn},
    {{"ND_RNN_BIAS", 43, "n", false, "bias of the RNN formats, gates padded one by one"},
     "", "", nd_rnn_bias},
    {{"PACKED_DOT_B", -1, "kn", true, "right operand of 32-bit dot instructions (AMX, VNNI)"},
     "", "", packed_dot_b},
};
// clang-format on

constexpr auto kInfos = [] {
  std::array<FormatInfo, std::size(kFormats)> infos{};
  for (size_t i = 0; i < infos.size(); ++i) infos[i] = kFormats[i].info;
  return infos;
}();

const Row* find_row(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const auto row = std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Row& r) {
    return r.info.name == upper || (!r.alias.empty() && r.alias == upper);
  });
  return row == std::end(kFormats) ? nullptr : row;
}

// Names for leading axes that the format's own letters leave over, then those letters.
std::string with_batch(std::string_view own, size_t rank) {
  std::string batch;
  for (char c = 'a'; c <= 'z' && batch.size() + own.size() < rank; ++c)
    if (own.find(c) == std::string_view::npos) batch += c;
  return batch.append(own);
}

Result<std::string> logical_letters(const FormatInfo& format, const FormatRequest& request) {
  const size_t rank = request.extents.size();
  std::string letters =
      request.letters.empty() ? with_batch(format.letters, rank) : request.letters;
  if (letters.size() != rank)
    return error(Code::kInvalidArgument, "format {} names the axes '{}', but there are {} extents",
                 format.name, letters, rank);
  for (const char own : format.letters)
    if (letters.find(own) == std::string::npos)
      return error(Code::kInvalidArgument, "format {} needs an axis '{}', logical axes are '{}'",
                   format.name, own, letters);
  if (!format.batched && rank != format.letters.size())
    return error(Code::kInvalidArgument, "format {} takes {} axes, not {}", format.name,
                 format.letters.size(), rank);
  return letters;
}

std::string batch_axes(std::string_view letters, std::string_view own) {
  std::string text;
  for (const char c : letters)
    if (own.find(c) == std::string_view::npos) text.append(1, c).append(1, ' ');
  return text;
}

}  // namespace

std::span<const FormatInfo> formats() { return kInfos; }

Result<Layout> format_layout(std::string_view name, const FormatRequest& request) {
  const Row* row = find_row(name);
  if (row == nullptr) return error(Code::kNotFound, "no layout format '{}'", name.substr(0, 40));
  if (bits_of(request.dtype) == 0 || bits_of(request.dtype) > 64)
    return error(Code::kInvalidArgument, "format {} does not hold {}", row->info.name,
                 name_of(request.dtype));
  for (const int64_t extent : request.extents)
    if (extent < 0)
      return error(Code::kInvalidArgument, "extent {} of a {} tensor", extent, row->info.name);
  TRY_ASSIGN(const std::string letters, logical_letters(row->info, request));
  const Sizes sizes{request, letters};
  std::string expression = replaced(row->fixed, sizes.c0());
  if (row->expression != nullptr) {
    TRY_ASSIGN(expression, row->expression(sizes));
  }
  return Layout::parse(batch_axes(letters, row->info.letters) + expression, letters);
}

Result<std::vector<std::string_view>> matching_formats(const BoundLayout& bound,
                                                       const FormatRequest& request) {
  std::vector<std::string_view> names;
  for (const Row& row : kFormats) {
    const Result<Layout> layout = format_layout(row.info.name, request);
    if (!layout) continue;
    const Result<BoundLayout> candidate =
        BoundLayout::bind(*layout, request.dtype, request.extents);
    if (!candidate) continue;
    TRY_ASSIGN(const bool same, same_places(bound, *candidate));
    if (same) names.push_back(row.info.name);
  }
  return names;
}

}  // namespace tessera::layout
