// Constant block of the recurrent entry. Letters as in op/rows_rnn.cc: T steps, N batch, I inputs,
// H hidden, D directions.
#pragma once

#include <cstdint>

namespace tessera::kernels::cpu {

enum class RnnKind : int32_t { kRnn, kGru, kLstm };
enum class Activation : int32_t {
  kAffine,
  kElu,
  kHardSigmoid,
  kLeakyRelu,
  kRelu,
  kScaledTanh,
  kSigmoid,
  kSoftplus,
  kSoftsign,
  kTanh,
  kThresholdedRelu
};

// Ranges: of x, w, r, b, lengths, h0, c0, peepholes, y, last h, last c those whose bit is set in
// `present`, then the workspace: rnn_scratch(H, gates) floats for each work item (d, n).
struct RnnArgs {
  RnnKind kind;
  int32_t gates, directions, reverse, flag,
      wide_lengths;  // flag: linear_before_reset or input_forget
  uint32_t present;
  int64_t T, N, I, H;
  Activation f[2][3];
  float alpha[2][3], beta[2][3], clip;
};

constexpr int64_t rnn_scratch(int64_t H, int64_t gates) { return (2 * gates + 3) * H + 16; }

}  // namespace tessera::kernels::cpu
