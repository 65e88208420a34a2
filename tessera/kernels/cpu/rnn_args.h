// Constant blocks of the recurrent entries, and how their weights are packed. Letters as in
// op/rows_rnn.cc: T steps, N batch, I inputs, H hidden, G gates, D directions. P: panels of hidden
// units, of kPanel each; units beyond H have weights of 0.
#pragma once

#include <cstdint>

#include "tessera/kernels/cpu/panel.h"

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

inline constexpr int64_t kRnnBatch = 12;      // sequences of a work item, at most
inline constexpr int64_t kRnnInputRows = 96;  // rows of x of a work item, at most

// Weights (D, G*H, K) of gates [first, first + gates) as (direction, panel, k, gate, unit); the
// gates of the next group come behind those of this one, within a direction.
struct RnnPackArgs {
  int64_t D, G, H, K;
  int64_t split;  // gates of the first group; the second has the others, if any
  bool apart;     // each gate is a panel of its own: (direction, panel, gate, k, unit)
};
constexpr int64_t rnn_packed_size(const RnnPackArgs& a) {
  return a.D * panels_of(a.H) * a.G * kPanel * a.K;
}

// rnn_input: ranges x, w packed apart, biases (if any), y: per direction W x and the biases, (D,
// T*N, P, G, unit). Work item = (direction, block of rows, block of panels of gates), the last
// fastest.
struct RnnInputArgs {
  int64_t rows, I, H, G;  // rows: T*N
  int64_t row_step, panel_step, row_items, panel_items;
  int32_t biased;
  int32_t linear;  // the recurrent bias of the last gate is not added
};

// rnn: ranges r packed, the result of rnn_input, then of biases, lengths, h0, c0, peepholes, y,
// last h, last c those whose bit is set in `present` (bits 3 to 7, then 8 to 10), then the scratch:
// rnn_scratch() floats per work item. Work item = (direction, block of `batch` sequences).
struct RnnArgs {
  RnnKind kind;
  int32_t gates, directions, reverse;
  int32_t flag;  // linear_before_reset or input_forget
  int32_t wide_lengths;
  int32_t usual;  // sigmoid and tanh where they are the defaults, without clip
  uint32_t present;
  int64_t T, N, H, batch;
  Activation f[2][3];
  float alpha[2][3], beta[2][3], clip;
};

constexpr int64_t rnn_scratch(int64_t H, int64_t batch) {
  return (5 * batch + 4) * panels_of(H) * kPanel;
}

}  // namespace tessera::kernels::cpu
