#include "tessera/base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace tessera {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<double> number_at(std::istream& in) {
  double value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

std::optional<double> number_in(const std::string& path) {
  std::ifstream file(path);
  return number_at(file);
}

template <class T>
void tighten(std::optional<T>& limit, std::optional<T> other) {
  if (other && (!limit || *other < *limit)) limit = other;
}

std::optional<double> ratio(std::optional<double> quota, std::optional<double> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

// cgroup v1 writes "no limit" as a huge number, v2 as "max".
std::optional<Bytes> memory_in(const std::string& path) {
  const std::optional<double> value = number_in(path);
  if (!value || *value < 0 || *value >= 0x1p60) return std::nullopt;
  return Bytes(static_cast<int64_t>(*value));
}

std::optional<double> cpu_max_v2(const std::string& path) {
  std::ifstream file(path);
  const std::optional<double> quota = number_at(file);
  return ratio(quota, number_at(file));
}

void read_v2(const std::string& folder, CgroupLimits& limits) {
  tighten(limits.cpus, cpu_max_v2(folder + "/cpu.max"));
  tighten(limits.memory, memory_in(folder + "/memory.max"));
}

void read_v1_cpu(const std::string& folder, CgroupLimits& limits) {
  tighten(limits.cpus,
          ratio(number_in(folder + "/cpu.cfs_quota_us"), number_in(folder + "/cpu.cfs_period_us")));
}

void read_v1_memory(const std::string& folder, CgroupLimits& limits) {
  tighten(limits.memory, memory_in(folder + "/memory.limit_in_bytes"));
}

// `group` and all groups above it: a limit anywhere on the path binds.
template <class Read>
void walk_up(const std::string& mount, std::string group, Read read, CgroupLimits& limits) {
  while (!group.empty() && group != "/") {
    read(mount + group, limits);
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
  read(mount, limits);
}

bool lists(std::string_view controllers, std::string_view name) {
  while (!controllers.empty()) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == name) return true;
    controllers.remove_prefix(comma == std::string_view::npos ? controllers.size() : comma + 1);
  }
  return false;
}

CgroupLimits current_cgroup_limits() {
  return read_cgroup_limits(read_text("/proc/self/cgroup"), "/sys/fs/cgroup");
}

int cpus_in_affinity_mask() {
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
    std::vector<unsigned long> mask(static_cast<size_t>(cpus) / (8 * sizeof(unsigned long)));
    const size_t size = mask.size() * sizeof(unsigned long);
    auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
    if (sched_getaffinity(0, size, set) == 0) return std::max(1, CPU_COUNT_S(size, set));
    if (errno != EINVAL) break;
  }
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& proc_self_cgroup, const std::string& mount) {
  CgroupLimits limits;
  std::istringstream lines(proc_self_cgroup);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      walk_up(mount, group, read_v2, limits);
      walk_up(mount + "/unified", group, read_v2, limits);
    }
    if (lists(controllers, "cpu")) walk_up(mount + "/cpu", group, read_v1_cpu, limits);
    if (lists(controllers, "memory")) walk_up(mount + "/memory", group, read_v1_memory, limits);
  }
  return limits;
}

int usable_cpus() {
  const int cpus = cpus_in_affinity_mask();
  const std::optional<double> quota = current_cgroup_limits().cpus;
  if (!quota || *quota >= cpus) return cpus;
  return std::max(1, static_cast<int>(std::ceil(*quota)));
}

Bytes usable_memory() {
  const int64_t physical = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  std::optional<Bytes> limit = current_cgroup_limits().memory;
  if (physical > 0) tighten(limit, std::optional(Bytes(physical)));
  return limit.value_or(Bytes(0));
}

}  // namespace tessera
