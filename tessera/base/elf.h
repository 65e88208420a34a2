// Machine code in a file: position-independent, complete in itself, never linked when it is loaded.
// This is what CPU devices take as format "elf", and what code generators write.
//
// The file is ELF64, little-endian, of type DYN and for one machine. Its LOAD segments are readable
// or readable and executable, never writable; there are no relocations, no dynamic section, no
// thread-local storage, and no symbol is left undefined. A function symbol in an executable segment
// names an entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"

namespace tessera {

// ELF's number of the machine that this process runs on (EM_X86_64, EM_AARCH64, ...).
uint16_t elf_machine();

// Code and constants that refer to one another by distance alone.
struct CodeImage {
  struct Entry {
    std::string name;
    uint64_t offset = 0;  // in `bytes`
  };
  std::vector<std::byte> bytes;
  std::vector<Entry> entries;
};

// One segment, readable and executable, whose first byte is at a multiple of 64 when loaded.
// @post read_elf(write_elf(image)): one segment of image.bytes, with the same entries
std::vector<std::byte> write_elf(const CodeImage& image, uint16_t machine = elf_machine());

// A checked view of a file; it points into the file.
struct ElfView {
  struct Segment {
    uint64_t offset = 0;  // from the base of the loaded code, which is page-aligned
    uint64_t size = 0;    // in memory; what lies behind `bytes` is zero
    std::span<const std::byte> bytes;
    bool executable = false;
  };
  struct Function {
    std::string_view name;
    uint64_t offset = 0;
  };
  uint64_t size = 0;              // of the whole in memory
  std::vector<Segment> segments;  // by offset; no two share a page
  std::vector<Function> functions;

  const Function* find(std::string_view name) const;
};

// No two segments may share a page of this size.
inline constexpr uint64_t kCodePage = 4096;
// Code beyond this is refused.
inline constexpr uint64_t kMaxCodeBytes = uint64_t{256} << 20;

// kInvalidArgument: not such a file, with the reason; kUnimplemented: one for another machine, or
// one that would have to be linked. Never reads outside of `file`, whatever it holds.
Result<ElfView> read_elf(std::span<const std::byte> file, uint16_t machine = elf_machine());

}  // namespace tessera
