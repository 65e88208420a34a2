#include "tessera/kernels/table.h"

namespace tessera::kernels {
namespace {

// Refuses what computes in another type, if anything computes in this one.
void keep_forced(DType type, std::span<const DType> computes, std::span<op::Claim> claims) {
  bool any = false;
  for (size_t i = 0; i < claims.size(); ++i)
    any = any || (claims[i].supported() && computes[i] == type);
  for (size_t i = 0; any && i < claims.size(); ++i)
    if (claims[i].supported() && computes[i] != type)
      claims[i] = op::Claim::refuse(
          claims[i].kernel,
          fmt::format("computes in {}, forced is {}", name_of(computes[i]), name_of(type)));
}

op::Claim ask_row(const Row& row, const op::Problem& problem) {
  if (problem.fused() && !row.fuses)
    return op::Claim::refuse("", "takes no steps behind its operator");
  if (row.computes != DType::kF32 && problem.attrs.dtype("compute") != row.computes)
    return op::Claim::refuse(
        "", fmt::format("computes in {}, which was not asked for", name_of(row.computes)));
  return row.probe(problem);
}

}  // namespace

Table::Table(std::string_view name, std::vector<Family> families, Rates rates)
    : name_(name), families_(std::move(families)), rates_(std::move(rates)) {
  for (const Family& family : families_)
    for (const Row& row : family.rows)
      if (row.op.ends_with("_integer"))
        rates_.multiplies.emplace(row.kernel, DType::kI8);
      else if (row.computes != DType::kF32)
        rates_.multiplies.emplace(row.kernel, row.computes);
}

std::vector<op::Claim> Table::probe(const op::Problem& problem) const {
  std::vector<op::Claim> claims;
  std::vector<DType> computes;
  for (const Family& family : families_)
    for (const Row& row : family.rows)
      if (row.op == problem.op->name) {
        claims.push_back(answer(row, problem));
        computes.push_back(row.computes);
      }
  if (problem.attrs.i("compute_forced"))
    keep_forced(problem.attrs.dtype("compute"), computes, claims);
  return claims;
}

op::Claim Table::ask(const op::Problem& problem, std::string_view kernel) const {
  const Row* row = find(problem, kernel);
  return row ? answer(*row, problem) : op::Claim::refuse(std::string(kernel), "no such kernel");
}

op::Claim Table::answer(const Row& row, const op::Problem& problem) const {
  op::Claim claim = ask_row(row, problem);
  claim.kernel = std::string(row.kernel);
  claim.cost = rates_.cost(claim);
  return claim;
}

const Row* Table::find(const op::Problem& problem, std::string_view kernel) const {
  for (const Family& family : families_)
    for (const Row& row : family.rows)
      if (row.op == problem.op->name && row.kernel == kernel) return &row;
  return nullptr;
}

Result<std::vector<op::LaunchSpec>> Table::prepare(const op::Problem& problem,
                                                   const op::Claim& claim) const {
  const Row* row = find(problem, claim.kernel);
  if (!row) return error(Code::kInternal, "no kernel '{}' for {}", claim.kernel, problem.op->name);
  return row->prepare(problem, claim);
}

Status Table::pack(const op::Problem& problem, const op::Claim& claim, int index,
                   const std::byte* source, std::byte* target) const {
  const Row* row = find(problem, claim.kernel);
  if (!row || !row->pack) return error(Code::kInternal, "kernel '{}' packs nothing", claim.kernel);
  return row->pack(problem, index, source, target);
}

std::vector<Entry> Table::entries() const {
  std::vector<Entry> all;
  for (const Family& family : families_)
    all.insert(all.end(), family.entries.begin(), family.entries.end());
  return all;
}

const op::Claim* cheapest(std::span<const op::Claim> claims) {
  const op::Claim* best = nullptr;
  for (const op::Claim& claim : claims)
    if (claim.supported() && (!best || claim.cost < best->cost)) best = &claim;
  return best;
}

}  // namespace tessera::kernels
