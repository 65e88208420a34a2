#include "tessera/layout/bound.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "tessera/layout/solve.h"

namespace tessera::layout {
namespace {

// A node that adds value * stride to the offset.
struct Term {
  int node = 0;
  int64_t stride = 0;
  int64_t size = 0;  // positions reserved
  bool adds_like(const Term& o) const { return node == o.node && stride == o.stride; }
};

__extension__ typedef __int128 Wide;

constexpr int kMaxLines = 1 << 16;  // what contiguous_run looks at before it settles for less

std::vector<int64_t> packed_strides(std::span<const int64_t> sizes, int bits) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t a = sizes.size(); a-- > 1;) {
    const bool innermost = a + 1 == sizes.size();
    const int64_t per_byte = innermost && bits < 8 ? 8 / bits : 1;
    const int64_t row = ceil_div(sizes[a], per_byte) * per_byte;
    strides[a - 1] = saturating_product(strides[a], std::max<int64_t>(row, 1));
  }
  return strides;
}

// Whether places have distinct offsets, shown by nesting: each stride spans all that lies inside
// it.
bool strides_nest(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  std::vector<size_t> order;
  for (size_t a = 0; a < sizes.size(); ++a)
    if (sizes[a] > 1) order.push_back(a);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::abs(strides[a]) < std::abs(strides[b]); });
  Wide span = 1;
  for (const size_t a : order) {
    const Wide stride = std::abs(strides[a]);
    if (stride < span) return false;
    span += stride * (sizes[a] - 1);
  }
  return true;
}

using Digit = BoundLayout::Digit;

// Letters in row-major order, all of each: their number is a digit's u.
std::optional<Digit> merged_letters(const Graph& graph, const Node& merge) {
  Digit digit;
  int64_t stride = 1;
  for (size_t k = merge.args.size(); k-- > 0;) {
    const Node& letter = graph[merge.args[k].node];
    if (letter.kind != NodeKind::kLetter || merge.strides[k] != stride) return std::nullopt;
    digit.axes.insert(digit.axes.begin(), letter.axis);
    stride = saturating_product(stride, graph.extents()[static_cast<size_t>(letter.axis)]);
  }
  return digit;
}

std::optional<Digit> digit_of(const Graph& graph, int node) {
  const Node& n = graph[node];
  if (n.kind == NodeKind::kLetter) return Digit{.axes = {n.axis}};
  if (n.kind == NodeKind::kMerge) return merged_letters(graph, n);
  if (n.kind != NodeKind::kDiv && n.kind != NodeKind::kMod) return std::nullopt;
  std::optional<Digit> digit = digit_of(graph, n.args[0].node);
  if (!digit) return digit;
  if (n.kind == NodeKind::kDiv) {
    if (digit->radix % n.by != 0) return std::nullopt;
    digit->unit = saturating_product(digit->unit, n.by);
    digit->radix /= n.by;
  } else if (digit->radix % n.by == 0) {
    digit->radix = n.by;
  } else if (n.by % digit->radix != 0) {
    return std::nullopt;
  }
  return digit;
}

}  // namespace

struct BoundLayout::State {
  State(const Stored& stored, DType type, std::span<const int64_t> sizes)
      : layout(stored.layout),
        dtype(type),
        bits(bits_of(type)),
        offset(stored.offset),
        graph(sizes) {}

  Status check_extents() const;
  Status place_axes(const std::optional<std::vector<int64_t>>& explicit_strides);
  Status check_range();
  void collect_terms(Ref ref, int64_t stride);
  bool fuse_terms();
  void group_axes();
  int64_t run_of(int axis, int64_t step) const;
  bool extend_run(std::span<const int64_t> index, int axis, int64_t step, int64_t* run,
                  int* budget) const;
  Line line(std::span<const int64_t> index, int axis) const;

  Layout layout;
  DType dtype;
  int bits;
  int64_t offset;
  Graph graph;
  std::vector<Ref> roots;
  std::vector<int64_t> physical;
  std::vector<int64_t> strides;
  bool packed = true;
  int64_t elements = 0;
  int64_t places = 0;
  int64_t bytes = 0;
  std::vector<Term> terms;
  std::vector<int> group;  // per logical axis; axes of one group mix
  Inverse inverse;
};

Status BoundLayout::State::check_extents() const {
  const std::span<const int64_t> extents = graph.extents();
  if (bits == 0)
    return error(Code::kInvalidArgument, "elements of type {} have no layout", name_of(dtype));
  if (static_cast<int>(extents.size()) != layout.rank())
    return error(Code::kInvalidArgument, "{} extents for the {} logical axes of layout '{}'",
                 extents.size(), layout.rank(), layout.to_string());
  for (size_t a = 0; a < extents.size(); ++a)
    if (extents[a] < 0)
      return error(Code::kInvalidArgument, "extent {} of axis {} is negative", extents[a], a);
  return {};
}

Status BoundLayout::State::place_axes(const std::optional<std::vector<int64_t>>& explicit_strides) {
  for (const Expr& axis : layout.axes()) {
    TRY_ASSIGN(roots.emplace_back(), graph.add(axis));
    physical.push_back(roots.back().size);
  }
  TRY_ASSIGN(elements, checked_product(graph.extents()));
  TRY_ASSIGN(places, checked_product(physical));
  strides = packed_strides(physical, bits);
  if (!explicit_strides) return {};
  if (explicit_strides->size() != physical.size())
    return error(Code::kInvalidArgument, "{} strides for {} physical axes",
                 explicit_strides->size(), physical.size());
  for (size_t a = 0; a < physical.size(); ++a) {
    const int64_t stride = (*explicit_strides)[a];
    if (stride < -kMaxSize || stride > kMaxSize)
      return error(Code::kOutOfRange, "stride {} of physical axis {} exceeds 2^62", stride, a);
    packed &= physical[a] <= 1 || stride == strides[a];
  }
  strides = *explicit_strides;
  if (places > 1 && !strides_nest(physical, strides))
    return error(Code::kInvalidArgument, "strides {} of sizes {} overlap or interleave",
                 fmt::join(strides, " "), fmt::join(physical, " "));
  return {};
}

// Sets `bytes`; refuses places before the buffer or too far behind its start.
Status BoundLayout::State::check_range() {
  if (offset < 0 || offset > kMaxSize)
    return error(Code::kOutOfRange, "offset {} is not within 0 to 2^62", offset);
  if (places == 0) return {};
  Wide first = offset;
  Wide last = offset;
  for (size_t a = 0; a < physical.size(); ++a)
    (strides[a] < 0 ? first : last) += static_cast<Wide>(strides[a]) * (physical[a] - 1);
  if (first < 0)
    return error(Code::kOutOfRange, "places lie before the buffer: offset {}, strides {}", offset,
                 fmt::join(strides, " "));
  if ((last + 1) * bits > kMaxSize)
    return error(Code::kOutOfRange, "layout '{}' spans more than 2^62 bits", layout.to_string());
  bytes = ceil_div(static_cast<int64_t>(last + 1) * bits, 8);
  return {};
}

void BoundLayout::State::collect_terms(Ref ref, int64_t stride) {
  if (ref.node == 0) return;
  const Node& n = graph[ref.node];
  if (n.kind != NodeKind::kMerge) return terms.push_back({ref.node, stride, ref.size});
  for (size_t i = 0; i < n.args.size(); ++i) {
    const int64_t size = i > 0 ? n.args[i].size : ref.size / n.strides[0];
    collect_terms({n.args[i].node, size}, stride * n.strides[i]);
  }
}

// (x/k) s k + (x%k) s -> x s: longer lines, and axes that are whole again.
bool BoundLayout::State::fuse_terms() {
  for (size_t low = 0; low < terms.size(); ++low) {
    const Node digit = graph[terms[low].node];
    if (digit.kind != NodeKind::kMod) continue;
    const int x = digit.args[0].node;
    const int quotient = graph.div({x, graph[x].bound}, digit.by).node;
    const Term high{quotient, saturating_product(terms[low].stride, digit.by)};
    const auto match = std::find_if(terms.begin(), terms.end(),
                                    [&](const Term& term) { return term.adds_like(high); });
    if (match == terms.end()) continue;
    const int64_t stride = terms[low].stride;
    const int64_t size = saturating_product(match->size, digit.by);
    *match = {};
    terms[low] = {};
    std::erase_if(terms, [](const Term& term) { return term.adds_like({}); });
    collect_terms({x, size}, stride);
    return true;
  }
  return false;
}

void BoundLayout::State::group_axes() {
  group.resize(graph.extents().size());
  std::iota(group.begin(), group.end(), 0);
  for (const Term& term : terms) {
    const std::vector<bool> uses = graph.axes_of(term.node);
    const auto first =
        static_cast<size_t>(std::find(uses.begin(), uses.end(), true) - uses.begin());
    for (size_t a = first; a < uses.size(); ++a)
      if (uses[a]) std::replace(group.begin(), group.end(), int{group[a]}, int{group[first]});
  }
}

BoundLayout::BoundLayout(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Result<BoundLayout> BoundLayout::bind(const Stored& stored, DType dtype,
                                      std::span<const int64_t> extents) {
  const auto state = std::make_shared<State>(stored, dtype, extents);
  TRY(state->check_extents());
  TRY(state->place_axes(stored.strides));
  TRY(state->check_range());
  if (state->elements > 0) {
    auto inverse = Inverse::solve(&state->graph, state->roots, state->layout.letters());
    if (!inverse)
      return error(
          std::move(inverse).error().at(fmt::format("layout '{}'", state->layout.to_string())));
    state->inverse = *std::move(inverse);
    for (size_t a = 0; a < state->roots.size(); ++a)
      state->collect_terms(state->roots[a], state->strides[a]);
    while (state->fuse_terms()) {
    }
  }
  state->group_axes();
  return BoundLayout(state);
}

Result<BoundLayout> BoundLayout::bind(const Layout& layout, DType dtype,
                                      std::span<const int64_t> extents) {
  return bind(Stored{.layout = layout}, dtype, extents);
}

const Layout& BoundLayout::layout() const { return state_->layout; }
DType BoundLayout::dtype() const { return state_->dtype; }
int BoundLayout::bits() const { return state_->bits; }
std::span<const int64_t> BoundLayout::extents() const { return state_->graph.extents(); }
std::span<const int64_t> BoundLayout::physical_extents() const { return state_->physical; }
std::span<const int64_t> BoundLayout::strides() const { return state_->strides; }
int64_t BoundLayout::offset() const { return state_->offset; }
bool BoundLayout::is_packed() const { return state_->packed; }
int64_t BoundLayout::elements() const { return state_->elements; }
int64_t BoundLayout::places() const { return state_->places; }
Bytes BoundLayout::bytes() const { return Bytes(state_->bytes); }

int64_t BoundLayout::offset(std::span<const int64_t> index) const {
  std::array<int64_t, kMaxNodes> values;
  state_->graph.evaluate(index, values);
  int64_t sum = state_->offset;
  for (const Term& term : state_->terms)
    sum += values[static_cast<size_t>(term.node)] * term.stride;
  return sum;
}

Result<int64_t> BoundLayout::checked_offset(std::span<const int64_t> index) const {
  if (index.size() != extents().size())
    return error(Code::kOutOfRange, "index of rank {} into a tensor of rank {}", index.size(),
                 extents().size());
  for (size_t a = 0; a < index.size(); ++a)
    if (index[a] < 0 || index[a] >= extents()[a])
      return error(Code::kOutOfRange, "index {} of axis {} is not within extent {}", index[a], a,
                   extents()[a]);
  return offset(index);
}

std::optional<std::vector<int64_t>> BoundLayout::element_at(int64_t offset) const {
  const State& s = *state_;
  if (s.elements == 0 || offset < 0) return std::nullopt;
  std::vector<size_t> order(s.physical.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t a) { return s.physical[a] <= 1; });
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::abs(s.strides[a]) > std::abs(s.strides[b]); });
  int64_t rest = offset - s.offset;
  for (const size_t a : order)
    if (s.strides[a] < 0) rest -= s.strides[a] * (s.physical[a] - 1);
  if (rest < 0) return std::nullopt;
  std::vector<int64_t> place(s.physical.size());
  for (const size_t a : order) {
    const int64_t steps = rest / std::abs(s.strides[a]);
    if (steps >= s.physical[a]) return std::nullopt;
    rest -= steps * std::abs(s.strides[a]);
    place[a] = s.strides[a] < 0 ? s.physical[a] - 1 - steps : steps;
  }
  if (rest != 0) return std::nullopt;
  return s.inverse.element_at(s.graph, s.roots, place);
}

BoundLayout::Line BoundLayout::State::line(std::span<const int64_t> index, int axis) const {
  std::array<Affine, kMaxNodes> lines;
  graph.evaluate_lines(index, axis, lines);
  const auto a = static_cast<size_t>(axis);
  Line line{offset, 0, graph.extents()[a] - index[a]};
  for (const Term& term : terms) {
    const Affine& x = lines[static_cast<size_t>(term.node)];
    line.start += x.value * term.stride;
    line.stride += x.slope * term.stride;
    line.length = std::min(line.length, x.length);
  }
  return line;
}

BoundLayout::Line BoundLayout::line(std::span<const int64_t> index, int axis) const {
  return state_->line(index, axis);
}

bool BoundLayout::mixes(int axis_a, int axis_b) const {
  return state_->group[static_cast<size_t>(axis_a)] == state_->group[static_cast<size_t>(axis_b)];
}

// Lowers *run to what holds along `axis` from `index`, where neighbours should be `step` apart;
// false when out of budget.
bool BoundLayout::State::extend_run(std::span<const int64_t> index, int axis, int64_t step,
                                    int64_t* run, int* budget) const {
  const auto a = static_cast<size_t>(axis);
  std::vector<int64_t> at(index.begin(), index.end());
  int64_t expected = 0;
  for (at[a] = 0; at[a] < graph.extents()[a] && *run != 1;) {
    if (--*budget < 0) return false;
    const Line l = line(at, axis);
    if (at[a] > 0 && l.start != expected) *run = std::gcd(*run, at[a]);
    if (l.length > 1 && l.stride != step) *run = std::gcd(*run, at[a] + 1);
    if (l.length > 2 && l.stride != step) *run = 1;
    expected = l.start + (l.length - 1) * l.stride + step;
    at[a] += l.length;
  }
  return true;
}

// Largest r with offset(i) == offset(i - e_axis) + step wherever i[axis] % r != 0.
int64_t BoundLayout::State::run_of(int axis, int64_t step) const {
  const std::span<const int64_t> extents = graph.extents();
  std::vector<size_t> others;
  for (size_t a = 0; a < extents.size(); ++a)
    if (a != static_cast<size_t>(axis) && group[a] == group[static_cast<size_t>(axis)])
      others.push_back(a);
  int64_t run = 0;  // greatest common divisor of the breaks so far
  int budget = kMaxLines;
  std::vector<int64_t> index(extents.size());
  while (true) {
    if (!extend_run(index, axis, step, &run, &budget)) return 1;
    size_t i = 0;
    while (i < others.size() && ++index[others[i]] == extents[others[i]]) index[others[i++]] = 0;
    if (i == others.size() || run == 1) return run > 0 ? run : extents[static_cast<size_t>(axis)];
  }
}

int64_t Digit::value(std::span<const int64_t> index, std::span<const int64_t> extents) const {
  int64_t u = 0;
  for (const int axis : axes)
    u = u * extents[static_cast<size_t>(axis)] + index[static_cast<size_t>(axis)];
  return (radix > 0 ? u / unit % radix : u / unit) * stride;
}

std::optional<std::vector<Digit>> BoundLayout::digits() const {
  std::vector<Digit> digits;
  for (const Term& term : state_->terms) {
    std::optional<Digit> digit = digit_of(state_->graph, term.node);
    if (!digit) return std::nullopt;
    digit->stride = term.stride;
    digit->size = term.size;
    digits.push_back(*std::move(digit));
  }
  return digits;
}

int64_t BoundLayout::contiguous_run(int axis) const {
  return elements() == 0 ? 1 : state_->run_of(axis, 1);
}

int64_t BoundLayout::contiguous_run() const {
  if (elements() == 0) return 1;
  int64_t block = 1;
  for (int axis = static_cast<int>(extents().size()); axis-- > 0;) {
    const int64_t extent = extents()[static_cast<size_t>(axis)];
    if (extent == 1) continue;
    for (int inner = axis + 1; inner < static_cast<int>(extents().size()); ++inner)
      if (extents()[static_cast<size_t>(inner)] > 1 && mixes(axis, inner)) return block;
    const int64_t run = state_->run_of(axis, block);
    if (run < extent) return std::gcd(run, extent) * block;
    block *= extent;
  }
  return block;
}

}  // namespace tessera::layout
