// What code is made for: instructions and the width of vectors, as the processor itself tells.
#pragma once

#include <string>
#include <string_view>

namespace tessera::codegen::mlir {

struct Target {
  std::string isa;       // as kernels/cpu/isa.h calls it
  std::string features;  // as LLVM spells them: "+avx2,+fma"
  int vector_bytes = 16;
  bool fma = false;
  bool round = false;  // rounding to whole numbers
  bool half = false;   // conversions between f16 and f32
  bool masks = false;  // AVX-512's predicates, on all widths
  bool operator==(const Target&) const = default;
};

// The processor's instructions of an instruction set that the kernels are compiled for, of which
// `isa` is the name (kernels/cpu/isa.h). @pre the processor has it
Target target_for(std::string_view isa);

}  // namespace tessera::codegen::mlir
