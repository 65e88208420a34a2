#include "tessera/codegen/mlir/object.h"

#include <elf.h>

#include <cstring>
#include <optional>
#include <vector>

namespace tessera::codegen::mlir {
namespace {

tl::unexpected<Error> bad(std::string_view what) {
  return error(Code::kInvalidArgument, "no usable object file: {}", what);
}

class Linker {
 public:
  explicit Linker(std::span<const std::byte> file) : file_(file) {}

  Result<CodeImage> run(std::string_view entry) {
    TRY(read_headers());
    TRY(place_sections());
    for (const Elf64_Shdr& s : sections_)
      if (s.sh_type == SHT_RELA && s.sh_info < places_.size() && places_[s.sh_info])
        TRY(relocate(s));
    TRY(find_entry(entry));
    return std::move(image_);
  }

 private:
  template <class T>
  Result<T> get(uint64_t offset) const {
    if (offset > file_.size() || file_.size() - offset < sizeof(T))
      return bad(fmt::format("{} bytes at {} of {}", sizeof(T), offset, file_.size()));
    T value;
    std::memcpy(&value, file_.data() + offset, sizeof value);
    return value;
  }
  template <class T>
  Result<T> entry_of(const Elf64_Shdr& table, uint64_t index) const {
    if (index >= table.sh_size / sizeof(T)) return bad("an index beyond its table");
    return get<T>(table.sh_offset + index * sizeof(T));
  }
  Result<std::string_view> name_at(const Elf64_Shdr& names, uint64_t offset) const {
    if (names.sh_offset > file_.size() || offset >= file_.size() - names.sh_offset)
      return bad("a name beyond the file");
    const auto* text = reinterpret_cast<const char*>(file_.data()) + names.sh_offset + offset;
    const size_t most = file_.size() - names.sh_offset - offset;
    return std::string_view(text, strnlen(text, most));
  }

  Status read_headers() {
    TRY_ASSIGN(header_, get<Elf64_Ehdr>(0));
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 || header_.e_type != ET_REL ||
        header_.e_machine != EM_X86_64)
      return bad("not a relocatable file for x86-64");
    for (uint64_t k = 0; k < header_.e_shnum; ++k) {
      TRY_ASSIGN(const auto section, get<Elf64_Shdr>(header_.e_shoff + k * sizeof(Elf64_Shdr)));
      sections_.push_back(section);
    }
    if (header_.e_shstrndx >= sections_.size()) return bad("sections without names");
    return {};
  }

  // Tables for unwinding are of no use: nothing is thrown through the code.
  Result<bool> wanted(const Elf64_Shdr& s) const {
    if (!(s.sh_flags & SHF_ALLOC) || s.sh_type != SHT_PROGBITS) return false;
    TRY_ASSIGN(const auto name, name_at(sections_[header_.e_shstrndx], s.sh_name));
    if (name == ".eh_frame") return false;
    if (s.sh_flags & SHF_WRITE)
      return error(Code::kUnimplemented, "section '{}' is writable", name);
    return true;
  }

  Status place_sections() {
    places_.resize(sections_.size());
    for (size_t k = 0; k < sections_.size(); ++k) {
      const Elf64_Shdr& s = sections_[k];
      TRY_ASSIGN(const bool keep, wanted(s));
      if (!keep) continue;
      if (s.sh_offset > file_.size() || s.sh_size > file_.size() - s.sh_offset)
        return bad("a section beyond the file");
      const uint64_t align = std::max<uint64_t>(s.sh_addralign, 1);
      if (align > 64) return bad(fmt::format("a section aligned to {}", align));
      const uint64_t at = (image_.bytes.size() + align - 1) / align * align;
      image_.bytes.resize(at + s.sh_size);
      if (s.sh_size) std::memcpy(image_.bytes.data() + at, file_.data() + s.sh_offset, s.sh_size);
      places_[k] = at;
    }
    return {};
  }

  Result<uint64_t> address_of(const Elf64_Shdr& symbols, uint64_t index) const {
    TRY_ASSIGN(const auto symbol, entry_of<Elf64_Sym>(symbols, index));
    if (symbol.st_shndx < places_.size() && places_[symbol.st_shndx])
      return *places_[symbol.st_shndx] + symbol.st_value;
    if (symbols.sh_link >= sections_.size()) return bad("symbols without names");
    TRY_ASSIGN(const auto name, name_at(sections_[symbols.sh_link], symbol.st_name));
    return error(Code::kUnimplemented, "the code needs the symbol '{}' from elsewhere", name);
  }

  Status relocate(const Elf64_Shdr& table) {
    if (table.sh_link >= sections_.size()) return bad("relocations without symbols");
    const Elf64_Shdr& symbols = sections_[table.sh_link];
    const uint64_t base = *places_[table.sh_info], size = sections_[table.sh_info].sh_size;
    for (uint64_t k = 0; k < table.sh_size / sizeof(Elf64_Rela); ++k) {
      TRY_ASSIGN(const auto r, entry_of<Elf64_Rela>(table, k));
      const uint64_t type = ELF64_R_TYPE(r.r_info);
      const bool wide = type == R_X86_64_PC64;
      if (type != R_X86_64_PC32 && type != R_X86_64_PLT32 && !wide)
        return error(Code::kUnimplemented, "a relocation of type {}", type);
      const size_t bytes = wide ? 8 : 4;
      if (r.r_offset > size || size - r.r_offset < bytes) return bad("a relocation elsewhere");
      TRY_ASSIGN(const uint64_t target, address_of(symbols, ELF64_R_SYM(r.r_info)));
      const uint64_t at = base + r.r_offset;
      const uint64_t distance = target + static_cast<uint64_t>(r.r_addend) - at;
      std::memcpy(image_.bytes.data() + at, &distance, bytes);
    }
    return {};
  }

  Status find_entry(std::string_view entry) {
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type != SHT_SYMTAB || s.sh_link >= sections_.size()) continue;
      for (uint64_t k = 1; k < s.sh_size / sizeof(Elf64_Sym); ++k) {
        TRY_ASSIGN(const auto symbol, entry_of<Elf64_Sym>(s, k));
        TRY_ASSIGN(const auto name, name_at(sections_[s.sh_link], symbol.st_name));
        if (name != entry) continue;
        TRY_ASSIGN(const uint64_t address, address_of(s, k));
        image_.entries.push_back({std::string(name), address});
        return {};
      }
    }
    return bad(fmt::format("there is no function '{}'", entry));
  }

  std::span<const std::byte> file_;
  Elf64_Ehdr header_ = {};
  std::vector<Elf64_Shdr> sections_;
  std::vector<std::optional<uint64_t>> places_;  // in the image, by section
  CodeImage image_;
};

}  // namespace

Result<CodeImage> link(std::span<const std::byte> object, std::string_view entry) {
  return Linker(object).run(entry);
}

}  // namespace tessera::codegen::mlir
