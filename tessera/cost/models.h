// The models of operators, as families.cc lists them. Each takes problems of its operators with the
// inputs that the table asks for.
#pragma once

#include "tessera/cost/machine.h"
#include "tessera/op/problem.h"

namespace tessera::cost::models {

using Model = Result<Tally> (*)(const Machine&, const op::Problem&);

Result<Tally> dot(const Machine& machine, const op::Problem& problem);
// As a product of windows: m = images and places, k = channels of a group and taps
Result<Tally> conv(const Machine& machine, const op::Problem& problem);
// LSTM and the like: inputs of all steps in one product, then a product for each step
Result<Tally> recurrent(const Machine& machine, const op::Problem& problem);
Result<Tally> attention_of(const Machine& machine, const op::Problem& problem);
// Two products with the state for each step
Result<Tally> linear_attention(const Machine& machine, const op::Problem& problem);
Result<Tally> elementwise(const Machine& machine, const op::Problem& problem);
Result<Tally> softmax(const Machine& machine, const op::Problem& problem);
Result<Tally> norm(const Machine& machine, const op::Problem& problem);
Result<Tally> reduce(const Machine& machine, const op::Problem& problem);
Result<Tally> pool(const Machine& machine, const op::Problem& problem);
// As much is read as is written; rows of it lie together
Result<Tally> move(const Machine& machine, const op::Problem& problem);
// The same bytes seen otherwise: nothing
Result<Tally> view(const Machine& machine, const op::Problem& problem);
Result<Tally> relayout(const Machine& machine, const op::Problem& problem);
Result<Tally> transpose(const Machine& machine, const op::Problem& problem);
// n log n comparisons of each row
Result<Tally> sort(const Machine& machine, const op::Problem& problem);
// Some operations for each element
Result<Tally> anything(const Machine& machine, const op::Problem& problem);

}  // namespace tessera::cost::models
