// What parses is a graph that verifies, and prints to text that reads back the same.
#include <cstdlib>

#include "tessera/ir/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const std::vector<op::Tensor> store{*op::Tensor::make(DType::kF32, {4, 8})};
  auto graph = ir::parse({reinterpret_cast<const char*>(data), size}, store);
  if (!graph) return 0;
  if (!ir::verify(*graph)) std::abort();
  std::vector<op::Tensor> first, second;
  const std::string text = ir::print(*graph, first);
  auto again = ir::parse(text, first);
  if (!again || ir::print(*again, second) != text) std::abort();
  return 0;
}
