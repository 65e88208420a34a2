#include "tessera/chip/catalog.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/ranges.h>

#include "tessera/base/file.h"

namespace tessera::chip {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".json";
constexpr Bytes kMaxFile(1 << 20);

// Names are looked up in folders: nothing that could lead out of them.
bool is_id(std::string_view id) {
  return !id.empty() && id.size() <= 100 && std::ranges::all_of(id, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

// That share the longest beginning with `id`.
std::vector<std::string> similar(std::string_view id, const std::vector<std::string>& all) {
  const auto common = [&](std::string_view other) {
    return static_cast<size_t>(std::ranges::mismatch(id, other).in1 - id.begin());
  };
  size_t best = 2;
  for (const std::string& other : all) best = std::max(best, common(other));
  std::vector<std::string> result;
  for (const std::string& other : all)
    if (common(other) == best) result.push_back(other);
  return result;
}

}  // namespace

Catalog Catalog::of_environment() {
  std::vector<std::string> folders;
  const char* list = std::getenv("TESSERA_CHIPS");
  for (std::string_view rest = list ? list : ""; !rest.empty();) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    if (colon > 0) folders.emplace_back(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return Catalog(std::move(folders));
}

Result<std::vector<std::string>> Catalog::ids() const {
  std::vector<std::string> result;
  for (const std::string& folder : folders_) {
    std::error_code failure;
    for (fs::directory_iterator i(folder, failure), end; !failure && i != end;
         i.increment(failure)) {
      const fs::path path = i->path();
      if (path.extension() == kEnding && is_id(path.stem().string()))
        result.push_back(path.stem().string());
    }
    if (failure)
      return error(Code::kNotFound, "cannot read folder '{}' of chips: {}", folder,
                   failure.message());
  }
  for (const BuiltIn& file : built_in()) result.emplace_back(file.id);
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

Result<Source> Catalog::find(std::string_view id, const std::string& beside) const {
  if (!is_id(id))
    return error(Code::kInvalidArgument, "'{}' is no chip's name: letters, digits, '_' and '-'",
                 id.substr(0, 100));
  std::vector<std::string> places = folders_;
  if (!beside.empty()) places.insert(places.begin(), beside);
  for (const std::string& folder : places) {
    std::string path = (fs::path(folder) / fmt::format("{}{}", id, kEnding)).string();
    std::error_code failure;
    if (!fs::is_regular_file(path, failure)) continue;
    TRY_ASSIGN(std::string text, read_file(path, kMaxFile));
    return Source{std::move(path), std::move(text)};
  }
  for (const BuiltIn& file : built_in())
    if (file.id == id) return Source{fmt::format("{}{}", id, kEnding), std::string(file.text)};
  std::string hint;
  if (auto all = ids())
    if (const auto close = similar(id, *all); !close.empty())
      hint = fmt::format("; there are {}", fmt::join(close, ", "));
  return error(Code::kNotFound, "no chip '{}'{}", id, hint);
}

Result<Chip> Catalog::load(std::string_view id) const {
  const bool is_path = id.find('/') != std::string_view::npos || id.ends_with(kEnding);
  if (!is_path) {
    TRY_ASSIGN(const Source source, find(id, ""));
    return read_chip(source, id, [&](std::string_view base) { return find(base, ""); });
  }
  const fs::path path(id);
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  TRY_ASSIGN(std::string text, read_file(path.string(), kMaxFile));
  return read_chip({path.string(), std::move(text)}, path.stem().string(),
                   [&](std::string_view base) { return find(base, folder); });
}

}  // namespace tessera::chip
