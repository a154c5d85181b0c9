// Id-mapped mounts: a second view of a directory in which its owner appears as another user.
#pragma once

#include <sys/types.h>

#include <string>

#include "common/base/result.h"

namespace det {

/// Mounts `directory` at `place`, which must exist. There, user and group of `directory` itself appear as
/// `uid`, and files that `uid` creates get the owner of `directory`; other owners appear as user 65534.
/// Mounts below `directory` are included with the owners that they have. Needs CAP_SYS_ADMIN. Errors: a
/// symbolic link in the path, a kernel or file system without id-mapped mounts.
Status mount_as_owner(const std::string& directory, const std::string& place, uid_t uid);

/// Whether mount_as_owner would succeed. Mounts nothing.
Status can_map_owners(const std::string& directory, uid_t uid);

}  // namespace det
