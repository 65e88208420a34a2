// Constant block of the attention entries. Letters as in op/rows_attention.cc: B batch, H query
// heads, K key heads, S queries, T keys, E and F head sizes of keys and values. Strides in
// elements; the innermost axis of q, k, v and y is packed.
#pragma once

#include <cstdint>

namespace tessera::kernels::cpu {

enum class AttentionMask : int32_t { kNone, kBool, kAdded };

inline constexpr int64_t kQueryBlock = 48;    // queries of a work item
inline constexpr int64_t kKeyBlock = 192;     // keys whose scores are on the stack at once
inline constexpr int64_t kMaxHeadSize = 256;  // of E and F
inline constexpr int64_t kFewQueries = 3;     // up to so many: keys are read where they lie

// attention_keys: ranges k, v, workspace; a work item is a (b, key head).
// attention: ranges q, v, workspace, mask (if any), y; a work item is a (b, h, block of queries).
// attention_few: ranges q, k, v, mask (if any), y; a work item is a (b, h).
// Workspace: per (b, key head) the keys as panels (panel, e, key), then, unless F is whole panels,
// the values (panel, t, f).
struct AttentionArgs {
  int64_t B, H, K, S, T, E, F;
  int64_t q[3], k[3], v[3], y[3];  // strides of batch, head, row
  int64_t mask_strides[4];         // 0 where it is broadcast
  int64_t keys_size, values_size;  // floats of a (b, key head) in the workspace
  float scale, softcap;            // softcap 0: none
  int32_t causal;
  AttentionMask mask;
};

}  // namespace tessera::kernels::cpu
