// Owns what this process may run on, and child processes: started from an argument vector (never a shell), in
// a process group of their own, with no descriptor inherited by accident, and never left behind.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace det {

/// The processors that this process may run on; at least 1.
int cpu_count();

/// How a process ended.
struct ExitStatus {
  int code = 0;    ///< exit code; meaningless when signal != 0
  int signal = 0;  ///< the signal that ended it; 0 when it exited by itself

  bool ok() const { return code == 0 && signal == 0; }
  /// As a shell tells it: the code, or 128 + signal.
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
  bool operator==(const ExitStatus&) const = default;
};
/// "exit code 3", "signal 9 (Killed)".
std::string to_string(const ExitStatus& status);

/// Where one of the child's three standard streams goes.
struct Stream {
  enum class Kind { kNull, kInherit, kPipe, kFile };
  Kind kind = Kind::kNull;
  std::string path;  ///< kFile: appended to, made with mode 0640; read, for the input

  static Stream null() { return {}; }
  static Stream inherit() { return {Kind::kInherit, {}}; }
  static Stream pipe() { return {Kind::kPipe, {}}; }
  static Stream file(std::string path) { return {Kind::kFile, std::move(path)}; }
};

struct ProcessOptions {
  std::vector<std::string> argv;  ///< argv[0] without '/' is looked up in this process's PATH
  /// "NAME=value"; absent: this process's environment.
  std::optional<std::vector<std::string>> env;
  std::string cwd;  ///< "" is this process's
  Stream in, out, err;
  /// Dropped to before exec, with no other groups; needs root when set.
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  bool new_session = false;  ///< setsid: outlives the terminal; else a process group of its own
  bool dies_with_us =
      false;  ///< SIGKILL to the child (not its children) when the thread that spawned it ends
};

/// This process's environment with `changes` ("NAME=value" sets, "NAME" unsets) applied.
std::vector<std::string> environment_with(const std::vector<std::string>& changes);

/// A running child. The destructor kills the whole group (SIGKILL) and reaps the child, unless detached.
/// Used by one thread at a time; signal() may be called from any.
class Child {
 public:
  /// kNotFound when the program is absent, kPermissionDenied when it may not run; a failed exec is reported
  /// here.
  static Result<Child> spawn(const ProcessOptions& options);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  pid_t pid() const { return pid_; }
  /// Readable (poll) once the child has ended.
  int pidfd() const { return pidfd_.get(); }
  /// Our ends of the streams given as Stream::pipe().
  UniqueFd& in() { return in_; }
  UniqueFd& out() { return out_; }
  UniqueFd& err() { return err_; }

  /// To the child alone; no failure when it has ended already.
  Status signal(int number);
  /// To the child's whole process group.
  Status signal_group(int number);
  /// Whether it has ended, leaving it unreaped: its group may still be signalled.
  bool ended() const;
  /// The end of the child, waiting up to `timeout`; nothing when it still runs. Repeatable.
  std::optional<ExitStatus> wait(Duration timeout);
  /// SIGTERM to the group, after `grace` SIGKILL; returns how the child ended.
  ExitStatus stop(Duration grace);
  /// The child is left to run when this object goes.
  void detach();

 private:
  Child() = default;
  void end();
  pid_t pid_ = -1;
  UniqueFd pidfd_, in_, out_, err_;
  std::optional<ExitStatus> status_;
};

struct RunLimits {
  Duration timeout = std::chrono::seconds(60);
  std::int64_t output_bytes = 16 << 20;  ///< kept of each stream; the rest is read and dropped
};

struct ProcessResult {
  ExitStatus status;
  std::string out, err;
  bool timed_out = false;  ///< the group was killed at the deadline
  bool truncated = false;  ///< more output came than was kept
  bool ok() const { return status.ok() && !timed_out; }
};

/// Runs to the end with `input` on standard input, collecting both outputs (`in`, `out`, `err` of the options
/// are ignored). A non-zero exit is no failure of this call.
Result<ProcessResult> run_process(const ProcessOptions& options, const RunLimits& limits = {},
                                  std::string_view input = {});

}  // namespace det
