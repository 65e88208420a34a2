#include "tessera/hal/queue.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <vector>

#include "tessera/hal/device.h"

namespace tessera::hal {
namespace {

Command command(tessera_command_kind kind, const char* label, const CallSite& site) {
  Command c;
  c.kind = kind;
  c.line = site.line;
  c.label = label;
  c.site = site.file;
  return c;
}

// Points as the table takes them; few need no memory of their own.
class CPoints {
 public:
  explicit CPoints(size_t count) {
    if (count > few_.size()) many_.resize(count);
  }
  tessera_point* data() { return many_.empty() ? few_.data() : many_.data(); }

 private:
  std::array<tessera_point, 8> few_;
  std::vector<tessera_point> many_;
};

// A point of another device, seen here as a timeline of this one that reaches 1. Shared by the
// submit that makes it and the callback that it waits for.
struct Bridge {
  Bridge(const Device& here, const Point& there) : table(here.table()), remote(there) {}
  ~Bridge() {
    if (local != nullptr) table.timeline_destroy(local);
  }
  Bridge(const Bridge&) = delete;
  Bridge& operator=(const Bridge&) = delete;

  const tessera_backend& table;
  const Point remote;
  tessera_timeline* local = nullptr;
};
using BridgePtr = std::shared_ptr<Bridge>;

// `remote` passed or failed: so does `local`.
void arrive(void* context, const tessera_failure* f) {
  const std::unique_ptr<BridgePtr> b(static_cast<BridgePtr*>(context));
  const tessera_backend& t = (*b)->table;
  f ? t.timeline_fail((*b)->local, f, nullptr) : t.timeline_signal((*b)->local, 1, nullptr);
}

// `local` passed or failed: so does `remote`.
void depart(void* context, const tessera_failure* f) {
  const std::unique_ptr<BridgePtr> b(static_cast<BridgePtr*>(context));
  const Point& r = (*b)->remote;
  const tessera_backend& t = r.device->table();
  f ? t.timeline_fail(r.timeline, f, nullptr) : t.timeline_signal(r.timeline, r.value, nullptr);
}

Result<BridgePtr> bridge(const Device& here, const Point& remote, bool incoming) {
  auto b = std::make_shared<Bridge>(here, remote);
  ErrorSlot e;
  TRY(status_from_c(b->table.timeline_create(here.handle(), 0, &b->local, &e), e));
  const tessera_backend& t = incoming ? remote.device->table() : b->table;
  tessera_timeline* const watched = incoming ? remote.timeline : b->local;
  auto context = std::make_unique<BridgePtr>(b);
  TRY(status_from_c(t.timeline_notify(watched, incoming ? remote.value : 1,
                                      incoming ? arrive : depart, context.get(), &e),
                    e));
  (void)context.release();
  return b;
}

// The points as `here` takes them; bridges to those of other devices are kept in `bridges`.
Status localize(const Device& here, std::span<const Point> points, bool incoming,
                tessera_point* out, std::vector<BridgePtr>& bridges) {
  for (size_t i = 0; i < points.size(); ++i) {
    out[i] = {points[i].timeline, points[i].value};
    if (points[i].device == &here) continue;
    TRY_ASSIGN(BridgePtr b, bridge(here, points[i], incoming));
    out[i] = {b->local, 1};
    bridges.push_back(std::move(b));
  }
  return {};
}

void fail_timeline(const tessera_backend& t, tessera_timeline* timeline, const Error& e) {
  const Failure cause{.code = e.code, .message = e.message};
  const tessera_failure f = view(cause);
  t.timeline_fail(timeline, &f, nullptr);
}

Status check_aligned(const DeviceInfo& info, const Slice& s) {
  if (((s.offset_bytes | s.size_bytes) & (info.copy_alignment_bytes - 1)) == 0) return {};
  return error(Code::kInvalidArgument, "bytes {} + {}: this device copies multiples of {}",
               s.offset_bytes, s.size_bytes, info.copy_alignment_bytes);
}

Status check_launch(const DeviceInfo& info, const Command& c) {
  const tessera_launch_command& l = c.as.launch;
  if (l.executable == nullptr)
    return error(Code::kInvalidArgument, "a launch without an executable");
  if (info.max_launch_ranges != 0 && l.range_count > info.max_launch_ranges)
    return error(Code::kOutOfRange, "a launch with {} ranges, the device takes {}", l.range_count,
                 info.max_launch_ranges);
  if (info.max_constants_bytes != 0 && l.constants_bytes > info.max_constants_bytes)
    return error(Code::kOutOfRange, "a launch with {} bytes of constants, the device takes {}",
                 l.constants_bytes, info.max_constants_bytes);
  if (info.range_alignment_bytes == 1) return {};
  for (uint32_t i = 0; i < l.range_count; ++i)
    if ((l.ranges[i].offset_bytes & (info.range_alignment_bytes - 1)) != 0)
      return error(Code::kInvalidArgument,
                   "range {} of a launch is at byte {}, need a multiple of {}", i,
                   l.ranges[i].offset_bytes, info.range_alignment_bytes);
  return {};
}

Status check_copy(const DeviceInfo& info, const Command& c) {
  const Slice &from = c.as.copy.source, &to = c.as.copy.target;
  if (from.size_bytes != to.size_bytes)
    return error(Code::kInvalidArgument, "a copy of {} bytes into {}", from.size_bytes,
                 to.size_bytes);
  const bool apart = from.slab != to.slab ||
                     from.offset_bytes + from.size_bytes <= to.offset_bytes ||
                     to.offset_bytes + to.size_bytes <= from.offset_bytes;
  if (!apart)
    return error(Code::kInvalidArgument,
                 "a copy of {} bytes from byte {} to byte {} overlaps itself", from.size_bytes,
                 from.offset_bytes, to.offset_bytes);
  TRY(check_aligned(info, from));
  return check_aligned(info, to);
}

Status check_transfer(const DeviceInfo& info, const Command& c) {
  return check_aligned(info, c.as.transfer.device);
}

Status check_fill(const DeviceInfo& info, const Command& c) {
  const tessera_fill_command& f = c.as.fill;
  if (!std::has_single_bit(f.pattern_bytes) || f.pattern_bytes > 8)
    return error(Code::kInvalidArgument, "a fill pattern of {} bytes, need 1, 2, 4 or 8",
                 f.pattern_bytes);
  if (f.target.size_bytes % f.pattern_bytes != 0)
    return error(Code::kInvalidArgument, "a fill of {} bytes, need a multiple of the pattern's {}",
                 f.target.size_bytes, f.pattern_bytes);
  return check_aligned(info, f.target);
}

Status check_nothing(const DeviceInfo&, const Command&) { return {}; }

// Indexed by tessera_command_kind.
constexpr std::array<Status (*)(const DeviceInfo&, const Command&), TESSERA_COMMAND_KINDS> kChecks =
    {check_launch, check_copy,    check_transfer, check_transfer,
     check_fill,   check_nothing, check_nothing};

}  // namespace

Command launch(const Launch& l) {
  Command c = command(TESSERA_COMMAND_LAUNCH, l.label, l.site);
  c.as.launch = {.executable = l.executable ? l.executable->handle() : nullptr,
                 .entry = l.entry,
                 .grid = l.grid,
                 .range_count = static_cast<uint32_t>(l.ranges.size()),
                 .constants_bytes = static_cast<uint32_t>(l.constants.size()),
                 .ranges = l.ranges.data(),
                 .constants = l.constants.data()};
  return c;
}

Command copy(Slice source, Slice target, const char* label, CallSite site) {
  Command c = command(TESSERA_COMMAND_COPY, label, site);
  c.as.copy = {source, target};
  return c;
}

Command upload(const void* source, Slice target, const char* label, CallSite site) {
  Command c = command(TESSERA_COMMAND_UPLOAD, label, site);
  c.as.transfer = {target, const_cast<void*>(source)};
  return c;
}

Command download(Slice source, void* target, const char* label, CallSite site) {
  Command c = command(TESSERA_COMMAND_DOWNLOAD, label, site);
  c.as.transfer = {source, target};
  return c;
}

Command fill(Slice target, uint64_t pattern, uint32_t pattern_bytes, const char* label,
             CallSite site) {
  Command c = command(TESSERA_COMMAND_FILL, label, site);
  c.as.fill = {target, pattern, pattern_bytes, 0};
  return c;
}

Command host_call(int32_t (*call)(void*, tessera_error*), void* context, const char* label,
                  CallSite site) {
  Command c = command(TESSERA_COMMAND_HOST, label, site);
  c.as.host = {call, context};
  return c;
}

Command timestamp(uint64_t* ns, CallSite site) {
  Command c = command(TESSERA_COMMAND_TIMESTAMP, nullptr, site);
  c.as.timestamp = {ns};
  return c;
}

Status Queue::check(const Command& c) const {
  if (c.kind >= kChecks.size())
    return error(Code::kInvalidArgument, "a command of kind {}", c.kind);
  return kChecks[c.kind](device_->info(), c);
}

Result<uint64_t> Queue::submit(std::span<const Command> commands, std::span<const Point> waits,
                               std::span<const Point> signals) {
  uint64_t number = 0;
  std::vector<BridgePtr> incoming, outgoing;
  const auto attempt = [&]() -> Status {
    for (const Command& c : commands) TRY(check(c));
    CPoints c_waits(waits.size()), c_signals(signals.size());
    TRY(localize(*device_, waits, true, c_waits.data(), incoming));
    TRY(localize(*device_, signals, false, c_signals.data(), outgoing));
    const tessera_submission s = {.struct_size = sizeof s,
                                  .wait_count = static_cast<uint32_t>(waits.size()),
                                  .signal_count = static_cast<uint32_t>(signals.size()),
                                  .command_count = static_cast<uint32_t>(commands.size()),
                                  .command_bytes = sizeof(Command),
                                  .reserved = 0,
                                  .waits = c_waits.data(),
                                  .signals = c_signals.data(),
                                  .commands = commands.data()};
    ErrorSlot e;
    return status_from_c(owned_.table()->queue_submit(owned_.get(), &s, &number, &e), e);
  };
  Status status = attempt();
  if (status) return number;
  for (const Point& p : signals) fail_timeline(p.device->table(), p.timeline, status.error());
  for (const BridgePtr& b : outgoing) fail_timeline(b->table, b->local, status.error());
  return error(std::move(status.error()));
}

Status Queue::recover() {
  ErrorSlot e;
  return status_from_c(owned_.table()->queue_recover(owned_.get(), &e), e);
}

}  // namespace tessera::hal
