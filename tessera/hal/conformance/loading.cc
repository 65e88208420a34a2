// Loading, describing and opening.
#include <bit>

#include "tessera/hal/conformance/case.h"

namespace tessera::hal::conformance {
namespace {

Status describes_itself(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  const DeviceInfo& info = bench->device().info();
  CHECK(!info.name.empty());
  CHECK(!info.formats.empty());
  CHECK(info.compute_units >= 1);
  CHECK(info.default_space < info.spaces.size());
  for (const MemorySpace& s : info.spaces) {
    CHECK(!s.name.empty());
    CHECK(std::has_single_bit(static_cast<uint64_t>(s.alignment.value)), "alignment {}",
          s.alignment.value);
  }
  CHECK(std::has_single_bit(info.range_alignment_bytes));
  CHECK(std::has_single_bit(info.copy_alignment_bytes));
  TRY_ASSIGN(const DeviceInfo closed, describe_device(bench->backend(), 0));
  CHECK(closed.name == info.name);
  CHECK(closed.spaces.size() == info.spaces.size());
  return bench->device().status();
}

Status counts_its_devices(const Subject& subject) {
  TRY_ASSIGN(const auto backend, subject.load());
  TRY_ASSIGN(const uint32_t count, backend->device_count());
  CHECK(count >= 1);
  CHECK(!Device::open(*backend, count, subject.options), "device {} of {}", count, count);
  CHECK(!describe_device(*backend, count));
  return {};
}

Status refuses_unknown_options(const Subject& subject) {
  TRY_ASSIGN(const auto backend, subject.load());
  Options options = subject.options;
  options.push_back({"no_such_option", "1"});
  CHECK_FAILS(Code::kInvalidArgument, Device::open(*backend, 0, options));
  return {};
}

Status opens_side_by_side(const Subject& subject) {
  TRY_ASSIGN(const auto a, Bench::open(subject));
  TRY_ASSIGN(const auto b, Bench::open(subject));
  TRY_ASSIGN(const Buffer x, a->buffer_of<float>({1, 2, 3, 4}));
  TRY_ASSIGN(const Buffer y, b->buffer_of<float>({5, 6, 7, 8}));
  TRY(a->run({a->add(x.slice(), x.slice(), x.slice())}));
  TRY(b->run({b->add(y.slice(), y.slice(), y.slice())}));
  TRY_ASSIGN(const std::vector<float> xs, a->values_of<float>(x.slice()));
  TRY_ASSIGN(const std::vector<float> ys, b->values_of<float>(y.slice()));
  CHECK(xs == std::vector<float>({2, 4, 6, 8}));
  CHECK(ys == std::vector<float>({10, 12, 14, 16}));
  return {};
}

Status loads_again(const Subject& subject) {
  for (int i = 0; i < 3; ++i) {
    TRY_ASSIGN(const auto bench, Bench::open(subject));
    TRY(bench->run({}));
  }
  return {};
}

Status refuses_unknown_formats(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  const std::vector<std::byte> bytes(16);
  const std::vector<std::string> names = {"add"};
  const auto result = bench->device().load("no_such_format", bytes, names);
  CHECK_FAILS(Code::kUnimplemented, result);
  CHECK(result.error().message.find("no_such_format") != std::string::npos, "{}",
        result.error().message);
  return {};
}

Status tells_the_time(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(const uint64_t before, bench->device().clock_ns());
  TRY_ASSIGN(const uint64_t after, bench->device().clock_ns());
  CHECK(before <= after, "{} then {}", before, after);
  return {};
}

constexpr Case kCases[] = {
    {"loading", "describes_itself", describes_itself},
    {"loading", "counts_its_devices", counts_its_devices},
    {"loading", "refuses_unknown_options", refuses_unknown_options},
    {"loading", "opens_side_by_side", opens_side_by_side},
    {"loading", "loads_again", loads_again},
    {"loading", "refuses_unknown_formats", refuses_unknown_formats},
    {"loading", "tells_the_time", tells_the_time},
};

}  // namespace

std::span<const Case> loading_cases() { return kCases; }

}  // namespace tessera::hal::conformance
