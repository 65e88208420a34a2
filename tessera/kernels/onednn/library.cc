#include "tessera/kernels/onednn/library.h"

#include <dlfcn.h>

#include <string>

namespace tessera::kernels::onednn {
namespace {

constexpr const char* kFile = "libdnnl.so.2";  // the version of the header

tl::unexpected<Error> missing(std::string_view what) {
  return error(Code::kUnavailable, "oneDNN is not here: {}", what);
}

template <class F>
bool look_up(void* handle, const char* name, F& function, std::string& lacks) {
  function = reinterpret_cast<F>(dlsym(handle, name));
  if (!function && lacks.empty()) lacks = name;
  return function != nullptr;
}

Result<Library> open() {
  void* handle = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    return missing(why ? why : kFile);
  }
  Library l;
  std::string lacks;
#define TESSERA_DNNL_LOOK_UP(name) look_up(handle, #name, l.name, lacks);
  TESSERA_DNNL_FUNCTIONS(TESSERA_DNNL_LOOK_UP)
#undef TESSERA_DNNL_LOOK_UP
  look_up(handle, "omp_get_max_threads", l.omp_get_max_threads, lacks);
  look_up(handle, "omp_set_num_threads", l.omp_set_num_threads, lacks);
  if (!lacks.empty()) return missing(fmt::format("{} has no '{}'", kFile, lacks));
  const dnnl_version_t* version = l.dnnl_version();
  if (version->major != DNNL_VERSION_MAJOR || version->minor < DNNL_VERSION_MINOR)
    return missing(fmt::format("{} is version {}.{}, need {}.{}", kFile, version->major,
                               version->minor, DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR));
  const OneThread one(l);
  if (l.dnnl_engine_create(&l.engine, dnnl_cpu, 0) != dnnl_success)
    return missing("it has no engine for this processor");
  return l;
}

}  // namespace

const Result<Library>& library() {
  static const Result<Library> all = open();
  return all;
}

}  // namespace tessera::kernels::onednn
