// Why a forecast is what it is: of each node the kernels, layouts and places that it could have had
// and what they cost; of each conversion and fallback where it comes from and what it would cost to
// do without; and what to change in the model, ranked by what that saves.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/forecast/forecast.h"

namespace tessera::forecast {

struct Alternative {
  std::string place, kernel, tile;
  std::vector<std::string> in, out;  // layouts by name
  cost::Interval time;
  std::string bound_by;
  std::string refusal;  // empty: it could have been taken
  bool chosen = false;
};

struct NodeExplanation {
  Row row;
  std::vector<Alternative> alternatives;
  std::string why;  // the choice, in words
};

struct ConversionExplanation {
  Row row;
  std::string producer, consumer, from, to;
  // The least sum without converting this value, less the plan's; nothing: it must be converted.
  std::optional<Seconds> without;
  std::string why;
};

struct Fallback {
  std::string op, reason;
  int64_t nodes = 0;
  Seconds host, copies;
};

struct Explanation {
  std::vector<ConversionExplanation> conversions;
  std::vector<Fallback> fallbacks;  // by operator
};

Result<Explanation> explain(const Forecast& forecast);
// Rows one of whose source nodes is called `name`, or has it in its name if none is. kNotFound.
Result<std::vector<NodeExplanation>> explain_node(const Forecast& forecast, std::string_view name);

// A change, and what planning with it gave.
struct Advice {
  std::string change;  // "pad the 1000 columns of 'fc' to 1008"
  std::string why;
  Seconds saved;  // of the expected step, or of an item's part of it
  Seconds before, after;
};
// At most `most`, by what they save; each was planned. None that save less than a thousandth.
Result<std::vector<Advice>> advice(const Subject& subject, const Forecast& forecast,
                                   size_t most = 10);

}  // namespace tessera::forecast
