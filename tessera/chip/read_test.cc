// What chip files may say, and what is told of those that say something else.
#include <cstdlib>
#include <map>

#include <gtest/gtest.h>

#include "tessera/base/file.h"
#include "tessera/chip/chip.h"

namespace tessera::chip {
namespace {

constexpr std::string_view kSmall = R"({
  "schema": "tessera.chip/1",
  "name": "Abacus 1", "vendor": "Nobody", "architecture": "abacus",
  "cite": "assumed: made up",
  "cores": {"core": {"count": 2, "clock_hz": 1e9}},
  "units": {"array": {
    "kind": "matrix", "core": "core", "per_core": 1, "dataflow": "weight_stationary", "rows": 8, "columns": 8,
    "rates": {"i8": {"macs_per_cycle": 64, "m": 1, "n": 8, "k": 8, "accumulate": "i32"}},
    "operands": {"a": {"memory": "pad", "layouts": ["ND", "mk: k/8 m k%8"]}, "b": {"memory": "pad"}, "c": {"memory": "pad"}}}},
  "memory": {
    "dram": {"kind": "device", "capacity_bytes": 1073741824, "bytes_per_second": 1e10},
    "pad": {"kind": "scratchpad", "core": "core", "capacity_bytes": 65536, "bytes_per_cycle": 32, "banks": 4, "bank_bytes": 16384}},
  "engines": {"dma": {"core": "core", "routes": {"in": {"from": "dram", "to": "pad", "bytes_per_cycle": 16, "changes": ["ND -> NZ"]}}}},
  "launch": {"seconds": 1e-6}
})";

using Files = std::map<std::string, std::string, std::less<>>;

Result<Chip> read(std::string text, const Files& bases = {}) {
  return read_chip({"it.json", std::move(text)}, "it", [&](std::string_view id) -> Result<Source> {
    const auto found = bases.find(id);
    if (found == bases.end()) return error(Code::kNotFound, "no chip '{}'", id);
    return Source{found->first + ".json", found->second};
  });
}

// kSmall with `was` replaced.
std::string small(std::string_view was, std::string_view is) {
  std::string text(kSmall);
  const size_t at = text.find(was);
  EXPECT_NE(at, std::string::npos) << was;
  return text.replace(at, was.size(), is);
}

// kSmall with numerics of bf16 that say this as well.
std::string with_numerics(std::string_view order, std::string_view members) {
  return small("\"launch\"",
               fmt::format(R"("numerics": {{"bf16": {{"accumulate": "f32", "order": "{}",
    "group": 8, "rounding": "nearest_even", "subnormals": "kept", {}}}}}, "launch")",
                           order, members));
}

std::string derived(std::string_view members) {
  return R"({"schema": "tessera.chip/1", "extends": "small", )" + std::string(members) + "}";
}

TEST(ChipJson, ReadsWhatItSays) {
  const auto chip = read(std::string(kSmall));
  ASSERT_TRUE(chip) << chip.error().message;
  EXPECT_EQ(chip->cores.at("core").count.value, 2);
  EXPECT_EQ(chip->cores.at("core").count.cite.str(), "assumed: made up");
  EXPECT_EQ(chip->units.at("array").dataflow, Dataflow::kWeightStationary);
  EXPECT_EQ(chip->device_memory().capacity_bytes.value, Bytes(int64_t{1} << 30));
  EXPECT_EQ(chip->bandwidth_of(chip->memory.at("pad")), 64e9);
  EXPECT_EQ(chip->engines.at("dma").routes.at("in").changes[0].to, "NZ");
  EXPECT_EQ(chip->files, std::vector<std::string>{"it.json"});
  EXPECT_FALSE(chip->dies);
}

TEST(ChipJson, NumbersHaveTheNearestCite) {
  const auto chip = read(small(
      R"("count": 2, "clock_hz": 1e9)",
      R"("cite": "measured: a stopwatch", "count": 2, "clock_hz": {"value": 1e9, "cite": "published: a poster",
         "conflicts": [{"value": 2e9, "cite": "published: another"}, {"value": 3e9}], "choice": "the first"})"));
  ASSERT_TRUE(chip) << chip.error().message;
  const Core& core = chip->cores.at("core");
  EXPECT_EQ(core.count.cite.grade, Grade::kMeasured);
  EXPECT_EQ(core.clock_hz.cite.source, "a poster");
  ASSERT_EQ(core.clock_hz.conflicts.size(), 2u);
  EXPECT_EQ(core.clock_hz.conflicts[0].value, 2e9);
  EXPECT_EQ(core.clock_hz.conflicts[1].cite.source, "a stopwatch");
  EXPECT_EQ(core.clock_hz.choice, "the first");
}

TEST(ChipJson, ExtendsReplacesMemberByMember) {
  const Files bases{{"small", std::string(kSmall)}};
  const auto chip = read(
      derived(R"("name": "Abacus 2", "cite": "published: a flyer", "cores": {"core": {"count": 4}},
      "engines": null, "constants": {"waste": 0.5})"),
      bases);
  ASSERT_TRUE(chip) << chip.error().message;
  EXPECT_EQ(chip->name, "Abacus 2");
  EXPECT_EQ(chip->vendor, "Nobody");
  EXPECT_EQ(chip->cores.at("core").count.value, 4);
  EXPECT_EQ(chip->cores.at("core").count.cite.source, "a flyer");
  EXPECT_EQ(chip->cores.at("core").clock_hz.cite.source, "made up")
      << "the base's number keeps its cite";
  EXPECT_TRUE(chip->engines.empty());
  EXPECT_EQ(chip->files, (std::vector<std::string>{"it.json", "small.json"}));
  EXPECT_NE(chip->hash, read(std::string(kSmall))->hash);
}

TEST(ChipJson, RefusesWithFileAndPointer) {
  const struct {
    std::string text;
    std::string_view message;
  } cases[] = {
      {small("\"launch\"", "\"lunch\""), "it.json: /lunch: no such member"},
      {small("\"count\": 2", "\"count\": 2, \"size\": 1"),
       "it.json: /cores/core/size: no such member"},
      {small("1e10}", "0}"), "it.json: /memory/dram/bytes_per_second: 0, need more than 0"},
      {small("1e10}", "-5}"), "it.json: /memory/dram/bytes_per_second: -5, need more than 0"},
      {small("1e10}", "1e30}"),
       "it.json: /memory/dram/bytes_per_second: 1e+30, need at most 1e+18"},
      {small("1e10}", "\"much\"}"), "it.json: /memory/dram/bytes_per_second: must be a number"},
      {small("1e10}", "{\"value\": 1, \"unit\": \"B\"}}"),
       "it.json: /memory/dram/bytes_per_second/unit: no such member"},
      {small("\"count\": 2", "\"count\": 2.5"),
       "it.json: /cores/core/count: 2.5, need a whole number"},
      {small("\"count\": 2", "\"count\": 0"), "it.json: /cores/core/count: 0, need at least 1"},
      {small("\"count\": 2, ", ""), "it.json: /cores/core/count: is missing"},
      {small("\"cite\": \"assumed: made up\",", ""),
       "it.json: /cores/core/count: has no source and grade: give 'cite' here or around it, as "
       "'published: ...'"},
      {small("assumed: made up", "rumoured: made up"),
       "it.json: /cores/core/count/cite: 'rumoured: made up' must be 'published: ', 'derived: ', "
       "'measured: ' or 'assumed: ' and a source"},
      {small("assumed: made up", "assumed: "),
       "it.json: /cores/core/count/cite: 'assumed: ' must be 'published: ', 'derived: ', "
       "'measured: ' or 'assumed: ' and a source"},
      {small("\"count\": 2", "\"count\": {\"value\": 2, \"conflicts\": [{\"value\": 3}]}"),
       "it.json: /cores/core/count/choice: is missing: there are conflicts"},
      {small("\"kind\": \"matrix\"", "\"kind\": \"cube\""),
       "it.json: /units/array/kind: 'cube' is none of matrix, vector, scalar"},
      {small("\"core\": \"core\", \"per_core\"", "\"core\": \"cork\", \"per_core\""),
       "it.json: /units/array/core: no core 'cork'"},
      {small("\"to\": \"pad\"", "\"to\": \"pat\""),
       "it.json: /engines/dma/routes/in/to: no memory 'pat'"},
      {small("ND -> NZ", "ND -> N Z"),
       "it.json: /engines/dma/routes/in/changes/0/1: 'N Z' is neither a layout format nor an "
       "expression"},
      {small("ND -> NZ", "ND"),
       "it.json: /engines/dma/routes/in/changes/0: must be 'layout -> layout'"},
      {small("{\"i8\":", "{\"i9\":"),
       "it.json: /units/array/rates/i9: no element type or mode 'i9'"},
      {small("\"n\": 8", "\"n\": 65536"),
       "it.json: /units/array/rates/i8: a step's operand b has 524288 B, memory 'pad' 65536 B"},
      {small(", \"columns\": 8", ""),
       "it.json: /units/array/dataflow: a systolic array needs rows and columns"},
      {small("\"kind\": \"device\"", "\"kind\": \"cache\""),
       "it.json: /memory: 0 of kind device, need 1"},
      {small("\"banks\": 4", "\"banks\": 5"),
       "it.json: /memory/pad/banks: 5 banks of 16384 B, the capacity is 65536 B"},
      {small("\"launch\"",
             "\"constants\": {\"x\": {\"value\": 2, \"cite\": \"measured: here\"}}, \"launch\""),
       "it.json: /constants/x/fitted_to: is missing: to what was it fitted?"},
      {small("\"Abacus 1\"", "3"), "it.json: /name: must be a string"},
      {small("\"Abacus 1\"", "\"\""), "it.json: /name: 0 bytes, need 1 to 2000"},
      {small("\"dram\":", "\"D/R~\":"),
       "it.json: /memory/D~1R~0: a name has 1 to 64 lower-case letters, digits, '_' and '.'"},
      {small("\"dram\":", "\"pad\":"), "it.json: /: 'pad' is given twice"},
      {small("tessera.chip/1", "tessera.chip/2"), "it.json: /schema: must be 'tessera.chip/1'"},
      {"", "it.json: /: not a JSON object"},
      {"[]", "it.json: /: not a JSON object"},
      {std::string(100000, '['), "it.json: /: nested deeper than 16"},
      {std::string((1 << 20) + 1, ' '), "it.json: /: 1048577 bytes, at most 1048576"},
  };
  for (const auto& c : cases) {
    const auto chip = read(c.text);
    ASSERT_FALSE(chip) << c.message;
    EXPECT_EQ(chip.error().message, c.message);
    EXPECT_EQ(chip.error().code, Code::kInvalidArgument);
  }
}

TEST(ChipJson, NumericsFitTogether) {
  const std::string aligned = R"("fraction_bits": 24, "alignment": "toward_zero")";
  EXPECT_TRUE(
      read(with_numerics("fused", aligned + R"(, "sum_bits": 32, "parts": 2, "reach": 25)")));
  const struct {
    const char* order;
    std::string members, message;
  } cases[] = {
      {"fused", R"("fraction_bits": 24)", "alignment: is missing: addends lose bits"},
      {"tree", aligned, "fraction_bits: is for sums in order 'fused'"},
      {"fused", R"("sum_bits": 32)", "sum_bits: needs order 'fused' and fraction_bits"},
      {"fused", aligned + R"(, "reach": 25)", "reach: needs sum_bits"},
      {"fused", aligned + R"(, "sum_bits": 32, "parts": 3)",
       "parts: 3, need a divisor of group, 8"},
      {"fused", R"("operand_bits": 10)", "operand_rounding: is missing: operands lose bits"},
      {"fused", R"("overflow": ["wrap"])", "overflow/0: must be 'infinity' or 'saturate'"},
      {"fused", R"("saturated_results": ["f17"])",
       "saturated_results/0: no element type or mode 'f17'"},
      {"fused", R"("nan": "zero")", "nan: 'zero' is none of quiet, ones"},
  };
  for (const auto& c : cases) {
    const auto chip = read(with_numerics(c.order, c.members));
    ASSERT_FALSE(chip) << c.message;
    EXPECT_EQ(chip.error().message, "it.json: /numerics/bf16/" + c.message);
  }
}

TEST(ChipJson, TellsWhichOfTheFilesIsWrong) {
  const Files bases{{"small", std::string(kSmall)},
                    {"bad", small("1e10}", "0}")},
                    {"round", R"({"schema": "tessera.chip/1", "extends": "round"})"}};
  const auto message = [&](std::string_view text) {
    return read(std::string(text), bases).error().message;
  };
  EXPECT_EQ(message(R"({"schema": "tessera.chip/1", "extends": "bad", "name": "x"})"),
            "bad.json: /memory/dram/bytes_per_second: 0, need more than 0");
  EXPECT_EQ(
      message(derived(R"("cite": "assumed: x", "memory": {"dram": {"bytes_per_second": 0}})")),
      "it.json: /memory/dram/bytes_per_second: 0, need more than 0");
  EXPECT_EQ(message(derived(R"("cores": {"core": {"count": 9}})")),
            "it.json: /cores/core/count: has no source and grade: give 'cite' here or around it, "
            "as 'published: ...'");
  EXPECT_EQ(message(derived(R"("launch": null)")), "it.json: /launch: is missing");
  EXPECT_EQ(message(R"({"schema": "tessera.chip/1", "extends": "round"})"),
            "round.json: /extends: more than 8 files that extend each other");
  EXPECT_EQ(message(R"({"schema": "tessera.chip/1", "extends": "nothing"})"),
            "it.json: /extends: no chip 'nothing'");
  EXPECT_EQ(message(R"({"schema": "tessera.chip/1", "extends": 3})"),
            "it.json: /extends: must be a string");
}

TEST(ChipJson, TheSchemaInTheTreeIsThatOfTheReader) {
  const char* tree = std::getenv("TESSERA_SOURCE_DIR");
  if (!tree) GTEST_SKIP() << "TESSERA_SOURCE_DIR is not set";
  const auto file = read_file(std::string(tree) + "/data/chip.schema.json");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(*file, json_schema())
      << "write it again: tessera devices --schema > data/chip.schema.json";
}

}  // namespace
}  // namespace tessera::chip
