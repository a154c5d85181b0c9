// The daemons that `det deploy local` runs on this machine: their files, start, stop and state.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace det::cli {

/// The daemons of one local cluster. One directory holds everything: data, logs, and a pid file per daemon.
class Daemons {
 public:
  /// Opens the cluster's directory and creates it when needed:
  /// ${XDG_DATA_HOME:-~/.local/share}/determinant/<cluster>. Errors: kInvalidArgument (the name has a slash
  /// or a dot), kFailedPrecondition (the environment has neither XDG_DATA_HOME nor HOME).
  static Result<Daemons> of(const std::string& cluster);

  const std::string& directory() const { return directory_; }
  /// Standard error of a daemon; kept across starts.
  std::string log(const std::string& name) const { return directory_ + "/" + name + ".log"; }
  /// Standard output of a daemon; removed by each start.
  std::string out(const std::string& name) const { return directory_ + "/" + name + ".out"; }
  /// Returns the names of the daemons with a pid file, sorted: "agent-0", "master".
  std::vector<std::string> names() const;

  /// Returns the pid when the recorded process is still this daemon.
  std::optional<pid_t> running(const std::string& name) const;
  /// Starts `program` of det's own installation in a new session, and records its pid. Appends `--data-dir`.
  /// Does not wait for the daemon to be ready. Errors: kNotFound (not installed).
  Status start(const std::string& name, const std::string& program, std::vector<std::string> arguments) const;
  /// Sends SIGTERM, and SIGKILL after `grace`. Removes the pid file. Returns false when the daemon was not
  /// running. Idempotent. Blocks for up to twice `grace`.
  Result<bool> stop(const std::string& name, Duration grace) const;

 private:
  explicit Daemons(std::string directory) : directory_(std::move(directory)) {}
  std::string directory_;
};

/// Returns the last lines of a file for an error message; "" when the file is not readable.
std::string tail_of(const std::string& path, std::size_t lines);

}  // namespace det::cli
