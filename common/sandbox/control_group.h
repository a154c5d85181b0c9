// Control groups of tasks, version 1 and 2 of the kernel's interface: limits of memory, processors and
// processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/fd.h"
#include "common/base/result.h"

namespace det {

constexpr char kControlGroups[] = "/sys/fs/cgroup";

/// Control group of this process for one controller. Its directory is `root` + `path`.
struct OwnGroup {
  std::string root;
  std::string path;      ///< "" for the root group
  bool unified = false;  ///< version 2
};

/// Returns the group in the controller's hierarchy of version 1 if there is one, else in that of version 2.
/// `root`: directory of all hierarchies.
OwnGroup own_group(std::string_view controller, const std::string& root = kControlGroups);

/// Limits of one task. 0: none.
struct GroupLimits {
  std::int64_t memory_bytes = 0;  ///< swap included
  std::int64_t cpu_millis = 0;    ///< thousandths of a processor
  std::int64_t processes = 0;     ///< and threads
};

/// Directories in which groups of tasks are made: one for version 2; those of memory, cpu and pids for
/// version 1.
struct GroupPlace {
  bool unified = false;
  std::vector<std::string> directories;
  bool operator==(const GroupPlace&) const = default;
};

/// Creates the place, which is below the group of this process in version 1 and beside it in version 2, where
/// a group with processes has no children with limits. Idempotent. Errors: kFailedPrecondition, with the
/// missing controller or right.
Result<GroupPlace> open_group_place(const std::string& root = kControlGroups);

/// Creates a group with these limits, or changes those of an existing one. Returns its directories. Errors:
/// file system errors; no directory is left then.
Result<std::vector<std::string>> make_group(const GroupPlace& place, const std::string& name,
                                            const GroupLimits& limits);

/// Opens a group for enter_group(). The descriptors work in every namespace and without privileges.
Result<std::vector<UniqueFd>> open_group(const std::vector<std::string>& directories);

/// Moves a process with its threads into the group; 0: this process. Its later children are in the group, its
/// earlier ones stay where they are. Blocks for up to 20 ms in version 1. Errors: of the kernel.
Status enter_group(const std::vector<UniqueFd>& group, pid_t pid);

/// Removes the directories. Those with processes stay.
void remove_group(const std::vector<std::string>& directories);

}  // namespace det
