// Uploads, downloads, copies and fills of whole buffers and parts, and what must be refused.
#include <algorithm>
#include <array>
#include <numeric>

#include "tessera/hal/conformance/case.h"

namespace tessera::hal::conformance {
namespace {

std::vector<uint8_t> counting(size_t size) {
  std::vector<uint8_t> v(size);
  std::iota(v.begin(), v.end(), uint8_t{1});
  return v;
}

Result<Slice> part(const Buffer& b, int64_t offset, int64_t size) {
  return b.slice(Bytes(offset), Bytes(size));
}

Status moves_there_and_back(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  const size_t word = bench->device().info().copy_alignment_bytes;
  for (size_t words : {size_t{0}, size_t{1}, size_t{7}, size_t{1000}, size_t{3'000'017} / word}) {
    const std::vector<uint8_t> sent = counting(words * word);
    TRY_ASSIGN(const Buffer b, bench->buffer_of(sent));
    TRY_ASSIGN(const std::vector<uint8_t> back, bench->values_of<uint8_t>(b.slice()));
    CHECK(back == sent, "{} bytes", sent.size());
  }
  return {};
}

Status copies_parts(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  const auto word = static_cast<int64_t>(bench->device().info().copy_alignment_bytes);
  const int64_t size = 64 * word;
  const std::vector<uint8_t> from = counting(static_cast<size_t>(size));
  std::vector<uint8_t> expected(from.size(), 0xee);
  TRY_ASSIGN(const Buffer a, bench->buffer_of(from));
  TRY_ASSIGN(const Buffer b, bench->buffer_of(expected));
  for (const auto& [source, target, words] :
       {std::array<int64_t, 3>{0, 1, 1}, {5, 9, 13}, {63, 63, 1}, {2, 30, 0}, {40, 23, 7}}) {
    TRY_ASSIGN(const Slice s, part(a, source * word, words * word));
    TRY_ASSIGN(const Slice t, part(b, target * word, words * word));
    TRY(bench->run({copy(s, t)}));
    std::copy_n(from.begin() + source * word, words * word, expected.begin() + target * word);
    TRY_ASSIGN(const std::vector<uint8_t> got, bench->values_of<uint8_t>(b.slice()));
    CHECK(got == expected, "{} words from {} to {}", words, source, target);
  }
  return {};
}

Status copies_within_a_buffer(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(const Buffer b, bench->buffer_of<uint64_t>({1, 2, 3, 4}));
  TRY_ASSIGN(const Slice low, part(b, 0, 16));
  TRY_ASSIGN(const Slice high, part(b, 16, 16));
  TRY_ASSIGN(const Slice middle, part(b, 8, 16));
  TRY(bench->run({copy(low, high)}));
  TRY_ASSIGN(const std::vector<uint64_t> got, bench->values_of<uint64_t>(b.slice()));
  CHECK(got == std::vector<uint64_t>({1, 2, 1, 2}));
  CHECK_FAILS(Code::kInvalidArgument, bench->run({copy(low, middle)}));
  CHECK_FAILS(Code::kInvalidArgument, bench->run({copy(low, b.slice())}));
  return {};
}

Status fills_parts(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  constexpr uint64_t kPattern = 0x8877665544332211;
  for (uint32_t pattern_bytes : {1u, 2u, 4u, 8u}) {
    std::vector<uint8_t> expected(256, 0);
    TRY_ASSIGN(const Buffer b, bench->buffer_of(expected));
    TRY_ASSIGN(const Slice s, part(b, 24, 160));
    TRY(bench->run({fill(s, kPattern, pattern_bytes)}));
    for (size_t i = 0; i < 160; ++i)
      expected[24 + i] = static_cast<uint8_t>(kPattern >> (8 * (i % pattern_bytes)));
    TRY_ASSIGN(const std::vector<uint8_t> got, bench->values_of<uint8_t>(b.slice()));
    CHECK(got == expected, "pattern of {} bytes", pattern_bytes);
  }
  return {};
}

Status refuses_bad_fills(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(const Buffer b, bench->device().allocate(Bytes(64)));
  TRY_ASSIGN(const Slice twelve, part(b, 0, 12));
  for (uint32_t pattern_bytes : {0u, 3u, 16u})
    CHECK_FAILS(Code::kInvalidArgument, bench->run({fill(b.slice(), 1, pattern_bytes)}));
  CHECK_FAILS(Code::kInvalidArgument, bench->run({fill(twelve, 1, 8)}));
  return {};
}

Status refuses_misaligned_parts(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  const DeviceInfo& info = bench->device().info();
  TRY_ASSIGN(const Buffer b, bench->device().allocate(Bytes(1024)));
  uint8_t host[64] = {};
  const auto word = static_cast<int64_t>(info.copy_alignment_bytes);
  if (word > 1) {
    TRY_ASSIGN(const Slice odd_start, part(b, word / 2, word));
    TRY_ASSIGN(const Slice odd_size, part(b, 0, word / 2));
    CHECK_FAILS(Code::kInvalidArgument, bench->run({upload(host, odd_start)}));
    CHECK_FAILS(Code::kInvalidArgument, bench->run({download(odd_size, host)}));
    CHECK_FAILS(Code::kInvalidArgument, bench->run({fill(odd_size, 0, 1)}));
  }
  const auto step = static_cast<int64_t>(info.range_alignment_bytes);
  TRY_ASSIGN(const Slice aligned, part(b, std::max<int64_t>(step, 4), 16));
  TRY(bench->run({bench->add(aligned, aligned, aligned)}));
  if (step > 1) {
    TRY_ASSIGN(const Slice odd, part(b, step / 2, 16));
    CHECK_FAILS(Code::kInvalidArgument, bench->run({bench->add(aligned, aligned, odd)}));
  }
  return {};
}

Status reads_arrays_at_submit(const Subject& subject) {
  TRY_ASSIGN(const auto bench, Bench::open(subject));
  TRY_ASSIGN(Queue queue, bench->device().queue());
  TRY_ASSIGN(HostEvent gate, HostEvent::create(bench->device()));
  TRY_ASSIGN(const Timeline done, bench->device().timeline());
  TRY_ASSIGN(const Buffer counter, bench->buffer_of<uint32_t>({0, 0, 0, 0}));
  {
    uint64_t constants[] = {1};
    Slice ranges[] = {counter.slice()};
    std::string label = "a label that dies";
    std::vector<Command> commands = {launch({.executable = &bench->executable(),
                                             .entry = 1,
                                             .ranges = ranges,
                                             .constants = std::as_bytes(std::span(constants)),
                                             .label = label.c_str()})};
    const Point waits[] = {gate.point()}, signals[] = {done.at(1)};
    TRY(queue.submit(commands, waits, signals));
    constants[0] = UINT64_MAX;
    ranges[0] = {};
    commands[0] = {};
    label.assign("overwritten by now");
  }
  TRY(gate.set());
  TRY(done.wait(1, kHang));
  TRY_ASSIGN(const std::vector<uint32_t> got, bench->values_of<uint32_t>(counter.slice()));
  CHECK(got[0] == 1);
  return {};
}

constexpr Case kCases[] = {
    {"copies", "moves_there_and_back", moves_there_and_back},
    {"copies", "copies_parts", copies_parts},
    {"copies", "copies_within_a_buffer", copies_within_a_buffer},
    {"copies", "fills_parts", fills_parts},
    {"copies", "refuses_bad_fills", refuses_bad_fills},
    {"copies", "refuses_misaligned_parts", refuses_misaligned_parts},
    {"copies", "reads_arrays_at_submit", reads_arrays_at_submit},
};

}  // namespace

std::span<const Case> copy_cases() { return kCases; }

}  // namespace tessera::hal::conformance
