// One core at work: runs its program step by step, keeps a clock per engine, and sees to it that
// flags order what touches the same bytes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/hal/sim/clock.h"
#include "tessera/hal/sim/product.h"

namespace tessera::hal::sim {

// What a launch hands to a program.
struct Arguments {
  struct Range {
    std::byte* data = nullptr;
    int64_t size_bytes = 0;
  };
  std::vector<Range> ranges;
  int64_t grid = 1;
  std::vector<int64_t> constants;
};

struct Mode {
  bool computes = true;  // false: time alone
  bool checks = true;    // races, alignment; indices are checked whenever something is computed
};

// A launch's program with its arguments in place.
struct Bound {
  const Loaded* loaded = nullptr;
  const Arguments* arguments = nullptr;
  std::vector<engine::Places> places;      // by buffer; of arguments alone
  std::vector<std::vector<int>> overlaps;  // by buffer: others that share bytes with it
  std::map<std::string, Product, std::less<>> products;  // by how a unit computes
};
// kOutOfRange: a range that is missing or smaller than the program's argument.
Result<Bound> bind(const Loaded& loaded, const Arguments& arguments);

struct CoreTime {
  double end_ps = 0;
  std::vector<double> busy_ps;         // by engine
  std::vector<int64_t> read, written;  // by range: bytes from and to the device's memory
  int64_t steps = 0;
};

class Core {
 public:
  Core(const Bound& bound, int64_t number, Mode mode, const Shares& shares);

  // kOutOfRange: an index outside; kFailedPrecondition: a race, a flag without its counterpart, a
  // start that is not aligned; kInvalidArgument: the program says so (trap), with its text;
  // kResourceExhausted: more steps than any program needs.
  Result<CoreTime> run();

 private:
  struct Engine {
    double free_ps = 0;           // when the next step may start
    double done_ps = 0;           // when all before are done
    bool idle = true;             // it waited, or has not begun
    uint64_t count = 0;           // of steps so far
    std::vector<uint64_t> knows;  // steps of each engine that are before the next of this one
  };
  struct Flag {
    int from = 0, to = 0;
    int64_t id = 0;
    bool set = false;
    double at_ps = 0;
    std::vector<uint64_t> knows;  // of who set it
    uint64_t waited = 0;          // the count of who waited last
  };
  struct Touch {
    int engine = 0;
    uint64_t at = 0;
    bool writes = false;
    Box box;
  };

  Status steps(const std::vector<engine::Step>& body);
  Status loop(const engine::Step& s);
  Status step(const engine::Step& s);
  Status flag(const engine::Step& s);
  Flag& flag_of(int from, int to, int64_t id);
  Status compute(const engine::Step& s);
  Result<Access> access(const engine::Operand& o, bool may_pad);
  Status check_races(const Access& a, const engine::Step& s, bool writes);
  Status aligned(const Access& a) const;
  void take(int engine, double busy_ps, double latency_ps);
  Error at(Error e, const engine::Step& s) const;
  const std::string& name(int engine) const {
    return bound_.loaded->program().engines[static_cast<size_t>(engine)];
  }
  const engine::Places& places(int buffer) const {
    return bound_.loaded->program().buffer(buffer).argument()
               ? bound_.places[static_cast<size_t>(buffer)]
               : bound_.loaded->places(buffer);
  }

  const Bound& bound_;
  const Mode mode_;
  const Shares shares_;
  std::vector<int64_t> symbols_;
  std::vector<Engine> engines_;
  std::vector<Flag> flags_;                  // those that were used: few
  std::vector<std::vector<Touch>> touches_;  // by buffer
  std::vector<std::unique_ptr<std::byte[]>> spaces_;
  Work work_;
  Computer computer_;
  CoreTime time_;
};

}  // namespace tessera::hal::sim
