// Strings. Text is UTF-8; bytes that are not stay as they are.
#include <algorithm>
#include <map>

#include <re2/re2.h>

#include "tessera/ir/reference/loops.h"

namespace tessera::ir::reference {
namespace {

using Values = Result<std::vector<Value>>;

Values concat(const Call& call) {
  const Tensor &a = call.t(0), &b = call.t(1);
  TRY_ASSIGN(Tensor y, call.make(0));
  const Dims sa = broadcast_strides(a.dims(), y.dims()), sb = broadcast_strides(b.dims(), y.dims());
  for (Index at(y.dims()); !at.done(); at.next())
    y.mutable_text()[static_cast<size_t>(at.linear())] =
        a.text()[static_cast<size_t>(at.dot(sa))] + b.text()[static_cast<size_t>(at.dot(sb))];
  return one(std::move(y));
}

// Pieces between delimiters; after `limit` cuts (-1: any number) the rest is one piece.
std::vector<std::string> cut(const std::string& text, const std::string& delimiter, int64_t limit) {
  std::vector<std::string> pieces;
  size_t begin = 0;
  for (size_t at; limit != 0 && (at = text.find(delimiter, begin)) != text.npos; --limit) {
    pieces.push_back(text.substr(begin, at - begin));
    begin = at + delimiter.size();
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

// Words between runs of white space.
std::vector<std::string> words(const std::string& text, int64_t limit) {
  constexpr char kSpace[] = " \t\n\r\f\v";
  std::vector<std::string> pieces;
  size_t begin = text.find_first_not_of(kSpace);
  for (; begin != text.npos; --limit) {
    if (limit == 0) {
      pieces.push_back(text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin));
      break;
    }
    const size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
    pieces.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kSpace, end);
  }
  return pieces;
}

Values split(const Call& call) {
  const Tensor& x = call.t(0);
  const std::string delimiter = call.attrs().s("delimiter");
  const int64_t limit = std::max<int64_t>(-1, call.attrs().i("maxsplit", -1));
  std::vector<std::vector<std::string>> pieces;
  size_t longest = 0;
  for (const std::string& text : x.text()) {
    pieces.push_back(delimiter.empty() ? words(text, limit) : cut(text, delimiter, limit));
    longest = std::max(longest, pieces.back().size());
  }
  Dims dims = x.dims();
  TRY_ASSIGN(Tensor counts, Tensor::make(DType::kI64, dims));
  dims.push_back(static_cast<int64_t>(longest));
  TRY_ASSIGN(Tensor y, Tensor::make(DType::kString, dims));
  for (size_t i = 0; i < pieces.size(); ++i) {
    counts.set_i64(static_cast<int64_t>(i), static_cast<int64_t>(pieces[i].size()));
    std::move(pieces[i].begin(), pieces[i].end(),
              y.mutable_text().begin() + static_cast<int64_t>(i * longest));
  }
  return std::vector<Value>{std::move(y), std::move(counts)};
}

// ---- change of case: Latin with its supplements, Greek and Cyrillic ----

// Letters whose upper and lower forms lie `distance` apart.
struct CaseRange {
  char32_t first_upper, last_upper;
  char32_t distance;
  bool alternating;  // upper and lower forms take turns, upper ones even
  bool odd;          // ... or odd
};
constexpr CaseRange kCases[] = {
    {U'A', U'Z', 32, false, false},   {0xC0, 0xD6, 32, false, false},
    {0xD8, 0xDE, 32, false, false},   {0x100, 0x12F, 1, true, false},
    {0x132, 0x137, 1, true, false},   {0x139, 0x148, 1, true, true},
    {0x14A, 0x177, 1, true, false},   {0x179, 0x17E, 1, true, true},
    {0x391, 0x3A1, 32, false, false}, {0x3A3, 0x3AB, 32, false, false},
    {0x388, 0x38A, 37, false, false}, {0x410, 0x42F, 32, false, false},
    {0x400, 0x40F, 80, false, false}, {0x460, 0x481, 1, true, false},
    {0x48A, 0x4BF, 1, true, false},   {0x1E00, 0x1E95, 1, true, false},
    {0x1EA0, 0x1EFF, 1, true, false},
};

char32_t change(char32_t c, bool upper) {
  for (const CaseRange& r : kCases) {
    if (r.alternating) {
      if (c < r.first_upper || c > r.last_upper) continue;
      const bool is_upper = (c % 2 == 0) != r.odd;
      return upper == is_upper ? c : upper ? c - 1 : c + 1;
    }
    if (!upper && c >= r.first_upper && c <= r.last_upper) return c + r.distance;
    if (upper && c >= r.first_upper + r.distance && c <= r.last_upper + r.distance)
      return c - r.distance;
  }
  return c;
}

std::string change(const std::string& text, bool upper) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80       ? 1
                          : lead >> 5 == 6  ? 2
                          : lead >> 4 == 14 ? 3
                                            : 0;  // longer ones have no case here
    bool valid = length > 0 && i + length <= text.size();
    char32_t c = length == 1 ? lead : lead & (0xff >> (length + 1));
    for (size_t k = 1; valid && k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      valid = next >> 6 == 2;
      c = c << 6 | (next & 0x3f);
    }
    if (!valid) {
      out += text[i++];
      continue;
    }
    i += length;
    c = change(c, upper);
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
    } else {
      out += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3f)),
              static_cast<char>(0x80 | (c & 0x3f))};
    }
  }
  return out;
}

Values normalize(const Call& call) {
  const Tensor& x = call.t(0);
  const std::string mode = call.attrs().s("case", "none");
  const bool sensitive = call.attrs().i("case_sensitive") != 0;
  op::Strings stop = call.attrs().strings("stopwords");
  auto key = [&](const std::string& word) { return sensitive ? word : change(word, false); };
  for (std::string& word : stop) word = key(word);
  std::sort(stop.begin(), stop.end());
  std::vector<std::string> kept;
  for (const std::string& word : x.text())
    if (!std::binary_search(stop.begin(), stop.end(), key(word)))
      kept.push_back(mode == "none" ? word : change(word, mode == "upper"));
  if (kept.empty()) kept.emplace_back();
  Dims dims = x.dims();
  dims.back() = static_cast<int64_t>(kept.size());
  TRY_ASSIGN(Tensor y, Tensor::strings(dims, std::move(kept)));
  return one(std::move(y));
}

Values match(const Call& call) {
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 pattern(call.attrs().s("pattern"), options);
  if (!pattern.ok()) return call.fail("pattern '{}': {}", pattern.pattern(), pattern.error());
  TRY_ASSIGN(Tensor y, call.make(0));
  for (int64_t i = 0; i < y.count(); ++i)
    y.set_i64(i, RE2::FullMatch(call.t(0).text()[static_cast<size_t>(i)], pattern));
  return one(std::move(y));
}

// The pool's n-grams of each length, tokens numbered; what each maps to is its place in the pool.
struct Pool {
  std::map<std::string, int64_t> numbers;  // of strings; integers are their own
  std::vector<std::map<std::vector<int64_t>, size_t>> grams;
};

Pool read_pool(const op::Attrs& attrs) {
  Pool pool;
  op::Ints tokens = attrs.ints("ints");
  for (const std::string& s : attrs.strings("strings"))
    tokens.push_back(
        pool.numbers.emplace(s, static_cast<int64_t>(pool.numbers.size())).first->second);
  const op::Ints starts = attrs.ints("starts");
  size_t id = 0;
  for (size_t n = 1; n <= starts.size(); ++n) {
    pool.grams.emplace_back();
    const int64_t end = n < starts.size() ? starts[n] : static_cast<int64_t>(tokens.size());
    for (int64_t at = starts[n - 1]; at < end; at += static_cast<int64_t>(n))
      pool.grams.back()[{tokens.begin() + at, tokens.begin() + at + static_cast<int64_t>(n)}] =
          id++;
  }
  return pool;
}

Values tfidf(const Call& call) {
  const Tensor& x = call.t(0);
  const Pool pool = read_pool(call.attrs());
  const op::Ints indices = call.attrs().ints("indices");
  const op::Floats weights = call.attrs().floats("weights", op::Floats(indices.size(), 1));
  const std::string mode = call.attrs().s("mode");
  TRY_ASSIGN(Tensor y, call.make(0));
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < x.count(); ++i) {
    if (x.dtype() != DType::kString) {
      tokens.push_back(x.i64(i));
      continue;
    }
    auto known = pool.numbers.find(x.text()[static_cast<size_t>(i)]);
    tokens.push_back(known == pool.numbers.end() ? -1 : known->second);
  }
  const int64_t rows = x.rank() == 2 ? x.dim(0) : 1, length = rows > 0 ? x.count() / rows : 0,
                width = y.count() / std::max<int64_t>(rows, 1);
  const int64_t longest =
      std::min({call.attrs().i("max_length"), static_cast<int64_t>(pool.grams.size()), length});
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> counts(indices.size());
    for (int64_t n = call.attrs().i("min_length"); n <= longest; ++n) {
      const int64_t skips = n == 1 ? 0 : std::min(call.attrs().i("max_skip"), length);
      for (int64_t step = 1; step <= skips + 1; ++step)
        for (int64_t begin = 0; begin + (n - 1) * step < length; ++begin) {
          std::vector<int64_t> gram;
          for (int64_t k = 0; k < n; ++k)
            gram.push_back(tokens[static_cast<size_t>(row * length + begin + k * step)]);
          const auto& grams = pool.grams[static_cast<size_t>(n - 1)];
          if (auto hit = grams.find(gram); hit != grams.end()) ++counts[hit->second];
        }
    }
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t to = row * width + indices[i];
      const double count =
          static_cast<double>(mode == "idf" ? std::min<int64_t>(counts[i], 1) : counts[i]);
      y.set_f64(to, y.f64(to) + count * (mode == "tf" ? 1 : weights[i]));
    }
  }
  return one(std::move(y));
}

constexpr Row kRows[] = {
    {"string_concat", concat},   {"string_split", split}, {"string_normalize", normalize},
    {"regex_full_match", match}, {"tfidf", tfidf},
};

}  // namespace

std::span<const Row> string_rows() { return kRows; }

}  // namespace tessera::ir::reference
