// A case that cannot fail is worth nothing: each mutant breaks one promise of the null backend, and
// the case named beside it must notice.
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/hal/conformance/case.h"
#include "tessera/hal/host_queue.h"
#include "tessera/hal/null/backend.h"

namespace tessera::hal::conformance {
namespace {

const tessera_backend& sound() {
  static const std::unique_ptr<Backend> backend = *Backend::load(null::plugin_main);
  return backend->table();
}

// Submits the same without the commands for which `drop` holds.
template <class Drop>
int32_t submit_without(tessera_queue* q, const tessera_submission* s, uint64_t* n, tessera_error* e,
                       Drop drop) {
  std::vector<tessera_command> kept;
  for (uint32_t i = 0; i < s->command_count; ++i)
    if (!drop(command_at(*s, i))) kept.push_back(command_at(*s, i));
  tessera_submission changed = *s;
  changed.commands = kept.data();
  changed.command_count = static_cast<uint32_t>(kept.size());
  return sound().queue_submit(q, &changed, n, e);
}

struct Mutant {
  const char* name;
  const char* noticed_by;
  void (*mutate)(tessera_backend& t);
};

const Mutant kMutants[] = {
    {"accepts any option", "loading.refuses_unknown_options",
     [](tessera_backend& t) {
       t.device_open = [](void* c, uint32_t i, const tessera_option*, uint32_t, tessera_device** d,
                          tessera_error* e) { return sound().device_open(c, i, nullptr, 0, d, e); };
     }},
    {"counts no slabs", "memory.counts_slabs",
     [](tessera_backend& t) {
       t.device_memory = [](tessera_device*, uint32_t, tessera_memory* m,
                            tessera_error*) -> int32_t {
         m->known = 0x3f;
         return TESSERA_OK;
       };
     }},
    {"wraps by copying", "memory.wraps_host_memory_in_place",
     [](tessera_backend& t) {
       t.slab_wrap = [](tessera_device* d, void*, uint64_t n, tessera_slab** s, tessera_error* e) {
         return sound().slab_allocate(d, 0, n, s, e);
       };
     }},
    {"forgets fills", "copies.fills_parts",
     [](tessera_backend& t) {
       t.queue_submit = [](tessera_queue* q, const tessera_submission* s, uint64_t* n,
                           tessera_error* e) {
         return submit_without(
             q, s, n, e, [](const tessera_command& c) { return c.kind == TESSERA_COMMAND_FILL; });
       };
     }},
    {"runs before its waits", "queues.waits_before_the_signal",
     [](tessera_backend& t) {
       t.queue_submit = [](tessera_queue* q, const tessera_submission* s, uint64_t* n,
                           tessera_error* e) {
         tessera_submission changed = *s;
         changed.wait_count = 0;
         return sound().queue_submit(q, &changed, n, e);
       };
     }},
    {"succeeds at everything", "failures.names_its_cause",
     [](tessera_backend& t) {
       t.queue_submit = [](tessera_queue* q, const tessera_submission* s, uint64_t* n,
                           tessera_error* e) {
         return submit_without(q, s, n, e, [](const tessera_command&) { return true; });
       };
     }},
    {"signals though it failed", "failures.keeps_what_was_reached",
     [](tessera_backend& t) {
       t.timeline_fail = [](tessera_timeline* x, const tessera_failure*, tessera_error* e) {
         return sound().timeline_signal(x, 1000, e);
       };
     }},
    {"notifies of no failure", "queues.notifies_once",
     [](tessera_backend& t) {
       t.timeline_notify = [](tessera_timeline* x, uint64_t v,
                              void (*call)(void*, const tessera_failure*), void* context,
                              tessera_error* e) -> int32_t {
         struct Once {
           void (*call)(void*, const tessera_failure*);
           void* context;
         };
         auto* once = new Once{call, context};
         return sound().timeline_notify(
             x, v,
             [](void* o, const tessera_failure*) {
               const std::unique_ptr<Once> owner(static_cast<Once*>(o));
               owner->call(owner->context, nullptr);  // hides the failure
             },
             once, e);
       };
     }},
    {"never recovers", "failures.poisons_an_in_order_queue_until_recover",
     [](tessera_backend& t) {
       t.queue_recover = [](tessera_queue*, tessera_error*) -> int32_t { return TESSERA_OK; };
     }},
    {"is never lost", "loss.refuses_new_work",
     [](tessera_backend& t) {
       t.device_lose = [](tessera_device*, const tessera_failure*, tessera_error*) -> int32_t {
         return TESSERA_OK;
       };
     }},
    {"has a clock that stands still", "events.device_events_tell_the_time",
     [](tessera_backend& t) {
       t.device_clock = [](tessera_device*, uint64_t* ns, tessera_error*) -> int32_t {
         *ns = 1;
         return TESSERA_OK;
       };
     }},
};

const Mutant* current = nullptr;

Result<std::unique_ptr<Backend>> load_mutant() {
  tessera_backend table = sound();
  table.unload = [](void*) {};
  current->mutate(table);
  return Backend::adopt(table);
}

TEST(Mutants, AreNoticed) {
  const std::vector<Case> cases = all_cases();
  for (const Mutant& m : kMutants) {
    current = &m;
    const auto c = std::ranges::find_if(
        cases, [&](const Case& x) { return std::string(x.topic) + "." + x.name == m.noticed_by; });
    ASSERT_NE(c, cases.end()) << m.noticed_by;
    const Subject subject{"mutant", load_mutant, {}, host_conformance_executables()};
    const Status status = c->run(subject);
    EXPECT_FALSE(status) << "a backend that " << m.name << " passes " << m.noticed_by;
  }
}

}  // namespace
}  // namespace tessera::hal::conformance
