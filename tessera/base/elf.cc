#include "tessera/base/elf.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace tessera {
namespace {

constexpr char kSectionNames[] = "\0.text\0.symtab\0.strtab\0.shstrtab";
enum SectionIndex : uint32_t { kText = 1, kSymtab, kStrtab, kShstrtab, kSections };
constexpr uint32_t kNameOf[kSections] = {0, 1, 7, 15, 23};
constexpr uint64_t kMaxHeaders = 4096;  // of each kind
constexpr uint64_t kCodeAt = 128;       // behind the headers, in the file as in memory
static_assert(kCodeAt >= sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr));

uint64_t rounded_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

template <class T>
void put(std::vector<std::byte>& file, uint64_t at, const T& value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

Elf64_Shdr section(SectionIndex index, uint32_t type, uint64_t offset, uint64_t size) {
  Elf64_Shdr s = {};
  s.sh_name = kNameOf[index];
  s.sh_type = type;
  s.sh_offset = offset;
  s.sh_size = size;
  s.sh_addralign = 8;
  return s;
}

tl::unexpected<Error> bad(std::string_view what) {
  return error(Code::kInvalidArgument, "the executable is no usable ELF file: {}", what);
}
tl::unexpected<Error> unlinked(std::string_view what) {
  return error(Code::kUnimplemented,
               "the executable would have to be linked: {}; code is loaded as it is", what);
}

// Bounds-checked access to a file's bytes.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> file) : file_(file) {}

  bool holds(uint64_t offset, uint64_t size) const {
    return offset <= file_.size() && size <= file_.size() - offset;
  }
  template <class T>
  Result<T> get(uint64_t offset) const {
    if (!holds(offset, sizeof(T)))
      return bad(
          fmt::format("{} bytes at {} lie beyond its {} bytes", sizeof(T), offset, file_.size()));
    T value;
    std::memcpy(&value, file_.data() + offset, sizeof value);
    return value;
  }
  template <class T>
  Result<std::vector<T>> table(uint64_t offset, uint64_t count, uint64_t entry_size,
                               std::string_view what) const {
    if (count == 0) return std::vector<T>{};
    if (entry_size != sizeof(T))
      return bad(fmt::format("{} of {} bytes each, need {}", what, entry_size, sizeof(T)));
    if (count > kMaxHeaders) return bad(fmt::format("{} {}, at most {}", count, what, kMaxHeaders));
    if (!holds(offset, count * sizeof(T)))
      return bad(fmt::format("{} at {} lie beyond its {} bytes", what, offset, file_.size()));
    std::vector<T> list(count);
    std::memcpy(static_cast<void*>(list.data()), file_.data() + offset, count * sizeof(T));
    return list;
  }
  std::span<const std::byte> part(uint64_t offset, uint64_t size) const {
    return file_.subspan(offset, size);
  }

 private:
  std::span<const std::byte> file_;
};

Status check_header(const Elf64_Ehdr& h, uint16_t machine) {
  if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) return bad("it does not begin with \\x7fELF");
  if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB)
    return bad("it is not of 64 bits and little-endian");
  if (h.e_ident[EI_VERSION] != EV_CURRENT || h.e_version != EV_CURRENT)
    return bad(fmt::format("version {}, need {}", h.e_version, EV_CURRENT));
  if (h.e_machine != machine)
    return error(Code::kUnimplemented, "the executable is for machine {}, this is machine {}",
                 h.e_machine, machine);
  if (h.e_type == ET_REL) return unlinked("it is an object file");
  if (h.e_type != ET_DYN) return bad(fmt::format("type {}, need {} (DYN)", h.e_type, ET_DYN));
  return {};
}

// Gives the address of the view's first page.
Result<uint64_t> read_segments(const Reader& file, const std::vector<Elf64_Phdr>& headers,
                               ElfView& view) {
  for (const Elf64_Phdr& p : headers) {
    if (p.p_type == PT_DYNAMIC) return unlinked("it has a dynamic section");
    if (p.p_type == PT_INTERP) return unlinked("it names a dynamic linker");
    if (p.p_type == PT_TLS) return unlinked("it has thread-local storage");
    if (p.p_type != PT_LOAD || p.p_memsz == 0) continue;
    if (p.p_flags & PF_W) return bad("a segment is writable");
    if (!(p.p_flags & PF_R)) return bad("a segment is not readable");
    if (p.p_filesz > p.p_memsz || !file.holds(p.p_offset, p.p_filesz))
      return bad(
          fmt::format("a segment of {} bytes at {} lies beyond the file", p.p_filesz, p.p_offset));
    if (p.p_memsz > kMaxCodeBytes || p.p_vaddr > UINT64_MAX - 2 * kMaxCodeBytes)
      return bad(fmt::format("a segment of {} bytes at address {}, at most {} bytes", p.p_memsz,
                             p.p_vaddr, kMaxCodeBytes));
    view.segments.push_back(
        {p.p_vaddr, p.p_memsz, file.part(p.p_offset, p.p_filesz), (p.p_flags & PF_X) != 0});
  }
  if (view.segments.empty()) return bad("nothing of it is loaded");
  std::ranges::sort(view.segments, {}, &ElfView::Segment::offset);
  const uint64_t base = view.segments.front().offset / kCodePage * kCodePage;
  for (ElfView::Segment& s : view.segments) {
    s.offset -= base;
    if (s.offset / kCodePage * kCodePage < view.size) return bad("two segments share a page");
    view.size = rounded_up(s.offset + s.size, kCodePage);
    if (view.size > kMaxCodeBytes)
      return bad(fmt::format("segments span more than {} bytes", kMaxCodeBytes));
  }
  return base;
}

bool executable_at(const ElfView& view, uint64_t offset) {
  return std::any_of(view.segments.begin(), view.segments.end(), [&](const auto& s) {
    return s.executable && offset >= s.offset && offset - s.offset < s.size;
  });
}

Status read_symbols(const Reader& file, const std::vector<Elf64_Shdr>& sections,
                    const Elf64_Shdr& table, uint64_t base, ElfView& view) {
  if (table.sh_link >= sections.size()) return bad("a symbol table without names");
  const Elf64_Shdr& names = sections[table.sh_link];
  if (names.sh_type != SHT_STRTAB || !file.holds(names.sh_offset, names.sh_size))
    return bad("the names of its symbols lie beyond the file");
  const auto bytes = file.part(names.sh_offset, names.sh_size);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  TRY_ASSIGN(const auto symbols,
             file.table<Elf64_Sym>(table.sh_offset, table.sh_size / sizeof(Elf64_Sym),
                                   table.sh_entsize, "symbols"));
  for (const Elf64_Sym& s : symbols) {
    if (s.st_name == 0) continue;
    const size_t end = s.st_name < text.size() ? text.find('\0', s.st_name) : text.npos;
    if (end == text.npos) return bad("the name of a symbol has no end");
    const std::string_view name = text.substr(s.st_name, end - s.st_name);
    if (s.st_shndx == SHN_UNDEF)
      return unlinked(fmt::format("it needs the symbol '{}' from elsewhere", name));
    if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || s.st_shndx >= SHN_LORESERVE) continue;
    if (s.st_value < base || !executable_at(view, s.st_value - base))
      return bad(fmt::format("function '{}' is not in an executable segment", name));
    if (view.find(name)) return bad(fmt::format("two functions are called '{}'", name));
    view.functions.push_back({name, s.st_value - base});
  }
  return {};
}

}  // namespace

uint16_t elf_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#else
  return EM_NONE;
#endif
}

const ElfView::Function* ElfView::find(std::string_view name) const {
  const auto found = std::ranges::find(functions, name, &Function::name);
  return found == functions.end() ? nullptr : &*found;
}

std::vector<std::byte> write_elf(const CodeImage& image, uint16_t machine) {
  std::string names(1, '\0');
  std::vector<Elf64_Sym> symbols(1);
  for (size_t i = 0; i < image.entries.size(); ++i) {
    Elf64_Sym s = {};
    s.st_name = static_cast<uint32_t>(names.size());
    s.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    s.st_shndx = kText;
    s.st_value = kCodeAt + image.entries[i].offset;
    symbols.push_back(s);
    names += image.entries[i].name + '\0';
  }
  const uint64_t symtab = rounded_up(kCodeAt + image.bytes.size(), 8);
  const uint64_t strtab = symtab + symbols.size() * sizeof(Elf64_Sym);
  const uint64_t shstrtab = strtab + names.size();
  const uint64_t headers = rounded_up(shstrtab + sizeof kSectionNames, 8);
  std::vector<std::byte> file(headers + kSections * sizeof(Elf64_Shdr));

  Elf64_Ehdr h = {};
  std::memcpy(h.e_ident, ELFMAG, SELFMAG);
  h.e_ident[EI_CLASS] = ELFCLASS64;
  h.e_ident[EI_DATA] = ELFDATA2LSB;
  h.e_ident[EI_VERSION] = EV_CURRENT;
  h.e_type = ET_DYN;
  h.e_machine = machine;
  h.e_version = EV_CURRENT;
  h.e_ehsize = sizeof h;
  h.e_phoff = sizeof h;
  h.e_phentsize = sizeof(Elf64_Phdr);
  h.e_phnum = 1;
  h.e_shoff = headers;
  h.e_shentsize = sizeof(Elf64_Shdr);
  h.e_shnum = kSections;
  h.e_shstrndx = kShstrtab;
  put(file, 0, h);

  Elf64_Phdr p = {};
  p.p_type = PT_LOAD;
  p.p_flags = PF_R | PF_X;
  p.p_offset = p.p_vaddr = p.p_paddr = kCodeAt;
  p.p_filesz = p.p_memsz = image.bytes.size();
  p.p_align = kCodePage;
  put(file, sizeof h, p);

  if (!image.bytes.empty())
    std::memcpy(file.data() + kCodeAt, image.bytes.data(), image.bytes.size());
  for (size_t i = 0; i < symbols.size(); ++i) put(file, symtab + i * sizeof(Elf64_Sym), symbols[i]);
  std::memcpy(file.data() + strtab, names.data(), names.size());
  std::memcpy(file.data() + shstrtab, kSectionNames, sizeof kSectionNames);

  Elf64_Shdr text = section(kText, SHT_PROGBITS, kCodeAt, image.bytes.size());
  text.sh_addr = kCodeAt;
  text.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  put(file, headers + kText * sizeof text, text);
  Elf64_Shdr table = section(kSymtab, SHT_SYMTAB, symtab, symbols.size() * sizeof(Elf64_Sym));
  table.sh_link = kStrtab;
  table.sh_info = 1;  // the first global symbol
  table.sh_entsize = sizeof(Elf64_Sym);
  put(file, headers + kSymtab * sizeof table, table);
  put(file, headers + kStrtab * sizeof table, section(kStrtab, SHT_STRTAB, strtab, names.size()));
  put(file, headers + kShstrtab * sizeof table,
      section(kShstrtab, SHT_STRTAB, shstrtab, sizeof kSectionNames));
  return file;
}

Result<ElfView> read_elf(std::span<const std::byte> bytes, uint16_t machine) {
  const Reader file(bytes);
  TRY_ASSIGN(const auto h, file.get<Elf64_Ehdr>(0));
  TRY(check_header(h, machine));
  TRY_ASSIGN(const auto segments,
             file.table<Elf64_Phdr>(h.e_phoff, h.e_phnum, h.e_phentsize, "segments"));
  TRY_ASSIGN(const auto sections,
             file.table<Elf64_Shdr>(h.e_shoff, h.e_shnum, h.e_shentsize, "sections"));
  ElfView view;
  TRY_ASSIGN(const uint64_t base, read_segments(file, segments, view));
  for (const Elf64_Shdr& s : sections) {
    if ((s.sh_type == SHT_REL || s.sh_type == SHT_RELA) && s.sh_size > 0)
      return unlinked("it has relocations");
    if (s.sh_type == SHT_SYMTAB || s.sh_type == SHT_DYNSYM)
      TRY(read_symbols(file, sections, s, base, view));
  }
  return view;
}

}  // namespace tessera
