#include "tessera/tile/engine_paths.h"

#include <algorithm>
#include <deque>
#include <map>

#include "tessera/tile/engine_chip.h"

namespace tessera::tile::engine {

Result<std::vector<Hop>> find_path(const chip::Chip& chip, std::string_view core,
                                   std::string_view from, std::string_view to) {
  std::map<std::string, Hop, std::less<>> reached;  // memory -> how
  std::deque<std::string> open{std::string(from)};
  while (!open.empty()) {
    const std::string here = std::move(open.front());
    open.pop_front();
    for (const auto& [name, engine] : chip.engines) {
      if (engine.core != core) continue;
      for (const auto& [route_name, route] : engine.routes) {
        if (route.from != here || route.to == from || reached.contains(route.to)) continue;
        // Another core's memory is no way through.
        const auto memory = chip.memory.find(route.to);
        if (memory == chip.memory.end() ||
            (!memory->second.core.empty() && memory->second.core != core))
          continue;
        reached.emplace(route.to, Hop{name, route.from, route.to});
        open.push_back(route.to);
      }
    }
  }
  std::vector<Hop> path;
  for (std::string at(to); at != from;) {
    const auto hop = reached.find(at);
    if (hop == reached.end())
      return error(Code::kUnimplemented, "no engine of core '{}' of {} leads from '{}' to '{}'",
                   core, chip.id, from, to);
    path.push_back(hop->second);
    at = hop->second.from;
  }
  std::ranges::reverse(path);
  return path;
}

Result<VectorPath> find_vector_path(const chip::Chip& chip) {
  const std::string device(device_space(chip));
  for (const auto& [unit_name, unit] : chip.units) {
    if (unit.kind != chip::UnitKind::kVector) continue;
    const auto straight = [&, &core = unit.core](const std::string& from,
                                                 const std::string& to) -> std::string {
      for (const auto& [name, engine] : chip.engines)
        if (engine.core == core && find_route(engine, from, to)) return name;
      return "";
    };
    // Registers where there are some, else the largest.
    const chip::Memory* best = nullptr;
    VectorPath path{unit.core, unit_name, "", "", ""};
    for (const auto& [name, memory] : chip.memory) {
      if (memory.core != unit.core) continue;
      const std::string load = straight(device, name), store = straight(name, device);
      if (load.empty() || store.empty()) continue;
      const auto rank = [](const chip::Memory& m) {
        return std::pair(m.kind == chip::MemoryKind::kRegisters, m.capacity_bytes.value.value);
      };
      if (best != nullptr && rank(*best) >= rank(memory)) continue;
      best = &memory;
      path.space = name;
      path.load = load;
      path.store = store;
    }
    if (best != nullptr) return path;
  }
  return error(Code::kUnimplemented,
               "{} has no vector unit with a memory that is filled from the device's", chip.id);
}

Result<MatrixPath> find_matrix_path(const chip::Chip& chip) {
  const std::string device(device_space(chip));
  std::string why = "it has no matrix unit";
  for (const auto& [name, unit] : chip.units) {
    if (unit.kind != chip::UnitKind::kMatrix) continue;
    const auto memory = [&operands = unit.operands](std::string_view letter) {
      const auto at = operands.find(letter);
      return at == operands.end() ? std::string() : at->second.memory;
    };
    MatrixPath path{unit.core, name, memory("a"), memory("b"), memory("c"), {}, {}, {}};
    auto a = find_path(chip, unit.core, device, path.a),
         b = find_path(chip, unit.core, device, path.b),
         c = find_path(chip, unit.core, path.c, device);
    if (a && b && c) {
      path.to_a = *std::move(a);
      path.to_b = *std::move(b);
      path.from_c = *std::move(c);
      return path;
    }
    why = !a ? a.error().message : !b ? b.error().message : c.error().message;
  }
  return error(Code::kUnimplemented, "{} multiplies no matrices: {}", chip.id, why);
}

}  // namespace tessera::tile::engine
