#include <algorithm>
#include <utility>

#include "tessera/hal/backend_support.h"
#include "tessera/hal/faulty/device.h"

namespace tessera::hal::faulty {
namespace {

constexpr const char* kInjected = "a failure injected by device faulty";

int32_t fail_as_asked(void*, tessera_error* e) {
  return to_c(Error{Code::kInternal, kInjected}, e);
}

TimelinePtr& shared(const tessera_point& p) { return object_of<TimelinePtr>(p.timeline); }

}  // namespace

// A submission on its way, with its timelines kept alive.
struct Queue::Held {
  Held(const tessera_submission& s, bool f) : copy(s), fail(f) {
    for (uint32_t i = 0; i < s.wait_count; ++i) timelines.push_back(shared(s.waits[i]));
    for (uint32_t i = 0; i < s.signal_count; ++i) timelines.push_back(shared(s.signals[i]));
  }
  // With the points of the inner backend.
  tessera_submission inner(std::vector<tessera_point>& points) const {
    tessera_submission s = copy.get();
    for (size_t i = 0; i < timelines.size(); ++i) {
      const bool wait = i < s.wait_count;
      points.push_back(
          {timelines[i]->handle, wait ? s.waits[i].value : s.signals[i - s.wait_count].value});
    }
    s.waits = points.data();
    s.signals = points.data() + s.wait_count;
    return s;
  }

  SubmissionCopy copy;
  bool fail;
  std::vector<TimelinePtr> timelines;  // waits, then signals
};

Queue::Queue(Device& device, tessera_queue* queue, uint32_t flags)
    : device_(device), queue_(queue), in_order_((flags & TESSERA_QUEUE_OUT_OF_ORDER) == 0) {
  if (holds()) thread_ = std::thread([this] { serve(); });
}

Queue::~Queue() {
  flush();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  device_.inner().queue_destroy(queue_);
}

bool Queue::holds() const {
  return device_.faults().delayed_submission > 0 || (device_.faults().reorder && !in_order_);
}

Status Queue::submit(const tessera_submission& s, uint64_t* number) {
  device_.count_submission();
  ErrorSlot e;
  TRY(status_from_c(device_.inner().device_status(device_.handle(), &e), e));
  const bool fail = device_.happens(device_.faults().failed_submission);
  if (!holds()) {
    Held h(s, fail);
    std::vector<tessera_point> points;
    return forward(h.inner(points), fail, number);
  }
  if (number != nullptr) *number = 0;
  auto h = std::make_unique<Held>(s, fail);
  Clock::time_point due = Clock::now() + device_.delay();
  const std::lock_guard lock(mutex_);
  if (in_order_) due = last_due_ = std::max(due, last_due_);
  held_.emplace(due, std::move(h));
  changed_.notify_all();
  return {};
}

// The commands of a submission that shall fail are replaced by one that fails, so that the inner
// backend's own propagation is what is tried.
Status Queue::forward(const tessera_submission& s, bool fail, uint64_t* number) {
  tessera_submission changed = s;
  tessera_command failing = {};
  if (s.command_count > 0) failing = command_at(s, 0);
  if (fail) {
    failing.kind = TESSERA_COMMAND_HOST;
    failing.as.host = {fail_as_asked, nullptr};
    changed.command_count = 1;
    changed.command_bytes = sizeof failing;
    changed.commands = &failing;
  }
  ErrorSlot e;
  return status_from_c(device_.inner().queue_submit(queue_, &changed, number, &e), e);
}

void Queue::pass_on(const Held& h) {
  std::vector<tessera_point> points;
  const tessera_submission s = h.inner(points);
  const Status status = forward(s, h.fail, nullptr);
  if (status) return;
  const Failure cause{.code = status.error().code, .message = status.error().message};
  const tessera_failure f = view(cause);
  for (uint32_t i = 0; i < s.signal_count; ++i)
    device_.inner().timeline_fail(s.signals[i].timeline, &f, nullptr);
}

// One that may go now, or null after waiting for one. In-order queues keep their order.
std::unique_ptr<Queue::Held> Queue::take_due(std::unique_lock<std::mutex>& lock) {
  const auto end = flushing_ ? held_.end() : held_.upper_bound(Clock::now());
  for (auto i = held_.begin(); i != end; i = held_.erase(i)) due_.push_back(std::move(i->second));
  if (due_.empty()) {
    held_.empty() ? changed_.wait(lock) : (void)changed_.wait_until(lock, held_.begin()->first);
    return nullptr;
  }
  if (device_.faults().reorder && !in_order_)
    std::swap(due_.front(), due_[device_.below(due_.size())]);
  std::unique_ptr<Held> h = std::move(due_.front());
  due_.pop_front();
  return h;
}

void Queue::serve() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const std::unique_ptr<Held> h = take_due(lock);
    if (h == nullptr) continue;
    passing_ = true;
    lock.unlock();
    pass_on(*h);
    lock.lock();
    passing_ = false;
    changed_.notify_all();
  }
}

void Queue::flush() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  flushing_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return held_.empty() && due_.empty() && !passing_; });
  flushing_ = false;
}

Status Queue::recover() {
  flush();
  ErrorSlot e;
  return status_from_c(device_.inner().queue_recover(queue_, &e), e);
}

void install_queues(tessera_backend& table) {
  table.queue_create = [](tessera_device* d, uint32_t flags, tessera_queue** out,
                          tessera_error* e) {
    Device& device = object_of<Device>(d);
    tessera_queue* inner = nullptr;
    const int32_t code = device.inner().queue_create(device.handle(), flags, &inner, e);
    if (code == TESSERA_OK) *out = handle_of<tessera_queue>(new Queue(device, inner, flags));
    return code;
  };
  table.queue_destroy = [](tessera_queue* q) { delete &object_of<Queue>(q); };
  table.queue_submit = [](tessera_queue* q, const tessera_submission* s, uint64_t* number,
                          tessera_error* e) {
    return guarded(e, [&] { return object_of<Queue>(q).submit(*s, number); });
  };
  table.queue_recover = [](tessera_queue* q, tessera_error* e) {
    return guarded(e, [&] { return object_of<Queue>(q).recover(); });
  };
}

}  // namespace tessera::hal::faulty
