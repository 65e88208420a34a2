#include "tessera/hal/sim/access.h"

#include <algorithm>

namespace tessera::hal::sim {

bool Walk::next() {
  for (size_t a = extents_.size() - std::min<size_t>(extents_.size(), 1); a-- > 0;) {
    if (++now_[a] < extents_[a]) return true;
    now_[a] = 0;
  }
  return false;
}

int64_t Walk::index(const Access& a, int64_t i) const {
  int64_t at = a.offset[0];
  for (size_t k = 0; k + 1 < extents_.size(); ++k) at += a.coefficient(0, k) * now_[k];
  return extents_.empty() ? at : at + a.coefficient(0, extents_.size() - 1) * i;
}

Row Walk::row(const Access& a, std::vector<int64_t>& room) const {
  const int64_t n = length();
  const size_t last = extents_.empty() ? 0 : extents_.size() - 1;
  Row row{.last = n};
  std::array<std::pair<size_t, int64_t>, kDims> listed;  // dimension, index at the row's start
  size_t lists = 0;
  for (size_t d = 0; d < a.rank(); ++d) {
    int64_t at = a.offset[d];
    for (size_t k = 0; k < last; ++k) at += a.coefficient(d, k) * now_[k];
    const int64_t by = extents_.empty() ? 0 : a.coefficient(d, last);
    const engine::Places::Dim& dim = a.places->dims[d];
    // What lies outside.
    if (by == 0) {
      if (at < 0 || at >= dim.extent) row.last = row.first = 0;
    } else if (by > 0) {
      row.first = std::max(row.first, at >= 0 ? 0 : (-at + by - 1) / by);
      row.last = std::min(row.last, at >= dim.extent ? 0 : (dim.extent - at + by - 1) / by);
    } else {
      row.first = std::max(row.first, at < dim.extent ? 0 : (at - dim.extent) / -by + 1);
      row.last = std::min(row.last, at < 0 ? 0 : at / -by + 1);
    }
    if (dim.table.empty()) {
      row.start += at * dim.stride;
      row.stride += by * dim.stride;
    } else if (by == 0) {
      if (at >= 0 && at < dim.extent) row.start += dim.table[static_cast<size_t>(at)];
    } else {
      listed[lists++] = {d, at};
    }
  }
  row.last = std::max(row.first, row.last);
  if (lists == 0) return row;
  room.resize(static_cast<size_t>(n));
  for (int64_t i = row.first; i < row.last; ++i)
    room[static_cast<size_t>(i)] = row.start + i * row.stride;
  for (size_t k = 0; k < lists; ++k) {
    const auto [d, at] = listed[k];
    const int64_t by = a.coefficient(d, last);
    const std::vector<int64_t>& table = a.places->dims[d].table;
    for (int64_t i = row.first; i < row.last; ++i)
      room[static_cast<size_t>(i)] += table[static_cast<size_t>(at + by * i)];
  }
  row.list = room.data();
  return row;
}

}  // namespace tessera::hal::sim
