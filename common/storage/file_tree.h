// Files below a storage directory other than checkpoints: creation, listing and reading. Like all access to
// storages, no call follows a link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/storage/checkpoint_files.h"
#include "common/storage/root.h"

namespace det::storage {

/// A regular file of a tree.
struct TreeFile {
  std::string path;                    ///< relative to the tree; valid for check_file_name()
  std::int64_t size = 0, changed = 0;  ///< bytes; seconds since 1970
};

/// Opens a directory below the root, and creates those of its path that are missing (0755). Idempotent.
/// Errors: kInvalidArgument (no path of check_file_name), kFailedPrecondition (a link), those of errno.
Result<PinnedRoot> create_directories(const PinnedRoot& root, const std::string& path);
/// Writes a file with a name without slashes: complete or not at all, also after a crash. Replaces an older
/// one. Errors: kInvalidArgument (name), those of errno.
Status write_file(const PinnedRoot& directory, const std::string& name, std::string_view content);
/// Lists the regular files of a directory and of all below it, sorted, at most `limit`. Skips links, other
/// entries and names that check_file_name() refuses. Errors: those of errno.
Result<std::vector<TreeFile>> list_files(const PinnedRoot& directory, std::size_t limit);

}  // namespace det::storage
