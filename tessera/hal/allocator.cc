#include "tessera/hal/allocator.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tessera::hal {
namespace {

enum class Use : uint8_t { kFree, kHeld, kPending };

struct Slab;

// Neighbours in the slab are linked in the order of their offsets.
struct Block {
  Slab* slab;
  uint64_t offset;
  uint64_t size;
  Use use = Use::kFree;
  uint64_t requested = 0;
  std::string tag = {};
  std::vector<uint64_t> awaited = {};  // timeline values
  size_t outstanding = 0;              // points not settled
  Block* before = nullptr;
  Block* after = nullptr;
};

struct Slab {
  uint64_t id;
  Buffer buffer;
  Block* first;
};

// Smallest first; then the oldest slab, so that young ones can be given back.
struct BestFit {
  bool operator()(const Block* a, const Block* b) const {
    return std::tuple(a->size, a->slab->id, a->offset) <
           std::tuple(b->size, b->slab->id, b->offset);
  }
};

}  // namespace

struct Allocator::State : BlockOwner, std::enable_shared_from_this<State> {
  State(Device& d, const AllocatorOptions& o)
      : device(d),
        space(o.space.value_or(d.info().default_space)),
        slab_bytes(static_cast<uint64_t>(std::max<int64_t>(o.slab.value, 1))),
        limit(static_cast<uint64_t>(std::max<int64_t>(o.limit.value, 0))) {
    const auto alignment = static_cast<uint64_t>(
        space < d.info().spaces.size() ? d.info().spaces[space].alignment.value : 1);
    granule = std::max(
        {alignment, d.info().range_alignment_bytes, d.info().copy_alignment_bytes, uint64_t{256}});
  }

  ~State() override {
    for (auto& [id, slab] : slabs)
      for (Block* b = slab->first; b != nullptr;) delete std::exchange(b, b->after);
  }

  Result<Buffer> allocate(uint64_t size, const AllocateOptions& options);
  void release(void* block, std::vector<Point> uses) override;
  uint64_t trim();
  AllocatorStatistics statistics() const;

  // With the lock held:
  Block* take(uint64_t size);
  Status grow(uint64_t size);
  Status new_slab(uint64_t size);
  void split(Block* b, uint64_t size);
  void free(Block* b);
  Block* merge(Block* left, Block* right);
  uint64_t trim_locked();
  bool has_pending() const { return pending > 0; }
  Error explain(uint64_t size, std::string_view tag, const Error& device_says) const;

  Device& device;
  const uint32_t space;
  const uint64_t slab_bytes;
  const uint64_t limit;
  uint64_t granule;

  mutable std::mutex mutex;
  std::condition_variable freed;
  std::set<Block*, BestFit> holes;
  std::map<uint64_t, std::unique_ptr<Slab>> slabs;
  uint64_t next_slab = 0;
  uint64_t held = 0, requested = 0, peak_held = 0, pending = 0, reserved = 0, peak_reserved = 0;
  int64_t buffers = 0, allocations = 0, slab_allocations = 0, failures = 0;
};

Result<Buffer> Allocator::State::allocate(uint64_t size, const AllocateOptions& options) {
  if (size > INT64_MAX - granule)
    return error(Code::kResourceExhausted, "a buffer of {} bytes", size);
  const uint64_t rounded = (std::max<uint64_t>(size, 1) + granule - 1) / granule * granule;
  const auto deadline = std::chrono::steady_clock::now() + options.patience;
  std::unique_lock lock(mutex);
  Block* block = take(rounded);
  while (block == nullptr) {
    const Status grown = grow(rounded);
    if (grown) {
      block = take(rounded);
    } else if (!has_pending() || options.patience.count() <= 0 ||
               freed.wait_until(lock, deadline) == std::cv_status::timeout) {
      if ((block = take(rounded)) != nullptr) break;
      ++failures;
      return error(explain(size, options.tag, grown.error()));
    } else {
      block = take(rounded);
    }
  }
  block->use = Use::kHeld;
  block->requested = size;
  block->tag = options.tag;
  ++allocations;
  ++buffers;
  requested += size;
  held += block->size;
  peak_held = std::max(peak_held, held);
  const Buffer& slab = block->slab->buffer;
  Buffer b;
  b.table_ = &device.table();
  b.slice_ = {slab.slice().slab, block->offset, size};
  b.host_ = slab.host() == nullptr ? nullptr : slab.host() + block->offset;
  b.owner_ = shared_from_this();
  b.block_ = block;
  return b;
}

Block* Allocator::State::take(uint64_t size) {
  Slab any{0, {}, nullptr};
  Block wanted{.slab = &any, .offset = 0, .size = size};
  const auto i = holes.lower_bound(&wanted);
  if (i == holes.end()) return nullptr;
  Block* b = *i;
  holes.erase(i);
  split(b, size);
  return b;
}

void Allocator::State::split(Block* b, uint64_t size) {
  if (b->size == size) return;
  auto* rest = new Block{.slab = b->slab, .offset = b->offset + size, .size = b->size - size};
  rest->before = b;
  rest->after = std::exchange(b->after, rest);
  if (rest->after != nullptr) rest->after->before = rest;
  b->size = size;
  holes.insert(rest);
}

// A slab of the usual size, or one that just fits, or one in the place of unused slabs.
Status Allocator::State::grow(uint64_t size) {
  const uint64_t usual = (slab_bytes + granule - 1) / granule * granule;
  if (size < usual && new_slab(usual)) return {};
  const Status exact = new_slab(size);
  if (exact || trim_locked() == 0) return exact;
  return new_slab(size);
}

Status Allocator::State::new_slab(uint64_t size) {
  if (limit != 0 && size > limit - std::min(limit, reserved))
    return error(Code::kResourceExhausted, "the allocator's limit is {} bytes", limit);
  TRY_ASSIGN(Buffer buffer, device.allocate(Bytes(static_cast<int64_t>(size)), space));
  const uint64_t id = next_slab++;
  auto slab = std::make_unique<Slab>(Slab{id, std::move(buffer), nullptr});
  slab->first = new Block{.slab = slab.get(), .offset = 0, .size = size};
  holes.insert(slab->first);
  slabs.emplace(id, std::move(slab));
  ++slab_allocations;
  reserved += size;
  peak_reserved = std::max(peak_reserved, reserved);
  return {};
}

void Allocator::State::release(void* handle, std::vector<Point> uses) {
  auto* b = static_cast<Block*>(handle);
  {
    const std::lock_guard lock(mutex);
    --buffers;
    requested -= b->requested;
    held -= b->size;
    if (uses.empty()) return free(b);
    b->use = Use::kPending;
    pending += b->size;
    b->outstanding = uses.size() + 1;
    for (const Point& p : uses) b->awaited.push_back(p.value);
  }
  const auto settled = [self = shared_from_this(), b](const Failure*) {
    const std::lock_guard lock(self->mutex);
    if (--b->outstanding > 0) return;
    self->pending -= b->size;
    self->free(b);
  };
  // A backend that cannot tell when the work has ended keeps the block for good.
  for (const Point& p : uses) (void)p.notify(settled);
  settled(nullptr);
}

void Allocator::State::free(Block* b) {
  b->use = Use::kFree;
  b->requested = 0;
  b->tag.clear();
  b->awaited.clear();
  if (b->after != nullptr && b->after->use == Use::kFree) b = merge(b, b->after);
  if (b->before != nullptr && b->before->use == Use::kFree) b = merge(b->before, b);
  holes.insert(b);
  freed.notify_all();
}

Block* Allocator::State::merge(Block* left, Block* right) {
  holes.erase(left);
  holes.erase(right);
  left->size += right->size;
  left->after = right->after;
  if (left->after != nullptr) left->after->before = left;
  delete right;
  return left;
}

uint64_t Allocator::State::trim_locked() {
  uint64_t freed_bytes = 0;
  std::erase_if(slabs, [&](const auto& entry) {
    Block* b = entry.second->first;
    if (b->use != Use::kFree || b->after != nullptr) return false;
    holes.erase(b);
    freed_bytes += b->size;
    delete b;
    return true;
  });
  reserved -= freed_bytes;
  return freed_bytes;
}

uint64_t Allocator::State::trim() {
  const std::lock_guard lock(mutex);
  return trim_locked();
}

Error Allocator::State::explain(uint64_t size, std::string_view tag,
                                const Error& device_says) const {
  const auto text = [](uint64_t n) { return to_string(Bytes(static_cast<int64_t>(n))); };
  uint64_t free_bytes = 0;
  for (const Block* b : holes) free_bytes += b->size;
  std::map<std::string, std::pair<uint64_t, int>> holders;
  std::string waits;
  int pending_blocks = 0;
  for (const auto& [id, slab] : slabs) {
    for (const Block* b = slab->first; b != nullptr; b = b->after) {
      if (b->use == Use::kHeld) {
        holders[b->tag].first += b->size;
        ++holders[b->tag].second;
      }
      if (b->use == Use::kPending && ++pending_blocks <= 4)
        waits += fmt::format("{}{} for timeline value {}", waits.empty() ? ": " : ", ",
                             text(b->size), fmt::join(b->awaited, " and "));
    }
  }
  std::string who;
  for (const auto& [name, sum] : holders)
    who +=
        fmt::format("{}'{}' {} in {}", who.empty() ? "" : ", ", name, text(sum.first), sum.second);
  return {Code::kResourceExhausted,
          fmt::format("no {} for '{}' in space '{}' of device {}: {} in {} slabs, {} free in {} "
                      "holes, the largest "
                      "{}; pending frees {} in {} blocks{}; held: {}; {}",
                      text(size), tag,
                      space < device.info().spaces.size() ? device.info().spaces[space].name : "?",
                      device.name(), text(reserved), slabs.size(), text(free_bytes), holes.size(),
                      text(holes.empty() ? 0 : (*holes.rbegin())->size), text(pending),
                      pending_blocks, waits, who.empty() ? "nothing" : who, device_says.message)};
}

AllocatorStatistics Allocator::State::statistics() const {
  const auto bytes = [](uint64_t n) { return Bytes(static_cast<int64_t>(n)); };
  const std::lock_guard lock(mutex);
  return {.held = bytes(held),
          .requested = bytes(requested),
          .peak_held = bytes(peak_held),
          .pending = bytes(pending),
          .free = bytes(reserved - held - pending),
          .largest_free = bytes(holes.empty() ? 0 : (*holes.rbegin())->size),
          .reserved = bytes(reserved),
          .peak_reserved = bytes(peak_reserved),
          .slabs = static_cast<int64_t>(slabs.size()),
          .buffers = buffers,
          .allocations = allocations,
          .slab_allocations = slab_allocations,
          .failures = failures};
}

Allocator::Allocator(Device& device, const AllocatorOptions& options)
    : state_(std::make_shared<State>(device, options)) {}

Allocator::~Allocator() = default;

Result<Buffer> Allocator::allocate(Bytes size, const AllocateOptions& options) {
  if (size.value < 0) return error(Code::kInvalidArgument, "a buffer of {} bytes", size.value);
  return state_->allocate(static_cast<uint64_t>(size.value), options);
}

Bytes Allocator::trim() { return Bytes(static_cast<int64_t>(state_->trim())); }

AllocatorStatistics Allocator::statistics() const { return state_->statistics(); }

}  // namespace tessera::hal
