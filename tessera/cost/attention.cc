#include "tessera/cost/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tessera/cost/cycles.h"
#include "tessera/cost/elements.h"
#include "tessera/cost/product.h"

namespace tessera::cost {
namespace {

// Of each score: scaling, maximum, difference, sum and rounding, beside the exponential.
constexpr ElementWork kSoftmax{.plain = 5, .exp = 1};
constexpr double kTurning = 2;    // operations for each value of 8 bits that is transposed on chip
constexpr double kLoadOrder = 6;  // loads overlap with everything
constexpr double kKeys = 128;     // of a tile
constexpr double kGroup = 512;    // keys between two updates of the result by vector cores
constexpr std::array<double, 4> kRows{128, 64, 32, 16};

// What one tile of rows x kKeys scores costs a core, in seconds by stage.
struct Stages {
  double matrix = 0, vector = 0, load = 0, store = 0, vector_load = 0, vector_store = 0;

  double all() const { return matrix + vector + load + store + vector_load + vector_store; }
};

double step_of(const Engaged& unit, const std::optional<chip::Count>& step, double otherwise) {
  if (unit.unit->rows) return otherwise;
  return step ? static_cast<double>(step->value) : 1;
}

class Program {
 public:
  Program(const Machine& machine, const Engaged& matrix, const Engaged& vector,
          const AttentionShape& shape)
      : machine_(machine), matrix_(matrix), vector_(vector), shape_(shape) {
    core_clock_ = machine.chip().cores.at(matrix.unit->core).clock_hz.value;
    apart_ = matrix.unit->core != vector.unit->core;
    order_ = machine.constant("attention_overlap_order", 2);
    element_ = seconds_per_element(machine, vector, "f32", kSoftmax);
    update_ = seconds_per_element(machine, vector, "f32", {.plain = apart_ ? 2.0 : 1.0});
    narrow_ = shape.element_bytes <= 1 && machine.chip().threads;
    efficiency_ = machine.matrix_efficiency(shape.type, 0.95);
  }

  // Seconds on the matrix unit of one core for both products of a tile.
  double matrix_seconds(double rows, double clock) const {
    const double depth = matrix_.unit->rows ? static_cast<double>(matrix_.unit->rows->value)
                                            : step_of(matrix_, matrix_.rate->k, 1);
    const double wide = matrix_.unit->columns ? static_cast<double>(matrix_.unit->columns->value)
                                              : step_of(matrix_, matrix_.rate->n, 1);
    const double macs =
        round_up(rows, step_of(matrix_, matrix_.rate->m, 8)) *
        (kKeys * round_up(shape_.head, depth) + kKeys * round_up(shape_.value_head, wide));
    return macs * matrix_.passes / (matrix_.macs_per_cycle * clock * efficiency_);
  }

  Stages stages(double rows, double clock) const {
    Stages s;
    s.matrix = matrix_seconds(rows, clock);
    const double scores = rows * kKeys;
    // The vector units of all cores, over those with a matrix unit.
    s.vector =
        (scores * element_ + rows * shape_.value_head * update_ * (apart_ ? kKeys / kGroup : 1)) *
        matrix_.cores;
    if (narrow_)
      s.vector += kKeys * shape_.value_head * kTurning *
                  seconds_per_element(machine_, vector_, "f32", {.plain = 1}) * matrix_.cores;
    const double moved = kKeys * (shape_.head + shape_.value_head) * shape_.element_bytes;
    s.load = moved / feed();
    if (!apart_) {
      add_ways(s, scores);
      return s;
    }
    // Scores leave for memory that both kinds of cores see, probabilities come back.
    s.load += scores * 2 / feed();
    const double results = scores + rows * shape_.value_head * kKeys / kGroup;
    for (const Leg& leg : machine_.way(operand("c"), machine_.memory()))
      s.store += route_cycles(*leg.route, results * 2) / core_clock_;
    const double share = vector_.cores / matrix_.cores;
    for (const auto& [name, engine] : machine_.chip().engines) {
      if (engine.core != vector_.unit->core) continue;
      for (const auto& entry : engine.routes) {
        const chip::Route& r = entry.second;
        const double rate = r.bytes_per_cycle.value * vector_.clock * share;
        if (r.from == machine_.memory()) s.vector_load = results * 4 / rate;
        if (r.to == machine_.memory()) s.vector_store = scores * 2 / rate;
      }
    }
    return s;
  }

  // Bytes per second from the cache into one core.
  double feed() const {
    double rate = 0;
    for (const auto& [name, engine] : machine_.chip().engines) {
      if (engine.core != matrix_.unit->core) continue;
      for (const auto& entry : engine.routes)
        if (entry.second.from == machine_.memory())
          rate = std::max(rate, entry.second.bytes_per_cycle.value * core_clock_);
    }
    const double share = std::max(machine_.cache_bandwidth(), machine_.bandwidth()) / matrix_.cores;
    return rate > 0 ? std::min(rate, share) : share;
  }

  double tile(const Stages& s) const {
    if (apart_)
      return overlapped(order_,
                        {s.matrix, s.vector, s.load, s.store, s.vector_load, s.vector_store});
    return overlapped(kLoadOrder, {overlapped(order_, {s.matrix, s.vector, s.store}), s.load});
  }

  // What a block of rows takes besides its tiles: the first and the last overlap with nothing.
  double ends(const Stages& s, double rows) const {
    const double copies = rows * (shape_.head + shape_.value_head) * shape_.element_bytes / feed();
    return (s.all() - tile(s)) + machine_.latency() + copies +
           machine_.constant("attention_block_seconds", 0) +
           (narrow_ ? machine_.constant("attention_f8_value_seconds", 0) * shape_.value_head : 0);
  }

  bool apart() const { return apart_; }

 private:
  std::string operand(const char* name) const {
    const auto found = matrix_.unit->operands.find(name);
    return found == matrix_.unit->operands.end() ? "" : found->second.memory;
  }

  // Where matrix and vector unit share a core but not their memories, scores go between those.
  void add_ways(Stages& s, double scores) const {
    const auto home = operand("c");
    for (const auto& [name, engine] : machine_.chip().engines) {
      if (engine.core != matrix_.unit->core) continue;
      for (const auto& entry : engine.routes) {
        const chip::Route& r = entry.second;
        if (r.from == home && r.to != machine_.memory() && !machine_.chip().threads)
          s.store = std::max(s.store, route_cycles(r, scores * 2) / core_clock_);
      }
    }
  }

  const Machine& machine_;
  const Engaged& matrix_;
  const Engaged& vector_;
  const AttentionShape& shape_;
  double core_clock_ = 0, order_ = 2, element_ = 0, update_ = 0;
  double efficiency_ = 1;
  bool apart_ = false, narrow_ = false;
};

struct Blocks {
  double rows = 0, count = 0, tiles = 0;  // tiles of one on average
  double most_tiles = 0, parts = 1;
};

// Rows of queries that share keys are one block: several heads of one key head, too.
Blocks blocks_of(const AttentionShape& s, double rows, double cores) {
  Blocks b;
  b.rows = rows;
  const double shared = s.queries * s.heads / std::max(s.key_heads, 1.0);
  b.count = s.batch * s.key_heads * ceil_div(shared, rows);
  b.most_tiles = ceil_div(s.keys, kKeys);
  b.tiles = b.most_tiles;
  if (s.causal && s.queries > 1) {
    // Query i of q sees keys up to i + past; a block as many tiles as its last row needs.
    const double past = std::max(s.keys - s.queries, 0.0);
    const double own = std::min(rows, s.queries);
    const double average = past + (std::min(s.queries, s.keys) + own) / 2;
    b.tiles = std::clamp(average / kKeys + std::max(kKeys - own, 0.0) / (2 * kKeys), 1.0,
                         std::max(b.most_tiles, 1.0));
  }
  if (b.count > 0 && b.count < cores)
    b.parts = std::clamp(std::floor(cores / b.count), 1.0, std::max(std::floor(b.tiles / 2), 1.0));
  return b;
}

}  // namespace

Result<Tally> attention(const Machine& machine, const AttentionShape& shape) {
  const auto matrix = machine.matrix(shape.type);
  const auto vector = machine.vector("f32");
  if (!matrix || !vector)
    return error(Code::kUnimplemented, "chip '{}' has no unit that {}", machine.chip().id,
                 !matrix ? "multiplies matrices of " + shape.type : "computes softmax");
  const Program program(machine, *matrix, *vector, shape);
  const double cores = matrix->cores;
  // Parts of keys are added up through memory; units without a second pass do without.
  const bool splits = machine.constant("attention_whole_keys", 0) <= 0;

  double best = -1;
  Blocks chosen;
  Stages used;
  const auto time_of = [&](const Blocks& b, double clock, Stages& s) {
    s = program.stages(b.rows, clock);
    const double tiles = b.tiles / b.parts;
    const double block = tiles * program.tile(s) + program.ends(s, b.rows);
    const double count = b.count * b.parts;
    if (shape.causal && b.tiles < b.most_tiles) {
      const double longest = b.most_tiles / b.parts * program.tile(s) + program.ends(s, b.rows);
      return std::max(count / cores * block + block / 4, longest);
    }
    return ceil_div(count, cores) * block;
  };
  for (const double rows : kRows) {
    Blocks b = blocks_of(shape, rows, cores);
    if (!splits) b.parts = 1;
    Stages s;
    const double seconds = time_of(b, matrix->sustained, s);
    if (best >= 0 && seconds >= best) continue;
    best = seconds;
    chosen = b;
    used = s;
  }
  const double tiles = chosen.count * chosen.tiles;
  double busy = best > 0 ? tiles * used.matrix / cores / best : 0;
  const double clock = clock_at(*matrix, busy);
  const double work = time_of(chosen, clock, used);

  Tally t;
  t.kernel = t.family = "attention";
  t.launch = launch_seconds(machine, Work::kMatrix);
  const double pairs = shape.causal && shape.queries > 1
                           ? shape.queries * (std::max(shape.keys - shape.queries, 0.0) +
                                              (std::min(shape.queries, shape.keys) + 1) / 2)
                           : shape.queries * shape.keys;
  t.flops = 2 * shape.batch * shape.heads * pairs * (shape.head + shape.value_head);
  t.padded_flops = 2 * tiles * chosen.rows * kKeys * (shape.head + shape.value_head);
  const double moved = shape.element_bytes * shape.batch *
                           (shape.heads * shape.queries * (shape.head + shape.value_head) +
                            shape.key_heads * shape.keys * (shape.head + shape.value_head)) +
                       shape.mask_bytes;
  const double memory = moved / (machine.bandwidth() * machine.constant("stream_efficiency", 0.85));
  t.seconds = overlapped(8, {work, memory}) + machine.constant("attention_seconds", 0) +
              (chosen.parts > 1 ? machine.constant("split_seconds", 2e-6) : 0);
  t.bytes[std::string(machine.memory())] = moved;
  t.busy[std::string(matrix->name)] = tiles * used.matrix / cores;
  t.busy[std::string(vector->name)] = tiles * used.vector / cores;
  t.busy[std::string(machine.memory())] = memory;
  t.cycles = tiles * used.matrix / cores * clock;
  t.tile = fmt::format("q{:.0f} s{:.0f}", chosen.rows, kKeys);
  if (chosen.parts > 1) t.tile += fmt::format(", keys in {:.0f} parts", chosen.parts);
  return t;
}

}  // namespace tessera::cost
