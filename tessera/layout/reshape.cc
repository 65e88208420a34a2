// Tensors of other logical axes over the same bytes: permute, slice, reshape.
#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/layout/graph.h"
#include "tessera/layout/view.h"

namespace tessera::layout {
namespace {

constexpr int kMaxFusions = 1024;
constexpr int kBudget = 1 << 18;  // lines looked at before giving up

bool names_join(const Expr& e) {
  return e.kind == ExprKind::kJoin || std::any_of(e.args.begin(), e.args.end(), names_join);
}

bool names_axis(const Expr& e, int axis) {
  return e.axis == axis || std::any_of(e.args.begin(), e.args.end(),
                                       [&](const Expr& arg) { return names_axis(arg, axis); });
}

bool joins_axis(const Expr& e, int axis) {
  return (e.kind == ExprKind::kJoin && e.axis == axis) ||
         std::any_of(e.args.begin(), e.args.end(),
                     [&](const Expr& arg) { return joins_axis(arg, axis); });
}

// e/k with chains of divisions folded; not for joins.
Expr quotient(Expr e, int64_t k) {
  if (k == 1) return e;
  if (e.kind != ExprKind::kDiv) return div(std::move(e), k);
  return div(std::move(e.args[0]), saturating_product(e.by, k));
}

// Replaces letters; false if a segmented axis would have to become an expression.
bool substitute(Expr* e, std::span<const Expr> by) {
  if (e->kind == ExprKind::kLetter) {
    *e = by[static_cast<size_t>(e->axis)];
    return true;
  }
  if (e->kind == ExprKind::kJoin) {
    const Expr& target = by[static_cast<size_t>(e->axis)];
    e->axis = target.axis;
    return target.kind == ExprKind::kLetter;
  }
  for (Expr& arg : e->args)
    if (!substitute(&arg, by)) return false;
  if (e->kind == ExprKind::kDiv && !names_join(*e)) {
    Expr arg = std::move(e->args[0]);
    *e = quotient(std::move(arg), e->by);
  }
  return true;
}

// A layout's axes with their sizes and strides, while a view is put together.
struct Axes {
  std::vector<Expr> exprs;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;

  void erase(size_t i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    exprs.erase(exprs.begin() + at);
    sizes.erase(sizes.begin() + at);
    strides.erase(strides.begin() + at);
  }

  // x/k x%k -> x where the strides nest and x fills both.
  bool fuse(std::span<const int64_t> extents) {
    for (size_t i = 0; i + 1 < exprs.size(); ++i) {
      const Expr& low = exprs[i + 1];
      if (low.kind != ExprKind::kMod || strides[i] != saturating_product(strides[i + 1], low.by))
        continue;
      if (names_join(low) || quotient(low.args[0], low.by) != exprs[i]) continue;
      Expr whole = low.args[0];
      const Result<Ref> ref = Graph(extents).add(whole);
      if (!ref || ref->size != sizes[i] * sizes[i + 1]) continue;
      exprs[i] = std::move(whole);
      sizes[i] *= sizes[i + 1];
      strides[i] = strides[i + 1];
      erase(i + 1);
      return true;
    }
    return false;
  }

  // Drops axes of one position and sets the parts of merges side by side.
  Status spread(std::span<const int64_t> extents) {
    for (size_t i = 0; i < exprs.size();) {
      if (sizes[i] == 1) {
        erase(i);
      } else if (exprs[i].kind == ExprKind::kMerge) {
        TRY(spread_merge(i, extents));
      } else {
        ++i;
      }
    }
    return {};
  }

  Status spread_merge(size_t i, std::span<const int64_t> extents) {
    std::vector<Expr> parts = std::move(exprs[i].args);
    int64_t stride = strides[i];
    erase(i);
    Graph graph(extents);
    for (size_t p = parts.size(); p-- > 0;) {
      TRY_ASSIGN(const Ref part, graph.add(parts[p]));
      const auto at = static_cast<std::ptrdiff_t>(i);
      exprs.insert(exprs.begin() + at, std::move(parts[p]));
      sizes.insert(sizes.begin() + at, part.size);
      strides.insert(strides.begin() + at, stride);
      stride *= part.size;
    }
    return {};
  }
};

// Strides are left out where they are those of the packed layout.
Result<View> finish(Stored stored, DType dtype, std::vector<int64_t> extents) {
  TRY_ASSIGN(const BoundLayout bound, BoundLayout::bind(stored, dtype, extents));
  if (bound.is_packed()) stored.strides.reset();
  return View{std::move(stored), std::move(extents)};
}

// The row-major form where it means the same places.
Stored plain_if_same(Stored stored, DType dtype, std::span<const int64_t> extents) {
  const Layout plain =
      Layout::plain(dtype, static_cast<int>(extents.size())).with_padding(stored.layout.padding());
  Stored rows{plain, stored.offset, std::nullopt};
  const auto a = BoundLayout::bind(stored, dtype, extents);
  const auto b = BoundLayout::bind(rows, dtype, extents);
  if (!a || !b) return stored;
  const Result<bool> same = same_places(*a, *b);
  return same && *same ? rows : stored;
}

std::string letters_for(const std::string& old, size_t rank) {
  return old.size() == rank ? old : Layout::row_major(static_cast<int>(rank)).letters();
}

// What each old letter is in terms of the new ones, group of axes by group of axes with equal
// products.
class Digits {
 public:
  Digits(std::span<const int64_t> from, std::span<const int64_t> to)
      : from_(from), to_(to), digits_(from.size()) {
    while (f_ < from_.size() || t_ < to_.size()) group();
  }
  const std::vector<Expr>& digits() const { return digits_; }

 private:
  void group() {
    const size_t first_from = f_;
    const size_t first_to = t_;
    int64_t from_product = take(from_, &f_);
    int64_t to_product = take(to_, &t_);
    while (from_product != to_product) {
      int64_t& smaller = from_product < to_product ? from_product : to_product;
      smaller *= from_product < to_product ? take(from_, &f_) : take(to_, &t_);
    }
    std::vector<Expr> letters;
    for (size_t t = first_to; t < t_; ++t)
      if (to_[t] > 1) letters.push_back(letter(static_cast<int>(t)));
    if (letters.empty()) letters.push_back(mod(letter(0), 1));
    split(first_from, merge(std::move(letters)));
  }
  static int64_t take(std::span<const int64_t> extents, size_t* at) {
    return *at < extents.size() ? extents[(*at)++] : 1;
  }

  void split(size_t first, const Expr& whole) {
    int64_t inner = 1;
    size_t leading = first;
    while (leading < f_ && from_[leading] == 1) ++leading;
    for (size_t f = f_; f-- > first; inner *= from_[f]) {
      digits_[f] = quotient(whole, inner);
      if (f > leading || from_[f] == 1) digits_[f] = mod(std::move(digits_[f]), from_[f]);
    }
  }

  std::span<const int64_t> from_;
  std::span<const int64_t> to_;
  std::vector<Expr> digits_;
  size_t f_ = 0;
  size_t t_ = 0;
};

// Checks that the part finds its elements where the whole has them; gives its number of padding
// places.
Result<int64_t> padding_of_slice(const BoundLayout& whole, const View& part, int axis,
                                 int64_t start) {
  const auto a = static_cast<size_t>(axis);
  const Result<BoundLayout> bind = BoundLayout::bind(part.stored, whole.dtype(), part.extents);
  if (!bind)
    return error(Code::kUnimplemented, "axis {} of layout '{}' cannot be cut at {} without a copy",
                 axis, whole.layout().to_string(), start);
  const BoundLayout& bound = *bind;
  if (bound.elements() == 0) return bound.padding();
  int budget = kBudget;
  for (int other = 0; other < static_cast<int>(part.extents.size()); ++other) {
    const auto o = static_cast<size_t>(other);
    if (other != axis && whole.extents()[o] > 1 &&
        (whole.mixes(axis, other) || bound.mixes(axis, other)))
      return error(Code::kUnimplemented, "a slice of axis {}, which layout '{}' mixes with axis {}",
                   axis, whole.layout().to_string(), other);
    std::vector<int64_t> i(part.extents.size());
    std::vector<int64_t> j(part.extents.size());
    j[a] = start;
    while (i[o] < part.extents[o]) {
      if (--budget < 0)
        return error(Code::kResourceExhausted, "a slice takes more than {} steps to check",
                     kBudget);
      const BoundLayout::Line x = bound.line(i, other);
      const BoundLayout::Line y = whole.line(j, other);
      const int64_t length = std::min(x.length, y.length);
      if (x.start != y.start || (x.stride != y.stride && length > 1))
        return error(Code::kUnimplemented,
                     "axis {} of layout '{}' cannot be cut at {} without a copy", axis,
                     whole.layout().to_string(), start);
      i[o] += length;
      j[o] += length;
    }
  }
  return bound.padding();
}

}  // namespace

Result<View> permute(const Stored& stored, std::span<const int64_t> extents,
                     std::span<const int> permutation) {
  const auto rank = static_cast<size_t>(stored.layout.rank());
  if (extents.size() != rank || permutation.size() != rank)
    return error(Code::kInvalidArgument,
                 "a permutation of {} axes and {} extents for a tensor of rank {}",
                 permutation.size(), extents.size(), rank);
  std::vector<Expr> renamed(rank);
  std::vector<int64_t> sizes;
  std::string letters;
  std::vector<bool> seen(rank);
  for (size_t a = 0; a < rank; ++a) {
    const int from = permutation[a];
    if (from < 0 || static_cast<size_t>(from) >= rank || seen[static_cast<size_t>(from)])
      return error(Code::kInvalidArgument, "entry {} of a permutation of {} axes is {}", a, rank,
                   from);
    seen[static_cast<size_t>(from)] = true;
    renamed[static_cast<size_t>(from)] = letter(static_cast<int>(a));
    sizes.push_back(extents[static_cast<size_t>(from)]);
    letters += stored.layout.letters()[static_cast<size_t>(from)];
  }
  std::vector<Expr> axes(stored.layout.axes().begin(), stored.layout.axes().end());
  for (Expr& axis : axes) substitute(&axis, renamed);
  TRY_ASSIGN(Layout layout,
             Layout::make(std::move(letters), std::move(axes), stored.layout.padding()));
  return View{Stored{std::move(layout), stored.offset, stored.strides}, std::move(sizes)};
}

Result<View> slice(const Stored& stored, DType dtype, std::span<const int64_t> extents, int axis,
                   int64_t start, int64_t count, int64_t step) {
  TRY_ASSIGN(const BoundLayout whole, BoundLayout::bind(stored, dtype, extents));
  if (axis < 0 || axis >= stored.layout.rank())
    return error(Code::kInvalidArgument, "a slice of axis {} of a tensor of rank {}", axis,
                 stored.layout.rank());
  const auto a = static_cast<size_t>(axis);
  const int64_t last = saturating_product(count - 1, step);
  if (count < 0 || count > extents[a] || step == 0 ||
      (count > 0 &&
       (start < 0 || start >= extents[a] || last < -start || last >= extents[a] - start)))
    return error(Code::kOutOfRange, "slice start {}, count {}, step {} of axis {} with extent {}",
                 start, count, step, axis, extents[a]);
  const std::span<const Expr> axes = stored.layout.axes();
  if (count != extents[a] &&
      std::any_of(axes.begin(), axes.end(), [&](const Expr& e) { return joins_axis(e, axis); }))
    return error(Code::kUnimplemented, "a slice of segmented axis {} of layout '{}'", axis,
                 stored.layout.to_string());
  View view{stored, std::vector<int64_t>(extents.begin(), extents.end())};
  view.extents[a] = count;
  view.stored.strides.emplace(whole.strides().begin(), whole.strides().end());
  if (count == 0) return finish(std::move(view.stored), dtype, std::move(view.extents));
  std::vector<int64_t> first(extents.size());
  first[a] = start;
  if (whole.elements() > 0)
    view.stored.offset += whole.offset(first) - whole.offset(std::vector<int64_t>(extents.size()));
  const auto plain = std::find(axes.begin(), axes.end(), letter(axis));
  const bool alone =
      plain != axes.end() && std::count_if(axes.begin(), axes.end(),
                                           [&](const Expr& e) { return names_axis(e, axis); }) == 1;
  if (alone && count > 1) (*view.stored.strides)[static_cast<size_t>(plain - axes.begin())] *= step;
  if (!alone && step != 1 && count > 1)
    return error(Code::kUnimplemented, "step {} of axis {} of layout '{}' needs a copy", step, axis,
                 stored.layout.to_string());
  if (step == 1 || count == 1) {
    TRY_ASSIGN(const int64_t padding, padding_of_slice(whole, view, axis, start));
    if (!alone && padding > 0) view.stored.layout = stored.layout.with_padding(Padding::kAny);
  }
  return finish(std::move(view.stored), dtype, std::move(view.extents));
}

Result<View> reshape(const Stored& stored, DType dtype, std::span<const int64_t> extents,
                     std::span<const int64_t> to) {
  TRY_ASSIGN(const BoundLayout whole, BoundLayout::bind(stored, dtype, extents));
  TRY_ASSIGN(const int64_t elements, checked_product(to));
  if (elements != whole.elements() ||
      std::any_of(to.begin(), to.end(), [](int64_t n) { return n < 0; }))
    return error(Code::kInvalidArgument, "cannot reshape {} to {}", fmt::join(extents, "x"),
                 fmt::join(to, "x"));
  std::vector<int64_t> sizes(to.begin(), to.end());
  const Padding padding = stored.layout.padding();
  if (elements == 0)
    return finish({Layout::row_major(static_cast<int>(to.size())).with_padding(padding),
                   stored.offset, std::nullopt},
                  dtype, std::move(sizes));
  if (to.empty() && whole.places() > 1)
    return error(Code::kUnimplemented, "a padded tensor as a scalar; layout '{}'",
                 stored.layout.to_string());
  if (to.empty()) return View{{Layout().with_padding(padding), stored.offset, std::nullopt}, {}};
  Axes axes{{stored.layout.axes().begin(), stored.layout.axes().end()},
            {whole.physical_extents().begin(), whole.physical_extents().end()},
            {whole.strides().begin(), whole.strides().end()}};
  const Digits digits(extents, to);
  for (Expr& axis : axes.exprs)
    if (!substitute(&axis, digits.digits()))
      return error(Code::kUnimplemented, "reshape of a segmented axis; layout '{}'",
                   stored.layout.to_string());
  if (whole.bits() >= 8) TRY(axes.spread(to));
  for (int n = 0; n < kMaxFusions && axes.fuse(to); ++n) {
  }
  if (whole.bits() >= 8) TRY(axes.spread(to));
  TRY_ASSIGN(Layout layout, Layout::make(letters_for(stored.layout.letters(), to.size()),
                                         std::move(axes.exprs), padding));
  Stored result{std::move(layout), stored.offset, std::move(axes.strides)};
  if (whole.padding() == 0) result = plain_if_same(std::move(result), dtype, to);
  Result<View> view = finish(std::move(result), dtype, std::move(sizes));
  if (view) return view;
  return error(Code::kUnimplemented, "reshape to {} needs a copy: {}", fmt::join(to, "x"),
               view.error().message);
}

}  // namespace tessera::layout
