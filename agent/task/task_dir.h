// Owns the files in an allocation's directory by which the agent and the supervisor speak, and which outlive
// both, though not the machine: after a power cut no process of it is left, and what cannot be read counts as
// lost:
//   spec.json        agent → supervisor: what to run
//   supervisor.json  the supervisor: who it is
//   stop.json        agent → its next life: why the allocation is being ended
//   heartbeat        the task → supervisor: touched while it gets on (hang_watch.h)
//   exit.json        supervisor → agent: how the main process ended, written when nothing of it is left
//   outcome.json     agent → its next life: the end as the master is told
//   log, shipped     see log_file.h
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/kill_grace.h"
#include "base/process.h"
#include "base/result.h"

namespace det::agent {

struct TaskSpec {
  std::vector<std::string> argv;
  std::vector<std::string> env;  ///< "NAME=value", the whole of it
  std::string cwd;
  bool attaches = false;  ///< a harness, which speaks to the master itself; else it runs as soon as it exists
  Duration grace = kDefaultKillGrace;        ///< SIGTERM to SIGKILL
  Duration hang_timeout{0};                  ///< silent for longer, it hangs; 0: never
  std::int64_t unshipped_bytes = 1LL << 30;  ///< of log; what comes beyond it is dropped and counted
};

/// Names one process for ever: pids come again, start times with them do not.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start = 0;  ///< clock ticks since boot (/proc/PID/stat, field 22)
  bool operator==(const ProcessId&) const = default;
};

/// How the main process ended; `message` is set when it could not even start.
struct TaskExit {
  ExitStatus status;
  std::string message;
  std::vector<std::string>
      last_lines;  ///< of its errors, else of its output; none when it ended well. Any bytes
  /// Set when the kernel killed it, or one of its processes, for want of memory. In bytes.
  std::optional<std::int64_t> memory_limit;
  /// Set when the supervisor ended it because it had been silent for that long.
  std::optional<Duration> hung_for = {};
  bool operator==(const TaskExit&) const = default;
};

/// One allocation's directory. The write_ functions are atomic; the read_ functions say kNotFound when the
/// file is absent.
class TaskDir {
 public:
  explicit TaskDir(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string workdir() const { return path_ + "/workdir"; }
  /// What the task sees as /run/determined, where it may (upstream's containers have it).
  std::string upstream() const { return path_ + "/determined"; }
  /// A link to the directory that the task sees as /determined_shared_fs, where it may; only of storages of
  /// type shared_fs.
  std::string upstream_storage() const { return path_ + "/shared_fs"; }
  /// Where the task looks for it: below the directory that DET_RUN_DIR names.
  std::string heartbeat() const { return path_ + "/heartbeat"; }
  std::string log() const { return path_ + "/log"; }
  std::string shipped() const { return path_ + "/shipped"; }

  Status write_spec(const TaskSpec& spec) const;
  Result<TaskSpec> read_spec() const;
  Status write_supervisor(const ProcessId& process) const;
  Result<ProcessId> read_supervisor() const;
  Status write_exit(const TaskExit& exit) const;
  Result<TaskExit> read_exit() const;

 private:
  std::string path_;
};

}  // namespace det::agent
