// Runs the program of a chain on one block after the other: each instruction is the loop of its
// function, over operands that are contiguous or one element.
#include "tessera/kernels/cpu/chain_args.h"
#include "tessera/kernels/cpu/convert_block.h"
#include "tessera/kernels/cpu/isa/entries.h"
#include "tessera/kernels/cpu/isa/functions.h"
#include "tessera/kernels/cpu/isa/quantize.h"

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {
namespace {

struct Raw128 {
  uint64_t halves[2];
};

// `count` elements between a packed run and one with a stride.
template <class T>
void gather_run(const char* from, int64_t stride, int64_t count, char* to) {
  const T* __restrict x = reinterpret_cast<const T*>(from);
  T* __restrict y = reinterpret_cast<T*>(to);
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) y[i] = x[i];
  } else if (stride == 0) {
    const T value = x[0];
    for (int64_t i = 0; i < count; ++i) y[i] = value;
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = x[i * stride];
  }
}
template <class T>
void scatter_run(const char* from, int64_t stride, int64_t count, char* to) {
  const T* __restrict x = reinterpret_cast<const T*>(from);
  T* __restrict y = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) y[i * stride] = x[i];
}

using RunFn = void (*)(const char*, int64_t, int64_t, char*);
RunFn gather_for(int32_t bytes) {
  return bytes == 1   ? gather_run<uint8_t>
         : bytes == 2 ? gather_run<uint16_t>
         : bytes == 4 ? gather_run<uint32_t>
         : bytes == 8 ? gather_run<uint64_t>
                      : gather_run<Raw128>;
}
RunFn scatter_for(int32_t bytes) {
  return bytes == 1   ? scatter_run<uint8_t>
         : bytes == 2 ? scatter_run<uint16_t>
         : bytes == 4 ? scatter_run<uint32_t>
         : bytes == 8 ? scatter_run<uint64_t>
                      : scatter_run<Raw128>;
}

// Calls run(elements from the block's start, offset in the operand, length) for each piece of
// [at, at + count) that lies in one row of the last axis.
template <class F>
TESSERA_INLINE void each_run(const ChainArgs& a, const ChainOperand& o, int64_t at, int64_t count,
                             F run) {
  const int last = a.rank - 1;
  int64_t index[kMaxSpaceRank], offset = 0, rest = at;
  for (int axis = last; axis >= 0; --axis) {
    index[axis] = axis == 0 ? rest : rest % a.dims[axis];
    rest /= a.dims[axis];
    offset += index[axis] * o.strides[axis];
  }
  for (int64_t done = 0; done < count;) {
    const int64_t length = least(count - done, a.dims[last] - index[last]);
    run(done, offset, length);
    done += length;
    index[last] += length;
    offset += length * o.strides[last];
    for (int axis = last; axis > 0 && index[axis] == a.dims[axis]; --axis) {
      offset += o.strides[axis - 1] - a.dims[axis] * o.strides[axis];
      index[axis] = 0;
      ++index[axis - 1];
    }
  }
}

void gather(const ChainArgs& a, const ChainOperand& o, const char* from, int64_t at, int64_t count,
            char* to) {
  const RunFn copy = gather_for(o.bytes);
  const int64_t bytes = o.bytes, stride = o.strides[a.rank - 1];
  each_run(
      a, o, at,
      count, [=](int64_t done, int64_t offset, int64_t length) __attribute__((always_inline)) {
        copy(from + offset * bytes, stride, length, to + done * bytes);
      });
}

void scatter(const ChainArgs& a, const ChainOperand& o, const char* from, int64_t at, int64_t count,
             char* to) {
  const RunFn copy = scatter_for(o.bytes);
  const int64_t bytes = o.bytes, stride = o.strides[a.rank - 1];
  each_run(
      a, o, at,
      count, [=](int64_t done, int64_t offset, int64_t length) __attribute__((always_inline)) {
        copy(from + done * bytes, stride, length, to + offset * bytes);
      });
}

void halves_to_floats(const uint16_t* __restrict from, float* __restrict to, int64_t n,
                      bool brain) {
  if (brain)
    for (int64_t i = 0; i < n; ++i) to[i] = from_bf16(from[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = from_f16(from[i]);
}
void floats_to_halves(const float* __restrict from, uint16_t* __restrict to, int64_t n,
                      bool brain) {
  if (brain)
    for (int64_t i = 0; i < n; ++i) to[i] = to_bf16(from[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = to_f16(from[i]);
}

bool is_half(int32_t dtype) { return dtype == kDTypeF16 || dtype == kDTypeBF16; }

template <class T>
void quantize_run(const float* x, float scale, int32_t zero, T* y, int64_t n) {
  const Vec scales = splat(scale);
  const VecI zeros = splat_int(zero);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    Narrow<T>::store(y + i, quantized<T>(load(x + i), scales, zeros));
  if (i < n)
    Narrow<T>::store(y + i, quantized<T>(Part(static_cast<int>(n - i)).load(x + i), scales, zeros),
                     n - i);
}

template <class T>
void dequantize_run(const T* x, float scale, int32_t zero, float* y, int64_t n) {
  const VecI zeros = splat_int(zero);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(y + i, __builtin_convertvector(Narrow<T>::load(x + i) - zeros, Vec) * scale);
  if (i < n)
    Part(static_cast<int>(n - i))
        .store(y + i, __builtin_convertvector(Narrow<T>::load(x + i, n - i) - zeros, Vec) * scale);
}

void quantize(const ChainInstr& c, const void* const* in, void* to, int64_t n) {
  const float scale = *static_cast<const float*>(in[1]);
  const int32_t zero = c.inputs > 2 ? static_cast<int32_t>(*static_cast<const float*>(in[2])) : 0;
  if (c.to == kDTypeU8)
    quantize_run(static_cast<const float*>(in[0]), scale, zero, static_cast<uint8_t*>(to), n);
  else if (c.to == kDTypeI8)
    quantize_run(static_cast<const float*>(in[0]), scale, zero, static_cast<int8_t*>(to), n);
  else if (c.from == kDTypeU8)
    dequantize_run(static_cast<const uint8_t*>(in[0]), scale, zero, static_cast<float*>(to), n);
  else
    dequantize_run(static_cast<const int8_t*>(in[0]), scale, zero, static_cast<float*>(to), n);
}

void convert(const ChainInstr& c, const void* from, void* to, int64_t n) {
  if (is_half(c.from) && c.to == kDTypeF32)
    halves_to_floats(static_cast<const uint16_t*>(from), static_cast<float*>(to), n,
                     c.from == kDTypeBF16);
  else if (c.from == kDTypeF32 && is_half(c.to))
    floats_to_halves(static_cast<const float*>(from), static_cast<uint16_t*>(to), n,
                     c.to == kDTypeBF16);
  else
    convert_run(c.from, from, c.to, to, n);
}

struct Block {
  int64_t at, count;
};

Block block_at(const ChainArgs& a, int64_t b) {
  if (!a.by_rows) return {b * a.block, least(a.block, a.count - b * a.block)};
  const int64_t row = b / a.pieces, start = (b - row * a.pieces) * a.block;
  return {row * a.row + start, least(a.block, a.row - start)};
}

int64_t row_offset(const ChainArgs& a, const ChainOperand& o, int64_t at) {
  int64_t offset = 0;
  for (int axis = a.rank - 1; axis > 0; --axis) {
    offset += at % a.dims[axis] * o.strides[axis];
    at /= a.dims[axis];
  }
  return offset + at * o.strides[0];
}

}  // namespace

void chain(const tessera_launch* launch, uint32_t first, uint32_t count) {
  const auto& a = *static_cast<const ChainArgs*>(launch->constants);
  const int operands = a.inputs + a.outputs;
  LoopFn loops[kMaxChain];
  for (int i = 0; i < a.instrs; ++i) {
    const ChainInstr& instr = a.program[i];
    loops[i] = instr.from < 0 ? loop_for(instr.function, instr.compute) : nullptr;
    if (instr.from < 0 && !loops[i])
      return launch->fail(launch, "element-wise function without a loop for its type");
  }
  alignas(64) char arena[kChainArena + kMaxChainSlots * 64];
  char* base[kMaxChainInputs + kMaxChainOutputs];
  char* place[kMaxChainInputs + kMaxChainOutputs + kMaxChainSlots];
  const int64_t slot_bytes = (a.block * a.slot_bytes + 63) / 64 * 64;
  // Slots that do not fit are none of this program's.
  for (int s = 0; s < kMaxChainSlots; ++s)
    place[operands + s] = (s + 1) * slot_bytes <= static_cast<int64_t>(sizeof(arena))
                              ? arena + s * slot_bytes
                              : nullptr;
  for (int k = 0; k < operands; ++k) {
    const ChainOperand& o = a.operands[k];
    base[k] = place[k] = static_cast<char*>(launch->ranges[k].data);
    if (o.access == Access::kPeriodic || o.access == Access::kGather)
      place[k] = place[operands + o.slot];
    if (o.access == Access::kPeriodic) gather(a, o, base[k], 0, least(a.block, a.count), place[k]);
  }
  const int64_t last = least(a.blocks, (int64_t{first} + count) * a.chunk);
  for (int64_t b = first * a.chunk; b < last; ++b) {
    const Block block = block_at(a, b);
    for (int k = 0; k < operands; ++k) {
      const ChainOperand& o = a.operands[k];
      if (o.access == Access::kContiguous)
        place[k] = base[k] + block.at * o.bytes;
      else if (o.access == Access::kRow)
        place[k] = base[k] + row_offset(a, o, block.at) * o.bytes;
      else if (o.access == Access::kGather && k < a.inputs)
        gather(a, o, base[k], block.at, block.count, place[k]);
    }
    for (int i = 0; i < a.instrs; ++i) {
      const ChainInstr& instr = a.program[i];
      const void* in[kMaxInputs];
      for (int k = 0; k < instr.inputs; ++k) in[k] = place[instr.in[k]];
      const int64_t n = instr.once ? 1 : block.count;
      if (instr.from >= 0 && instr.inputs > 1) {
        quantize(instr, in, place[instr.out], n);
      } else if (instr.from >= 0) {
        convert(instr, in[0], place[instr.out], n);
      } else if (const char* why = loops[i](n, in, instr.uniform, place[instr.out], instr.params)) {
        return launch->fail(launch, why);
      }
    }
    for (int k = a.inputs; k < operands; ++k)
      if (a.operands[k].access == Access::kGather)
        scatter(a, a.operands[k], place[k], block.at, block.count, base[k]);
  }
}

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
