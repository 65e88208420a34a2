#include "tessera/base/elf.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

namespace tessera {
namespace {

using File = std::vector<std::byte>;

CodeImage image_of(size_t size) {
  CodeImage image;
  for (size_t i = 0; i < size; ++i) image.bytes.push_back(static_cast<std::byte>(i * 7 + 1));
  image.entries = {{"first", 0}, {"second", size / 2}};
  return image;
}

// A file whose ELF or first program header is changed.
File changed(const std::function<void(Elf64_Ehdr&, Elf64_Phdr&)>& change) {
  File file = write_elf(image_of(100));
  Elf64_Ehdr h;
  Elf64_Phdr p;
  std::memcpy(&h, file.data(), sizeof h);
  std::memcpy(&p, file.data() + sizeof h, sizeof p);
  change(h, p);
  std::memcpy(file.data(), &h, sizeof h);
  std::memcpy(file.data() + sizeof h, &p, sizeof p);
  return file;
}

TEST(Elf, ReadsBackWhatItWrote) {
  for (size_t size : {1, 2, 63, 4096, 4097, 100'000}) {
    const CodeImage image = image_of(size);
    const File file = write_elf(image);
    const auto view = read_elf(file);
    ASSERT_TRUE(view) << view.error().message;
    ASSERT_EQ(view->segments.size(), 1u);
    const ElfView::Segment& s = view->segments[0];
    EXPECT_TRUE(s.executable);
    EXPECT_EQ(s.offset % 64, 0u);
    EXPECT_EQ(File(s.bytes.begin(), s.bytes.end()), image.bytes);
    EXPECT_GE(view->size, size);
    ASSERT_TRUE(view->find("first") && view->find("second"));
    EXPECT_EQ(view->find("second")->offset, s.offset + size / 2);
    EXPECT_EQ(view->find("third"), nullptr);
  }
}

TEST(Elf, RefusesWhatItCannotLoadAndSaysWhy) {
  const auto why = [](const File& file) {
    const auto view = read_elf(file);
    return view ? "" : view.error().message;
  };
  const auto has = [&](const File& file, std::string_view text) {
    EXPECT_NE(why(file).find(text), std::string::npos) << why(file);
  };
  EXPECT_EQ(why(changed([](auto&, auto&) {})), "");
  has({}, "0 bytes");
  has(File(64), "does not begin");
  has(changed([](auto& h, auto&) { h.e_ident[EI_CLASS] = ELFCLASS32; }), "64 bits");
  has(changed([](auto& h, auto&) { h.e_machine = EM_RISCV; }), "machine 243");
  has(changed([](auto& h, auto&) { h.e_type = ET_REL; }), "an object file");
  has(changed([](auto& h, auto&) { h.e_type = ET_EXEC; }), "type 2");
  has(changed([](auto& h, auto&) { h.e_phnum = 0; }), "nothing of it is loaded");
  has(changed([](auto& h, auto&) { h.e_phoff = 1 << 20; }), "beyond");
  has(changed([](auto& h, auto&) { h.e_shnum = 5000; }), "at most");
  has(changed([](auto&, auto& p) { p.p_flags |= PF_W; }), "writable");
  has(changed([](auto&, auto& p) { p.p_flags = PF_R; }), "not in an executable segment");
  has(changed([](auto&, auto& p) { p.p_type = PT_DYNAMIC; }), "dynamic section");
  has(changed([](auto&, auto& p) { p.p_offset = UINT64_MAX; }), "beyond the file");
  has(changed([](auto&, auto& p) { p.p_filesz = p.p_memsz + 1; }), "beyond the file");
  has(changed([](auto&, auto& p) { p.p_memsz = uint64_t{1} << 40; }), "at most");
  has(changed([](auto&, auto& p) { p.p_vaddr = UINT64_MAX; }), "at most");
}

TEST(Elf, RefusesSymbolsFromElsewhere) {
  const CodeImage image = image_of(100);
  File file = write_elf(image);
  Elf64_Ehdr h;
  std::memcpy(&h, file.data(), sizeof h);
  for (uint64_t at = h.e_shoff; at < file.size(); at += sizeof(Elf64_Shdr)) {
    Elf64_Shdr s;
    std::memcpy(&s, file.data() + at, sizeof s);
    if (s.sh_type != SHT_SYMTAB) continue;
    const uint16_t undefined = SHN_UNDEF;
    std::memcpy(file.data() + s.sh_offset + sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_shndx),
                &undefined, sizeof undefined);
  }
  const auto view = read_elf(file);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, Code::kUnimplemented);
  EXPECT_NE(view.error().message.find("'first'"), std::string::npos) << view.error().message;
}

// Whatever bytes are changed or missing, there is a view within the file or an error.
TEST(Elf, SurvivesDamage) {
  std::mt19937 random(3);
  const File whole = write_elf(image_of(200));
  for (int i = 0; i < 20'000; ++i) {
    File file = whole;
    if (random() % 4 == 0) file.resize(random() % file.size());
    for (uint32_t k = random() % 4; k > 0 && !file.empty(); --k) {
      file[random() % file.size()] = static_cast<std::byte>(random());
    }
    const auto view = read_elf(file);
    if (!view) continue;
    for (const auto& s : view->segments) {
      EXPECT_LE(s.bytes.size(), s.size);
      EXPECT_LE(s.offset + s.size, view->size);
      EXPECT_LE(s.bytes.data() + s.bytes.size(), file.data() + file.size());
    }
    for (const auto& f : view->functions) EXPECT_LT(f.offset, view->size);
  }
}

}  // namespace
}  // namespace tessera
