// Einsum: operands are contracted from the left, two at a time, each pair as one dot.
#include <algorithm>
#include <map>

#include "tessera/import/onnx/importer.h"
#include "tessera/ir/composites.h"

namespace tessera::import::onnx {
namespace {

// Labels of axes: letters as written; the axes of "..." are counted from the right, '0' being the
// last one.
using Labels = std::string;
constexpr int kMaxEllipsis = 10;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool has(const Labels& labels, char c) { return labels.find(c) != labels.npos; }

struct Operand {
  ValueId id;
  Labels labels;  // one for each axis
};

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
};

Labels ellipsis(int axes) {
  Labels labels;
  for (int i = axes; i-- > 0;) labels += static_cast<char>('0' + i);
  return labels;
}

// "ab...,b->a..." with "..." replaced by as many labels as the rank leaves.
Result<Labels> expand(NodeContext& c, const std::string& term, int rank) {
  const size_t dots = term.find("...");
  Labels labels = term;
  if (dots != term.npos) {
    const int axes = rank < 0 ? 0 : rank - static_cast<int>(term.size() - 3);
    if (axes < 0 || axes > kMaxEllipsis)
      return error(Code::kInvalidArgument, "{}: '{}' for an operand of rank {}", c.node.op_type,
                   term, rank);
    labels = term.substr(0, dots) + ellipsis(axes) + term.substr(dots + 3);
  }
  const bool letters = std::all_of(labels.begin(), labels.end(),
                                   [](char l) { return is_letter(l) || (l >= '0' && l <= '9'); });
  if (!letters || (rank >= 0 && static_cast<int>(labels.size()) != rank))
    return error(Code::kInvalidArgument, "{}: '{}' for an operand of rank {}", c.node.op_type, term,
                 rank);
  return labels;
}

Result<Equation> parse(NodeContext& c) {
  std::string text = c.s("equation", "");
  std::erase(text, ' ');
  for (char letter : text)
    if (letter >= '0' && letter <= '9')
      return error(Code::kInvalidArgument, "{}: '{}' in the equation", c.node.op_type, letter);
  const size_t arrow = text.find("->");
  std::vector<std::string> terms{""};
  for (char letter : text.substr(0, arrow)) {
    if (letter == ',')
      terms.emplace_back();
    else
      terms.back() += letter;
  }
  if (terms.size() != c.input_count())
    return error(Code::kInvalidArgument, "{}: {} terms for {} inputs", c.node.op_type, terms.size(),
                 c.input_count());
  Equation e;
  int widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!c.has(i) || !c.type(i).ranked())
      return error(Code::kUnimplemented, "{}: the rank of input {} must be known", c.node.op_type,
                   i);
    TRY_ASSIGN(Labels labels, expand(c, terms[i], c.type(i).rank()));
    if (terms[i].find("...") != std::string::npos)
      widest = std::max(widest, c.type(i).rank() - static_cast<int>(terms[i].size()) + 3);
    e.inputs.push_back(labels);
  }
  if (arrow != text.npos) {
    const std::string term = text.substr(arrow + 2);
    const size_t dots = term.find("...");
    TRY_ASSIGN(
        e.output,
        expand(c, term, dots == term.npos ? -1 : static_cast<int>(term.size()) - 3 + widest));
    for (char l : e.output) {
      const bool known = std::any_of(e.inputs.begin(), e.inputs.end(),
                                     [l](auto& labels) { return has(labels, l); });
      if (!known || std::count(e.output.begin(), e.output.end(), l) != 1)
        return error(Code::kInvalidArgument, "{}: output '{}'", c.node.op_type, term);
    }
    return e;
  }
  // Without an arrow: the axes of "...", then the letters that occur once, sorted.
  std::map<char, int> counts;
  for (const Labels& labels : e.inputs)
    for (char l : labels) ++counts[l];
  e.output = ellipsis(widest);
  for (auto [letter, count] : counts)
    if (is_letter(letter) && count == 1) e.output += letter;
  return e;
}

class Contraction {
 public:
  explicit Contraction(ir::Builder& b) : b_(b) {}

  // A label that occurs twice keeps the diagonal: elsewhere is zero, and the sum drops the second
  // axis.
  Operand without_repeats(Operand x) {
    for (size_t i = 0; i < x.labels.size(); ++i) {
      const size_t j = x.labels.find(x.labels[i], i + 1);
      if (j == x.labels.npos) continue;
      const ValueId same = b_.op("eq", {ir::index_along(b_, x.id, static_cast<int64_t>(i)),
                                        ir::index_along(b_, x.id, static_cast<int64_t>(j))});
      x.id = b_.reduce("sum", b_.select(same, x.id, b_.scalar_like(x.id, 0)),
                       {static_cast<int64_t>(j)}, false);
      x.labels.erase(j, 1);
      --i;
    }
    return x;
  }

  // Sums over the labels that nobody else needs.
  Operand summed(Operand x, const Labels& needed) {
    std::vector<int64_t> axes;
    Labels kept;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (has(needed, x.labels[i]))
        kept += x.labels[i];
      else
        axes.push_back(static_cast<int64_t>(i));
    }
    if (!axes.empty()) x = {b_.reduce("sum", x.id, axes, false), kept};
    return x;
  }

  Operand ordered(Operand x, const Labels& order) {
    if (x.labels == order) return x;
    std::vector<int64_t> perm;
    for (char l : order) perm.push_back(static_cast<int64_t>(x.labels.find(l)));
    return {b_.transpose(x.id, perm), order};
  }

  // a and b as (batch, M, K) and (batch, K, N). Labels of "..." broadcast, so they are always batch
  // axes.
  Operand dot(Operand a, Operand x, const Labels& needed) {
    Labels batch, m, n, k;
    auto is_batch = [&](char l) {
      return !is_letter(l) || (has(a.labels, l) && has(x.labels, l) && has(needed, l));
    };
    for (int i = kMaxEllipsis; i-- > 0;)
      if (const char l = static_cast<char>('0' + i); has(a.labels, l) || has(x.labels, l))
        batch += l;
    for (char l : a.labels)
      if (is_letter(l)) (is_batch(l) ? batch : has(x.labels, l) ? k : m) += l;
    for (char l : x.labels)
      if (is_letter(l) && !has(a.labels, l)) n += l;
    a = with_axes(a, batch);
    x = with_axes(x, batch);
    a = ordered(a, batch + m + k);
    x = ordered(x, batch + k + n);
    const ValueId size_m = sizes(a, m), size_n = sizes(x, n);
    const ValueId y = b_.op("dot", {merged(a, batch, m, k), merged(x, batch, k, n)});
    if (m.size() == 1 && n.size() == 1) return {y, batch + m + n};
    std::vector<ValueId> shape;
    if (!batch.empty())
      shape.push_back(b_.slice(b_.shape_of(y), 0, 0, static_cast<int64_t>(batch.size())));
    if (!m.empty()) shape.push_back(size_m);
    if (!n.empty()) shape.push_back(size_n);
    return {reshape(y, shape), batch + m + n};
  }

 private:
  // Adds axes of size 1 for the labels that x lacks.
  Operand with_axes(Operand x, const Labels& labels) {
    for (char l : labels)
      if (!has(x.labels, l)) x = {b_.unsqueeze(x.id, {0}), l + x.labels};
    return x;
  }

  // The sizes of some axes, i64[labels].
  ValueId sizes(const Operand& x, const Labels& labels) {
    std::vector<ValueId> list;
    for (char l : labels) list.push_back(b_.dim(x.id, static_cast<int64_t>(x.labels.find(l))));
    return list.empty() ? b_.ints({}) : b_.concat(list, 0);
  }

  ValueId reshape(ValueId x, const std::vector<ValueId>& shape) {
    return b_.op("reshape", {x, shape.empty() ? b_.ints({}) : b_.concat(shape, 0)},
                 {{"zero_is_zero", int64_t{1}}});
  }

  // (batch..., first..., second...) to (batch..., first, second)
  ValueId merged(const Operand& x, const Labels& batch, const Labels& first, const Labels& second) {
    if (first.size() == 1 && second.size() == 1) return x.id;
    auto one = [&](const Labels& labels) { return b_.reduce("prod", sizes(x, labels), {0}, true); };
    std::vector<ValueId> shape;
    if (!batch.empty()) shape.push_back(sizes(x, batch));
    shape.push_back(one(first));
    shape.push_back(one(second));
    return reshape(x.id, shape);
  }

  ir::Builder& b_;
};

Status einsum(NodeContext& c) {
  ir::Builder& b = c.b;
  TRY_ASSIGN(Equation e, parse(c));
  Contraction contraction(b);
  Operand total;
  for (size_t i = 0; i < e.inputs.size(); ++i) {
    Labels needed = e.output;
    for (size_t j = i + 1; j < e.inputs.size(); ++j) needed += e.inputs[j];
    Operand next = contraction.without_repeats({c.in(i), e.inputs[i]});
    if (!b.ok()) return {};
    next = contraction.summed(next, needed + (i > 0 ? total.labels : ""));
    if (i > 0)
      next = contraction.dot(contraction.summed(total, needed + next.labels), next, needed);
    total = next;
  }
  total = contraction.summed(total, e.output);
  c.out(0, contraction.ordered(total, e.output).id);
  return {};
}

constexpr Converter kRows[] = {{"", "Einsum", einsum}};

}  // namespace

std::span<const Converter> einsum_converters() { return kRows; }

}  // namespace tessera::import::onnx
