// Constant blocks of the attention entries. Letters as in op/rows_attention.cc: B batch, H query
// heads, K key heads, S queries, P past keys, T all keys, E and F head sizes of keys and values.
// Strides in elements; the innermost axis of q, k, v and y is packed.
#pragma once

#include <cstdint>

namespace tessera::kernels::cpu {

enum class AttentionMask : int32_t { kNone, kBool, kAdded };

inline constexpr int64_t kQueryBlock = 72;    // queries of a work item, at most
inline constexpr int64_t kKeyBlock = 192;     // keys whose scores are on the stack at once
inline constexpr int64_t kMaxHeadSize = 256;  // of E and F
inline constexpr int64_t kNarrowQueries = 64, kNarrowKeys = 128;  // the same of narrow_attention
inline constexpr int64_t kFewQueries = 4;  // up to so many: keys are read where they lie

// Keys or values of all (b, key head), E wide: P past rows, then T new ones; both together go to
// `target`, if they are to be written. Strides of batch, head, row.
struct KeyRows {
  int64_t P, T, E;
  int64_t past[3], fresh[3], target[3];
  int32_t written;
};

// attention_append: ranges past (if P > 0), fresh, target; a work item is a (b, key head) of K
// each.
struct AppendArgs {
  int64_t K;
  KeyRows rows;
};

// attention_keys: ranges k, v, workspace; a work item is a (b, key head).
// attention: ranges q, v, workspace, y, mask, lengths (the last two if any); a work item is a
// (b, h, block of `rows` queries).
// narrow_keys, narrow_attention: the same with keys and values in bf16, in the panels of narrow.h:
// sizes in the workspace are in those elements. Of narrow_attention, v is no range.
// attention_few: ranges q, those of `keys` as of attention_append (the target if it is written),
// those of `values`, y, mask, lengths; a work item is a (b, key head, run of split_keys keys). If
// that is more than one run, y are parts: partial_size() floats for each query of a work item.
// attention_join: ranges parts, y; a work item is a (b, key head).
// Workspace: per (b, key head) the keys as panels (panel, e, key), then, unless F is whole panels,
// the values (panel, t, f).
struct AttentionArgs {
  int64_t B, H, K, S, T, E, F;
  int64_t q[3], k[3], v[3], y[3];  // strides of batch, head, row
  KeyRows keys, values;            // of attention_few
  int64_t mask_strides[4];         // 0 where it is broadcast
  int64_t mask_keys;               // keys beyond are hidden
  int64_t past;                    // causal: query s sees keys up to s + past
  int64_t keys_size, values_size;  // floats of a (b, key head) in the workspace
  int64_t rows;
  int64_t splits, split_keys;  // of attention_few
  float scale, softcap;        // softcap 0: none
  int32_t causal;
  int32_t length_bytes;  // of an element of `lengths`: 4, 8, or 0 if there are none
  AttentionMask mask;
};

// Of a query: the largest score and the sum of the weights, then the sums of the values.
constexpr int64_t partial_size(int64_t F) { return F + 2; }

}  // namespace tessera::kernels::cpu
