// Files in the directory of an allocation. They carry the communication between agent and supervisor and
// outlive both. After a power failure no process of the allocation is left, and unreadable files count as
// lost.
//
//   spec.json        agent → supervisor: what to run
//   supervisor.json  supervisor → agent: its own process id
//   stop.json        agent → later agent: why the allocation is being ended
//   exit.json        supervisor → agent: how the main process ended, written when no process is left
//   outcome.json     agent → later agent: the exit as reported to the master
//   log, shipped     see agent/task/log_file.h
//   shells           socket of the supervisor: a connection for each shell (agent/task/shell_frames.h)
//   mounts           id-mapped directories, visible to the supervisor only
//   ports            socket for the agent, if the task has a network of its own (agent/task/master_relay.h)
//
// The task itself sees spec.json (read-only) and these directories:
//   workdir, determined, tmp
//   run              DET_RUN_DIR: home directory, files of the harness, and `heartbeat`, which the task
//                    touches while it makes progress (agent/task/hang_watch.h)
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/process.h"
#include "common/base/result.h"
#include "common/base/stop_signal.h"
#include "common/sandbox/sandbox.h"

namespace det {

/// Task that the supervisor runs. Stored as spec.json.
struct TaskSpec {
  std::vector<std::string> argv;
  /// "NAME=value"; the complete environment.
  std::vector<std::string> env;
  std::string cwd;
  /// Whether the task is a harness, which attaches to the master itself. Other tasks count as running once
  /// started.
  bool attaches = false;
  /// The supervisor kills the task when its standard input ends, which the agent holds. For agents without a
  /// successor: nothing would re-attach to the task.
  bool ends_with_agent = false;
  Duration grace = kDefaultKillGrace;  ///< SIGTERM to SIGKILL
  /// Silence after which the task counts as hung; 0: never.
  Duration hang_timeout{0};
  /// Absent: the task runs with all rights of the agent.
  std::optional<Sandbox> sandbox = {};
  /// HOST:PORT that the relay of a task with a network of its own connects to.
  std::string master;
  /// Directories of the task's control group (common/sandbox/control_group.h), that of memory first.
  std::vector<std::string> groups;
  /// Limit of unshipped log; lines beyond are dropped and counted.
  std::int64_t unshipped_bytes = 1LL << 30;
};

/// Identity of a process until the machine reboots: a pid is reused, a pid with its start time is not.
struct ProcessId {
  pid_t pid = 0;
  /// Clock ticks since boot (/proc/PID/stat, field 22).
  std::uint64_t start = 0;
  bool operator==(const ProcessId&) const = default;
};

/// How the main process ended. Stored as exit.json. `message` is set if the process could not be started.
struct TaskExit {
  ExitStatus status;
  std::string message;
  /// Last lines of its stderr, else of its stdout; empty after success. Arbitrary bytes.
  std::vector<std::string> last_lines;
  /// Limit in bytes. Set if the kernel killed the main process, or another process of the task, for lack of
  /// memory.
  std::optional<std::int64_t> memory_limit;
  /// Set if the supervisor ended the task after this much silence.
  std::optional<Duration> hung_for = {};
  /// After a hang: the diagnosis, then lines of the stack of the first stuck rank (agent/task/hang_report.h).
  /// Arbitrary bytes.
  std::vector<std::string> hang = {};
  bool operator==(const TaskExit&) const = default;
};

/// Paths and files of one allocation's directory. The write_ functions are atomic. The read_ functions fail
/// with kNotFound for an absent file, and with another code for a damaged one.
class TaskDir {
 public:
  explicit TaskDir(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string workdir() const { return path_ + "/workdir"; }
  /// Parent of the working directory in a sandbox, writable: a task may use "../data".
  std::string beside() const { return path_ + "/beside"; }
  /// Directory that is mounted at /run/determined, if possible. Containers of Determined AI have that path.
  std::string upstream() const { return path_ + "/determined"; }
  /// Link to the directory that is mounted at /determined_shared_fs, if possible. Exists for shared_fs
  /// storage only.
  std::string upstream_storage() const { return path_ + "/shared_fs"; }
  /// Directory that the task finds as DET_RUN_DIR.
  std::string run() const { return path_ + "/run"; }
  std::string heartbeat() const { return run() + "/heartbeat"; }
  std::string tmp() const { return path_ + "/tmp"; }
  std::string mounts() const { return path_ + "/mounts"; }
  std::string ports() const { return path_ + "/ports"; }
  /// Accounts that the task sees, when it has a user of its own.
  std::string passwd() const { return path_ + "/passwd"; }
  std::string group() const { return path_ + "/group"; }

  std::string spec() const { return path_ + "/spec.json"; }
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

}  // namespace det
