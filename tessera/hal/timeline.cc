#include "tessera/hal/timeline.h"

#include <memory>

#include "tessera/hal/device.h"

namespace tessera::hal {

bool Point::passed() const {
  uint64_t reached = 0;
  device->table().timeline_query(timeline, &reached);
  return value <= reached;
}

std::optional<Failure> Point::failure() const {
  const tessera_failure* f = device->table().timeline_failure(timeline);
  if (f == nullptr || passed()) return std::nullopt;
  return copy(*f);
}

Status Point::wait(std::chrono::nanoseconds timeout) const {
  const bool forever = timeout == std::chrono::nanoseconds::max();
  ErrorSlot e;
  const int32_t code = device->table().timeline_wait(
      timeline, value,
      forever ? UINT64_MAX : static_cast<uint64_t>(std::max<int64_t>(timeout.count(), 0)), &e);
  return status_from_c(code, e);
}

Status Point::notify(std::function<void(const Failure*)> call) const {
  using Call = std::function<void(const Failure*)>;
  auto owner = std::make_unique<Call>(std::move(call));
  ErrorSlot e;
  const int32_t code = device->table().timeline_notify(
      timeline, value,
      [](void* context, const tessera_failure* f) {
        const std::unique_ptr<Call> c(static_cast<Call*>(context));
        if (f == nullptr) return (*c)(nullptr);
        const Failure cause = copy(*f);
        (*c)(&cause);
      },
      owner.get(), &e);
  if (code == TESSERA_OK) (void)owner.release();
  return status_from_c(code, e);
}

uint64_t Timeline::value() const {
  uint64_t value = 0;
  owned_.table()->timeline_query(owned_.get(), &value);
  return value;
}

Status Timeline::signal(uint64_t value) {
  ErrorSlot e;
  return status_from_c(owned_.table()->timeline_signal(owned_.get(), value, &e), e);
}

Status Timeline::fail(const Failure& cause) {
  const tessera_failure f = view(cause);
  ErrorSlot e;
  return status_from_c(owned_.table()->timeline_fail(owned_.get(), &f, &e), e);
}

std::optional<Failure> Timeline::failure() const {
  const tessera_failure* f = owned_.table()->timeline_failure(owned_.get());
  if (f == nullptr) return std::nullopt;
  return copy(*f);
}

}  // namespace tessera::hal
