// Problem strings as a table: a row per operator says which letters it has and makes the problem.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/cost/cost.h"

namespace tessera::cost {

struct ProblemRow;

// What a string says, before it is a problem.
struct ProblemSpec {
  const ProblemRow* row = nullptr;
  std::string name;  // as it is printed
  std::string op;    // of the table of operators
  std::string kind;  // of a reduction
  DType dtype = DType::kF16;
  std::optional<DType> out;
  std::array<std::optional<int64_t>, 26> sizes{};
  std::vector<std::string> flags;    // sorted
  std::vector<std::string> layouts;  // of convert

  bool has(char letter) const { return sizes[static_cast<size_t>(letter - 'a')].has_value(); }
  int64_t of(char letter, int64_t otherwise) const {
    return sizes[static_cast<size_t>(letter - 'a')].value_or(otherwise);
  }
  bool flag(std::string_view name_of_flag) const {
    return std::find(flags.begin(), flags.end(), name_of_flag) != flags.end();
  }
};

using MakeProblem = Result<op::Problem> (*)(const ProblemSpec&);

struct ProblemRow {
  std::string_view name;      // in strings
  std::string_view op;        // the operator; "": the builder's business
  std::string_view letters;   // in the order of printing; '_' between groups
  std::string_view needed;    // of them
  std::string_view dropped;   // letters that are not printed where they have their default...
  std::string_view defaults;  // ... which is this digit
  std::string_view flags;     // separated by blanks
  bool floats = false;        // takes floats alone
  MakeProblem make = nullptr;
};

std::span<const ProblemRow> problem_rows();

}  // namespace tessera::cost
