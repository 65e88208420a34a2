// Any bytes either import as a graph that the verifier accepts, or give an Error.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "tessera/import/onnx/model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto keep = std::make_shared<std::string>(reinterpret_cast<const char*>(data), size);
  auto imported = tessera::import::onnx::import_model(*keep, keep, {});
  if (imported && !tessera::ir::verify(imported->graph)) std::abort();
  // The bytes as test data, too.
  for (const char* type : {"f32[*]", "seq<i64[*]>", "opt<seq<str[*]>>"})
    (void)tessera::import::onnx::read_value(*keep, keep, *tessera::op::Type::parse(type));
  return 0;
}
