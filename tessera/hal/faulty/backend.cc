#include <charconv>
#include <cstdlib>
#include <string_view>

#include "tessera/hal/backend_support.h"
#include "tessera/hal/faulty/device.h"
#include "tessera/hal/faulty/faulty.h"

namespace tessera::hal::faulty {
namespace {

// A number in [0, most].
Result<double> number(const tessera_option& o, double most) {
  char* end = nullptr;
  const double value = std::strtod(o.value, &end);
  if (end == o.value || *end != '\0' || !(value >= 0 && value <= most))
    return error(Code::kInvalidArgument,
                 "option '{}' of device faulty is '{}', need a number from 0 to {}", o.key, o.value,
                 most);
  return value;
}

struct OptionRow {
  std::string_view key;
  double most;
  void (*set)(Faults& f, double value);
};

constexpr double kMany = 9e15;
constexpr OptionRow kOptions[] = {
    {"fault.seed", kMany, [](Faults& f, double v) { f.seed = static_cast<uint64_t>(v); }},
    {"fault.refused_allocation", 1, [](Faults& f, double v) { f.refused_allocation = v; }},
    {"fault.failed_submission", 1, [](Faults& f, double v) { f.failed_submission = v; }},
    {"fault.delayed_submission", 1, [](Faults& f, double v) { f.delayed_submission = v; }},
    {"fault.longest_delay_us", 1e9,
     [](Faults& f, double v) {
       f.longest_delay = std::chrono::microseconds(static_cast<int64_t>(v));
     }},
    {"fault.reorder", 1, [](Faults& f, double v) { f.reorder = v != 0; }},
    {"fault.lose_after", kMany,
     [](Faults& f, double v) { f.lose_after = static_cast<uint64_t>(v); }},
};

// Applies the options that are ours and returns the others.
Result<std::vector<tessera_option>> parse(const tessera_option* options, uint32_t count,
                                          Faults* faults) {
  std::vector<tessera_option> others;
  for (const tessera_option* o = options; o != options + count; ++o) {
    const auto row = std::ranges::find(kOptions, std::string_view(o->key), &OptionRow::key);
    if (row == std::end(kOptions)) {
      others.push_back(*o);
      continue;
    }
    TRY_ASSIGN(const double value, number(*o, row->most));
    row->set(*faults, value);
  }
  return others;
}

const Wrapper& wrapper(void* context) { return *static_cast<Wrapper*>(context); }
Device& device_of(tessera_device* d) { return object_of<Device>(d); }

int32_t device_open(void* context, uint32_t ordinal, const tessera_option* options,
                    uint32_t option_count, tessera_device** out, tessera_error* e) {
  return guarded(e, [&]() -> Status {
    const Wrapper& w = wrapper(context);
    const tessera_backend& t = w.inner->table();
    Faults faults = w.faults;
    TRY_ASSIGN(const std::vector<tessera_option> others, parse(options, option_count, &faults));
    tessera_device* inner = nullptr;
    ErrorSlot slot;
    TRY(status_from_c(t.device_open(t.context, ordinal, others.data(),
                                    static_cast<uint32_t>(others.size()), &inner, &slot),
                      slot));
    *out = handle_of<tessera_device>(new Device(t, inner, faults));
    return {};
  });
}

void device_close(tessera_device* d) {
  const std::unique_ptr<Device> device(&device_of(d));
  device->inner().device_close(device->handle());
}

int32_t slab_allocate(tessera_device* d, uint32_t space, uint64_t size_bytes, tessera_slab** slab,
                      tessera_error* e) {
  Device& device = device_of(d);
  if (device.happens(device.faults().refused_allocation))
    return to_c(Error{Code::kResourceExhausted, "an allocation refused by device faulty"}, e);
  return device.inner().slab_allocate(device.handle(), space, size_bytes, slab, e);
}

// An entry that passes its device on to the inner backend's entry of the same name.
template <auto Entry>
struct Pass;
template <class... Args, int32_t (*tessera_backend::*Entry)(tessera_device*, Args...)>
struct Pass<Entry> {
  static int32_t call(tessera_device* d, Args... args) {
    return (device_of(d).inner().*Entry)(device_of(d).handle(), args...);
  }
};

tessera_backend make_table(Wrapper* w) {
  tessera_backend t =
      w->inner->table();  // slabs and executables are the inner backend's: so are their entries
  t.name = "faulty";
  t.context = w;
  t.claims = nullptr;
  t.unload = [](void* context) { delete static_cast<Wrapper*>(context); };
  t.device_count = [](void* context, uint32_t* count, tessera_error* e) {
    const tessera_backend& inner = wrapper(context).inner->table();
    return inner.device_count(inner.context, count, e);
  };
  t.device_info = [](void* context, uint32_t ordinal, tessera_device_info* info, tessera_error* e) {
    const tessera_backend& inner = wrapper(context).inner->table();
    return inner.device_info(inner.context, ordinal, info, e);
  };
  t.device_open = device_open;
  t.device_close = device_close;
  t.device_properties = Pass<&tessera_backend::device_properties>::call;
  t.device_status = Pass<&tessera_backend::device_status>::call;
  t.device_lose = Pass<&tessera_backend::device_lose>::call;
  t.device_clock = Pass<&tessera_backend::device_clock>::call;
  t.device_memory = Pass<&tessera_backend::device_memory>::call;
  t.slab_allocate = slab_allocate;
  t.slab_wrap = Pass<&tessera_backend::slab_wrap>::call;
  t.executable_load = Pass<&tessera_backend::executable_load>::call;
  install_timelines(t);
  install_queues(t);
  return t;
}

}  // namespace

bool Device::happens(double probability) {
  if (probability <= 0) return false;
  const std::lock_guard lock(mutex_);
  return std::uniform_real_distribution<>()(random_) < probability;
}

std::chrono::microseconds Device::delay() {
  if (!happens(faults_.delayed_submission)) return std::chrono::microseconds(0);
  return std::chrono::microseconds(below(static_cast<uint64_t>(faults_.longest_delay.count()) + 1));
}

uint64_t Device::below(uint64_t n) {
  const std::lock_guard lock(mutex_);
  return random_() % n;
}

void Device::count_submission() {
  {
    const std::lock_guard lock(mutex_);
    if (submissions_++ != faults_.lose_after) return;
  }
  const Failure cause{.code = Code::kDeviceLost, .message = "a loss injected by device faulty"};
  const tessera_failure f = view(cause);
  inner_.device_lose(device_, &f, nullptr);
}

Result<std::unique_ptr<Backend>> wrap(std::unique_ptr<Backend> inner, const Faults& faults) {
  auto w = std::make_unique<Wrapper>(Wrapper{std::move(inner), faults, {}});
  w->table = make_table(w.get());
  TRY_ASSIGN(std::unique_ptr<Backend> backend, Backend::adopt(w->table));
  (void)w.release();  // unload deletes it
  return backend;
}

}  // namespace tessera::hal::faulty
