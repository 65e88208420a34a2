// Element-wise functions over broadcast operands: a block at a time, every operand of it is brought
// into a contiguous run of the compute type, unless it is one already.
#include "tessera/kernels/cpu/convert_block.h"
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/functions.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kShortRow = 128;  // rows below are gathered, several to a block

struct Raw128 {
  uint64_t halves[2];
};

template <class T>
void gather_run(const void* from, int64_t start, int64_t stride, int64_t count, void* to,
                int64_t at) {
  const T* __restrict x = static_cast<const T*>(from) + start;
  T* __restrict y = static_cast<T*>(to) + at;
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) y[i] = x[i];
  } else if (stride == 0) {
    const T value = x[0];
    for (int64_t i = 0; i < count; ++i) y[i] = value;
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = x[i * stride];
  }
}

using GatherFn = void (*)(const void*, int64_t, int64_t, int64_t, void*, int64_t);
GatherFn gather_for(int64_t bytes) {
  return bytes == 1   ? gather_run<uint8_t>
         : bytes == 2 ? gather_run<uint16_t>
         : bytes == 4 ? gather_run<uint32_t>
         : bytes == 8 ? gather_run<uint64_t>
                      : gather_run<Raw128>;
}

// One operand of the loop.
struct Operand {
  const char* data;
  int64_t bytes;  // of a stored element
  int32_t dtype;  // -1: stored in the compute type
  GatherFn gather;
  bool filled = false;  // a uniform operand's run is made once
  alignas(64) char raw[kBlock * 16];
  alignas(64) char run[kBlock * 16];
};

void as_f32(const uint16_t* __restrict from, float* __restrict to, int64_t n, bool brain) {
  if (brain)
    for (int64_t i = 0; i < n; ++i) to[i] = from_bf16(from[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = from_f16(from[i]);
}
void from_f32(const float* __restrict from, uint16_t* __restrict to, int64_t n, bool brain) {
  if (brain)
    for (int64_t i = 0; i < n; ++i) to[i] = to_bf16(from[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = to_f16(from[i]);
}

// Multi-index of linear position `at`.
void locate(const ElementwiseArgs& e, int64_t at, int64_t* index) {
  for (int axis = e.rank; axis-- > 0;) {
    index[axis] = at % e.dims[axis];
    at /= e.dims[axis];
  }
}

// Elements [at, at + count) of the space from operand k, stored form, contiguous.
const void* stored_run(const ElementwiseArgs& e, int k, Operand& o, int64_t at, int64_t count) {
  if (e.access[k] == Access::kContiguous) return o.data + at * o.bytes;
  int64_t index[kMaxSpaceRank];
  locate(e, at, index);
  const int last = e.rank - 1;
  int64_t offset = 0;
  for (int axis = 0; axis < e.rank; ++axis) offset += index[axis] * e.strides[k][axis];
  const int64_t stride = e.strides[k][last];
  if (stride == 1 && index[last] + count <= e.dims[last]) return o.data + offset * o.bytes;
  for (int64_t done = 0; done < count;) {
    const int64_t run = least(count - done, e.dims[last] - index[last]);
    o.gather(o.data, offset, stride, run, o.raw, done);
    done += run;
    index[last] += run;
    offset += run * stride;
    for (int axis = last; axis > 0 && index[axis] == e.dims[axis]; --axis) {
      offset += e.strides[k][axis - 1] - e.dims[axis] * e.strides[k][axis];
      index[axis] = 0;
      ++index[axis - 1];
    }
  }
  return o.raw;
}

const void* compute_run(const ElementwiseArgs& e, int k, Operand& o, int64_t at, int64_t count) {
  const bool uniform = e.access[k] == Access::kUniform;
  if (uniform && o.filled) return o.run;
  const void* stored = uniform ? o.data : stored_run(e, k, o, at, count);
  if (uniform) {
    o.gather(stored, 0, 0, kBlock, o.raw, 0);
    stored = o.raw;
    count = kBlock;
    o.filled = true;
  }
  if (o.dtype < 0) {
    if (uniform) __builtin_memcpy(o.run, stored, static_cast<size_t>(kBlock * o.bytes));
    return uniform ? o.run : stored;
  }
  if (e.compute == Compute::kF32 && (o.dtype == kDTypeF16 || o.dtype == kDTypeBF16))
    as_f32(static_cast<const uint16_t*>(stored), reinterpret_cast<float*>(o.run), count,
           o.dtype == kDTypeBF16);
  else
    convert_from(o.dtype, stored, e.compute, o.run, count);
  return o.run;
}

void store_run(const ElementwiseArgs& e, const void* values, char* y, int64_t at, int64_t count) {
  if (e.compute == Compute::kF32 && (e.out_dtype == kDTypeF16 || e.out_dtype == kDTypeBF16))
    from_f32(static_cast<const float*>(values), reinterpret_cast<uint16_t*>(y) + at, count,
             e.out_dtype == kDTypeBF16);
  else
    convert_to(e.compute, values, e.out_dtype, y + at * e.out_bytes, count);
}

}  // namespace

void elementwise(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& e = *static_cast<const ElementwiseArgs*>(launch->constants);
  const LoopFn loop = loop_for(e.function, e.compute);
  if (!loop) return launch->fail(launch, "element-wise function without a loop for its type");
  Operand operands[kMaxInputs];
  for (int k = 0; k < e.inputs; ++k) {
    operands[k].data = static_cast<const char*>(launch->ranges[k].data);
    operands[k].bytes = e.in_bytes[k];
    operands[k].dtype = e.in_dtypes[k];
    operands[k].gather = gather_for(e.in_bytes[k]);
  }
  char* y = static_cast<char*>(launch->ranges[e.inputs].data);
  alignas(64) char result[kBlock * 16];
  const int64_t row = e.dims[e.rank - 1];
  const int64_t begin = int64_t{first} * kElementwiseChunk;
  const int64_t end = least(e.count, begin + int64_t{count} * kElementwiseChunk);
  for (int64_t at = begin; at < end;) {
    int64_t n = least(kBlock, end - at);
    if (row >= kShortRow) n = least(n, row - at % row);
    const void* in[kMaxInputs];
    for (int k = 0; k < e.inputs; ++k) in[k] = compute_run(e, k, operands[k], at, n);
    const bool direct = e.out_dtype < 0;
    const char* why = loop(n, in, direct ? y + at * e.out_bytes : result, e.params);
    if (why) return launch->fail(launch, why);
    if (!direct) store_run(e, result, y, at, n);
    at += n;
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
