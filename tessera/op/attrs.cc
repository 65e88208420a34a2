#include "tessera/op/attrs.h"

#include <algorithm>

namespace tessera::op {
namespace {

auto position(auto& list, std::string_view name) {
  return std::lower_bound(list.begin(), list.end(), name,
                          [](auto& entry, std::string_view n) { return entry.first < n; });
}

}  // namespace

void Attrs::set(std::string_view name, Attr value) {
  auto at = position(list_, name);
  if (at != list_.end() && at->first == name)
    at->second = std::move(value);
  else
    list_.emplace(at, std::string(name), std::move(value));
}

const Attr* Attrs::find(std::string_view name) const {
  auto at = position(list_, name);
  return at != list_.end() && at->first == name ? &at->second : nullptr;
}

}  // namespace tessera::op
