#include "tessera/layout/picture.h"

#include <algorithm>
#include <numeric>

namespace tessera::layout {
namespace {

// Whether the expression tells a position within a tile.
bool is_inner(const Expr& e) {
  switch (e.kind) {
    case ExprKind::kMod:
      return true;
    case ExprKind::kDiv:
      return is_inner(e.args[0]);
    case ExprKind::kXor:
      return std::any_of(e.args.begin(), e.args.end(), is_inner);
    default:
      return false;
  }
}

void count_letters(const Expr& e, std::vector<int>* counts) {
  if (e.axis >= 0) ++(*counts)[static_cast<size_t>(e.axis)];
  for (const Expr& arg : e.args) count_letters(arg, counts);
}

class Drawer {
 public:
  Drawer(const BoundLayout& layout, const PictureLimits& limits)
      : layout_(layout),
        limits_(limits),
        sizes_(layout.physical_extents().begin(), layout.physical_extents().end()) {
    const std::span<const Expr> axes = layout.layout().axes();
    outer_ = axes.size();
    while (outer_ > 0 && is_inner(axes[outer_ - 1])) --outer_;
    if (outer_ == axes.size() && outer_ > 0) --outer_;
    // The first axis of a block counts its rows.
    line_ = axes.size() > outer_ + 1 ? outer_ + 1 : outer_;
    names_ = names(axes);
  }

  Picture draw() {
    if (layout_.elements() == 0) return {};
    picture_.all_blocks = product(0, outer_);
    picture_.all_rows = product(outer_, line_);
    picture_.all_columns = product(line_, sizes_.size());
    for (int64_t b = 0; b < std::min(limits_.blocks, picture_.all_blocks); ++b)
      picture_.blocks.push_back(block(b));
    slice();
    return std::move(picture_);
  }

 private:
  int64_t product(size_t from, size_t to) const {
    int64_t result = 1;
    for (size_t a = from; a < to; ++a) result *= sizes_[a];
    return result;
  }
  // Of each physical axis: its expression.
  std::vector<std::string> names(std::span<const Expr> axes) const {
    std::vector<std::string> names;
    for (const Expr& axis : axes)
      names.push_back(Layout::make(layout_.layout().letters(), {axis})->expression());
    return names;
  }

  // The place with this number along physical axes [from, to): what it adds to the offset.
  int64_t offset(int64_t number, size_t from, size_t to) const {
    int64_t sum = 0;
    for (size_t a = to; a-- > from; number /= sizes_[a])
      sum += number % sizes_[a] * layout_.strides()[a];
    return sum;
  }
  int64_t element(int64_t offset) const {
    const auto index = layout_.element_at(offset);
    if (!index) return Picture::kPadding;
    int64_t number = 0;
    for (size_t a = 0; a < index->size(); ++a) number = number * layout_.extents()[a] + (*index)[a];
    return number;
  }

  Picture::Block block(int64_t number) const {
    Picture::Block b{.first = layout_.offset() + offset(number, 0, outer_)};
    int64_t rest = number;
    for (size_t a = outer_; a-- > 0; rest /= sizes_[a])
      if (sizes_[a] > 1)
        b.label = fmt::format("{}={}{}{}", names_[a], rest % sizes_[a], b.label.empty() ? "" : " ",
                              b.label);
    for (int64_t r = 0; r < std::min(limits_.rows, picture_.all_rows); ++r) {
      std::vector<int64_t>& row = b.rows.emplace_back();
      const int64_t start = b.first + offset(r, outer_, line_);
      for (int64_t c = 0; c < std::min(limits_.columns, picture_.all_columns); ++c)
        row.push_back(element(start + offset(c, line_, sizes_.size())));
    }
    return b;
  }

  // The two logical axes to show: first those that several physical axes divide among them.
  std::vector<size_t> shown_axes() const {
    std::vector<int> counts(layout_.extents().size());
    for (const Expr& axis : layout_.layout().axes()) count_letters(axis, &counts);
    std::vector<size_t> axes(counts.size());
    std::iota(axes.rbegin(), axes.rend(), size_t{0});
    std::stable_sort(axes.begin(), axes.end(), [&](size_t a, size_t b) {
      const auto rank = [&](size_t x) {
        return std::pair(layout_.extents()[x] > 1, counts[x] > 1);
      };
      return rank(a) > rank(b);
    });
    axes.resize(std::min<size_t>(axes.size(), 2));
    std::sort(axes.begin(), axes.end());
    return axes;
  }

  int64_t block_of(int64_t offset) const {
    int64_t number = 0, rest = offset - layout_.offset();
    for (size_t a = 0; a < outer_; ++a) {
      const int64_t stride = layout_.strides()[a];
      const int64_t at = stride == 0 ? 0 : std::clamp<int64_t>(rest / stride, 0, sizes_[a] - 1);
      rest -= at * stride;
      number = number * sizes_[a] + at;
    }
    return number;
  }

  void slice() {
    const std::string& letters = layout_.layout().letters();
    const std::vector<size_t> axes = shown_axes();
    Picture::Slice& s = picture_.tensor;
    const auto extent = [&](size_t a) { return layout_.extents()[a]; };
    if (axes.size() == 2) s.rows_name = letters[axes[0]];
    if (!axes.empty()) s.columns_name = letters[axes.back()];
    s.all_rows = axes.size() == 2 ? extent(axes[0]) : 1;
    s.all_columns = axes.empty() ? 1 : extent(axes.back());
    for (size_t a = 0; a < letters.size(); ++a)
      if (extent(a) > 1 && std::find(axes.begin(), axes.end(), a) == axes.end())
        s.at += fmt::format("{}{}=0", s.at.empty() ? "" : " ", letters[a]);
    std::vector<int64_t> index(letters.size());
    for (int64_t r = 0; r < std::min(limits_.rows, s.all_rows); ++r) {
      std::vector<Picture::Place>& row = s.rows.emplace_back();
      if (axes.size() == 2) index[axes[0]] = r;
      for (int64_t c = 0; c < std::min(limits_.columns, s.all_columns); ++c) {
        if (!axes.empty()) index[axes.back()] = c;
        const int64_t offset = layout_.offset(index);
        row.push_back({offset, block_of(offset)});
      }
    }
  }

  const BoundLayout& layout_;
  const PictureLimits limits_;
  const std::vector<int64_t> sizes_;
  size_t outer_ = 0;  // physical axes that number the blocks
  size_t line_ = 0;   // and, behind them, those that number the rows of one
  std::vector<std::string> names_;
  Picture picture_;
};

// ---- SVG

constexpr int kHeight = 16, kGap = 14, kMargin = 16, kTitle = 30;
constexpr int kHues = 8;
constexpr int kMostWidth = 1400;

constexpr std::string_view kStyle = R"(<style>
svg { --text: #1f2328; --soft: #59636e; --line: #d1d9e0; --back: #ffffff; --pad: #eef1f4; }
.b0 { fill: #cfe3ff } .b1 { fill: #ffe0c2 } .b2 { fill: #cdeed3 } .b3 { fill: #f6d3e4 }
.b4 { fill: #e3dafc } .b5 { fill: #fbeeb0 } .b6 { fill: #c9eef0 } .b7 { fill: #e5e0d8 }
@media (prefers-color-scheme: dark) {
  svg { --text: #e6edf3; --soft: #9198a1; --line: #3d444d; --back: #0d1117; --pad: #1a2029; }
  .b0 { fill: #1f4373 } .b1 { fill: #6b3f12 } .b2 { fill: #1f5a2e } .b3 { fill: #6a2648 }
  .b4 { fill: #44357a } .b5 { fill: #5c4c0a } .b6 { fill: #14555a } .b7 { fill: #4a453d }
}
text { font: 10px ui-monospace, Menlo, Consolas, monospace; fill: var(--text) }
.t { font-size: 14px; font-weight: 600 } .s { fill: var(--soft) } .c { text-anchor: middle }
rect { stroke: var(--line); stroke-width: 0.5 } .p { fill: var(--pad) }
.back { fill: var(--back); stroke: none }
</style>
)";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      result += c;
  }
  return result;
}

class Svg {
 public:
  explicit Svg(const Picture& picture) : p_(picture) {
    int64_t largest = 0;
    for (const auto& row : p_.tensor.rows)
      for (const auto& place : row) largest = std::max(largest, place.offset);
    for (const auto& block : p_.blocks)
      for (const auto& row : block.rows)
        for (const int64_t element : row) largest = std::max(largest, element);
    cell_ = std::max(18, 6 * static_cast<int>(std::to_string(largest).size()) + 6);
  }

  std::string draw(std::string_view title) {
    label(kMargin, kMargin + 10, "t", title);
    y_ = kMargin + kTitle;
    tensor();
    y_ += 2 * kGap;
    memory();
    const int height = y_ + kMargin;
    width_ += kMargin;
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" role=\"img\" aria-label=\"{2}\">\n{3}<rect class=\"back\" width=\"{0}\" "
        "height=\"{1}\"/>\n{4}</svg>\n",
        width_, height, escaped(title), kStyle, body_);
  }

 private:
  void label(int x, int y, std::string_view style, std::string_view text) {
    body_ +=
        fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n", style, x, y, escaped(text));
    reach(x + static_cast<int>(text.size()) * (style == "t" ? 9 : 6));
  }
  void reach(int x) { width_ = std::max(width_, x); }
  void cell(int x, int y, std::string_view style, std::string_view text, std::string_view tip) {
    body_ += fmt::format(
        "<g><title>{}</title><rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>"
        "<text class=\"c\" x=\"{}\" y=\"{}\">{}</text></g>\n",
        escaped(tip), style, x, y, cell_, kHeight, x + cell_ / 2, y + kHeight - 4, text);
    reach(x + cell_);
  }

  void tensor() {
    const Picture::Slice& t = p_.tensor;
    label(kMargin, y_, "s",
          fmt::format("the tensor{}{}{}: where each element lies", t.at.empty() ? "" : ", ", t.at,
                      t.rows_name.empty() ? "" : fmt::format(", {} down", t.rows_name)));
    y_ += 6;
    for (size_t r = 0; r < t.rows.size(); ++r, y_ += kHeight)
      for (size_t c = 0; c < t.rows[r].size(); ++c) {
        const Picture::Place& place = t.rows[r][c];
        cell(kMargin + static_cast<int>(c) * cell_, y_, fmt::format("b{}", place.block % kHues),
             std::to_string(place.offset),
             fmt::format("{} {} {} {}: place {}", t.rows_name, r, t.columns_name, c, place.offset));
      }
    if (static_cast<int64_t>(t.rows.size()) < t.all_rows ||
        (!t.rows.empty() && static_cast<int64_t>(t.rows[0].size()) < t.all_columns))
      label(kMargin, y_ += 12, "s",
            fmt::format("{} x {} of {} x {}", t.rows.size(), t.rows[0].size(), t.all_rows,
                        t.all_columns));
  }

  void memory() {
    label(kMargin, y_, "s", "memory: which element each place holds; empty: padding");
    y_ += 6;
    const int across = p_.blocks.empty() ? 1 : static_cast<int>(p_.blocks[0].rows[0].size());
    const int wide = across * cell_ + kGap;
    const bool named = std::any_of(p_.blocks.begin(), p_.blocks.end(),
                                   [](const auto& b) { return !b.label.empty(); });
    const int in_row = std::max(1, (kMostWidth - 2 * kMargin) / wide);
    for (size_t first = 0; first < p_.blocks.size(); first += static_cast<size_t>(in_row)) {
      if (named) y_ += 12;
      int height = 0;
      for (int i = 0; i < in_row && first + static_cast<size_t>(i) < p_.blocks.size(); ++i) {
        const size_t b = first + static_cast<size_t>(i);
        height = std::max(height, block(kMargin + i * wide, b));
      }
      y_ += height + 4;
    }
    cut();
  }

  int block(int x, size_t b) {
    const Picture::Block& block = p_.blocks[b];
    if (!block.label.empty()) label(x, y_, "s", block.label);
    int y = y_ + 4;
    for (const auto& row : block.rows) {
      for (size_t c = 0; c < row.size(); ++c) {
        const bool padding = row[c] == Picture::kPadding;
        cell(x + static_cast<int>(c) * cell_, y, padding ? "p" : fmt::format("b{}", b % kHues),
             padding ? "" : std::to_string(row[c]),
             padding ? "padding" : fmt::format("element {}", row[c]));
      }
      y += kHeight;
    }
    return y - y_;
  }

  void cut() {
    if (p_.blocks.empty()) return;
    const auto rows = static_cast<int64_t>(p_.blocks[0].rows.size()),
               columns = static_cast<int64_t>(p_.blocks[0].rows[0].size()),
               blocks = static_cast<int64_t>(p_.blocks.size());
    if (blocks < p_.all_blocks || rows < p_.all_rows || columns < p_.all_columns)
      label(kMargin, y_ += 12, "s",
            fmt::format("{} of {} blocks, {} x {} of {} x {} places each", blocks, p_.all_blocks,
                        rows, columns, p_.all_rows, p_.all_columns));
  }

  const Picture& p_;
  std::string body_;
  int cell_ = 0;
  int y_ = 0;
  int width_ = 0;
};

}  // namespace

Picture picture_of(const BoundLayout& layout, const PictureLimits& limits) {
  return Drawer(layout, limits).draw();
}

std::vector<int64_t> order_of(const BoundLayout& layout, int64_t most) {
  const std::span<const int64_t> sizes = layout.physical_extents();
  std::vector<int64_t> order;
  for (int64_t place = 0; place < std::min(most, layout.places()); ++place) {
    int64_t offset = layout.offset(), rest = place;
    for (size_t a = sizes.size(); a-- > 0; rest /= sizes[a])
      offset += rest % sizes[a] * layout.strides()[a];
    const auto index = layout.element_at(offset);
    int64_t number = index ? 0 : Picture::kPadding;
    for (size_t a = 0; index && a < index->size(); ++a)
      number = number * layout.extents()[a] + (*index)[a];
    order.push_back(number);
  }
  return order;
}

std::string to_svg(const Picture& picture, std::string_view title) {
  return Svg(picture).draw(title);
}

}  // namespace tessera::layout
