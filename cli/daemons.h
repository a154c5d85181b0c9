// Owns the daemons that `det deploy local` starts on this machine: their files, and finding, starting and
// ending them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace det::cli {

/// All that belongs to one local cluster lies in one directory: data, logs, and a file with the pid of each
/// daemon.
class Daemons {
 public:
  /// Below ${XDG_DATA_HOME:-~/.local/share}/determinant. kFailedPrecondition when the environment names no
  /// home.
  static Result<Daemons> of(const std::string& cluster);

  const std::string& directory() const { return directory_; }
  std::string log(const std::string& name) const { return directory_ + "/" + name + ".log"; }
  std::string out(const std::string& name) const { return directory_ + "/" + name + ".out"; }
  /// The names of all that were started here: "master", "agent-…".
  std::vector<std::string> names() const;

  /// The process, when it still is the one that was started.
  std::optional<pid_t> running(const std::string& name) const;
  /// Starts `program` of our own installation in a session of its own. kNotFound when it is not installed.
  Status start(const std::string& name, const std::string& program, std::vector<std::string> arguments) const;
  /// Asks it to end, and after `grace` makes it. False when it did not run.
  Result<bool> stop(const std::string& name, Duration grace) const;

 private:
  explicit Daemons(std::string directory) : directory_(std::move(directory)) {}
  std::string directory_;
};

/// The last lines of a file, for messages.
std::string tail_of(const std::string& path, std::size_t lines);

}  // namespace det::cli
