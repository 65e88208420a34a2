// The members of a chip file, one line each: reader, writer and JSON Schema are visitors of these
// lines, so that they cannot disagree. Internal to the module.
//
// A visitor has text(key, string, need, what), choice(key, enum, names, need, what), list(key,
// strings, what), number(key, fact, range, what), object(key, struct, what) and map(key, map,
// what).
#pragma once

#include <array>
#include <utility>

#include "tessera/chip/chip.h"

namespace tessera::chip {

inline constexpr std::string_view kSchema = "tessera.chip/1";

enum class Need : bool { kOptional, kRequired };

// Of a number: low < x <= high, or low <= x where the low end counts.
struct Range {
  std::string_view name;
  double low;
  double high;
  bool low_counts;
  bool whole;
};
inline constexpr Range kCounts{"count", 1, 1e9, true, true};
inline constexpr Range kSizes{"size", 1, 9007199254740992.0, true, true};
inline constexpr Range kBits{"bits", 1, 128, true, true};
inline constexpr Range kRates{"rate", 0, 1e18, false, false};
inline constexpr Range kTimes{"time", 0, 60, true, false};
inline constexpr Range kCycles{"cycles", 0, 1e9, true, false};
inline constexpr const Range* kRanges[] = {&kCounts, &kSizes, &kBits, &kRates, &kTimes, &kCycles};

template <class E>
using Name = std::pair<E, std::string_view>;

inline constexpr std::array<Name<Grade>, 4> kGrades{{{Grade::kPublished, "published"},
                                                     {Grade::kDerived, "derived"},
                                                     {Grade::kMeasured, "measured"},
                                                     {Grade::kAssumed, "assumed"}}};
inline constexpr std::array<Name<UnitKind>, 3> kUnitKinds{
    {{UnitKind::kMatrix, "matrix"}, {UnitKind::kVector, "vector"}, {UnitKind::kScalar, "scalar"}}};
inline constexpr std::array<Name<Dataflow>, 4> kDataflows{
    {{Dataflow::kStep, "step"},
     {Dataflow::kWeightStationary, "weight_stationary"},
     {Dataflow::kOutputStationary, "output_stationary"},
     {Dataflow::kInputStationary, "input_stationary"}}};
inline constexpr std::array<Name<MemoryKind>, 4> kMemoryKinds{
    {{MemoryKind::kDevice, "device"},
     {MemoryKind::kScratchpad, "scratchpad"},
     {MemoryKind::kCache, "cache"},
     {MemoryKind::kRegisters, "registers"}}};
inline constexpr std::array<Name<LinkKind>, 4> kLinkKinds{{{LinkKind::kDie, "die"},
                                                           {LinkKind::kDevice, "device"},
                                                           {LinkKind::kHost, "host"},
                                                           {LinkKind::kNetwork, "network"}}};
inline constexpr std::array<Name<SumOrder>, 4> kSumOrders{{{SumOrder::kFused, "fused"},
                                                           {SumOrder::kTree, "tree"},
                                                           {SumOrder::kSequential, "sequential"},
                                                           {SumOrder::kEvenOdd, "even_odd"}}};
inline constexpr std::array<Name<Rounding>, 5> kRoundings{{{Rounding::kNearestEven, "nearest_even"},
                                                           {Rounding::kNearestAway, "nearest_away"},
                                                           {Rounding::kTowardZero, "toward_zero"},
                                                           {Rounding::kDown, "down"},
                                                           {Rounding::kUp, "up"}}};
inline constexpr std::array<Name<Subnormals>, 3> kSubnormals{
    {{Subnormals::kKept, "kept"},
     {Subnormals::kFlushedInputs, "flushed_inputs"},
     {Subnormals::kFlushed, "flushed"}}};

inline constexpr std::array<Name<Nan>, 2> kNans{{{Nan::kQuiet, "quiet"}, {Nan::kOnes, "ones"}}};

template <class E, size_t N>
constexpr std::string_view name_in(const std::array<Name<E>, N>& names, E value) {
  for (const auto& [candidate, name] : names)
    if (candidate == value) return name;
  return {};
}

using enum Need;

template <class V>
void fields(V& v, Core& c) {
  v.number("count", c.count, kCounts, "how many the chip has");
  v.number("clock_hz", c.clock_hz, kRates, "the highest clock under work");
  v.number("sustained_clock_hz", c.sustained_clock_hz, kRates, "what power allows in the long run");
  v.number("flags", c.flags, kCounts, "flags between each two of its engines");
  v.number("cross_core_flags", c.cross_core_flags, kCounts, "flags between cores");
}

template <class V>
void fields(V& v, Rate& r) {
  v.number("macs_per_cycle", r.macs_per_cycle, kRates, "multiply-adds, or lanes, of one unit");
  v.number("m", r.m, kCounts, "rows of a step");
  v.number("n", r.n, kCounts, "columns of a step");
  v.number("k", r.k, kCounts, "products per element of a step");
  v.text("accumulate", r.accumulate, kOptional, "element type of sums");
}

template <class V>
void fields(V& v, Operand& o) {
  v.text("memory", o.memory, kRequired, "where the unit reads or writes it");
  v.list("layouts", o.layouts, "formats by name, or layout expressions");
}

template <class V>
void fields(V& v, Unit& u) {
  v.choice("kind", u.kind, kUnitKinds, kRequired, "what it computes");
  v.text("core", u.core, kRequired, "the kind of core that has it");
  v.number("per_core", u.per_core, kCounts, "how many each core has");
  v.number("clock_hz", u.clock_hz, kRates, "if it is not the core's");
  v.choice("dataflow", u.dataflow, kDataflows, "how operands meet");
  v.number("rows", u.rows, kCounts, "of a systolic array");
  v.number("columns", u.columns, kCounts, "of a systolic array");
  v.number("start_cycles", u.start_cycles, kCycles, "before the first step of an idle unit");
  v.number("max_m", u.max_m, kCounts, "rows of one instruction");
  v.number("max_n", u.max_n, kCounts, "columns of one instruction");
  v.number("max_k", u.max_k, kCounts, "products per element of one instruction");
  v.number("width_bytes", u.width_bytes, kSizes, "of one vector register or instruction");
  v.map("rates", u.rates, "by element type or mode");
  v.map("functions", u.functions, "elements per cycle, by function and element type");
  v.map("operands", u.operands, "a, b and c of c[m,n] += a[m,k] b[k,n]");
}

template <class V>
void fields(V& v, Memory& m) {
  v.choice("kind", m.kind, kMemoryKinds, kRequired, "device: where tensors are");
  v.text("core", m.core, kOptional, "whose each is; without: one for the chip");
  v.number("capacity_bytes", m.capacity_bytes, kSizes, "of one");
  v.number("bytes_per_second", m.bytes_per_second, kRates, "of all together");
  v.number("bytes_per_cycle", m.bytes_per_cycle, kRates, "of one, at its core's clock");
  v.number("write_bytes_per_cycle", m.write_bytes_per_cycle, kRates, "if it is not that of reads");
  v.number("latency_seconds", m.latency_seconds, kTimes, "from asking to the first byte");
  v.number("alignment_bytes", m.alignment_bytes, kSizes, "of what engines read and write");
  v.number("line_bytes", m.line_bytes, kSizes, "what moves at once");
  v.number("banks", m.banks, kCounts, "that work side by side");
  v.number("bank_bytes", m.bank_bytes, kSizes, "of one bank");
  v.number("bank_groups", m.bank_groups, kCounts, "of which each has one port");
}

template <class V>
void fields(V& v, Route& r) {
  v.text("from", r.from, kRequired, "a memory");
  v.text("to", r.to, kRequired, "a memory");
  v.number("bytes_per_cycle", r.bytes_per_cycle, kRates, "at the core's clock");
  v.number("start_cycles", r.start_cycles, kCycles, "before the first byte");
  v.number("half_bytes", r.half_bytes, kSizes,
           "a copy of B bytes reaches B/(B + half) of the rate");
  v.changes("changes", r.changes, "layouts that become others on the way: 'nd -> nz'");
}

template <class V>
void fields(V& v, Engine& e) {
  v.text("core", e.core, kRequired, "the kind of core that has one");
  v.map("routes", e.routes, "what it copies");
}

template <class V>
void fields(V& v, Link& l) {
  v.choice("kind", l.kind, kLinkKinds, kRequired, "what is at the other end");
  v.number("count", l.count, kCounts, "how many a chip has");
  v.number("bytes_per_second", l.bytes_per_second, kRates, "of one, one way");
  v.number("latency_seconds", l.latency_seconds, kTimes, "of an empty message");
  v.text("topology", l.topology, kOptional, "full mesh, 3-D torus 16 x 16 x 16");
}

template <class V>
void fields(V& v, Launch& l) {
  v.number("seconds", l.seconds, kTimes, "of a launch that does nothing");
  v.number("matrix_seconds", l.matrix_seconds, kTimes, "of matrix work");
  v.number("vector_seconds", l.vector_seconds, kTimes, "of vector work");
  v.number("collective_seconds", l.collective_seconds, kTimes, "of a collective");
}

template <class V>
void fields(V& v, Numerics& n) {
  v.text("accumulate", n.accumulate, kRequired, "element type of sums");
  v.choice("order", n.order, kSumOrders, kRequired, "in which products are added");
  v.number("group", n.group, kCounts, "products that are added at once");
  v.number("fraction_bits", n.fraction_bits, kBits, "kept of each addend when aligned");
  v.choice("alignment", n.alignment, kRoundings, "of the bits beyond those");
  v.number("parts", n.parts, kCounts, "sums that products make before the accumulator joins");
  v.number("sum_bits", n.sum_bits, kBits, "kept of those sums when the accumulator joins");
  v.number("total_bits", n.total_bits, kBits, "kept of the total before it is rounded");
  v.number("reach", n.reach, kBits, "binary orders below the largest that the accumulator counts");
  v.number("exact", n.exact, kCounts, "products that make one addend without loss");
  v.choice("rounding", n.rounding, kRoundings, kRequired, "of each sum");
  v.choice("f16_rounding", n.f16_rounding, kRoundings, "of sums kept in f16, where they may be");
  v.number("result_bits", n.result_bits, kBits, "mantissa of each sum");
  v.number("operand_bits", n.operand_bits, kBits, "mantissa kept of each operand");
  v.choice("operand_rounding", n.operand_rounding, kRoundings, "of operands");
  v.choice("subnormals", n.subnormals, kSubnormals, kRequired, "of inputs, and of sums");
  v.list("overflow", n.overflow, "infinity, saturate; the default first");
  v.list("saturated_results", n.saturated_results, "types that sums become with saturation");
  v.choice("nan", n.nan, kNans, "bits of a sum that is no number");
  v.text("note", n.note, kOptional, "what else is known, or is not");
}

template <class V>
void fields(V& v, Threads& t) {
  v.number("warp", t.warp, kCounts, "lanes");
  v.number("warps_per_core", t.warps_per_core, kCounts, "at once");
  v.number("blocks_per_core", t.blocks_per_core, kCounts, "at once");
  v.number("threads_per_block", t.threads_per_block, kCounts, "at most");
  v.number("registers_per_core", t.registers_per_core, kCounts, "of 32 bits");
  v.number("register_unit", t.register_unit, kCounts,
           "registers come to a warp in multiples of it");
  v.number("warp_unit", t.warp_unit, kCounts, "warps that registers allow, in multiples of it");
  v.number("registers_per_thread", t.registers_per_thread, kCounts, "at most");
  v.number("shared_bytes_per_core", t.shared_bytes_per_core, kSizes, "for all blocks");
  v.number("shared_bytes_per_block", t.shared_bytes_per_block, kSizes, "at most");
  v.number("shared_unit_bytes", t.shared_unit_bytes, kSizes, "given in multiples of it");
  v.number("shared_reserved_bytes", t.shared_reserved_bytes, kSizes, "taken from each block");
}

template <class V>
void fields(V& v, VendorKernel& k) {
  v.list("types", k.types, "of elements");
  v.map("layouts", k.layouts, "by operand, the wish first");
  v.text("source", k.source, kRequired, "where the vendor says so");
}

template <class V>
void fields(V& v, Chip& c) {
  v.text("name", c.name, kRequired, "as its maker writes it");
  v.text("vendor", c.vendor, kRequired, "its maker");
  v.text("architecture", c.architecture, kRequired, "what code is compiled for");
  v.text("note", c.note, kOptional, "what a reader should know");
  v.number("dies", c.dies, kCounts, "in the package");
  v.map("cores", c.cores, "kinds of cores");
  v.map("units", c.units, "what computes");
  v.map("memory", c.memory, "where bytes are");
  v.map("engines", c.engines, "what copies");
  v.map("links", c.links, "to other dies, chips and the host");
  v.object("launch", c.launch, "what starting work takes");
  v.map("numerics", c.numerics, "of matrix units, by operand type or mode");
  v.object("threads", c.threads, "what bounds the threads of a core");
  v.map("vendor_kernels", c.vendor_kernels, "what the vendor's library takes");
  v.map("constants", c.constants, "of the cost model, each fitted to something");
}

}  // namespace tessera::chip
