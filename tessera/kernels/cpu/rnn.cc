// rnn, gru, lstm in f32: row cpu.rnn. The product with the inputs is one for all steps; what is
// recurrent takes its weights from panels that are packed when the model is loaded.
#include <algorithm>
#include <cmath>

#include "tessera/kernels/cpu/claims.h"
#include "tessera/kernels/cpu/families.h"
#include "tessera/kernels/cpu/rnn_pack.h"

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

struct Plan {
  RnnArgs args{};
  RnnInputArgs input{};
  RnnPackArgs packs[2] = {};  // of inputs 1 and 2
  // Floats of the workspace that come before.
  int64_t weights_at[2] = {}, input_at = 0, scratch_at = 0, floats = 0;
};

bool packed_ahead(const Problem& p, size_t i) { return p.in[i].constant && p.in[i].count() > 0; }

int64_t reserve(Plan& plan, int64_t floats) {
  const int64_t at = plan.floats;
  plan.floats += ceil_div(floats, kPanel) * kPanel;
  return at;
}

Reason set_activations(const Problem& p, const Kind& kind, RnnArgs& args) {
  Reason why;
  const op::Strings names = p.attrs.strings("activations");
  const op::Floats alpha = p.attrs.floats("alpha"), beta = p.attrs.floats("beta");
  const auto functions = static_cast<size_t>(kind.functions * args.directions);
  why.need(args.directions <= 2 && names.size() == functions && alpha.size() == functions &&
               beta.size() == functions,
           "{} activations for {} directions", names.size(), args.directions);
  args.clip = static_cast<float>(p.attrs.f("clip", INFINITY));
  args.usual = std::isinf(args.clip);
  for (size_t i = 0; i < names.size() && why.fine(); ++i) {
    const auto f = activation_of(names[i]);
    if (!why.need(f.has_value(), "unknown activation '{}'", names[i])) break;
    const size_t d = i / static_cast<size_t>(kind.functions),
                 k = i % static_cast<size_t>(kind.functions);
    args.f[d][k] = *f;
    args.alpha[d][k] = static_cast<float>(alpha[i]);
    args.beta[d][k] = static_cast<float>(beta[i]);
    const Activation usual =
        k == 0 && kind.functions > 1 ? Activation::kSigmoid : Activation::kTanh;
    args.usual = args.usual && *f == usual;
  }
  return why;
}

Reason fill(const Problem& p, Plan& plan) {
  const Kind& kind = kind_of(p);
  Reason why;
  for (size_t i = 0; i < p.in.size() && why.fine(); ++i)
    if (p.has(i) && i != 4) why.input_is(p, i, DType::kF32);
  if (why.fine() && p.has(4))
    why.need(p.in[4].dtype == DType::kI32 || p.in[4].dtype == DType::kI64,
             "lengths are {}, need i32 or i64", name_of(p.in[4].dtype));
  if (!why.fine()) return why;
  RnnArgs& args = plan.args;
  args.kind = kind.kind;
  args.gates = kind.gates;
  args.T = p.in[0].dims[0];
  args.N = p.in[0].dims[1];
  args.H = p.in[2].dims[2];
  args.directions = static_cast<int32_t>(p.in[1].dims[0]);
  args.reverse = p.attrs.s("direction") == "reverse";
  args.flag = p.attrs.i("linear_before_reset") != 0 || p.attrs.i("input_forget") != 0;
  args.wide_lengths = p.has(4) && p.in[4].dtype == DType::kI64;
  why = set_activations(p, kind, args);
  for (uint32_t i = 3; i < 8; ++i)
    if (p.has(i)) args.present |= 1u << i;
  for (uint32_t i = 0; i < 3; ++i)
    if (wanted(p, i)) args.present |= 1u << (8 + i);
  const int64_t blocks = std::max<int64_t>(ceil_div(args.N, kRnnBatch), 1);
  args.batch = ceil_div(args.N, blocks);

  const int64_t D = args.directions, G = kind.gates, H = args.H, I = p.in[0].dims[2],
                panels = panels_of(H) * G;
  // The last gate of gru waits for the one before, unless that is applied after the product.
  const bool linear = kind.kind == RnnKind::kGru && args.flag != 0;
  const bool waits = kind.kind == RnnKind::kGru && args.flag == 0;
  plan.packs[0] = {D, G, H, I, G, true};
  plan.packs[1] = {D, G, H, H, waits ? G - 1 : G, false};
  RnnInputArgs& input = plan.input;
  input.rows = args.T * args.N;
  input.I = I;
  input.H = H;
  input.G = G;
  input.biased = p.has(3);
  input.linear = linear;
  const int64_t row_blocks = std::max<int64_t>(ceil_div(input.rows, kRnnInputRows), 1);
  input.row_step = ceil_div(input.rows, row_blocks);
  // Few rows: the weights are what takes time, and are shared out.
  input.panel_step = row_blocks > 1 ? panels : std::max<int64_t>(ceil_div(panels, 4), 8);
  input.row_items = row_blocks;
  input.panel_items = ceil_div(panels, std::max<int64_t>(input.panel_step, 1));

  for (size_t i = 0; i < 2; ++i)
    if (!packed_ahead(p, i + 1)) plan.weights_at[i] = reserve(plan, rnn_packed_size(plan.packs[i]));
  plan.input_at = reserve(plan, D * input.rows * panels * kPanel);
  plan.scratch_at = reserve(plan, D * blocks * rnn_scratch(H, args.batch));
  return why;
}

Claim probe(const Problem& p) {
  Plan plan;
  const Reason why = fill(p, plan);
  if (!why.fine()) return why.refusal();
  const RnnArgs& a = plan.args;
  const double units = 2.0 * static_cast<double>(a.T * a.N * a.directions * a.gates * a.H),
               input = units * static_cast<double>(plan.input.I),
               recurrent = units * static_cast<double>(a.H);
  // A single sequence takes its weights from the second cache at every step.
  const double seconds =
      input / (plan.input.rows > 4 ? 0.8 : 0.2) + recurrent / (a.N > 2 ? 0.6 : 0.25);
  Claim c = claim(input + recurrent, bytes_of(p), seconds > 0 ? (input + recurrent) / seconds : 1,
                  NumericClass::kApproximate);
  for (int i : {1, 2})
    if (packed_ahead(p, static_cast<size_t>(i)))
      c.packed.push_back({i, Bytes(rnn_packed_size(plan.packs[i - 1]) * 4)});
  c.workspace = Bytes(plan.floats * 4);
  return c;
}

Result<std::vector<LaunchSpec>> prepare(const Problem& p, const Claim&) {
  Plan plan;
  const Reason why = fill(p, plan);
  if (!why.fine()) return error(Code::kInternal, "prepare without a claim: {}", why.text());
  const RnnArgs& a = plan.args;
  std::vector<LaunchSpec> launches;
  if (a.N * a.directions * a.H == 0) return launches;
  auto launch = [&](std::string_view entry, int64_t grid, std::vector<Argument> arguments,
                    const auto& args) {
    LaunchSpec spec;
    spec.entry = entry;
    spec.grid = items(grid, 1);
    spec.arguments = std::move(arguments);
    spec.set_constants(args);
    launches.push_back(std::move(spec));
  };
  const auto input = [](int i) { return Argument{Argument::kInput, i, 0}; };
  const auto workspace = [](int64_t at) { return Argument{Argument::kWorkspace, 0, at * 4}; };
  Argument weights[2];
  int packed = 0;
  for (int i : {0, 1}) {
    weights[i] = packed_ahead(p, static_cast<size_t>(i) + 1)
                     ? Argument{Argument::kPacked, packed++, 0}
                     : workspace(plan.weights_at[i]);
    if (weights[i].kind == Argument::kWorkspace && p.in[static_cast<size_t>(i) + 1].count() > 0)
      launch("cpu.rnn_pack", a.directions * panels_of(a.H), {input(i + 1), weights[i]},
             plan.packs[i]);
  }
  const Argument gates = workspace(plan.input_at);
  if (plan.input.rows > 0) {
    std::vector<Argument> arguments{input(0), weights[0]};
    if (p.has(3)) arguments.push_back(input(3));
    arguments.push_back(gates);
    launch("cpu.rnn_input", a.directions * plan.input.row_items * plan.input.panel_items,
           std::move(arguments), plan.input);
  }
  std::vector<Argument> arguments{weights[1], gates};
  for (int i = 3; i < 11; ++i)
    if (a.present & (1u << i))
      arguments.push_back(i < 8 ? input(i) : Argument{Argument::kOutput, i - 8, 0});
  arguments.push_back(workspace(plan.scratch_at));
  launch("cpu.rnn", a.directions * ceil_div(a.N, a.batch), std::move(arguments), a);
  return launches;
}

Status pack(const Problem& p, int index, const std::byte* source, std::byte* target) {
  Plan plan;
  fill(p, plan);
  const bool recurrent = index == 1 || !packed_ahead(p, 1);
  pack_rnn(plan.packs[recurrent], reinterpret_cast<const float*>(source),
           reinterpret_cast<float*>(target));
  return {};
}

// Any of the outputs may be the one that is wanted.
constexpr Row kRows[] = {
    {"rnn", "cpu.rnn", row_major<probe, false>, prepare, pack},
    {"gru", "cpu.rnn", row_major<probe, false>, prepare, pack},
    {"lstm", "cpu.rnn", row_major<probe, false>, prepare, pack},
};
constexpr Entry kEntries[] = {{"cpu.rnn_pack", rnn_pack}};

}  // namespace

Family rnn_family() { return {kRows, kEntries}; }

}  // namespace tessera::kernels::cpu
