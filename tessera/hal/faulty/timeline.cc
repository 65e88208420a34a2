#include "tessera/hal/backend_support.h"
#include "tessera/hal/faulty/device.h"

namespace tessera::hal::faulty {
namespace {

TimelinePtr& shared(tessera_timeline* t) { return object_of<TimelinePtr>(t); }
Timeline& of(tessera_timeline* t) { return *shared(t); }

int32_t create(tessera_device* d, uint64_t initial, tessera_timeline** out, tessera_error* e) {
  const Device& device = object_of<Device>(d);
  tessera_timeline* inner = nullptr;
  const int32_t code = device.inner().timeline_create(device.handle(), initial, &inner, e);
  if (code != TESSERA_OK) return code;
  *out = handle_of<tessera_timeline>(
      new TimelinePtr(std::make_shared<Timeline>(device.inner(), inner)));
  return TESSERA_OK;
}

void destroy(tessera_timeline* t) { delete &shared(t); }

int32_t query(tessera_timeline* t, uint64_t* value) {
  return of(t).inner.timeline_query(of(t).handle, value);
}

const tessera_failure* failure(tessera_timeline* t) {
  return of(t).inner.timeline_failure(of(t).handle);
}

int32_t signal(tessera_timeline* t, uint64_t value, tessera_error* e) {
  return of(t).inner.timeline_signal(of(t).handle, value, e);
}

int32_t fail(tessera_timeline* t, const tessera_failure* cause, tessera_error* e) {
  return of(t).inner.timeline_fail(of(t).handle, cause, e);
}

int32_t wait(tessera_timeline* t, uint64_t value, uint64_t timeout_ns, tessera_error* e) {
  return of(t).inner.timeline_wait(of(t).handle, value, timeout_ns, e);
}

int32_t notify(tessera_timeline* t, uint64_t value, void (*call)(void*, const tessera_failure*),
               void* context, tessera_error* e) {
  // The callee may destroy the handle.
  const TimelinePtr keep = shared(t);
  return keep->inner.timeline_notify(keep->handle, value, call, context, e);
}

}  // namespace

void install_timelines(tessera_backend& table) {
  table.timeline_create = create;
  table.timeline_destroy = destroy;
  table.timeline_query = query;
  table.timeline_failure = failure;
  table.timeline_signal = signal;
  table.timeline_fail = fail;
  table.timeline_wait = wait;
  table.timeline_notify = notify;
}

}  // namespace tessera::hal::faulty
