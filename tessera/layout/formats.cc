#include "tessera/layout/formats.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <optional>

#include "tessera/layout/view.h"
#include "tessera/layout/xla.h"

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
  std::string_view fixed;  // the expression, with @ for C0; empty if `expression` gives it
  Expression expression = nullptr;
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

Result<std::string> fractal_z_c04(const Sizes& s) {
  if (s.of('c') > 4)
    return error(Code::kInvalidArgument, "FRACTAL_Z_C04 of {} channels, at most 4", s.of('c'));
  return "(h w c%4)/16 n/16 n%16 (h w c%4)%16";
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

// Elements that fill `bytes`, at least one.
int64_t elements_of(const Sizes& s, int64_t bytes) {
  return std::max<int64_t>(8 * bytes / bits_of(s.request.dtype), 1);
}

Status takes_bits(const Sizes& s, std::string_view format, std::initializer_list<int> bits) {
  if (std::find(bits.begin(), bits.end(), bits_of(s.request.dtype)) != bits.end()) return {};
  return error(Code::kInvalidArgument, "{} holds types of {} bits, {} has {}", format,
               fmt::join(bits, " or "), name_of(s.request.dtype), bits_of(s.request.dtype));
}

// Pairs or quadruples of k that fill 32 bits, side by side for each n: the B operand of AMX, VNNI
// and the like.
Result<std::string> packed_dot_b(const Sizes& s) {
  return fmt::format("k/{0} n k%{0}", elements_of(s, 4));
}

// A tile is 16 rows of 64 bytes.
Result<std::string> amx_a(const Sizes& s) {
  TRY(takes_bits(s, "AMX_A", {8, 16}));
  return fmt::format("m/16 k/{0} m%16 k%{0}", elements_of(s, 64));
}
// The same, of what PACKED_DOT_B puts side by side.
Result<std::string> amx_b(const Sizes& s) {
  TRY(takes_bits(s, "AMX_B", {8, 16}));
  return fmt::format("k/{0} n/16 k%{0}/{1} n%16 k%{1}", elements_of(s, 64), elements_of(s, 4));
}
Result<std::string> amx_c(const Sizes& s) {
  TRY(takes_bits(s, "AMX_C", {32}));
  return "m/16 n/16 m%16 n%16";
}

// XLA's default for the last two axes: T(8,128), fewer rows where there are few, and a second tile
// of a word's worth of rows.
Result<std::string> tpu_tiled(const Sizes& s) {
  TRY(takes_bits(s, "TPU_TILED", {4, 8, 16, 32}));
  const int64_t in_word = elements_of(s, 4);
  const int64_t needed = s.of('m') <= 2 ? 2 : s.of('m') <= 4 ? 4 : 8;
  const int64_t rows = std::max(needed, in_word);
  if (in_word == 1) return fmt::format("m/{0} n/128 m%{0} n%128", rows);
  return fmt::format("m/{0} n/128 m%{0}/{1} n%128 m%{1}", rows, in_word);
}

// Rows of `span` bytes, 8 rows a block, whose pieces of 16 bytes are exchanged with the row's
// number: the address's bits 4 and up with its bits 7 and up.
Result<std::string> swizzle(const Sizes& s, int64_t span) {
  const int64_t row = elements_of(s, span), piece = elements_of(s, 16), apart = 128 / span;
  if (bits_of(s.request.dtype) < 4)
    return error(Code::kInvalidArgument, "swizzles hold types of 4 bits or more, not {}",
                 name_of(s.request.dtype));
  return fmt::format("k/{0} m/8 m%8 (k%{0}/{1})^(m%8{2}) k%{1}", row, piece,
                     apart > 1 ? fmt::format("/{}", apart) : "");
}
template <int64_t kSpan>
Result<std::string> swizzle_of(const Sizes& s) {
  return swizzle(s, kSpan);
}
Result<std::string> core_matrix(const Sizes& s) {
  return fmt::format("k/{0} m/8 m%8 k%{0}", elements_of(s, 16));
}

// clang-format off
constexpr Row kFormats[] = {
    {{"ND", 2, "", true, "row-major"}, ""},
    {{"ND_ALIGN", -1, "n", true, "row-major, rows padded to 32 bytes"}, "(n/@ n%@)"},
    {{"NCHW", 0, "nchw", false, "channels first"}, "n c h w"},
    {{"NHWC", 1, "nchw", false, "channels last"}, "n h w c"},
    {{"CHWN", 14, "nchw", false, "batch last"}, "c h w n"},
    {{"HWCN", 16, "nchw", false, "weights, output channels last"}, "h w c n"},
    {{"NCDHW", 30, "ncdhw", false, "channels first, 3-D"}, "n c d h w"},
    {{"NDHWC", 27, "ncdhw", false, "channels last, 3-D"}, "n d h w c"},
    {{"DHWCN", 31, "ncdhw", false, "3-D weights, output channels last"}, "d h w c n"},
    {{"FRACTAL_NZ", 29, "mn", true, "matrices: columns of fractals, rows inside", "NZ"},
     "n/@ m/16 m%16 n%@"},
    {{"FRACTAL_NZ_L0C", -1, "mn", true, "NZ with 16 x 16 fractals of any type", "L0C"},
     "n/16 m/16 m%16 n%16"},
    {{"FRACTAL_NZ_C0_2", 52, "mn", true, "NZ with fractals of 16 x 2"}, "n/2 m/16 m%16 n%2"},
    {{"FRACTAL_NZ_C0_4", 53, "mn", true, "NZ with fractals of 16 x 4"}, "n/4 m/16 m%16 n%4"},
    {{"FRACTAL_NZ_C0_8", 54, "mn", true, "NZ with fractals of 16 x 8"}, "n/8 m/16 m%16 n%8"},
    {{"FRACTAL_NZ_C0_16", 50, "mn", true, "NZ with fractals of 16 x 16"}, "n/16 m/16 m%16 n%16"},
    {{"FRACTAL_NZ_C0_32", 51, "mn", true, "NZ with fractals of 16 x 32"}, "n/32 m/16 m%16 n%32"},
    {{"FRACTAL_ZZ", 28, "mk", true, "left operand in L0A", "ZZ"}, "m/16 k/@ m%16 k%@"},
    {{"FRACTAL_ZN", -1, "kn", true, "right operand in L0B", "ZN"}, "k/@ n/16 n%16 k%@"},
    {{"NC1HWC0", 3, "nchw", false, "feature maps", "5HD"}, "n c/@ h w c%@"},
    {{"NC1HWC0_C04", 12, "nchw", false, "feature maps of at most 4 channels"}, "", nc1hwc0_c04},
    {{"C1HWNC0", 9, "nchw", false, "feature maps, batch inside"}, "c/@ h w n c%@"},
    {{"NDC1HWC0", 32, "ncdhw", false, "feature maps of 3-D convolution", "6HD"},
     "n d c/@ h w c%@"},
    {{"FRACTAL_Z", 4, "nchw", false, "weights of convolution, grouped or not"}, "", fractal_z},
    {{"FRACTAL_Z_3D", 33, "ncdhw", false, "weights of 3-D convolution"},
     "(d c/@ h w) n/16 n%16 c%@"},
    {{"FRACTAL_Z_C04", 13, "nchw", false, "weights of a first convolution of at most 4 channels"},
     "", fractal_z_c04},
    {{"C1HWNCOC0", 25, "nchw", false, "weights of depthwise convolution, on a diagonal"},
     "c/16 h w n c%16 c%16"},
    {{"FRACTAL_ZN_LSTM", 38, "kn", false, "weights of LSTM, gates padded one by one"},
     "", fractal_zn_lstm},
    {{"FRACTAL_ZN_RNN", 44, "kn", false, "weights of DynamicRNN and GRU, gates padded one by one"},
     "", fractal_zn_rnn},
    {{"ND_RNN_BIAS", 43, "n", false, "bias of the RNN formats, gates padded one by one"},
     "", nd_rnn_bias},
    {{"TPU_TILED", -1, "mn", true, "XLA's default tiles on a TPU", "TPU"}, "", tpu_tiled},
    {{"PACKED_DOT_B", -1, "kn", true, "right operand of 32-bit dot instructions", "VNNI"},
     "", packed_dot_b},
    {{"AMX_A", -1, "mk", true, "left operand in AMX tiles"}, "", amx_a},
    {{"AMX_B", -1, "kn", true, "right operand in AMX tiles"}, "", amx_b},
    {{"AMX_C", -1, "mn", true, "sums in AMX tiles"}, "", amx_c},
    {{"CORE_MATRIX", -1, "mk", true, "tensor cores: 8 rows of 16 bytes each"}, "", core_matrix},
    {{"SWIZZLE_32B", -1, "mk", true, "tensor cores: rows of 32 bytes, swizzled"}, "", swizzle_of<32>},
    {{"SWIZZLE_64B", -1, "mk", true, "tensor cores: rows of 64 bytes, swizzled"}, "", swizzle_of<64>},
    {{"SWIZZLE_128B", -1, "mk", true, "tensor cores: rows of 128 bytes, swizzled"},
     "", swizzle_of<128>},
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
    return r.info.name == upper || (!r.info.alias.empty() && r.info.alias == upper);
  });
  return row == std::end(kFormats) ? nullptr : row;
}

// The names that hold the most of the given one, for who mistyped it.
std::string near_names(std::string_view name) {
  std::string upper(name), text;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const Row& r : kFormats)
    if (upper.size() > 1 && (r.info.name.find(upper) != std::string_view::npos ||
                             upper.find(r.info.name) != std::string::npos))
      text += fmt::format("{}{}", text.empty() ? "; there is " : ", ", r.info.name);
  return text;
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

const FormatInfo* find_format(std::string_view name) {
  const Row* row = find_row(name);
  return row == nullptr ? nullptr : &kInfos[static_cast<size_t>(row - kFormats)];
}

FormatRequest sample_request(const FormatInfo& format, DType dtype) {
  FormatRequest request{.dtype = dtype};
  if (format.letters == "nchw") request.extents = {32, 48, 5, 7};
  if (format.letters == "ncdhw") request.extents = {32, 48, 3, 5, 7};
  if (format.letters.size() == 2) request.extents = {20, 28};
  if (format.letters.size() < 2) request.extents = {60};
  if (format.letters.empty()) request.extents = {20, 28};
  if (format.name.find("C04") != std::string_view::npos) request.extents = {32, 3, 5, 7};
  if (format.name.find("RNN") != std::string_view::npos) request.hidden = 20;
  if (format.name == "FRACTAL_ZN_RNN") request.input = 10;
  if (format.name == "FRACTAL_ZN_RNN" || format.name == "FRACTAL_ZN_LSTM")
    request.extents = {30, 80};
  return request;
}

Result<Layout> format_layout(std::string_view name, const FormatRequest& request) {
  const Row* row = find_row(name);
  if (row == nullptr)
    return error(Code::kNotFound, "no layout format '{}'{}", name.substr(0, 40), near_names(name));
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

namespace {

// Whether the text can be a format's name: two characters or more, none of an expression's.
bool is_name(std::string_view text) {
  return text.size() > 1 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '_';
         });
}

Result<Layout> from_xla(std::string_view text, const FormatRequest& request) {
  TRY_ASSIGN(const XlaLayout xla, parse_xla(text, request.letters));
  if (xla.dtype && (*xla.dtype != request.dtype || xla.extents != request.extents))
    return error(Code::kInvalidArgument, "XLA layout '{}' is of another type than {}[{}]", text,
                 name_of(request.dtype), fmt::join(request.extents, ","));
  if (xla.element_bits != 0 && xla.element_bits != bits_of(request.dtype))
    return error(Code::kInvalidArgument, "XLA layout '{}' has elements of {} bits, {} has {}", text,
                 xla.element_bits, name_of(request.dtype), bits_of(request.dtype));
  return xla.layout;
}

Result<Layout> from_expression(std::string_view text, std::string_view letters) {
  if (text.find(':') < text.find('[')) return Layout::parse(text);
  if (!letters.empty()) return Layout::parse(text, letters);
  return error(Code::kInvalidArgument,
               "expression '{}' does not name its logical axes; write them first, as in 'mn: n m'",
               text.substr(0, 80));
}

}  // namespace

Result<Layout> layout_from(std::string_view text, const FormatRequest& request,
                           std::string_view letters) {
  if (is_xla(text)) return from_xla(text, request);
  if (is_name(text)) return format_layout(text, request);
  return from_expression(text, request.letters.empty() ? letters : request.letters);
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
