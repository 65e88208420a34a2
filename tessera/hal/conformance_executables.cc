#include "tessera/hal/conformance_executables.h"

#include <chrono>
#include <cstring>
#include <span>

#include "tessera/base/elf.h"

namespace tessera::hal {
namespace {

void add(const tessera_launch* l, uint32_t first, uint32_t count) {
  const auto* a = static_cast<const float*>(l->ranges[0].data);
  const auto* b = static_cast<const float*>(l->ranges[1].data);
  auto* c = static_cast<float*>(l->ranges[2].data);
  for (uint32_t i = first; i < first + count; ++i) c[i] = a[i] + b[i];
}

void spin(const tessera_launch* l, uint32_t, uint32_t) {
  uint64_t us = 0;
  std::memcpy(&us, l->constants, sizeof us);
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (std::chrono::steady_clock::now() < end) {
  }
  ++*static_cast<uint32_t*>(l->ranges[0].data);
}

void trap(const tessera_launch* l, uint32_t, uint32_t) { l->fail(l, "trap"); }

// The same three for x86-64. A launch holds ranges at 16, constants at 24, fail at 32.
// clang-format off
[[maybe_unused]] constexpr uint8_t kX86[] = {
    // add(launch rdi, first esi, count edx)
    0x48, 0x8b, 0x47, 0x10,                          //  0: mov rax, [rdi + 16]
    0x48, 0x8b, 0x08,                                //  4: mov rcx, [rax]       a
    0x4c, 0x8b, 0x40, 0x10,                          //  7: mov r8, [rax + 16]   b
    0x4c, 0x8b, 0x48, 0x20,                          //  b: mov r9, [rax + 32]   c
    0x89, 0xf6,                                      //  f: mov esi, esi
    0x89, 0xd2,                                      // 11: mov edx, edx
    0x48, 0x01, 0xf2,                                // 13: add rdx, rsi
    0x48, 0x39, 0xd6,                                // 16: cmp rsi, rdx
    0x73, 0x16,                                      // 19: jae 31
    0xf3, 0x0f, 0x10, 0x04, 0xb1,                    // 1b: movss xmm0, [rcx + 4 rsi]
    0xf3, 0x41, 0x0f, 0x58, 0x04, 0xb0,              // 20: addss xmm0, [r8 + 4 rsi]
    0xf3, 0x41, 0x0f, 0x11, 0x04, 0xb1,              // 26: movss [r9 + 4 rsi], xmm0
    0x48, 0xff, 0xc6,                                // 2c: inc rsi
    0xeb, 0xe5,                                      // 2f: jmp 16
    0xc3,                                            // 31: ret
    // spin
    0x41, 0x54,                                      // 32: push r12
    0x41, 0x55,                                      // 34: push r13
    0x48, 0x83, 0xec, 0x18,                          // 36: sub rsp, 24
    0x49, 0x89, 0xfc,                                // 3a: mov r12, rdi
    0x48, 0x8b, 0x47, 0x18,                          // 3d: mov rax, [rdi + 24]
    0x4c, 0x69, 0x28, 0xe8, 0x03, 0x00, 0x00,        // 41: imul r13, [rax], 1000
    0xe8, 0x20, 0x00, 0x00, 0x00,                    // 48: call 6d
    0x49, 0x01, 0xc5,                                // 4d: add r13, rax
    0xe8, 0x18, 0x00, 0x00, 0x00,                    // 50: call 6d
    0x4c, 0x39, 0xe8,                                // 55: cmp rax, r13
    0x7c, 0xf6,                                      // 58: jl 50
    0x49, 0x8b, 0x44, 0x24, 0x10,                    // 5a: mov rax, [r12 + 16]
    0x48, 0x8b, 0x00,                                // 5f: mov rax, [rax]
    0xff, 0x00,                                      // 62: inc dword [rax]
    0x48, 0x83, 0xc4, 0x18,                          // 64: add rsp, 24
    0x41, 0x5d,                                      // 68: pop r13
    0x41, 0x5c,                                      // 6a: pop r12
    0xc3,                                            // 6c: ret
    // The monotonic clock in ns, in rax: Linux' clock_gettime by its number.
    0xb8, 0xe4, 0x00, 0x00, 0x00,                    // 6d: mov eax, 228
    0xbf, 0x01, 0x00, 0x00, 0x00,                    // 72: mov edi, 1
    0x48, 0x8d, 0x74, 0x24, 0x08,                    // 77: lea rsi, [rsp + 8]
    0x0f, 0x05,                                      // 7c: syscall
    0x48, 0x69, 0x44, 0x24, 0x08,
    0x00, 0xca, 0x9a, 0x3b,                          // 7e: imul rax, [rsp + 8], 1000000000
    0x48, 0x03, 0x44, 0x24, 0x10,                    // 87: add rax, [rsp + 16]
    0xc3,                                            // 8c: ret
    // trap
    0x48, 0x8d, 0x35, 0x03, 0x00, 0x00, 0x00,        // 8d: lea rsi, [rip + 3]
    0xff, 0x67, 0x20,                                // 94: jmp [rdi + 32]
    't', 'r', 'a', 'p', 0,                           // 97
};
// The same for aarch64.
[[maybe_unused]] constexpr uint32_t kArm64[] = {
    // add(launch x0, first w1, count w2)
    0xf9400803,  //  0: ldr x3, [x0, 16]
    0xf9400064,  //  4: ldr x4, [x3]          a
    0xf9400865,  //  8: ldr x5, [x3, 16]      b
    0xf9401066,  //  c: ldr x6, [x3, 32]      c
    0x2a0103e1,  // 10: mov w1, w1
    0x8b224022,  // 14: add x2, x1, w2, uxtw
    0xeb02003f,  // 18: cmp x1, x2
    0x540000e2,  // 1c: b.hs 38
    0xbc617880,  // 20: ldr s0, [x4, x1, lsl 2]
    0xbc6178a1,  // 24: ldr s1, [x5, x1, lsl 2]
    0x1e212800,  // 28: fadd s0, s0, s1
    0xbc2178c0,  // 2c: str s0, [x6, x1, lsl 2]
    0x91000421,  // 30: add x1, x1, 1
    0x17fffff9,  // 34: b 18
    0xd65f03c0,  // 38: ret
    // spin
    0xa9be7bfd,  // 3c: stp x29, x30, [sp, -32]!
    0xf9400c09,  // 40: ldr x9, [x0, 24]
    0xf9400129,  // 44: ldr x9, [x9]
    0xd2807d0a,  // 48: mov x10, 1000
    0x9b0a7d29,  // 4c: mul x9, x9, x10
    0xf940080a,  // 50: ldr x10, [x0, 16]
    0xf940014a,  // 54: ldr x10, [x10]
    0x9400000a,  // 58: bl 80
    0x8b000129,  // 5c: add x9, x9, x0
    0x94000008,  // 60: bl 80
    0xeb09001f,  // 64: cmp x0, x9
    0x54ffffcb,  // 68: b.lt 60
    0xb940014b,  // 6c: ldr w11, [x10]
    0x1100056b,  // 70: add w11, w11, 1
    0xb900014b,  // 74: str w11, [x10]
    0xa8c27bfd,  // 78: ldp x29, x30, [sp], 32
    0xd65f03c0,  // 7c: ret
    // The monotonic clock in ns, in x0: Linux' clock_gettime by its number.
    0xd2800e28,  // 80: mov x8, 113
    0xd2800020,  // 84: mov x0, 1
    0x910043e1,  // 88: add x1, sp, 16
    0xd4000001,  // 8c: svc 0
    0xa94107e0,  // 90: ldp x0, x1, [sp, 16]
    0x52994002,  // 94: mov w2, 0xca00
    0x72a77342,  // 98: movk w2, 0x3b9a, lsl 16
    0x9b020400,  // 9c: madd x0, x0, x2, x1
    0xd65f03c0,  // a0: ret
    // trap
    0x10000061,  // a4: adr x1, b0
    0xf9401002,  // a8: ldr x2, [x0, 32]
    0xd61f0040,  // ac: br x2
    0x70617274,  // b0: "trap"
    0,
};
// clang-format on

}  // namespace

ConformanceExecutables host_conformance_executables() {
  return {.format = "host_fn", .functions = {{"add", add}, {"spin", spin}, {"trap", trap}}};
}

ConformanceExecutables elf_conformance_executables() {
#if defined(__x86_64__)
  const auto code = std::as_bytes(std::span(kX86));
  constexpr uint64_t kSpin = 0x32, kTrap = 0x8d;
#elif defined(__aarch64__)
  const auto code = std::as_bytes(std::span(kArm64));
  constexpr uint64_t kSpin = 0x3c, kTrap = 0xa4;
#else
  const std::span<const std::byte> code;
  constexpr uint64_t kSpin = 0, kTrap = 0;
#endif
  if (code.empty()) return {};
  return {.format = "elf",
          .bytes = write_elf({.bytes = {code.begin(), code.end()},
                              .entries = {{"add", 0}, {"spin", kSpin}, {"trap", kTrap}}}),
          .functions = {}};
}

}  // namespace tessera::hal
