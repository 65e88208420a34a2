#include "tessera/cli/conversion.h"

#include <sys/mman.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>

#include <nlohmann/json.hpp>

#include "tessera/base/thread_pool.h"
#include "tessera/layout/convert.h"
#include "tessera/op/type.h"

namespace tessera::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLeastRounds = 5;
constexpr double kSeconds = 1.0;  // of rounds, about

// Memory as the runtime's device holds tensors: whole lines, in huge pages where they are large.
// What std::vector has begins within a line and lies in pages of 4 KiB, which costs strided reads
// most.
class Buffer {
 public:
  explicit Buffer(size_t size) {
    constexpr size_t kHugePage = size_t{2} << 20, kLine = 64;
    const size_t alignment = size >= 2 * kHugePage ? kHugePage : kLine;
    void* base = nullptr;
    if (posix_memalign(&base, alignment, std::max<size_t>(size, 1)) != 0) throw std::bad_alloc();
    if (alignment == kHugePage) madvise(base, size, MADV_HUGEPAGE);
    bytes_ = {static_cast<std::byte*>(base), size};
    std::memset(base, 1, size);
  }
  ~Buffer() { std::free(bytes_.data()); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::span<std::byte> first(size_t size) const { return bytes_.first(size); }
  std::byte* data() const { return bytes_.data(); }

 private:
  std::span<std::byte> bytes_;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The letters of an expression in the order in which they first appear: its logical axes.
std::string letters_of(const std::string& text) {
  if (const size_t colon = text.find(':'); colon != std::string::npos) return text.substr(0, colon);
  std::string letters;
  for (char c : text)
    if (std::isalpha(static_cast<unsigned char>(c)) && letters.find(c) == std::string::npos)
      letters += c;
  return letters;
}

Result<layout::BoundLayout> bound(const std::string& text, const std::string& letters, DType dtype,
                                  const op::Dims& dims, std::string_view option) {
  auto parsed = text.find(':') == std::string::npos ? layout::Layout::parse(text, letters)
                                                    : layout::Layout::parse(text);
  if (!parsed) return error(std::move(parsed).error().at(fmt::format("{} '{}'", option, text)));
  auto result = layout::BoundLayout::bind(*parsed, dtype, dims);
  if (!result) return error(std::move(result).error().at(fmt::format("{} '{}'", option, text)));
  return result;
}

}  // namespace

Result<Json> bench_conversion(const ConvertArguments& a) {
  auto type = op::Type::parse(a.type);
  if (!type) return error(std::move(type).error().at(fmt::format("--convert '{}'", a.type)));
  if (!type->is_tensor() || !type->is_static() || type->dtype == DType::kString)
    return error(Code::kInvalidArgument, "--convert '{}' is no type with sizes, as f32[64,128]",
                 a.type);
  if (a.from.empty() || a.to.empty())
    return error(Code::kInvalidArgument, "--convert needs --from and --to, as 'm n' and 'n m'");
  const std::string letters = letters_of(a.from);
  if (static_cast<int>(letters.size()) != type->rank())
    return error(Code::kInvalidArgument, "--from '{}' has {} letters, the type {} axes", a.from,
                 letters.size(), type->rank());
  const op::Dims dims = type->dims();
  TRY_ASSIGN(const auto from, bound(a.from, letters, type->dtype, dims, "--from"));
  TRY_ASSIGN(const auto to, bound(a.to, letters, type->dtype, dims, "--to"));
  TRY_ASSIGN(const layout::Conversion conversion, layout::Conversion::make(from, to));
  const size_t read = static_cast<size_t>(from.bytes().value),
               written = static_cast<size_t>(to.bytes().value), larger = std::max(read, written);
  const Buffer source(larger), target(larger), copy(larger);
  const std::span<const std::byte> src = source.first(read);
  const std::span<std::byte> dst = target.first(written);
  ThreadPool pool(a.threads);
  const auto convert = [&] {
    conversion.fill(dst);
    pool.parallel_for(static_cast<uint32_t>(conversion.parts()), [&](uint32_t first, uint32_t n) {
      conversion.run(src, dst, static_cast<int>(first), static_cast<int>(n));
    });
  };
  // In pieces, for as many threads.
  const uint32_t pieces = static_cast<uint32_t>(pool.threads());
  const auto plain_copy = [&] {
    pool.parallel_for(pieces, [&](uint32_t first, uint32_t n) {
      const size_t begin = larger * first / pieces, end = larger * (first + n) / pieces;
      std::memcpy(copy.data() + begin, source.data() + begin, end - begin);
    });
  };
  double best = 1e30, best_copy = 1e30;
  int rounds = 0;
  for (const auto start = Clock::now();
       rounds < kLeastRounds || (seconds_since(start) < kSeconds && rounds < 10000); ++rounds) {
    auto begin = Clock::now();
    convert();
    const double took = seconds_since(begin);
    begin = Clock::now();
    plain_copy();
    // The first round finds pages that nobody has touched.
    if (rounds > 0) {
      best = std::min(best, took);
      best_copy = std::min(best_copy, seconds_since(begin));
    }
  }
  return Json{{"schema", "tessera.bench_convert/1"},
              {"type", type->str()},
              {"from", a.from},
              {"to", a.to},
              {"threads", pool.threads()},
              {"rounds", rounds},
              {"bytes", read + written},
              {"ms", best * 1e3},
              {"gbps", static_cast<double>(read + written) / best * 1e-9},
              {"memcpy_gbps", 2.0 * static_cast<double>(larger) / best_copy * 1e-9}};
}

}  // namespace tessera::cli
