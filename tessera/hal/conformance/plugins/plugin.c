/* Plugins that are older, newer, smaller or broken in one way each: the macros say which. Also the
 * proof that the header compiles as C11. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tessera/tessera_plugin.h"

#ifndef ABI_OLDEST
#define ABI_OLDEST 1
#endif
#ifndef ABI_NEWEST
#define ABI_NEWEST 1
#endif
#ifndef TABLE_BYTES
#define TABLE_BYTES sizeof(tessera_backend)
#endif

_Static_assert(sizeof(tessera_command) == 104, "a command keeps its size");

static int32_t fail(tessera_error* e, int32_t code, const char* message) {
  if (e != NULL) {
    e->code = code;
    snprintf(e->message, sizeof e->message, "%s", message);
  }
  return code;
}

static int32_t device_count(void* context, uint32_t* count, tessera_error* e) {
  (void)context;
  (void)e;
  *count = 1;
  return TESSERA_OK;
}

static const char* const formats[] = {"none"};
static const tessera_space space = {.struct_size = sizeof space,
                                    .flags = TESSERA_SPACE_DEFAULT,
                                    .name = "nowhere",
                                    .alignment_bytes = 1};

static int32_t device_info(void* context, uint32_t ordinal, tessera_device_info* info,
                           tessera_error* e) {
  (void)context;
  if (ordinal != 0) return fail(e, TESSERA_NOT_FOUND, "there is one device");
  const tessera_device_info mine = {.struct_size = sizeof mine,
                                    .name = "A device in C",
                                    .formats = formats,
                                    .format_count = 1,
                                    .space_count = 1,
                                    .spaces = &space,
                                    .space_bytes = sizeof space,
                                    .compute_units = 1};
  const uint32_t size = info->struct_size < sizeof mine ? info->struct_size : (uint32_t)sizeof mine;
  memcpy(info, &mine, size);
  info->struct_size = size;
  return TESSERA_OK;
}

static int32_t device_open(void* context, uint32_t ordinal, const tessera_option* options,
                           uint32_t option_count, tessera_device** device, tessera_error* e) {
  (void)context;
  (void)options;
  (void)option_count;
  static int the_device;
  if (ordinal != 0) return fail(e, TESSERA_NOT_FOUND, "there is one device");
  *device = (tessera_device*)&the_device;
  return TESSERA_OK;
}

#ifndef SMALL
static int32_t device_properties(tessera_device* device, tessera_device_info* info,
                                 tessera_error* e) {
  (void)device;
  return device_info(NULL, 0, info, e);
}
#endif

#ifdef LINKED_VENDOR
int tessera_absent_vendor(void);
#endif

/* A table from a later time has entries that this host has never heard of. */
static struct {
  tessera_backend known;
  void (*later[4])(void);
} table = {.known = {
               .struct_size = TABLE_BYTES,
               .name = "variant",
               .device_count = device_count,
               .device_info = device_info,
               .device_open = device_open,
#ifndef SMALL
               .device_properties = device_properties,
#endif
           }};

#ifdef NO_SYMBOL
#define tessera_plugin_main some_other_main
#endif

int32_t tessera_plugin_main(const tessera_host* host, const tessera_backend** backend,
                            tessera_error* e);

int32_t tessera_plugin_main(const tessera_host* host, const tessera_backend** backend,
                            tessera_error* e) {
  (void)host;
  (void)backend;
  (void)e;
  (void)table;
#ifdef REFUSES
  return fail(e, TESSERA_UNAVAILABLE, "no such device on this machine");
#endif
#ifdef OPENS_VENDOR
  if (dlopen("libtessera_absent_vendor.so", RTLD_NOW) == NULL)
    return fail(e, TESSERA_UNAVAILABLE, dlerror());
#endif
#ifdef LINKED_VENDOR
  if (tessera_absent_vendor() != 0) return fail(e, TESSERA_UNAVAILABLE, "the vendor says no");
#endif
#ifdef NO_TABLE
  return TESSERA_OK;
#endif
#ifdef LIES
  table.known.abi_version = 7;
#else
  const uint32_t oldest = ABI_OLDEST, newest = ABI_NEWEST;
  const uint32_t version = newest < host->abi_newest ? newest : host->abi_newest;
  table.known.abi_version = version;
  if (version < oldest || version < host->abi_oldest)
    return fail(e, TESSERA_FAILED_PRECONDITION, "no version in common");
#endif
  *backend = &table.known;
  return TESSERA_OK;
}
