#include "tessera/codegen/mlir/compiler.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "tessera/codegen/mlir/emit.h"
#include "tessera/codegen/mlir/object.h"

#ifndef TESSERA_LIBRARY_FOLDER
#define TESSERA_LIBRARY_FOLDER "lib"
#endif

namespace tessera::codegen::mlir {
namespace {

constexpr const char* kDriver = "libtessera_mlir.so";

// The folder of the program or shared library that holds this function.
std::filesystem::path own_folder() {
  Dl_info info;
  std::error_code failed;
  if (dladdr(reinterpret_cast<void*>(&own_folder), &info) && info.dli_fname) {
    const std::filesystem::path path = info.dli_fname;
    // A program knows itself by what it was called by.
    if (path.filename().string().find(".so") != std::string::npos) return path.parent_path();
  }
  return std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
}

std::vector<std::string> candidates() {
  if (const char* path = std::getenv("TESSERA_MLIR_DRIVER")) return {path};
  std::vector<std::string> list;
  for (const char* folder : {".", "tessera", "../" TESSERA_LIBRARY_FOLDER "/tessera"})
    list.push_back((own_folder() / folder / kDriver).lexically_normal().string());
  return list;
}

}  // namespace

Result<Compiler> Compiler::open_driver() {
  std::string why;
  for (const std::string& path : candidates()) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* message = dlerror();
      why += (why.empty() ? "" : "; ") + std::string(message ? message : path);
      continue;
    }
    Compiler c;
    c.compile_ = reinterpret_cast<tessera_mlir_compile_fn>(dlsym(library, "tessera_mlir_compile"));
    c.version_ = reinterpret_cast<tessera_mlir_version_fn>(dlsym(library, "tessera_mlir_version"));
    if (c.compile_ && c.version_) return c;
    why += (why.empty() ? "" : "; ") + path + " is something else";
  }
  return error(Code::kUnavailable, "there is no compiler here: {}", why);
}

Result<const Compiler*> Compiler::open() {
  static const Result<Compiler> opened = open_driver();
  if (!opened) return tl::unexpected(opened.error());
  return &*opened;
}

Result<std::vector<std::byte>> Compiler::compile(std::string_view text,
                                                 const Target& target) const {
  struct Answer {
    std::vector<std::byte> object;
    std::string why;
  } answer;
  const auto keep = [](void* context, const char* data, size_t size) {
    const auto* bytes = reinterpret_cast<const std::byte*>(data);
    static_cast<Answer*>(context)->object.assign(bytes, bytes + size);
  };
  const auto hear = [](void* context, const char* data, size_t size) {
    static_cast<Answer*>(context)->why.assign(data, size);
  };
  if (compile_(text.data(), text.size(), target.features.c_str(), &answer, keep, hear) != 0)
    return error(Code::kInternal, "MLIR does not compile the program: {}", answer.why);
  TRY_ASSIGN(const CodeImage image, link(answer.object, kEntry));
  return write_elf(image);
}

}  // namespace tessera::codegen::mlir
