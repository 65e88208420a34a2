// The work items of batches of products.
#pragma once

#include "tessera/kernels/cpu/dot_args.h"
#include "tessera/kernels/cpu/isa/vec.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

struct Item {
  int64_t batch;
  int64_t a, b, y;  // offsets of the batch's matrices, in elements
  int64_t m0, m1, n0, n1;
};

TESSERA_INLINE Item item_at(const Products& p, uint32_t index) {
  Item item{};
  int64_t rest = index;
  const int64_t n_block = rest % p.n_items;
  rest /= p.n_items;
  const int64_t m_block = rest % p.m_items;
  rest /= p.m_items;
  item.batch = rest;
  for (int axis = p.batch_rank; axis-- > 0;) {
    const int64_t at = rest % p.batch_dims[axis];
    rest /= p.batch_dims[axis];
    item.a += at * p.a_batch[axis];
    item.b += at * p.b_batch[axis];
    item.y += at * p.y_batch[axis];
  }
  item.m0 = m_block * p.m_step;
  item.m1 = least(p.M, item.m0 + p.m_step);
  item.n0 = n_block * p.n_step;
  item.n1 = least(p.N, item.n0 + p.n_step);
  return item;
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
