#include "tessera/codegen/mlir/source.h"

#include <algorithm>
#include <chrono>

#include "tessera/base/elf.h"
#include "tessera/codegen/mlir/compiler.h"
#include "tessera/codegen/mlir/emit.h"
#include "tessera/codegen/mlir/launch.h"
#include "tessera/codegen/mlir/schedule.h"
#include "tessera/codegen/mlir/work.h"
#include "tessera/op/elementwise.h"
#include "tessera/tile/problems.h"
#include "tessera/tile/text.h"

#ifndef TESSERA_LLVM_VERSION
#define TESSERA_LLVM_VERSION "none"
#endif

namespace tessera::codegen::mlir {

namespace {

// Why the problem is left to kernels that are written by hand; empty if it is not.
std::string others_do(const op::Problem& p) {
  if (p.op->name == "dot" && p.in[0].dtype == DType::kF32)
    return "a product of f32, for which no blocks are kept in registers";
  return "";
}

}  // namespace

Source::Source(Mode mode, Target target, kernels::Rates rates, Cache cache)
    : mode_(mode), target_(std::move(target)), rates_(std::move(rates)), cache_(std::move(cache)) {
  constexpr uint16_t kX86 = 62;
  if (elf_machine() != kX86 || (mode_ == Mode::kCached && cache_.empty())) mode_ = Mode::kNone;
}

std::string Source::key_of(const Compiled& code) const {
  return fmt::format("driver {}, LLVM {}, {}\n{}", TESSERA_MLIR_DRIVER_VERSION,
                     TESSERA_LLVM_VERSION, target_.features, code.text);
}

Source::Compiled& Source::code_of(const tile::Program& program) const {
  const auto [at, fresh] = codes_.try_emplace(print(program));
  Compiled& code = at->second;
  if (fresh) {
    code.refusal = refusal(program, target_);
    if (!code.refusal.empty()) return code;
    code.schedule = vectors_of(program, target_);
    auto text = emit(program, code.schedule, target_);
    auto constants = constants_of(program);
    if (!text || !constants) {
      code.refusal = text ? constants.error().message : text.error().message;
      return code;
    }
    code.text = *std::move(text);
    code.constants = *std::move(constants);
  }
  if (code.refusal.empty() && !code.sought) {
    code.sought = true;
    const std::string key = key_of(code);
    if (auto bytes = cache_.find(key)) {
      code.binary = std::make_shared<const op::Binary>(
          op::Binary{"elf", *std::move(bytes), {std::string(kEntry)}, cache_.path_of(key)});
      ++counters_.loaded;
    }
  }
  return code;
}

Status Source::compile(Compiled& code) const {
  const auto start = std::chrono::steady_clock::now();
  TRY_ASSIGN(const Compiler* compiler, Compiler::open());
  TRY_ASSIGN(std::vector<std::byte> bytes, compiler->compile(code.text, target_));
  const std::string key = key_of(code);
  // Without the cache it is only compiled again next time.
  (void)cache_.put(key, bytes);
  code.binary = std::make_shared<const op::Binary>(
      op::Binary{"elf", std::move(bytes), {std::string(kEntry)}, cache_.path_of(key)});
  ++counters_.compiled;
  counters_.seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {};
}

std::vector<op::Claim> Source::probe(const op::Problem& p) const {
  if (mode_ == Mode::kNone) return {};
  // One problem is asked about many times while a graph is planned.
  std::string text = fmt::format("{} {}", p.str(), p.anchor_inputs());
  for (const op::Operand& o : p.in)
    if (o.values) text += fmt::format(" {}", fmt::join(*o.values, ","));
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find(text);
  if (found != answers_.end()) return {found->second};
  return {answers_.emplace(std::move(text), answer(p)).first->second};
}

op::Claim Source::answer(const op::Problem& p) const {
  std::string kernel = fmt::format("mlir.{}", op::elementwise(*p.op) ? "elementwise" : p.op->name);
  const auto refuse = [&](std::string why) {
    return op::Claim::refuse(std::move(kernel), std::move(why));
  };
  if (std::string why = others_do(p); !why.empty()) return refuse(std::move(why));
  const auto instance = tile::instance_of(p);
  if (!instance) return refuse(instance.error().message);
  const Compiled& code = code_of(instance->program);
  if (!code.refusal.empty()) return refuse(code.refusal);
  if (!code.binary && mode_ == Mode::kCached) return refuse("its code is not in the cache");
  const auto work = work_of(*instance, code.schedule);
  if (!work) return refuse(work.error().message);
  op::Claim claim;
  claim.kernel = std::move(kernel);
  claim.numeric = instance->numeric;
  claim.flops = work->flops;
  claim.efficiency = work->efficiency;
  for (const auto* side : {&p.in, &p.out})
    for (const op::Operand& o : *side)
      if (o.present) claim.bytes += static_cast<double>(packed_bytes(o.dtype, o.count()));
  op::Claim timed = claim;
  timed.bytes *= work->memory;
  claim.cost = rates_.cost(timed);
  return claim;
}

Result<std::vector<op::LaunchSpec>> Source::prepare(const op::Problem& p,
                                                    const op::Claim& claim) const {
  TRY_ASSIGN(tile::Instance instance, tile::instance_of(p));
  op::LaunchSpec launch;
  launch.entry = kEntry;
  launch.arguments = std::move(instance.arguments);
  const std::lock_guard lock(mutex_);
  Compiled& code = code_of(instance.program);
  if (!code.refusal.empty())
    return error(Code::kInternal, "{} without a claim: {}", claim.kernel, code.refusal);
  if (!code.binary) TRY(compile(code));
  launch.binary = code.binary;
  tile::Schedule schedule = code.schedule;
  TRY(cut(instance.program, instance.symbols, schedule));
  TRY_ASSIGN(LaunchShape shape,
             launch_shape(instance.program, schedule, instance.symbols, code.constants));
  launch.grid = shape.grid;
  launch.constants = std::move(shape.constants);
  return std::vector{std::move(launch)};
}

Status Source::pack(const op::Problem&, const op::Claim& claim, int, const std::byte*,
                    std::byte*) const {
  return error(Code::kInternal, "{} packs nothing", claim.kernel);
}

Counters Source::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace tessera::codegen::mlir
