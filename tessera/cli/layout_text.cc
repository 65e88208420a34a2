#include "tessera/cli/layout_text.h"

#include <algorithm>

#include "tessera/cli/terminal.h"

namespace tessera::cli {
namespace {

using layout::Picture;

constexpr int kBetweenBlocks = 3;

class Text {
 public:
  Text(const Picture& picture, int width) : p_(picture), width_(width) {
    int64_t largest = 0;
    for (const auto& row : p_.tensor.rows)
      for (const Picture::Place& place : row) largest = std::max(largest, place.offset);
    for (const Picture::Block& block : p_.blocks)
      for (const auto& row : block.rows)
        for (const int64_t element : row) largest = std::max(largest, element);
    digits_ = static_cast<int>(std::to_string(largest).size());
  }

  std::string draw() {
    tensor();
    text_ += '\n';
    memory();
    return std::move(text_);
  }

 private:
  // How many cells of a row fit.
  size_t fitting(size_t cells, int indent = 0) const {
    const int most = std::max(1, (width_ - indent) / (digits_ + 1));
    return std::min(cells, static_cast<size_t>(most));
  }
  std::string cell(std::string_view content, int64_t hue, bool painting) const {
    const std::string padded = fmt::format("{:>{}} ", content, digits_);
    return painting ? painted(padded, hue) : padded;
  }
  // Without the blanks at its end.
  void line(std::string_view text) {
    text_.append(text.substr(0, text.find_last_not_of(' ') + 1)).append(1, '\n');
  }

  void tensor() {
    const Picture::Slice& t = p_.tensor;
    line(bold(fmt::format(
        "where each element of the tensor lies{}{}{}", t.at.empty() ? "" : ", at ", t.at,
        t.rows_name.empty() ? ""
                            : fmt::format("; {} down, {} across", t.rows_name, t.columns_name))));
    if (t.rows.empty()) return;
    const size_t shown = fitting(t.rows[0].size());
    for (const auto& row : t.rows) {
      std::string text;
      for (size_t c = 0; c < shown; ++c)
        text += cell(std::to_string(row[c].offset), row[c].block, true);
      line(text);
    }
    const auto rows = static_cast<int64_t>(t.rows.size()), columns = static_cast<int64_t>(shown);
    if (rows < t.all_rows || columns < t.all_columns)
      line(fmt::format("... {} x {} of {} x {}", rows, columns, t.all_rows, t.all_columns));
  }

  void memory() {
    line(bold("which element each place of memory holds; . is padding"));
    if (p_.blocks.empty()) return;
    const size_t cells = fitting(p_.blocks[0].rows[0].size());
    int wide = static_cast<int>(cells) * (digits_ + 1);
    for (const Picture::Block& block : p_.blocks)
      wide = std::max(wide, static_cast<int>(block.label.size()));
    wide += kBetweenBlocks;
    const size_t across = static_cast<size_t>(std::max(1, (width_ + kBetweenBlocks) / wide));
    for (size_t first = 0; first < p_.blocks.size(); first += across)
      blocks(first, std::min(first + across, p_.blocks.size()), cells, wide);
    cut(cells);
  }

  // Blocks side by side.
  void blocks(size_t first, size_t last, size_t cells, int wide) {
    std::string labels;
    for (size_t b = first; b < last; ++b) labels += fmt::format("{:<{}}", p_.blocks[b].label, wide);
    if (labels.find_first_not_of(' ') != std::string::npos) line(labels);
    for (size_t r = 0; r < p_.blocks[first].rows.size(); ++r) {
      std::string text;
      for (size_t b = first; b < last; ++b) {
        const std::vector<int64_t>& row = p_.blocks[b].rows[r];
        for (size_t c = 0; c < cells; ++c) {
          const bool padding = row[c] == Picture::kPadding;
          text += cell(padding ? "." : std::to_string(row[c]), static_cast<int64_t>(b), !padding);
        }
        if (b + 1 < last)
          text.append(static_cast<size_t>(wide) - cells * static_cast<size_t>(digits_ + 1), ' ');
      }
      line(text);
    }
  }

  void cut(size_t cells) {
    const auto rows = static_cast<int64_t>(p_.blocks[0].rows.size()),
               columns = static_cast<int64_t>(cells),
               blocks = static_cast<int64_t>(p_.blocks.size());
    if (blocks < p_.all_blocks || rows < p_.all_rows || columns < p_.all_columns)
      line(fmt::format("... {} of {} blocks, {} x {} of {} x {} places each", blocks, p_.all_blocks,
                       rows, columns, p_.all_rows, p_.all_columns));
  }

  const Picture& p_;
  const int width_;
  int digits_ = 1;
  std::string text_;
};

}  // namespace

std::string text_of(const layout::Picture& picture, int width) {
  return Text(picture, width).draw();
}

layout::PictureLimits limits_for(int width, int rows) {
  return {.rows = rows, .columns = std::max(1, width / 2), .blocks = std::max(1, rows / 2)};
}

}  // namespace tessera::cli
