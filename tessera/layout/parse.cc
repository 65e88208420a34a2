// Recursive descent over the grammar in layout.h; the depth is limited before it recurses.
#include <charconv>

#include "tessera/layout/layout.h"

namespace tessera::layout {
namespace {

constexpr size_t kMaxText = 16384;

class Parser {
 public:
  Parser(std::string_view text, std::string_view letters) : text_(text), letters_(letters) {}

  Result<std::vector<Expr>> axes_until(char end, int depth) {
    std::vector<Expr> axes;
    for (skip_space(); peek() != end; skip_space()) {
      if (at_end()) return fail("')' is missing");
      if (!axes.empty() && !after_space_) return fail("axes must be separated by a space");
      TRY_ASSIGN(Expr e, axis(depth));
      axes.push_back(std::move(e));
    }
    return axes;
  }

 private:
  Result<Expr> axis(int depth) {
    TRY_ASSIGN(Expr e, term(depth));
    int chain = 0;
    for (skip_space(); peek() == '/' || peek() == '%'; skip_space()) {
      if (++chain > kMaxDepth)
        return fail(fmt::format("more than {} divisions in a row", kMaxDepth));
      const bool divides = take() == '/';
      TRY_ASSIGN(const int64_t by, integer());
      if (by == 0) return fail("a divisor must be at least 1");
      e = divides ? div(std::move(e), by) : mod(std::move(e), by);
    }
    if (peek() == '^') return fail("'^' after a division: write (a/k)^b or (a^b)/k");
    if (peek() == '|') return fail("'|' joins segments only: x[0:4]|x[4:6]");
    return e;
  }

  Result<Expr> term(int depth) {
    std::vector<Expr> operands;
    do {
      TRY_ASSIGN(Expr e, primary(depth));
      operands.push_back(std::move(e));
      skip_space();
    } while (accept('^'));
    return operands.size() == 1 ? std::move(operands[0]) : exclusive_or(std::move(operands));
  }

  Result<Expr> primary(int depth) {
    skip_space();
    if (accept('(')) return parenthesised(depth);
    TRY_ASSIGN(const int name, logical_axis());
    if (peek() != '[') return letter(name);
    return segments(name);
  }

  Result<Expr> parenthesised(int depth) {
    if (depth >= kMaxDepth) return fail(fmt::format("nested deeper than {}", kMaxDepth));
    TRY_ASSIGN(std::vector<Expr> args, axes_until(')', depth + 1));
    ++position_;
    if (args.empty()) return fail("() is empty");
    return merge(std::move(args));
  }

  Result<Expr> segments(int name) {
    std::vector<Segment> list;
    while (true) {
      if (!accept('[')) return fail("expected '['");
      TRY_ASSIGN(const int64_t lo, integer());
      if (!accept(':')) return fail("expected ':'");
      TRY_ASSIGN(const int64_t hi, integer());
      if (!accept(']')) return fail("expected ']'");
      list.push_back({lo, hi});
      if (list.size() > static_cast<size_t>(kMaxTerms)) return fail("too many segments");
      skip_space();
      if (!accept('|')) return join(name, std::move(list));
      skip_space();
      TRY_ASSIGN(const int next, logical_axis());
      if (next != name) return fail("segments of different letters cannot be joined");
    }
  }

  Result<int> logical_axis() {
    if (at_end()) return fail("expected a letter or '('");
    const size_t axis = letters_.find(text_[position_]);
    if (axis == std::string_view::npos)
      return fail(fmt::format("expected '(' or one of the logical axes '{}'", letters_));
    ++position_;
    return static_cast<int>(axis);
  }

  Result<int64_t> integer() {
    skip_space();
    int64_t value = 0;
    const char* first = text_.data() + position_;
    const auto [last, status] = std::from_chars(first, text_.data() + text_.size(), value);
    if (status == std::errc::result_out_of_range) return fail("number is beyond 2^63");
    if (status != std::errc() || value < 0) return fail("expected a number of at least 0");
    position_ += static_cast<size_t>(last - first);
    skip_space();
    return value;
  }

  tl::unexpected<Error> fail(std::string_view reason) const {
    return error(Code::kInvalidArgument, "{} at position {} of layout '{}'", reason, position_,
                 text_.substr(0, 120));
  }

  bool at_end() const { return position_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[position_]; }
  char take() { return text_[position_++]; }
  bool accept(char c) { return !at_end() && peek() == c && ++position_ > 0; }
  // Remembers whether the position stands behind white space (or at the start).
  void skip_space() {
    while (peek() == ' ' || peek() == '\t') ++position_;
    after_space_ = position_ == 0 || text_[position_ - 1] == ' ' || text_[position_ - 1] == '\t';
  }

  std::string_view text_;
  std::string_view letters_;
  size_t position_ = 0;
  bool after_space_ = true;
};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Cuts a trailing "; pad=..." off.
Result<Padding> take_padding(std::string_view* text) {
  const size_t semicolon = text->find(';');
  if (semicolon == std::string_view::npos) return Padding::kZero;
  const std::string_view option = trimmed(text->substr(semicolon + 1));
  *text = text->substr(0, semicolon);
  if (option == "pad=zero") return Padding::kZero;
  if (option == "pad=any") return Padding::kAny;
  return error(Code::kInvalidArgument, "'{}' after a layout: expected pad=zero or pad=any", option);
}

}  // namespace

Result<Layout> Layout::parse(std::string_view expression, std::string_view letters) {
  if (expression.size() > kMaxText)
    return error(Code::kInvalidArgument, "layout text has {} characters, at most {}",
                 expression.size(), kMaxText);
  if (letters.size() > static_cast<size_t>(kMaxLetters))
    return error(Code::kInvalidArgument, "{} logical axes, at most {}", letters.size(),
                 kMaxLetters);
  if (letters.find('?') != std::string_view::npos)
    return error(Code::kInvalidArgument, "'?' is not a letter for a logical axis");
  TRY_ASSIGN(const Padding padding, take_padding(&expression));
  // The parser takes '\0' for the end.
  if (expression.find('\0') != std::string_view::npos)
    return error(Code::kInvalidArgument, "layout text holds a zero byte");
  TRY_ASSIGN(std::vector<Expr> axes, Parser(expression, letters).axes_until('\0', 0));
  return make(std::string(letters), std::move(axes), padding);
}

Result<Layout> Layout::parse(std::string_view text) {
  size_t colon = 0;
  while (colon < text.size() && text[colon] != ':' && text[colon] != '[') ++colon;
  if (colon == text.size() || text[colon] == '[')
    return error(Code::kInvalidArgument,
                 "layout '{}' does not name its logical axes; write them first, as in 'mn: n m'",
                 text.substr(0, 80));
  return parse(text.substr(colon + 1), trimmed(text.substr(0, colon)));
}

}  // namespace tessera::layout
