#include "tessera/hal/event.h"

namespace tessera::hal {

Result<DeviceEvent> DeviceEvent::create(Device& device) {
  DeviceEvent e;
  e.device_ = &device;
  TRY_ASSIGN(e.timeline_, device.timeline());
  return e;
}

Status DeviceEvent::record(Queue& queue) {
  const Point point = timeline_.at(records_ + 1);
  if (!device_->info().can(TESSERA_CAN_TIMESTAMP)) {
    TRY(queue.submit({}, {}, {point}));
  } else {
    auto time = std::make_shared<uint64_t>(0);
    TRY(queue.submit({timestamp(time.get())}, {}, {point}));
    // The event may be gone before the queue gets there.
    TRY(point.notify([time](const Failure*) {}));
    time_ = std::move(time);
  }
  ++records_;
  return {};
}

Result<uint64_t> DeviceEvent::time_ns() const {
  if (!device_->info().can(TESSERA_CAN_TIMESTAMP))
    return error(Code::kUnimplemented, "device {} has no timestamps", device_->name());
  if (records_ == 0 || !passed())
    return error(Code::kFailedPrecondition, "the event has not passed");
  return *time_;
}

Result<HostEvent> HostEvent::create(Device& device) {
  HostEvent e;
  TRY_ASSIGN(e.timeline_, device.timeline());
  return e;
}

}  // namespace tessera::hal
