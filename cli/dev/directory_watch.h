// Reports changes in a directory tree (inotify).
#pragma once

#include <map>
#include <string>

#include "common/archive/ignore.h"
#include "common/base/clock.h"
#include "common/base/fd.h"
#include "common/base/result.h"

namespace det::cli {

/// Watches a directory and the directories below it, except those that a code archive leaves out (built-in
/// ignore rules and .detignore). Symbolic links to directories are not followed. Single-threaded.
class DirectoryWatch {
 public:
  /// Errors: those of inotify_init1 and inotify_add_watch, such as kResourceExhausted when the user has too
  /// many watches.
  static Result<DirectoryWatch> create(const std::string& root);

  /// Waits up to `patience` for events and consumes them. Returns true if a file was written, created, moved
  /// or removed, or if events were lost. Watches new directories. A signal ends the wait early. Errors: those
  /// of create(); kNotFound when the root was removed.
  Result<bool> changed(Duration patience);

 private:
  DirectoryWatch(std::string root, UniqueFd events, IgnoreRules rules)
      : root_(std::move(root)), events_(std::move(events)), rules_(std::move(rules)) {}
  /// Watches a directory and those below it. `path` is relative to the root; "" is the root.
  Status add(const std::string& path);
  /// Consumes all queued events.
  Result<bool> read_events();

  std::string root_;
  UniqueFd events_;
  IgnoreRules rules_;
  std::map<int, std::string> directories_;  ///< watch descriptor → path relative to the root
};

}  // namespace det::cli
