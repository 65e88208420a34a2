#include "tessera/hal/conformance/case.h"

namespace tessera::hal::conformance {

Result<std::unique_ptr<Bench>> Bench::open(const Subject& subject) {
  auto b = std::make_unique<Bench>();
  TRY_ASSIGN(b->backend_, subject.load());
  TRY_ASSIGN(b->device_, Device::open(*b->backend_, 0, subject.options));
  const ConformanceExecutables& x = subject.executables;
  if (x.format == "host_fn") {
    TRY_ASSIGN(b->executable_, b->device_->load(x.functions));
  } else {
    const std::vector<std::string> names = {"add", "spin", "trap"};
    TRY_ASSIGN(b->executable_, b->device_->load(x.format, x.bytes, names));
  }
  return b;
}

Command Bench::add(Slice a, Slice b, Slice c, const char* label) {
  slices_.push_back(std::unique_ptr<Slice[]>(new Slice[3]{a, b, c}));
  return launch({.executable = &executable_,
                 .entry = 0,
                 .grid = static_cast<uint32_t>(c.size_bytes / sizeof(float)),
                 .ranges = std::span(slices_.back().get(), 3),
                 .label = label});
}

Command Bench::spin(std::chrono::microseconds time, Slice counter, const char* label) {
  slices_.push_back(std::unique_ptr<Slice[]>(new Slice[1]{counter}));
  constants_.push_back(std::make_unique<uint64_t>(static_cast<uint64_t>(time.count())));
  return launch({.executable = &executable_,
                 .entry = 1,
                 .ranges = std::span(slices_.back().get(), 1),
                 .constants = std::as_bytes(std::span(constants_.back().get(), 1)),
                 .label = label});
}

Command Bench::trap(const char* label) {
  return launch({.executable = &executable_, .entry = 2, .label = label});
}

Status Bench::run(std::initializer_list<Command> commands) {
  TRY_ASSIGN(Queue queue, device_->queue());
  TRY_ASSIGN(Timeline done, device_->timeline());
  TRY(queue.submit(commands, {}, {done.at(1)}));
  return done.wait(1, kHang);
}

Result<Buffer> Bench::upload_new(std::span<const std::byte> bytes) {
  TRY_ASSIGN(Buffer b, device_->allocate(Bytes(static_cast<int64_t>(bytes.size()))));
  TRY(run({upload(bytes.data(), b.slice())}));
  return b;
}

Status Bench::download_to(Slice from, std::span<std::byte> to) {
  return run({download(from, to.data())});
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const std::span<const Case> topic :
       {loading_cases(), memory_cases(), copy_cases(), launch_cases(), queue_cases(),
        failure_cases(), event_cases(), allocator_cases(), loss_cases()})
    all.insert(all.end(), topic.begin(), topic.end());
  return all;
}

}  // namespace tessera::hal::conformance
