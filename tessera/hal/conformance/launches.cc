// Launches: grids, parts of buffers, many ranges, what must be refused.
#include "tessera/hal/conformance/case.h"

namespace tessera::hal::conformance {
namespace {

Status computes_every_grid(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  for (size_t n : {1, 2, 7, 64, 1000, 65'537}) {
    std::vector<float> x(n), twice(n);
    for (size_t i = 0; i < n; ++i) twice[i] = 2 * (x[i] = static_cast<float>(i));
    TRY_ASSIGN(const Buffer a, bench->buffer_of(x));
    TRY_ASSIGN(const Buffer c, bench->device().allocate(a.size()));
    TRY(bench->run({bench->add(a.slice(), a.slice(), c.slice())}));
    TRY_ASSIGN(const std::vector<float> got, bench->values_of<float>(c.slice()));
    CHECK(got == twice, "grid {}", n);
  }
  return {};
}

Status runs_nothing_for_an_empty_grid(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  return bench->run({launch({.executable = &bench->executable(), .entry = 2, .grid = 0})});
}

Status computes_on_parts(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  const auto step =
      static_cast<int64_t>(std::max<uint64_t>(bench->device().info().range_alignment_bytes, 16));
  const auto count = static_cast<size_t>(step / 4);
  std::vector<float> x(4 * count);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  TRY_ASSIGN(const Buffer b, bench->buffer_of(x));
  TRY_ASSIGN(const Slice first, b.slice(Bytes(0), Bytes(step)));
  TRY_ASSIGN(const Slice second, b.slice(Bytes(step), Bytes(step)));
  TRY_ASSIGN(const Slice third, b.slice(Bytes(2 * step), Bytes(step)));
  TRY(bench->run({bench->add(first, second, third)}));
  TRY_ASSIGN(const std::vector<float> got, bench->values_of<float>(b.slice()));
  for (size_t i = 0; i < count; ++i) x[2 * count + i] = x[i] + x[count + i];
  CHECK(got == x);
  return {};
}

Status takes_many_ranges(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(const Buffer a, bench->buffer_of<float>({1, 2, 3, 4}));
  const uint32_t most = bench->device().info().max_launch_ranges;
  std::vector<Slice> ranges(most == 0 ? 64 : most, a.slice());
  TRY(bench->run(
      {launch({.executable = &bench->executable(), .entry = 0, .grid = 4, .ranges = ranges})}));
  TRY_ASSIGN(const std::vector<float> got, bench->values_of<float>(a.slice()));
  CHECK(got == std::vector<float>({2, 4, 6, 8}));
  if (most == 0) return {};
  ranges.push_back(a.slice());
  CHECK_FAILS(Code::kOutOfRange,
              bench->run({launch({.executable = &bench->executable(), .ranges = ranges})}));
  return {};
}

Status runs_commands_in_turn(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  const std::vector<float> one(256, 1.0f);
  std::vector<float> got(256);
  TRY_ASSIGN(const Buffer a, bench->device().allocate(Bytes(1024)));
  TRY_ASSIGN(const Buffer b, bench->device().allocate(Bytes(1024)));
  TRY(bench->run({upload(one.data(), a.slice()), bench->add(a.slice(), a.slice(), a.slice()),
                  copy(a.slice(), b.slice()), bench->add(a.slice(), b.slice(), b.slice()),
                  fill(a.slice(), 0, 4), download(b.slice(), got.data())}));
  CHECK(got == std::vector<float>(256, 4.0f));
  return {};
}

Status refuses_absent_entries(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  CHECK_FAILS(Code::kOutOfRange,
              bench->run({launch({.executable = &bench->executable(), .entry = 3})}));
  CHECK_FAILS(Code::kInvalidArgument, bench->run({launch({.entry = 0})}));
  Command unknown = bench->trap();
  unknown.kind = 1000;
  CHECK_FAILS(Code::kInvalidArgument, bench->run({unknown}));
  return {};
}

constexpr Case kCases[] = {
    {"launches", "computes_every_grid", computes_every_grid},
    {"launches", "runs_nothing_for_an_empty_grid", runs_nothing_for_an_empty_grid},
    {"launches", "computes_on_parts", computes_on_parts},
    {"launches", "takes_many_ranges", takes_many_ranges},
    {"launches", "runs_commands_in_turn", runs_commands_in_turn},
    {"launches", "refuses_absent_entries", refuses_absent_entries},
};

}  // namespace

std::span<const Case> launch_cases() { return kCases; }

}  // namespace tessera::hal::conformance
