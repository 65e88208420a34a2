// The table entries that every backend with host timelines and queues shares.
#include <chrono>
#include <memory>

#include "tessera/hal/backend_support.h"
#include "tessera/hal/host_queue.h"

namespace tessera::hal {
namespace {

struct Entries {
  static HostDevice& device(tessera_device* d) { return object_of<HostDevice>(d); }
  static HostTimeline& timeline(tessera_timeline* t) { return object_of<HostTimeline>(t); }

  static int32_t device_status(tessera_device* d, tessera_error* e) {
    return guarded(e, [&] { return device(d).status(); });
  }
  static int32_t device_lose(tessera_device* d, const tessera_failure* cause, tessera_error* e) {
    return guarded(e, [&]() -> Status {
      device(d).lose(std::make_shared<Failure>(copy(*cause)));
      return {};
    });
  }
  static int32_t device_clock(tessera_device*, uint64_t* ns, tessera_error*) {
    *ns = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    return TESSERA_OK;
  }

  // The handle holds a reference to itself, kept beside the timeline until it is destroyed.
  static int32_t timeline_create(tessera_device* d, uint64_t initial, tessera_timeline** out,
                                 tessera_error* e) {
    return guarded(e, [&]() -> Status {
      auto t = std::make_shared<HostTimeline>(device(d).timelines(), initial);
      TRY(device(d).status());  // after the timeline is known to the device, so that no loss passes
                                // it by
      *out = handle_of<tessera_timeline>(t.get());
      t->hold_handle();
      return {};
    });
  }
  static void timeline_destroy(tessera_timeline* t) { timeline(t).drop_handle(); }
  static int32_t timeline_query(tessera_timeline* t, uint64_t* value) {
    const FailurePtr cause = timeline(t).failure();
    *value = timeline(t).value();
    return cause ? to_c(cause->code) : TESSERA_OK;
  }
  static const tessera_failure* timeline_failure(tessera_timeline* t) {
    return timeline(t).c_failure();
  }
  static int32_t timeline_signal(tessera_timeline* t, uint64_t value, tessera_error* e) {
    return guarded(e, [&]() -> Status {
      timeline(t).signal(value);
      return {};
    });
  }
  static int32_t timeline_fail(tessera_timeline* t, const tessera_failure* f, tessera_error* e) {
    return guarded(e, [&]() -> Status {
      timeline(t).fail(std::make_shared<Failure>(copy(*f)));
      return {};
    });
  }
  static int32_t timeline_wait(tessera_timeline* t, uint64_t value, uint64_t timeout_ns,
                               tessera_error* e) {
    return guarded(e, [&]() -> Status {
      switch (timeline(t).wait(value, timeout_ns)) {
        case HostTimeline::State::kReached:
          return {};
        case HostTimeline::State::kFailed:
          return error(timeline(t).failure()->error());
        case HostTimeline::State::kPending:
          break;
      }
      return error(Code::kDeadlineExceeded,
                   "value {} of the timeline not reached in {} ns; it is at {}", value, timeout_ns,
                   timeline(t).value());
    });
  }
  static int32_t timeline_notify(tessera_timeline* t, uint64_t value,
                                 void (*call)(void*, const tessera_failure*), void* context,
                                 tessera_error* e) {
    return guarded(e, [&]() -> Status {
      timeline(t).notify(value, [call, context](const FailurePtr& cause) {
        if (cause == nullptr) return call(context, nullptr);
        const tessera_failure f = view(*cause);
        call(context, &f);
      });
      return {};
    });
  }

  static std::shared_ptr<HostQueue>& queue(tessera_queue* q) {
    return object_of<std::shared_ptr<HostQueue>>(q);
  }
  static void queue_destroy(tessera_queue* q) {
    const std::unique_ptr<std::shared_ptr<HostQueue>> owner(&queue(q));
    (*owner)->close();
  }
  static int32_t queue_submit(tessera_queue* q, const tessera_submission* s, uint64_t* number,
                              tessera_error* e) {
    return guarded(e, [&] { return queue(q)->submit(*s, number); });
  }
  static int32_t queue_recover(tessera_queue* q, tessera_error*) {
    queue(q)->recover();
    return TESSERA_OK;
  }
};

}  // namespace

void install_host_entries(tessera_backend& table) {
  table.device_status = Entries::device_status;
  table.device_lose = Entries::device_lose;
  table.device_clock = Entries::device_clock;
  table.timeline_create = Entries::timeline_create;
  table.timeline_destroy = Entries::timeline_destroy;
  table.timeline_query = Entries::timeline_query;
  table.timeline_failure = Entries::timeline_failure;
  table.timeline_signal = Entries::timeline_signal;
  table.timeline_fail = Entries::timeline_fail;
  table.timeline_wait = Entries::timeline_wait;
  table.timeline_notify = Entries::timeline_notify;
  table.queue_destroy = Entries::queue_destroy;
  table.queue_submit = Entries::queue_submit;
  table.queue_recover = Entries::queue_recover;
}

tessera_queue* queue_handle(std::shared_ptr<HostQueue> queue) {
  return handle_of<tessera_queue>(new std::shared_ptr<HostQueue>(std::move(queue)));
}

}  // namespace tessera::hal
