#include "tessera/layout/xla.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <string>

namespace tessera::layout {
namespace {

constexpr size_t kMaxText = 4096;
constexpr size_t kMaxTiles = 8;
constexpr int64_t kMaxTile = int64_t{1} << 31;

using Tile = std::vector<int64_t>;
constexpr int64_t kCombined = -1;  // the size '*'

// Whether the expression is 0 whatever the sizes.
bool is_zero(const Expr& e) {
  if (e.kind == ExprKind::kMod) return e.by == 1;
  if (e.kind == ExprKind::kDiv) return is_zero(e.args[0]);
  return e.kind == ExprKind::kMerge && std::all_of(e.args.begin(), e.args.end(), is_zero);
}

Expr quotient(const Expr& e, int64_t by) { return by == 1 ? e : div(e, by); }
Expr remainder(const Expr& e, int64_t by) {
  if (e.kind == ExprKind::kMod && e.by % by == 0) return mod(e.args[0], by);
  return mod(e, by);
}

// Replaces the last axes by their quotients and remainders.
Status cut(const Tile& tile, std::vector<Expr>* axes) {
  if (tile.size() > axes->size())
    return error(Code::kInvalidArgument, "a tile of {} sizes cuts {} axes", tile.size(),
                 axes->size());
  if (tile.back() == kCombined)
    return error(Code::kInvalidArgument, "the last size of a tile is '*': there is no next axis");
  const auto first = axes->end() - static_cast<int64_t>(tile.size());
  std::vector<Expr> outer, inner, merged;
  for (size_t i = 0; i < tile.size(); ++i) {
    merged.push_back(std::move(first[static_cast<int64_t>(i)]));
    if (tile[i] == kCombined) continue;
    const Expr e = merge(std::move(merged));
    merged.clear();
    outer.push_back(quotient(e, tile[i]));
    inner.push_back(remainder(e, tile[i]));
  }
  axes->erase(first, axes->end());
  axes->insert(axes->end(), outer.begin(), outer.end());
  axes->insert(axes->end(), inner.begin(), inner.end());
  return {};
}

Result<Layout> tiled(std::string letters, std::vector<Expr> axes, std::span<const Tile> tiles) {
  for (const Tile& tile : tiles) TRY(cut(tile, &axes));
  std::erase_if(axes, is_zero);
  return Layout::make(std::move(letters), std::move(axes));
}

// XLA's names of types that are not ours.
std::optional<DType> dtype_of(std::string_view name) {
  if (name == "pred") return DType::kBool;
  if (name == "f8e8m0fnu") return DType::kF8E8M0;
  if (name == "f4e2m1fn") return DType::kF4E2M1;
  std::string own(name);
  if (own.size() > 1 && own[0] == 's' && own[1] >= '0' && own[1] <= '9') own[0] = 'i';
  return dtype_from_name(own);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<XlaLayout> parse(std::string_view letters) {
    XlaLayout result;
    skip_space();
    if (peek() != '{') TRY(shape(&result));
    std::vector<int64_t> minor_to_major;
    std::vector<Tile> tiles;
    if (at_end() && result.dtype) {
      for (size_t a = result.extents.size(); a-- > 0;)
        minor_to_major.push_back(static_cast<int64_t>(a));
    } else {
      TRY(layout(&minor_to_major, &tiles, &result));
    }
    if (!at_end()) return fail("more text behind the layout");
    if (result.dtype && minor_to_major.size() != result.extents.size())
      return fail(fmt::format("the layout has {} axes, the shape {}", minor_to_major.size(),
                              result.extents.size()));
    const int rank = static_cast<int>(minor_to_major.size());
    std::string names(letters);
    if (names.empty()) names = Layout::row_major(rank).letters();
    if (names.size() != minor_to_major.size())
      return fail(fmt::format("the layout has {} axes, the letters '{}' name {}", rank, names,
                              names.size()));
    TRY_ASSIGN(std::vector<Expr> axes, major_to_minor(minor_to_major));
    auto whole = tiled(std::move(names), std::move(axes), tiles);
    if (!whole) return error(std::move(whole).error().at(where()));
    result.layout = *std::move(whole);
    return result;
  }

 private:
  Status shape(XlaLayout* result) {
    const size_t begin = position_;
    while (!at_end() && peek() != '[') ++position_;
    const std::string_view name = text_.substr(begin, position_ - begin);
    result->dtype = dtype_of(name);
    if (!result->dtype) {
      position_ = begin;
      return fail(fmt::format("expected '{{' or a shape, '{}' is no type", name.substr(0, 20)));
    }
    if (!accept('[')) return fail("expected '['");
    TRY_ASSIGN(result->extents, numbers(']', 0, int64_t{1} << 62, false));
    skip_space();
    return {};
  }

  Status layout(std::vector<int64_t>* minor_to_major, std::vector<Tile>* tiles, XlaLayout* result) {
    if (!accept('{')) return fail("expected '{'");
    skip_space();
    if (peek() != ':' && peek() != '}') {
      do {
        TRY_ASSIGN(minor_to_major->emplace_back(), number(0, kMaxLetters - 1));
      } while (accept(','));
    }
    if (accept(':'))
      for (skip_space(); peek() != '}'; skip_space()) TRY(property(tiles, result));
    if (!accept('}')) return fail("expected ',' or '}'");
    skip_space();
    return {};
  }

  Status property(std::vector<Tile>* tiles, XlaLayout* result) {
    const size_t begin = position_;
    while (peek() >= 'A' && peek() <= 'Z') ++position_;
    const std::string_view name = text_.substr(begin, position_ - begin);
    if (!accept('(')) return fail("expected a property, as T(8,128)");
    if (name == "T") return tile_list(tiles);
    if (name == "D") return dense_axes();
    if (name != "E" && name != "S" && name != "L") {
      position_ = begin;
      return fail(fmt::format("the property '{}' has no expression", name), Code::kUnimplemented);
    }
    TRY_ASSIGN(const int64_t value, number(0, 1 << 20));
    if (!accept(')')) return fail("expected ')'");
    if (name == "E") result->element_bits = static_cast<int>(value);
    if (name == "S") result->memory_space = static_cast<int>(value);
    if (name == "L" && value != 1)
      return fail(fmt::format("a tail aligned to {} has no expression", value),
                  Code::kUnimplemented);
    return {};
  }

  Status tile_list(std::vector<Tile>* tiles) {
    do {
      if (tiles->size() == kMaxTiles) return fail(fmt::format("more than {} tiles", kMaxTiles));
      TRY_ASSIGN(Tile tile, numbers(')', 1, kMaxTile, true));
      if (tile.empty()) return fail("a tile without sizes");
      tiles->push_back(std::move(tile));
    } while (accept('('));
    return {};
  }

  Status dense_axes() {
    do {
      if (!accept('D')) return fail("sparse axes have no expression", Code::kUnimplemented);
    } while (accept(','));
    if (!accept(')')) return fail("expected ')'");
    return {};
  }

  Result<std::vector<Expr>> major_to_minor(const std::vector<int64_t>& minor_to_major) {
    std::vector<Expr> axes;
    std::vector<bool> seen(minor_to_major.size());
    for (size_t i = minor_to_major.size(); i-- > 0;) {
      const auto axis = static_cast<size_t>(minor_to_major[i]);
      if (axis >= seen.size() || seen[axis])
        return fail(fmt::format("the axes {} are no permutation of {} axes",
                                fmt::join(minor_to_major, ","), seen.size()));
      seen[axis] = true;
      axes.push_back(letter(static_cast<int>(axis)));
    }
    return axes;
  }

  // A list up to `end`, which is taken, too.
  Result<std::vector<int64_t>> numbers(char end, int64_t least, int64_t most, bool combined) {
    std::vector<int64_t> list;
    skip_space();
    if (accept(end)) return list;
    do {
      if (list.size() == static_cast<size_t>(kMaxLetters))
        return fail(fmt::format("more than {} sizes", kMaxLetters));
      skip_space();
      if (combined && accept('*')) {
        list.push_back(kCombined);
        skip_space();
        continue;
      }
      TRY_ASSIGN(list.emplace_back(), number(least, most));
    } while (accept(','));
    if (!accept(end)) return fail(fmt::format("expected ',' or '{}'", end));
    return list;
  }

  Result<int64_t> number(int64_t least, int64_t most) {
    skip_space();
    int64_t value = 0;
    const char* first = text_.data() + position_;
    const auto [last, status] = std::from_chars(first, text_.data() + text_.size(), value);
    if (status == std::errc::invalid_argument) return fail("expected a number");
    if (status != std::errc() || value < least || value > most)
      return fail(fmt::format("a number of {} to {} is expected", least, most));
    position_ += static_cast<size_t>(last - first);
    skip_space();
    return value;
  }

  std::string where() const { return fmt::format("XLA layout '{}'", text_.substr(0, 120)); }
  tl::unexpected<Error> fail(std::string_view reason, Code code = Code::kInvalidArgument) const {
    return error(code, "{} at position {} of {}", reason, position_, where());
  }
  bool at_end() const { return position_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[position_]; }
  bool accept(char c) { return !at_end() && peek() == c && ++position_ > 0; }
  void skip_space() {
    while (peek() == ' ' || peek() == '\t') ++position_;
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

bool is_xla(std::string_view text) { return text.find('{') != std::string_view::npos; }

Result<XlaLayout> parse_xla(std::string_view text, std::string_view letters) {
  if (text.size() > kMaxText)
    return error(Code::kInvalidArgument, "XLA layout of {} characters, at most {}", text.size(),
                 kMaxText);
  if (text.find('\0') != std::string_view::npos)
    return error(Code::kInvalidArgument, "XLA layout holds a zero byte");
  return Parser(text).parse(letters);
}

}  // namespace tessera::layout
