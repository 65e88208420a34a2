#include "tessera/layout/layout.h"

#include <algorithm>
#include <utility>

namespace tessera::layout {
namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

std::string default_letters(int rank) {
  std::string letters(kLetters.substr(0, static_cast<size_t>(std::min(rank, kMaxLetters))));
  letters.resize(static_cast<size_t>(rank),
                 '?');  // beyond kMaxLetters: usable, but the text does not parse
  return letters;
}

std::vector<Expr> all_letters(int rank) {
  std::vector<Expr> axes;
  for (int axis = 0; axis < rank; ++axis) axes.push_back(letter(axis));
  return axes;
}

Status check_letters(std::string_view letters) {
  for (size_t i = 0; i < letters.size(); ++i) {
    if (kLetters.find(letters[i]) == std::string_view::npos && letters[i] != '?')
      return error(Code::kInvalidArgument, "logical axis {} of '{}' is not a letter", i, letters);
    if (letters[i] != '?' && letters.find(letters[i], i + 1) != std::string_view::npos)
      return error(Code::kInvalidArgument, "letter {} stands twice in the logical axes '{}'",
                   letters[i], letters);
  }
  return {};
}

Status check_segments(const std::vector<Segment>& segments) {
  if (segments.empty()) return error(Code::kInvalidArgument, "a join needs a segment");
  std::vector<Segment> sorted = segments;
  std::sort(sorted.begin(), sorted.end(), [](Segment a, Segment b) { return a.lo < b.lo; });
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i].lo < 0 || sorted[i].lo >= sorted[i].hi)
      return error(Code::kInvalidArgument, "segment [{}:{}] is empty or negative", sorted[i].lo,
                   sorted[i].hi);
    if (i > 0 && sorted[i].lo < sorted[i - 1].hi)
      return error(Code::kInvalidArgument, "segments [{}:{}] and [{}:{}] overlap", sorted[i - 1].lo,
                   sorted[i - 1].hi, sorted[i].lo, sorted[i].hi);
  }
  return {};
}

Status check_arity(const Expr& e) {
  const size_t n = e.args.size();
  const bool unary = e.kind == ExprKind::kDiv || e.kind == ExprKind::kMod;
  const bool leaf = e.kind == ExprKind::kLetter || e.kind == ExprKind::kJoin;
  if (leaf ? n != 0 : unary ? n != 1 : n < 2)
    return error(Code::kInvalidArgument,
                 "an expression has {} arguments, which its kind does not take", n);
  if (unary && e.by < 1) return error(Code::kInvalidArgument, "divisor {} is below 1", e.by);
  return {};
}

Status check_expr(const Expr& e, int rank, int depth, int* terms) {
  if (depth > kMaxDepth)
    return error(Code::kInvalidArgument, "expression is nested deeper than {}", kMaxDepth);
  if (++*terms > kMaxTerms)
    return error(Code::kInvalidArgument, "layout has more than {} terms", kMaxTerms);
  TRY(check_arity(e));
  if ((e.kind == ExprKind::kLetter || e.kind == ExprKind::kJoin) && (e.axis < 0 || e.axis >= rank))
    return error(Code::kInvalidArgument, "logical axis {} of a tensor of rank {}", e.axis, rank);
  if (e.kind == ExprKind::kJoin) {
    *terms += static_cast<int>(e.segments.size());
    TRY(check_segments(e.segments));
  }
  for (const Expr& arg : e.args) TRY(check_expr(arg, rank, depth + 1, terms));
  return {};
}

class Printer {
 public:
  explicit Printer(const std::string& letters) : letters_(letters) {}

  std::string list(std::span<const Expr> exprs, std::string_view separator) const {
    std::string text;
    for (size_t i = 0; i < exprs.size(); ++i) {
      if (i > 0) text += separator;
      text += separator == " " ? print(exprs[i]) : operand(exprs[i]);
    }
    return text;
  }

 private:
  std::string print(const Expr& e) const {
    switch (e.kind) {
      case ExprKind::kLetter:
        return std::string(1, name(e.axis));
      case ExprKind::kMerge:
        return "(" + list(e.args, " ") + ")";
      case ExprKind::kJoin:
        return segments(e);
      case ExprKind::kXor:
        return list(e.args, "^");
      case ExprKind::kDiv:
        return fmt::format("{}/{}", dividend(e.args[0]), e.by);
      case ExprKind::kMod:
        return fmt::format("{}%{}", dividend(e.args[0]), e.by);
    }
    return {};
  }
  std::string operand(const Expr& e) const {
    const bool bare = e.kind == ExprKind::kLetter || e.kind == ExprKind::kMerge;
    return bare ? print(e) : "(" + print(e) + ")";
  }
  std::string dividend(const Expr& e) const {
    const bool chain = e.kind == ExprKind::kDiv || e.kind == ExprKind::kMod;
    return chain ? print(e) : operand(e);
  }
  std::string segments(const Expr& e) const {
    std::string text;
    for (const Segment& s : e.segments)
      text += fmt::format("{}{}[{}:{}]", text.empty() ? "" : "|", name(e.axis), s.lo, s.hi);
    return text;
  }
  char name(int axis) const { return letters_[static_cast<size_t>(axis)]; }

  const std::string& letters_;
};

}  // namespace

bool operator==(const Expr& a, const Expr& b) {
  return a.kind == b.kind && a.axis == b.axis && a.by == b.by && a.segments == b.segments &&
         a.args == b.args;
}

Expr letter(int axis) { return Expr{.axis = axis}; }

Expr merge(std::vector<Expr> args) {
  if (args.size() == 1) return std::move(args[0]);
  return Expr{.kind = ExprKind::kMerge, .args = std::move(args)};
}

Expr join(int axis, std::vector<Segment> segments) {
  return Expr{.kind = ExprKind::kJoin, .axis = axis, .segments = std::move(segments)};
}

Expr exclusive_or(std::vector<Expr> args) {
  return Expr{.kind = ExprKind::kXor, .args = std::move(args)};
}

Expr div(Expr e, int64_t by) {
  Expr result{.kind = ExprKind::kDiv, .by = by};
  result.args.push_back(std::move(e));
  return result;
}

Expr mod(Expr e, int64_t by) {
  Expr result{.kind = ExprKind::kMod, .by = by};
  result.args.push_back(std::move(e));
  return result;
}

Result<Layout> Layout::make(std::string letters, std::vector<Expr> axes, Padding padding) {
  TRY(check_letters(letters));
  int terms = 0;
  for (const Expr& axis : axes) TRY(check_expr(axis, static_cast<int>(letters.size()), 1, &terms));
  Layout layout;
  layout.letters_ = std::move(letters);
  layout.axes_ = std::move(axes);
  layout.padding_ = padding;
  return layout;
}

Layout Layout::row_major(int rank) {
  Layout layout;
  layout.letters_ = default_letters(rank);
  layout.axes_ = all_letters(rank);
  return layout;
}

Layout Layout::dense(int rank) {
  Layout layout = row_major(rank);
  if (rank > 1) layout.axes_ = {merge(std::move(layout.axes_))};
  return layout;
}

Layout Layout::plain(DType dtype, int rank) {
  return bits_of(dtype) % 8 == 0 ? row_major(rank) : dense(rank);
}

Layout Layout::with_padding(Padding padding) const {
  Layout layout = *this;
  layout.padding_ = padding;
  return layout;
}

bool Layout::is_row_major() const { return axes_ == all_letters(rank()); }

std::string Layout::expression() const { return Printer(letters_).list(axes_, " "); }

std::string Layout::to_string() const {
  return fmt::format("{}: {}{}", letters_, expression(),
                     padding_ == Padding::kAny ? "; pad=any" : "");
}

bool operator==(const Layout& a, const Layout& b) {
  return a.rank() == b.rank() && a.padding_ == b.padding_ && a.axes_ == b.axes_;
}

}  // namespace tessera::layout
