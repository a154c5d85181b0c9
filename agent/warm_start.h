// Warm start of trials: one det-fork-server for each agent, from which trials are forked with LibTorch
// loaded.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "agent/detect.h"
#include "common/base/clock.h"
#include "common/base/process.h"
#include "common/base/result.h"
#include "common/task/task_dir.h"

namespace det::agent {

/// The det-fork-server of an agent. It is started with the first trial, takes about 60 MB of memory of its
/// own then, and ends with the agent; trials that were forked from it do not. Used by one thread.
class WarmStart {
 public:
  /// `program`: path of det-fork-server. `socket`: where it listens. `environment`: environment of a
  /// trial with one slot, of which it gets load_environment().
  WarmStart(std::string program, std::string socket, std::vector<std::string> environment);

  /// Starts the server in the background unless it runs. It is started again if it has ended, or if one of
  /// its libraries was replaced, at most once in kRestartInterval. Errors: why there is none.
  Status start();
  /// Returns the socket for a task that executes `harness` in a sandbox. Errors: why the task must be
  /// executed: it is no such task, its variables differ from the server's, or the server is not ready.
  Result<std::string> socket_for(const TaskSpec& spec, const std::string& harness);

 private:
  static constexpr Duration kRestartInterval = std::chrono::seconds(10);
  /// A program or library that the server has loaded.
  struct CodeFile {
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const CodeFile&) const = default;
  };

  /// Returns the file at `path` as it is now; inode 0 if there is none.
  static CodeFile code_file(std::string path);
  /// Whether a program or library of the server was deleted or replaced since it was loaded.
  bool has_replaced_code();

  const std::string program_, socket_;
  const std::vector<std::string> environment_;
  std::optional<Child> server_;
  std::vector<CodeFile> code_;  ///< of server_; empty until it is ready
  std::optional<MonoTime> started_;
};

}  // namespace det::agent
