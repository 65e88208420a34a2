// Strings: handled on the host.
#include <algorithm>

#include "tessera/op/rules.h"

namespace tessera::op {
namespace {

using enum OpClass;
using Types = Result<std::vector<Type>>;

Status check_strings(const InferContext& c) {
  for (size_t i = 0; i < c.size(); ++i)
    if (!c.in(i).is_tensor() || c.in(i).dtype != DType::kString)
      return c.fail("input {} is {}, need strings", i, c.in(i).str());
  return {};
}

// string_concat(a, b), broadcast
Types concat_rule(const InferContext& c) {
  TRY(check_strings(c));
  return broadcast_same_dtype(c);
}

// string_split(x){delimiter, maxsplit} -> parts, count of parts: parts has a further axis, padded
// with "". No delimiter: runs of white space. maxsplit -1: no limit.
Types split_rule(const InferContext& c) {
  TRY(check_strings(c));
  Type parts = c.in(0), counts = c.in(0);
  if (parts.ranked()) parts.shape->push_back(c.fresh());
  counts.dtype = DType::kI64;
  return std::vector<Type>{std::move(parts), std::move(counts)};
}

// string_normalize(x){case, case_sensitive, stopwords}: [C] or [1,C] without the stop words, in
// "lower", "upper" or the case it has ("none"); one empty string if nothing is left.
Types normalize_rule(const InferContext& c) {
  TRY(check_strings(c));
  const std::string mode = c.attrs.s("case", "none");
  if (mode != "none" && mode != "lower" && mode != "upper")
    return c.fail("unknown change of case '{}'", mode);
  Type t = c.in(0);
  if (!t.ranked()) return std::vector<Type>{t};
  if (t.rank() < 1 || t.rank() > 2 ||
      (t.rank() == 2 && t.dim(0).is_constant() && *t.dim(0).constant() != 1))
    return c.fail("needs shape [C] or [1,C], got {}", t.str());
  t.shape->back() = c.fresh();
  return std::vector<Type>{t};
}

// regex_full_match(x){pattern}
Types match_rule(const InferContext& c) {
  TRY(check_strings(c));
  Type t = c.in(0);
  t.dtype = DType::kBool;
  return std::vector<Type>{t};
}

// tfidf(x){mode, min_length, max_length, max_skip, starts, indices, weights, ints | strings}: how
// often each n-gram of the pool occurs in a row of x ("tf"), weighted ("tfidf"), or its weight if
// it occurs ("idf"). The pool holds n-grams of length 1, 2, ... one after the other; those of
// length n begin at starts[n-1]. indices: where each goes in the output.
Types tfidf_rule(const InferContext& c) {
  const Type& x = c.in(0);
  if (!x.is_tensor() || (!is_int(x.dtype) && x.dtype != DType::kString))
    return c.fail("needs integers or strings, got {}", x.str());
  const bool strings = c.attrs.has("strings");
  if (strings == c.attrs.has("ints")) return c.fail("needs a pool of integers or one of strings");
  if (strings != (x.dtype == DType::kString))
    return c.fail("the pool does not hold what the input does: {}", x.str());
  const int64_t pool = static_cast<int64_t>(strings ? c.attrs.strings("strings").size()
                                                    : c.attrs.ints("ints").size());
  const Ints starts = c.attrs.ints("starts"), indices = c.attrs.ints("indices");
  int64_t grams = 0;
  for (size_t n = 0; n < starts.size(); ++n) {
    const int64_t begin = starts[n], end = n + 1 < starts.size() ? starts[n + 1] : pool;
    const int64_t length = static_cast<int64_t>(n) + 1;
    if (begin < 0 || begin > end || end > pool || (end - begin) % length != 0)
      return c.fail("{}-grams at {} to {} do not fit a pool of {}", length, begin, end, pool);
    grams += (end - begin) / length;
  }
  if (grams != static_cast<int64_t>(indices.size()))
    return c.fail("{} n-grams, {} indices", grams, indices.size());
  if (c.attrs.has("weights") && c.attrs.floats("weights").size() != indices.size())
    return c.fail("{} n-grams, {} weights", indices.size(), c.attrs.floats("weights").size());
  const std::string mode = c.attrs.s("mode");
  if (mode != "tf" && mode != "idf" && mode != "tfidf") return c.fail("unknown mode '{}'", mode);
  if (c.attrs.i("min_length") < 1 || c.attrs.i("max_length") < c.attrs.i("min_length") ||
      c.attrs.i("max_skip") < 0)
    return c.fail("lengths {} to {} with {} skips", c.attrs.i("min_length"),
                  c.attrs.i("max_length"), c.attrs.i("max_skip"));
  int64_t size = 0;
  for (int64_t index : indices) {
    if (index < 0 || index >= int64_t{1} << 40) return c.fail("index {} is out of range", index);
    size = std::max(size, index + 1);
  }
  if (!x.ranked()) return std::vector<Type>{Type::unranked(DType::kF32)};
  if (x.rank() > 2) return c.fail("needs rank 1 or 2, got {}", x.str());
  Shape shape{Expr(size)};
  if (x.rank() == 2) shape.insert(shape.begin(), x.dim(0));
  return std::vector<Type>{Type::tensor(DType::kF32, std::move(shape))};
}

}  // namespace

std::span<const OpDef> string_rows() {
  static const std::vector<OpDef> rows{
      {"string_concat", kHost, 2, 2, 1, 1, {}, concat_rule},
      {"string_split",
       kHost,
       1,
       1,
       1,
       2,
       {{"delimiter", AttrKind::kString}, {"maxsplit", AttrKind::kInt}},
       split_rule},
      {"string_normalize",
       kHost,
       1,
       1,
       1,
       1,
       {{"case", AttrKind::kString},
        {"case_sensitive", AttrKind::kInt},
        {"stopwords", AttrKind::kStrings}},
       normalize_rule},
      {"regex_full_match", kHost, 1, 1, 1, 1, {{"pattern", AttrKind::kString, true}}, match_rule},
      {"tfidf",
       kHost,
       1,
       1,
       1,
       1,
       {{"mode", AttrKind::kString, true},
        {"min_length", AttrKind::kInt, true},
        {"max_length", AttrKind::kInt, true},
        {"max_skip", AttrKind::kInt, true},
        {"starts", AttrKind::kInts, true},
        {"indices", AttrKind::kInts, true},
        {"weights", AttrKind::kFloats},
        {"ints", AttrKind::kInts},
        {"strings", AttrKind::kStrings}},
       tfidf_rule},
  };
  return rows;
}

}  // namespace tessera::op
