# Writes the chip files of FOLDER as C++ to OUTPUT: built_in() of tessera/chip/catalog.h.
file(GLOB chips ${FOLDER}/*.json)
list(SORT chips)
set(rows "")
foreach(chip IN LISTS chips)
  get_filename_component(id ${chip} NAME_WE)
  file(READ ${chip} text)
  string(APPEND rows "    {\"${id}\", R\"json(${text})json\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made from data/hardware by cmake/EmbedChips.cmake.
#include \"tessera/chip/catalog.h\"

namespace tessera::chip {
namespace {

constexpr BuiltIn kChips[] = {
${rows}};

}  // namespace

std::span<const BuiltIn> built_in() { return kChips; }

}  // namespace tessera::chip
")
