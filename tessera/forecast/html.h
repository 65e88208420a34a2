// A forecast as one HTML file that needs nothing else: times, roofline, layouts, tables.
#pragma once

#include <string>
#include <vector>

#include "tessera/forecast/explain.h"
#include "tessera/forecast/forecast.h"

namespace tessera::forecast {

// `title` is shown as it is, usually the model's name. `advice` may be empty.
std::string to_html(const Forecast& forecast, const std::vector<Advice>& advice,
                    const std::string& title);

}  // namespace tessera::forecast
