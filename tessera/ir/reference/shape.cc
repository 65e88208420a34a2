// Primitives that move elements.
#include "tessera/ir/reference/loops.h"

namespace tessera::ir::reference {
namespace {

Result<std::vector<Value>> identity(const Call& call) { return std::vector<Value>{*call.in[0]}; }

Result<std::vector<Value>> reshape(const Call& call) {
  if (!call.out[0].is_static()) return call.fail("the shape must be known");
  const Dims dims = call.out[0].dims();
  TRY_ASSIGN(int64_t count, op::element_count(dims));
  if (count != call.t(0).count())
    return call.fail("{} has {} elements, {} has {}", op::to_string(call.t(0).dims()),
                     call.t(0).count(), op::to_string(dims), count);
  return one(call.t(0).reshaped(dims));
}

Result<std::vector<Value>> transpose(const Call& call) {
  const Tensor& x = call.t(0);
  TRY_ASSIGN(Tensor y, call.make(0));
  const Dims own = op::strides_of(x.dims());
  Dims strides;
  for (int64_t p : call.attrs().ints("perm")) strides.push_back(own[static_cast<size_t>(p)]);
  for (Index at(y.dims()); !at.done(); at.next()) copy_element(x, at.dot(strides), y, at.linear());
  return one(std::move(y));
}

// The same elements under the inferred shape: unsqueeze, squeeze.
Result<std::vector<Value>> reshaped(const Call& call) {
  if (!call.out[0].is_static()) return call.fail("the axes must be known");
  return one(call.t(0).reshaped(call.out[0].dims()));
}

Result<std::vector<Value>> broadcast_to(const Call& call) {
  if (!call.out[0].is_static()) return call.fail("the shape must be known");
  TRY_ASSIGN(Tensor y, call.make(0));
  const Dims strides = broadcast_strides(call.t(0).dims(), y.dims());
  for (Index at(y.dims()); !at.done(); at.next())
    copy_element(call.t(0), at.dot(strides), y, at.linear());
  return one(std::move(y));
}

Result<std::vector<Value>> shape_of(const Call& call) {
  return one(Tensor::of_i64(call.t(0).dims()));
}

constexpr Row kRows[] = {
    {"broadcast_to", broadcast_to}, {"identity", identity},  {"relayout", identity},
    {"reshape", reshape},           {"shape_of", shape_of},  {"squeeze", reshaped},
    {"transpose", transpose},       {"unsqueeze", reshaped},
};

}  // namespace

std::span<const Row> shape_rows() { return kRows; }

}  // namespace tessera::ir::reference
