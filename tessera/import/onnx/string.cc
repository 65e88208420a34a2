// Strings.
#include "tessera/import/onnx/importer.h"

namespace tessera::import::onnx {
namespace {

Status concat(NodeContext& c) {
  c.out(0, c.b.op("string_concat", c.inputs));
  return {};
}

Status split(NodeContext& c) {
  c.outputs = c.b.ops("string_split", c.inputs,
                      {{"delimiter", c.s("delimiter", "")}, {"maxsplit", c.i("maxsplit", -1)}},
                      static_cast<int>(c.output_count()));
  return {};
}

Status normalize(NodeContext& c) {
  std::string mode = c.s("case_change_action", "NONE");
  for (char& letter : mode)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + 32);
  c.out(0, c.b.op("string_normalize", c.inputs,
                  {{"case", mode},
                   {"case_sensitive", c.i("is_case_sensitive", 0)},
                   {"stopwords", c.strings("stopwords")}}));
  return {};
}

Status match(NodeContext& c) {
  c.out(0, c.b.op("regex_full_match", c.inputs, {{"pattern", c.s("pattern", "")}}));
  return {};
}

Status tfidf(NodeContext& c) {
  std::string mode = c.s("mode", "");
  for (char& letter : mode)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + 32);
  op::Attrs attrs{{"mode", mode},
                  {"min_length", c.i("min_gram_length", 1)},
                  {"max_length", c.i("max_gram_length", 1)},
                  {"max_skip", c.i("max_skip_count", 0)},
                  {"starts", c.ints("ngram_counts")},
                  {"indices", c.ints("ngram_indexes")}};
  if (c.has_attr("weights")) attrs.set("weights", c.floats("weights"));
  if (c.has_attr("pool_strings")) attrs.set("strings", c.strings("pool_strings"));
  if (c.has_attr("pool_int64s")) attrs.set("ints", c.ints("pool_int64s"));
  c.out(0, c.b.op("tfidf", c.inputs, std::move(attrs)));
  return {};
}

constexpr Converter kRows[] = {
    {"", "StringConcat", concat},        {"", "StringSplit", split},
    {"", "StringNormalizer", normalize}, {"", "RegexFullMatch", match},
    {"", "TfIdfVectorizer", tfidf},
};

}  // namespace

std::span<const Converter> string_converters() { return kRows; }

}  // namespace tessera::import::onnx
