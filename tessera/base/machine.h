// What this process may use of the machine it runs on: processors and memory, as the affinity mask,
// the machine and the cgroups (v1 and v2, the process's own and all above it) allow.
#pragma once

#include <optional>
#include <string>

#include "tessera/base/units.h"

namespace tessera {

// Hardware threads in the affinity mask, and no more than the cgroups' CPU time quota, rounded up.
// At least 1.
int usable_cpus();

// The smaller of physical memory and the cgroups' memory limits. Zero if nothing tells.
Bytes usable_memory();

// The tightest limits of the cgroups in effect; empty where there is none.
struct CgroupLimits {
  std::optional<double> cpus;  // quota / period
  std::optional<Bytes> memory;
};

// Reads the limits of the process described by `proc_self_cgroup` (the text of /proc/self/cgroup)
// below `mount`
// (/sys/fs/cgroup). A path that the mount does not show, as in a container, counts as the mount
// itself.
CgroupLimits read_cgroup_limits(const std::string& proc_self_cgroup, const std::string& mount);

}  // namespace tessera
