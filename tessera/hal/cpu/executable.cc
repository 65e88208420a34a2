#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include "tessera/base/elf.h"
#include "tessera/hal/cpu/device.h"

namespace tessera::hal::cpu {
namespace {

std::string_view name_of_entry(const tessera_entry_source& e) { return e.name ? e.name : ""; }

Result<std::unique_ptr<Executable>> load_host_fn(const tessera_executable_source& source) {
  auto result = std::make_unique<Executable>();
  for (uint32_t i = 0; i < source.entry_count; ++i) {
    if (source.entries[i].host_fn == nullptr)
      return error(Code::kInvalidArgument,
                   "entry {} ('{}') of a host_fn executable has no function", i,
                   name_of_entry(source.entries[i]));
    result->entries.push_back(source.entries[i].host_fn);
  }
  return result;
}

tl::unexpected<Error> system_failure(std::string_view doing) {
  return error(errno == ENOMEM ? Code::kResourceExhausted : Code::kUnavailable,
               "device cpu cannot {} memory for code: {}", doing,
               std::generic_category().message(errno));
}

// At no moment is memory both writable and executable.
Status map_code(const ElfView& view, MappedCode& code) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto whole = [page](uint64_t bytes) { return (bytes + page - 1) / page * page; };
  void* base =
      mmap(nullptr, whole(view.size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return system_failure("get");
  code = MappedCode(static_cast<std::byte*>(base), whole(view.size));
  for (const ElfView::Segment& s : view.segments)
    std::ranges::copy(s.bytes, code.base() + s.offset);
  if (mprotect(base, code.size(), PROT_READ) != 0) return system_failure("protect");
  for (const ElfView::Segment& s : view.segments) {
    if (!s.executable) continue;
    const uint64_t first = s.offset / page * page;
    if (mprotect(code.base() + first, whole(s.offset + s.size) - first, PROT_READ | PROT_EXEC) != 0)
      return system_failure("run");
  }
  __builtin___clear_cache(reinterpret_cast<char*>(base),
                          reinterpret_cast<char*>(base) + code.size());
  return {};
}

Result<std::unique_ptr<Executable>> load_elf(const tessera_executable_source& source) {
  if (source.bytes == nullptr)
    return error(Code::kInvalidArgument, "an executable of format 'elf' without bytes");
  TRY_ASSIGN(const ElfView view,
             read_elf({static_cast<const std::byte*>(source.bytes), source.size_bytes}));
  auto result = std::make_unique<Executable>();
  std::vector<uint64_t> offsets;
  for (uint32_t i = 0; i < source.entry_count; ++i) {
    const ElfView::Function* f = view.find(name_of_entry(source.entries[i]));
    if (f == nullptr)
      return error(Code::kNotFound, "the executable has no function '{}' among its {}",
                   name_of_entry(source.entries[i]), view.functions.size());
    offsets.push_back(f->offset);
  }
  TRY(map_code(view, result->code));
  for (uint64_t offset : offsets)
    result->entries.push_back(reinterpret_cast<tessera_entry>(result->code.base() + offset));
  return result;
}

struct Format {
  std::string_view name;
  Result<std::unique_ptr<Executable>> (*load)(const tessera_executable_source&);
};
constexpr std::array kLoaders = {Format{"host_fn", load_host_fn}, Format{"elf", load_elf}};

}  // namespace

MappedCode& MappedCode::operator=(MappedCode&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  return *this;
}

MappedCode::~MappedCode() {
  if (base_ != nullptr) munmap(base_, size_);
}

Result<std::unique_ptr<Executable>> load_executable(const tessera_executable_source& source) {
  const std::string_view format = source.format;
  for (const Format& f : kLoaders)
    if (f.name == format) return f.load(source);
  return error(Code::kUnimplemented,
               "device cpu does not take executables of format '{}'; it takes 'host_fn' and 'elf'",
               format);
}

}  // namespace tessera::hal::cpu
