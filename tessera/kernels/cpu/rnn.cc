// rnn, gru, lstm in f32: row cpu.rnn.
#include <algorithm>
#include <cmath>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/rnn_args.h"

namespace tessera::kernels::cpu {
namespace {

constexpr std::string_view kActivations[] = {
    "affine",   "elu",      "hard_sigmoid", "leaky_relu",      "relu", "scaled_tanh", "sigmoid",
    "softplus", "softsign", "tanh",         "thresholded_relu"};

std::optional<Activation> activation_of(std::string_view name) {
  const auto found = std::find(std::begin(kActivations), std::end(kActivations), name);
  if (found == std::end(kActivations)) return std::nullopt;
  return static_cast<Activation>(found - std::begin(kActivations));
}

struct Kind {
  std::string_view op;
  RnnKind kind;
  int gates, functions;
};
constexpr Kind kKinds[] = {
    {"rnn", RnnKind::kRnn, 1, 1}, {"gru", RnnKind::kGru, 3, 2}, {"lstm", RnnKind::kLstm, 4, 3}};
const Kind& kind_of(const Problem& p) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds),
                       [&](const Kind& k) { return k.op == p.op->name; });
}

bool wanted(const Problem& p, size_t output) {
  return output < p.out.size() && p.out[output].present;
}

Result<RnnArgs> args_of(const Problem& p) {
  const Kind& kind = kind_of(p);
  for (size_t i = 0; i < p.in.size(); ++i)
    if (p.has(i) && i != 4 && p.in[i].dtype != DType::kF32)
      return error(Code::kInvalidArgument, "input {} is {}, need f32", i, name_of(p.in[i].dtype));
  if (p.has(4) && p.in[4].dtype != DType::kI32 && p.in[4].dtype != DType::kI64)
    return error(Code::kInvalidArgument, "lengths are {}, need i32 or i64", name_of(p.in[4].dtype));
  RnnArgs args{};
  args.kind = kind.kind;
  args.gates = kind.gates;
  args.T = p.in[0].dims[0];
  args.N = p.in[0].dims[1];
  args.I = p.in[0].dims[2];
  args.H = p.in[2].dims[2];
  args.directions = static_cast<int32_t>(p.in[1].dims[0]);
  args.reverse = p.attrs.s("direction") == "reverse";
  args.flag = p.attrs.i("linear_before_reset") != 0 || p.attrs.i("input_forget") != 0;
  args.clip = static_cast<float>(p.attrs.f("clip", INFINITY));
  args.wide_lengths = p.has(4) && p.in[4].dtype == DType::kI64;
  const op::Strings names = p.attrs.strings("activations");
  const op::Floats alpha = p.attrs.floats("alpha"), beta = p.attrs.floats("beta");
  const auto functions = static_cast<size_t>(kind.functions * args.directions);
  if (args.directions > 2 || names.size() != functions || alpha.size() != functions ||
      beta.size() != functions)
    return error(Code::kInvalidArgument, "{} activations for {} directions", names.size(),
                 args.directions);
  for (size_t i = 0; i < names.size(); ++i) {
    const auto f = activation_of(names[i]);
    if (!f) return error(Code::kInvalidArgument, "unknown activation '{}'", names[i]);
    const size_t d = i / static_cast<size_t>(kind.functions),
                 k = i % static_cast<size_t>(kind.functions);
    args.f[d][k] = *f;
    args.alpha[d][k] = static_cast<float>(alpha[i]);
    args.beta[d][k] = static_cast<float>(beta[i]);
  }
  for (uint32_t i = 0; i < 8; ++i)
    if (p.has(i)) args.present |= 1u << i;
  for (uint32_t i = 0; i < 3; ++i)
    if (wanted(p, i)) args.present |= 1u << (8 + i);
  return args;
}

Claim probe(const Problem& p) {
  const auto args = args_of(p);
  if (!args) return Claim::refuse("", args.error().message);
  const double flops =
      2.0 * static_cast<double>(args->T * args->N * args->directions * args->gates * args->H) *
      static_cast<double>(args->I + args->H);
  Claim c = claim(flops, bytes_of(p), 0.15, NumericClass::kApproximate);
  c.workspace = Bytes(args->N * args->directions * rnn_scratch(args->H, args->gates) * 4);
  return c;
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  TRY_ASSIGN(const RnnArgs args, args_of(p));
  std::vector<LaunchSpec> launches;
  if (args.N * args.directions == 0) return launches;
  LaunchSpec launch;
  launch.entry = "cpu.rnn";
  launch.grid = items(args.N * args.directions, 1);
  launch.arguments = all_arguments(p);
  launch.arguments.push_back({Argument::kWorkspace, 0, 0});
  launch.set_constants(args);
  launches.push_back(std::move(launch));
  return launches;
}

// Any of the outputs may be the one that is wanted.
constexpr Row kRows[] = {
    {"rnn", "cpu.rnn", row_major<probe, false>, prepare},
    {"gru", "cpu.rnn", row_major<probe, false>, prepare},
    {"lstm", "cpu.rnn", row_major<probe, false>, prepare},
};

}  // namespace

std::span<const Row> rnn_rows() { return kRows; }

}  // namespace tessera::kernels::cpu
