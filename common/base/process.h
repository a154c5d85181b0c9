// Child processes: started from an argument vector (never a shell), in a process group of their own, without
// inherited descriptors; killed and reaped by the owning object. Also the CPU count of this process.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "common/base/result.h"

namespace det {

/// Number of CPUs in this process's affinity mask; at least 1.
int cpu_count();

/// Termination status of a process.
struct ExitStatus {
  int code = 0;    ///< exit code; meaningless if signal != 0
  int signal = 0;  ///< signal that terminated it; 0 if it exited by itself

  bool ok() const { return code == 0 && signal == 0; }
  /// The shell's convention: the exit code, or 128 + signal.
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
  bool operator==(const ExitStatus&) const = default;
};
/// Formats as "exit code 3" or "signal 9 (Killed)".
std::string to_string(const ExitStatus& status);

/// Redirection of one of the child's standard streams.
struct Stream {
  enum class Kind { kNull, kInherit, kPipe, kFile, kDescriptor };
  Kind kind = Kind::kNull;
  std::string path;  ///< for kFile: opened for append (mode 0640), or for reading as input
  int fd = -1;       ///< for kDescriptor

  static Stream null() { return {}; }
  static Stream inherit() { return {Kind::kInherit, {}, -1}; }
  static Stream pipe() { return {Kind::kPipe, {}, -1}; }
  static Stream file(std::string path) { return {Kind::kFile, std::move(path), -1}; }
  /// A copy of a descriptor, which stays the caller's.
  static Stream descriptor(int fd) { return {Kind::kDescriptor, {}, fd}; }
};

/// Parameters of Child::spawn.
struct ProcessOptions {
  std::vector<std::string> argv;  ///< argv[0] without '/' is searched in this process's PATH
  /// Environment as "NAME=value"; absent means this process's environment.
  std::optional<std::vector<std::string>> env;
  std::string cwd;  ///< "" means this process's directory
  Stream in, out, err;
  /// Credentials that the child drops to before exec, with no supplementary groups. Setting them requires
  /// root.
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  bool new_session = false;  ///< setsid: survives the terminal; otherwise only a new process group
  /// Sends SIGKILL to the child (not to its children) when the spawning thread ends.
  bool dies_with_us = false;
  /// SIGTERM stays blocked in the child until it changes its own mask.
  bool blocks_sigterm = false;
};

/// Returns the value of a variable of this process's environment; "" if it is unset.
std::string environment_variable(const char* name);
/// Returns this process's environment with `changes` applied: "NAME=value" sets, "NAME" unsets.
std::vector<std::string> environment_with(const std::vector<std::string>& changes);

/// A running child process. The destructor kills its process group with SIGKILL and reaps the child, unless
/// detached. Not thread-safe, except that signal() may be called from any thread.
class Child {
 public:
  /// Starts a process. Blocks until exec has succeeded or failed.
  /// Errors: kNotFound (no such program), kPermissionDenied (not executable), or the errno of the failed
  /// step.
  static Result<Child> spawn(const ProcessOptions& options);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  pid_t pid() const { return pid_; }
  /// A descriptor that polls readable once the child has ended.
  int pidfd() const { return pidfd_.get(); }
  /// The parent's ends of the streams given as Stream::pipe().
  UniqueFd& in() { return in_; }
  UniqueFd& out() { return out_; }
  UniqueFd& err() { return err_; }

  /// Sends a signal to the child only. Succeeds if the child has already ended.
  Status signal(int number);
  /// Sends a signal to the child's whole process group. Succeeds if the child has already ended.
  Status signal_group(int number);
  /// True if the child has ended. Does not reap it, so its group can still be signaled.
  bool ended() const;
  /// Waits up to `timeout` for the child to end, reaps it and returns its status; nothing if it still runs.
  /// Idempotent.
  std::optional<ExitStatus> wait(Duration timeout);
  /// Sends SIGTERM to the group, SIGKILL after `grace`, and returns the child's status. Blocks until the
  /// child has ended.
  ExitStatus stop(Duration grace);
  /// Releases ownership: the destructor leaves the child running.
  void detach();

 private:
  Child() = default;
  void end();
  pid_t pid_ = -1;
  UniqueFd pidfd_, in_, out_, err_;
  std::optional<ExitStatus> status_;
};

/// Gives the leader of a session (ProcessOptions::new_session) and its future children the lowest priority:
/// nice value 19, and the same for its session, which is a unit of its own where the kernel schedules by
/// session (sched(7), "The autogroup feature").
void lower_priority(pid_t leader);

/// Bounds of run_process.
struct RunLimits {
  Duration timeout = std::chrono::seconds(60);
  std::int64_t output_bytes = 16 << 20;  ///< kept per stream; further output is read and discarded
};

/// Outcome of run_process.
struct ProcessResult {
  ExitStatus status;
  std::string out, err;
  bool timed_out = false;  ///< the group was killed at the deadline
  bool truncated = false;  ///< output was discarded
  bool ok() const { return status.ok() && !timed_out; }
};

/// Runs a process to its end with `input` as standard input and collects stdout and stderr; `in`, `out` and
/// `err` of `options` are ignored. Blocks up to the timeout. A non-zero exit is not an error.
/// Errors: those of Child::spawn.
Result<ProcessResult> run_process(const ProcessOptions& options, const RunLimits& limits = {},
                                  std::string_view input = {});

/// Blocks SIGPIPE in this thread while it exists and discards a pending one: for writes to a pipe or a socket
/// that the other side may have closed.
class PipeSignalHeld {
 public:
  PipeSignalHeld();
  ~PipeSignalHeld();
  PipeSignalHeld(const PipeSignalHeld&) = delete;
  PipeSignalHeld& operator=(const PipeSignalHeld&) = delete;

 private:
  sigset_t pipe_{}, before_{};
};

}  // namespace det
