#include "tessera/codegen/mlir/cache.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tessera/base/file.h"

namespace tessera::codegen::mlir {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "tessera.code/1\n";
constexpr std::string_view kSuffix = ".code";
// Entries are marked as found at most once in this time.
constexpr auto kMarked = std::chrono::hours(1);
// What a process that was killed left behind.
constexpr auto kAbandoned = std::chrono::hours(1);

uint64_t fnv(std::string_view text, uint64_t hash) {
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}
uint64_t checksum(std::string_view text) { return fnv(text, 14695981039346656037u); }

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
void append(std::string& file, uint64_t number) {
  file.append(reinterpret_cast<const char*>(&number), sizeof number);
}
uint64_t number_at(std::string_view file, size_t at) {
  uint64_t number = 0;
  std::memcpy(&number, file.data() + at, sizeof number);
  return number;
}

// magic, key size, code size, key, code, checksum of all before
std::string entry_of(std::string_view key, std::string_view code) {
  std::string file(kMagic);
  append(file, key.size());
  append(file, code.size());
  file += key;
  file += code;
  append(file, checksum(file));
  return file;
}

// The code, or nothing if the file is no whole entry of the key.
std::optional<std::string_view> code_in(std::string_view file, std::string_view key) {
  constexpr size_t kHead = kMagic.size() + 16;
  if (file.size() < kHead + 8 || !file.starts_with(kMagic)) return std::nullopt;
  const std::string_view body = file.substr(0, file.size() - 8);
  if (checksum(body) != number_at(file, body.size())) return std::nullopt;
  if (number_at(file, kMagic.size()) != key.size()) return std::nullopt;
  const uint64_t size = number_at(file, kMagic.size() + 8);
  if (body.size() - kHead != key.size() + size || !body.substr(kHead).starts_with(key))
    return std::nullopt;
  return body.substr(kHead + key.size());
}

}  // namespace

std::string Cache::default_folder() {
  if (const char* own = std::getenv("TESSERA_CACHE_DIR"))
    return std::string_view(own) == "none" || !*own ? "" : std::string(own) + "/code";
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/tessera/code";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/tessera/code";
  return "";
}

std::string Cache::path_of(std::string_view key) const {
  // Two hashes from different beginnings; a clash would only be a miss.
  return fmt::format("{}/{:016x}{:016x}{}", folder_, checksum(key), fnv(key, 0x9e3779b97f4a7c15u),
                     kSuffix);
}

bool Cache::empty() const {
  std::error_code failed;
  return folder_.empty() || fs::directory_iterator(folder_, failed) == fs::directory_iterator();
}

std::optional<std::vector<std::byte>> Cache::find(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  const std::string path = path_of(key);
  const auto file = read_file(path, limit_);
  if (!file) return std::nullopt;
  const auto code = code_in(*file, key);
  std::error_code ignored;
  if (!code) {
    fs::remove(path, ignored);
    return std::nullopt;
  }
  const auto now = fs::file_time_type::clock::now();
  if (const auto last = fs::last_write_time(path, ignored); !ignored && now - last > kMarked)
    fs::last_write_time(path, now, ignored);
  const auto* bytes = reinterpret_cast<const std::byte*>(code->data());
  return std::vector<std::byte>(bytes, bytes + code->size());
}

Status Cache::put(std::string_view key, std::span<const std::byte> code) const {
  if (folder_.empty()) return {};
  std::error_code failed;
  if (fs::create_directories(folder_, failed))
    fs::permissions(folder_, fs::perms::owner_all, failed);
  if (failed)
    return error(Code::kFailedPrecondition, "the cache {}: {}", folder_, failed.message());
  TRY(write_file(path_of(key), entry_of(key, text_of(code))));
  evict();
  return {};
}

void Cache::evict() const {
  struct Entry {
    fs::file_time_type time;
    int64_t size;
    fs::path path;
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  std::error_code failed;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator it(folder_, failed), end; !failed && it != end;
       it.increment(failed)) {
    std::error_code gone;
    const auto time = it->last_write_time(gone);
    const auto size = gone ? 0 : static_cast<int64_t>(it->file_size(gone));
    if (gone) continue;
    if (it->path().extension() == kSuffix) {
      entries.push_back({time, size, it->path()});
      total += size;
    } else if (it->path().filename().string().find(".code.tmp-") != std::string::npos &&
               now - time > kAbandoned) {
      fs::remove(it->path(), gone);
    }
  }
  if (total <= limit_.value) return;
  std::ranges::sort(entries, {}, [](const Entry& e) { return std::pair(e.time, e.path); });
  // Some room, so that not every entry has to look through all.
  for (const Entry& e : entries) {
    if (total <= limit_.value - limit_.value / 8) return;
    std::error_code gone;
    fs::remove(e.path, gone);
    total -= e.size;
  }
}

}  // namespace tessera::codegen::mlir
