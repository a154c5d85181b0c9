// Path rules of archives. Pure. Private to common/archive/.
#pragma once

#include <map>
#include <string>

#include "common/archive/archive.h"

namespace det {

/// Returns kInvalidArgument with one problem: `code`, and `entry` (made printable) as its path.
tl::unexpected<Error> refuse_entry(const char* code, const std::string& entry, std::string message);

/// Normalizes a path as tar programs write it: drops leading "./" and a trailing "/". Returns "" for the
/// root.
std::string normal_path(std::string_view path);

/// The paths of one archive. Detects duplicates and conflicts between files and directories.
class PathTable {
 public:
  explicit PathTable(const ArchiveLimits& limits) : limits_(limits) {}
  /// Adds an entry and its parent directories, in any order. `path` must be normalized.
  /// Errors: E-CTX-PATH, E-CTX-DUPLICATE, E-CTX-LIMIT.
  Status add(const std::string& path, bool directory);

 private:
  /// A path seen so far.
  struct Known {
    std::string path;
    bool directory;
    bool named;  ///< has an entry of its own; false for an implied parent
  };
  Status add_known(const std::string& path, bool directory, bool named, const std::string& entry);
  const ArchiveLimits limits_;
  std::map<std::string, Known> known_;  ///< key: lower-case path
};

}  // namespace det
