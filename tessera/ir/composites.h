// What several families of decompositions share.
#pragma once

#include "tessera/ir/builder.h"

namespace tessera::ir {

// The type to compute in: floats narrower than 32 bits become f32, so that a composite rounds once.
DType wide(DType dtype);
// The wider of two float types.
DType wider(DType a, DType b);
// The value in its wide type.
ValueId widen(Builder& b, ValueId x);

// Mean over axes that are kept as 1. @pre x is ranked
ValueId mean(Builder& b, ValueId x, const std::vector<int64_t>& axes);
// 0, 1, ... along `axis` of x, i64 with size 1 elsewhere, so that it broadcasts against x. @pre 0
// <= axis < rank
ValueId index_along(Builder& b, ValueId x, int64_t axis);
// 0, 1, ..., n - 1, where n is one i64 element.
ValueId count_up(Builder& b, ValueId n);
// first, first + 1, ..., end - 1
std::vector<int64_t> range(int64_t first, int64_t end);
// `axis` of a value of known rank as [0, rank); an error is remembered.
int64_t axis_of(Builder& b, ValueId x, int64_t axis);

// a (B,H,M,K) times x (B,Hk,K,N), where head h meets head h / (H/Hk): (B,H,M,N).
ValueId heads_dot(Builder& b, ValueId a, ValueId x);
// The graph's nodes, its inputs replaced by `inputs`: its outputs.
std::vector<ValueId> inlined(Builder& b, const Graph& graph, const std::vector<ValueId>& inputs);

}  // namespace tessera::ir
