#include "tessera/kernels/onednn/table.h"

#include "tessera/kernels/onednn/rows.h"
#include "tessera/kernels/onednn/work.h"

namespace tessera::kernels::onednn {
namespace {
constexpr Entry kEntries[] = {{"onednn.run", run}};
}  // namespace

const Table& table() {
  static const Table all(
      "onednn",
      {{{}, kEntries}, {conv_rows(), {}}, {dot_rows(), {}}, {norm_rows(), {}}, {pool_rows(), {}}});
  return all;
}

}  // namespace tessera::kernels::onednn
