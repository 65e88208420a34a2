#include "tessera/tile/testing/run.h"

#include <algorithm>

#include "tessera/tile/interpret.h"
#include "tessera/tile/problems.h"
#include "tessera/tile/text.h"
#include "tessera/tile/verify.h"

namespace tessera::tile::testing {

Schedule random_schedule(std::mt19937_64& random, const Program& p) {
  constexpr int64_t kTiles[] = {1, 2, 3, 7, 16, 64, 0};
  Schedule s;
  for (size_t a = 0; a < p.axes.size(); ++a)
    s.axes.push_back({kTiles[random() % std::size(kTiles)], 1});
  for (int a : p.whole) s.axes[static_cast<size_t>(a)].tile = 0;
  return s;
}

std::optional<std::string> run(std::mt19937_64& random, const Trial& t) {
  const auto instance = instance_of(t.problem);
  if (!instance) {
    if (instance.error().code == Code::kUnimplemented) return std::nullopt;
    return t.problem.str() + ": " + instance.error().message;
  }
  const Program& p = instance->program;
  const std::string text = print(p);
  const auto again = parse(text);
  if (!again) return "does not read back: " + again.error().message + "\n" + text;
  if (print(*again) != text || !verify(*again)) return "reads back otherwise:\n" + text;
  const Schedule schedule = random_schedule(random, p);
  const std::string where = "\n" + t.problem.str() + "\n" + text + print(schedule, p) + "\n";
  if (const Status ok = check(p, schedule, instance->symbols); !ok)
    return ok.error().message + where;
  Memory memory(t);
  std::vector<std::span<std::byte>> spans;
  for (const op::Argument& a : instance->arguments) spans.push_back(memory.of(a));
  if (const Status ok = interpret(p, schedule, instance->symbols, spans); !ok)
    return ok.error().message + where;
  const std::string fault = memory.fault();
  return fault.empty() ? fault : fault + where;
}

}  // namespace tessera::tile::testing
