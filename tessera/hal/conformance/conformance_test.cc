// Runs every case on every subject, and holds each backend to its ledger.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "tessera/chip/catalog.h"
#include "tessera/hal/conformance/case.h"
#include "tessera/hal/conformance/ledger.h"
#include "tessera/hal/cpu/backend.h"
#include "tessera/hal/faulty/faulty.h"
#include "tessera/hal/null/backend.h"
#include "tessera/hal/sim/backend.h"

namespace tessera::hal::conformance {
namespace {

Result<std::unique_ptr<Backend>> load_null() { return Backend::load(null::plugin_main); }
Result<std::unique_ptr<Backend>> load_cpu() { return Backend::load(cpu::plugin_main); }

// The legal misbehaviour only: all cases must still pass.
Result<std::unique_ptr<Backend>> load_faulty_cpu() {
  TRY_ASSIGN(auto inner, load_cpu());
  return faulty::wrap(std::move(inner), {.seed = 11, .delayed_submission = 0.3, .reorder = true});
}

Result<std::unique_ptr<Backend>> load_null_plugin() {
  return Backend::open(TESSERA_TEST_PLUGINS "/null.so");
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A plugin from outside this repository: see README.md.
std::optional<Subject> stranger() {
  const std::string path = variable("TESSERA_CONFORMANCE_PLUGIN");
  if (path.empty()) return std::nullopt;
  ConformanceExecutables executables = host_conformance_executables();
  if (const std::string format = variable("TESSERA_CONFORMANCE_FORMAT"); !format.empty()) {
    std::ifstream file(variable("TESSERA_CONFORMANCE_EXECUTABLE"), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
    executables = {.format = format, .bytes = {first, first + bytes.size()}};
  }
  return Subject{"plugin", [path] { return Backend::open(path); }, {}, executables};
}

// Chips of each make: with vector cores apart, with one memory for all units, with registers.
void add_simulated(std::vector<Subject>& all) {
  for (const char* id : {"ascend910b2", "ascend310p3", "tpu_v5e", "h100_sxm"}) {
    const auto load = [id]() -> Result<std::unique_ptr<Backend>> {
      TRY_ASSIGN(chip::Chip chip, chip::Catalog().load(id));
      return sim::load({std::move(chip)});
    };
    const auto chip = chip::Catalog().load(id);
    auto executables = chip ? sim::conformance_executables(*chip)
                            : Result<ConformanceExecutables>(tl::unexpected(chip.error()));
    all.push_back({fmt::format("sim-{}", id),
                   load,
                   {{"threads", "2"}},
                   executables.value_or(ConformanceExecutables())});
  }
}

// A new backend adds a line. What follows '-' tells variants of one backend, which share its
// ledger, apart.
std::vector<Subject> subjects() {
  std::vector<Subject> all = {
      {"null", load_null, {}, host_conformance_executables()},
      {"null-plugin", load_null_plugin, {}, host_conformance_executables()},
      {"cpu-1", load_cpu, {{"threads", "1"}}, host_conformance_executables()},
      {"cpu-2", load_cpu, {{"threads", "2"}}, host_conformance_executables()},
      {"faulty-cpu-1", load_faulty_cpu, {{"threads", "1"}}, host_conformance_executables()},
      {"faulty-cpu-2", load_faulty_cpu, {{"threads", "2"}}, host_conformance_executables()},
  };
  if (const ConformanceExecutables elf = elf_conformance_executables(); !elf.format.empty()) {
    all.push_back({"cpu-1-elf", load_cpu, {{"threads", "1"}}, elf});
    all.push_back({"cpu-2-elf", load_cpu, {{"threads", "2"}}, elf});
  }
  add_simulated(all);
  if (std::optional<Subject> s = stranger()) all.push_back(std::move(*s));
  return all;
}

Result<Ledger> ledger_of(const Subject& subject) {
  if (subject.name == "plugin") {
    const std::string path = variable("TESSERA_CONFORMANCE_LEDGER");
    return path.empty() ? Ledger() : read_ledger(path);
  }
  const std::string root = variable("TESSERA_SOURCE_DIR");
  const std::string backend = subject.name.substr(0, subject.name.find('-'));
  return read_ledger((root.empty() ? "." : root) + "/tessera/hal/" + backend +
                     "/conformance.ledger");
}

class CaseTest : public testing::Test {
 public:
  CaseTest(Subject subject, Case c) : subject_(std::move(subject)), case_(c) {}

  void TestBody() override {
    const Result<Ledger> ledger = ledger_of(subject_);
    ASSERT_TRUE(ledger) << ledger.error().message;
    const auto gap = ledger->find(std::string(case_.topic) + "." + case_.name);
    const Status status = case_.run(subject_);
    if (gap == ledger->end()) {
      EXPECT_TRUE(status) << status.error().message;
    } else if (status) {
      FAIL() << "this gap has closed; take it out of the ledger: " << gap->second;
    } else {
      GTEST_SKIP() << "a gap: " << gap->second;
    }
  }

 private:
  Subject subject_;
  Case case_;
};

TEST(Ledger, NamesOnlyCasesThatExist) {
  std::set<std::string> names;
  for (const Case& c : all_cases())
    EXPECT_TRUE(names.insert(std::string(c.topic) + "." + c.name).second);
  for (const Subject& s : subjects()) {
    const Result<Ledger> ledger = ledger_of(s);
    ASSERT_TRUE(ledger) << ledger.error().message;
    for (const auto& [name, reason] : *ledger) EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Ledger, IsChecked) {
  EXPECT_EQ(parse_ledger("# none\n\n")->size(), 0u);
  EXPECT_EQ(parse_ledger("loss.refuses_new_work: the driver hangs\n")->at("loss.refuses_new_work"),
            "the driver hangs");
  EXPECT_FALSE(parse_ledger("loss.refuses_new_work\n"));
  EXPECT_FALSE(parse_ledger("a.b: c\na.b: d\n"));
}

}  // namespace

void register_cases() {
  for (const Subject& s : subjects())
    for (const Case& c : all_cases())
      testing::RegisterTest((s.name + "." + c.topic).c_str(), c.name, nullptr, nullptr, __FILE__,
                            __LINE__, [s, c]() -> testing::Test* { return new CaseTest(s, c); });
}

}  // namespace tessera::hal::conformance

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  tessera::hal::conformance::register_cases();
  return RUN_ALL_TESTS();
}
