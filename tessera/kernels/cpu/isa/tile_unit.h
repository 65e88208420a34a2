// Matrix units that multiply tiles: eight registers of up to kTileRows rows of kTileBytes bytes,
// shaped once by configure(). A unit is a class with
//   configure(shapes)             rows and bytes of a row for each register, until release()
//   zero<T>(), load<T>(p, pitch), store<T>(p, pitch)
//   products<C, A, B, sa, sb>()   C (rows, i32) += A (rows, bytes) * B (quads, i32 columns), where
//                                 sa, sb: whether bytes are signed
//   bf16_products<C, A, B>()      C (rows, f32) += A (rows, bf16) * B (pairs, f32 columns)
// AmxTiles is that of the processor, EmulatedTiles the same in plain C++ for processors without.
#pragma once

#include <cstdint>

#include "tessera/kernels/cpu/isa/half.h"

#if defined(__AMX_INT8__) || defined(__AMXINT8__)  // as gcc, as clang 14 names it
#include <immintrin.h>
#endif

namespace tessera::kernels::cpu::TESSERA_ISA_NAME {

constexpr int kTileRows = 16, kTileBytes = 64, kTiles = 8;

struct TileShape {
  int rows, bytes;
};

struct EmulatedTiles {
  TileShape shapes[kTiles];
  alignas(64) uint8_t data[kTiles][kTileRows][kTileBytes];

  void configure(const TileShape (&to)[kTiles]) {
    __builtin_memcpy(shapes, to, sizeof shapes);
    __builtin_memset(data, 0, sizeof data);
  }
  void release() {}
  template <int T>
  void zero() {
    __builtin_memset(data[T], 0, sizeof data[T]);
  }
  // What is beyond the shape becomes 0.
  template <int T>
  void load(const void* p, int64_t pitch) {
    zero<T>();
    for (int r = 0; r < shapes[T].rows; ++r)
      __builtin_memcpy(data[T][r], static_cast<const char*>(p) + r * pitch,
                       static_cast<size_t>(shapes[T].bytes));
  }
  template <int T>
  void store(void* p, int64_t pitch) {
    for (int r = 0; r < shapes[T].rows; ++r)
      __builtin_memcpy(static_cast<char*>(p) + r * pitch, data[T][r],
                       static_cast<size_t>(shapes[T].bytes));
  }
  template <int C, int A, int B, bool kSignedA, bool kSignedB>
  void products() {
    for (int m = 0; m < shapes[C].rows; ++m)
      for (int n = 0; n < shapes[C].bytes / 4; ++n) {
        uint32_t sum;
        __builtin_memcpy(&sum, data[C][m] + n * 4, 4);
        for (int k = 0; k < shapes[A].bytes; ++k) {
          const uint8_t a = data[A][m][k], b = data[B][k / 4][n * 4 + k % 4];
          sum += static_cast<uint32_t>((kSignedA ? static_cast<int8_t>(a) : int32_t{a}) *
                                       (kSignedB ? static_cast<int8_t>(b) : int32_t{b}));
        }
        __builtin_memcpy(data[C][m] + n * 4, &sum, 4);
      }
  }
  // Elements `k` and `k + 1` of a row and of a column's pair.
  static float pair(const uint8_t* a, const uint8_t* b) {
    uint16_t x[2], y[2];
    __builtin_memcpy(x, a, 4);
    __builtin_memcpy(y, b, 4);
    return from_bf16(x[0]) * from_bf16(y[0]) + from_bf16(x[1]) * from_bf16(y[1]);
  }
  template <int C, int A, int B>
  void bf16_products() {
    for (int m = 0; m < shapes[C].rows; ++m)
      for (int n = 0; n < shapes[C].bytes / 4; ++n) {
        float sum;
        __builtin_memcpy(&sum, data[C][m] + n * 4, 4);
        for (int k = 0; k < shapes[A].bytes / 4; ++k)
          sum += pair(data[A][m] + k * 4, data[B][k] + n * 4);
        __builtin_memcpy(data[C][m] + n * 4, &sum, 4);
      }
  }
};

#if defined(__AMX_INT8__) || defined(__AMXINT8__)  // as gcc, as clang 14 names it

struct AmxTiles {
  void configure(const TileShape (&shapes)[kTiles]) {
    struct alignas(64) {
      uint8_t palette = 1, start = 0, reserved[14] = {};
      uint16_t bytes[16] = {};
      uint8_t rows[16] = {};
    } config;
    for (int t = 0; t < kTiles; ++t) {
      config.bytes[t] = static_cast<uint16_t>(shapes[t].bytes);
      config.rows[t] = static_cast<uint8_t>(shapes[t].rows);
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
  }
  void release() { _tile_release(); }
  template <int T>
  void zero() {
    __asm__ volatile("tilezero %%tmm%c0" ::"i"(T));
  }
  template <int T>
  void load(const void* p, int64_t pitch) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(pitch), "i"(T) : "memory");
  }
  template <int T>
  void store(void* p, int64_t pitch) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(pitch), "i"(T) : "memory");
  }
  template <int C, int A, int B, bool kSignedA, bool kSignedB>
  void products() {
    if constexpr (kSignedA && kSignedB)
      __asm__ volatile("tdpbssd %%tmm%c0, %%tmm%c1, %%tmm%c2" ::"i"(B), "i"(A), "i"(C));
    else if constexpr (kSignedA)
      __asm__ volatile("tdpbsud %%tmm%c0, %%tmm%c1, %%tmm%c2" ::"i"(B), "i"(A), "i"(C));
    else if constexpr (kSignedB)
      __asm__ volatile("tdpbusd %%tmm%c0, %%tmm%c1, %%tmm%c2" ::"i"(B), "i"(A), "i"(C));
    else
      __asm__ volatile("tdpbuud %%tmm%c0, %%tmm%c1, %%tmm%c2" ::"i"(B), "i"(A), "i"(C));
  }
  template <int C, int A, int B>
  void bf16_products() {
    __asm__ volatile("tdpbf16ps %%tmm%c0, %%tmm%c1, %%tmm%c2" ::"i"(B), "i"(A), "i"(C));
  }
};

#endif

}  // namespace tessera::kernels::cpu::TESSERA_ISA_NAME
