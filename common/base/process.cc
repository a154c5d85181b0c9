#include "common/base/process.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "common/base/files.h"
#include "common/base/options.h"
#include "common/base/text.h"

namespace det {
namespace {

constexpr unsigned kCloseOnExec = 1U << 2;  // CLOSE_RANGE_CLOEXEC, missing in some headers

/// Sent by the forked child through the close-on-exec report pipe if a step before exec, or exec itself,
/// fails.
struct ExecFailure {
  int error;
  int step;  ///< index into kSteps
};
constexpr std::array<const char*, 6> kSteps{"start", "set group", "set user", "enter", "open", "run"};
enum Step { kSession, kGroup, kUser, kDirectory, kRedirect, kExec };

/// Everything the child needs between vfork and exec, prepared before: it must not allocate memory.
struct Launch {
  std::string program;
  std::vector<char*> argv, env;
  const char* cwd = nullptr;
  std::array<int, 3> streams{-1, -1, -1};
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  bool new_session = false;
  bool blocks_sigterm = false;
  pid_t dies_with = 0;  ///< parent pid: SIGKILL when that process ends; 0 for none
  int report = -1;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

Result<std::string> find_program(const std::string& name) {
  if (name.empty()) return fail(Code::kInvalidArgument, "no program was named");
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path != nullptr ? path : "/usr/bin:/bin", ':')) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return fail(Code::kNotFound, name + ": not found in PATH");
}

[[noreturn]] void child_fail(const Launch& launch, Step step) {
  const ExecFailure failure{errno, step};
  const ssize_t ignored = ::write(launch.report, &failure, sizeof failure);
  (void)ignored;
  // _exit runs no destructors or atexit handlers of the parent.
  ::_exit(127);
}

/// Runs in the child, which shares the memory of its parent until exec, while the thread that started it
/// waits. It must neither allocate memory nor take a lock. `launch` is of no use afterwards.
[[noreturn]] void become_program(Launch& launch) {
  const int grouped = launch.new_session ? ::setsid() : ::setpgid(0, 0);
  if (grouped < 0) child_fail(launch, kSession);
  // Moves source descriptors out of 0..2 first, so that no dup2 overwrites one that is still needed.
  for (int& fd : launch.streams) {
    if (fd >= 0 && fd < 3) fd = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  }
  for (int target = 0; target < 3; ++target) {
    if (launch.streams[target] >= 0 && ::dup2(launch.streams[target], target) < 0)
      child_fail(launch, kRedirect);
  }
  if (launch.cwd != nullptr && ::chdir(launch.cwd) != 0) child_fail(launch, kDirectory);
  if (launch.gid || launch.uid) {
    // Groups before the user id: dropping the user id removes the right to change groups. The functions of
    // libc would change the threads of the parent, too.
    if (::syscall(SYS_setgroups, 0, nullptr) != 0) child_fail(launch, kGroup);
    if (launch.gid && ::syscall(SYS_setresgid, *launch.gid, *launch.gid, *launch.gid) != 0)
      child_fail(launch, kGroup);
    if (launch.uid && ::syscall(SYS_setresuid, *launch.uid, *launch.uid, *launch.uid) != 0)
      child_fail(launch, kUser);
  }
  // Covers descriptors opened without O_CLOEXEC by libraries or inherited from our parent.
  ::syscall(SYS_close_range, 3, ~0U, kCloseOnExec);
  // exec keeps ignored signals and the signal mask, so both are reset.
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t blocked;
  ::sigemptyset(&blocked);
  if (launch.blocks_sigterm) ::sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  if (launch.dies_with != 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != launch.dies_with) ::_exit(127);  // the parent ended before prctl
  }
  ::execve(launch.program.c_str(), launch.argv.data(), launch.env.data());
  child_fail(launch, kExec);
}

/// Opens one standard stream: `child` receives the child's end, `parent` our end of a pipe.
Status open_stream(const Stream& stream, int target, UniqueFd& child, UniqueFd& parent) {
  switch (stream.kind) {
    case Stream::Kind::kInherit:
      return {};
    case Stream::Kind::kNull:
      child.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
      break;
    case Stream::Kind::kFile:
      child.reset(::open(stream.path.c_str(),
                         O_CLOEXEC | (target == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_APPEND), 0640));
      break;
    case Stream::Kind::kDescriptor:
      child.reset(::fcntl(stream.fd, F_DUPFD_CLOEXEC, 3));
      return child ? Status{} : fail_errno("descriptor " + std::to_string(stream.fd));
    case Stream::Kind::kPipe: {
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
      child.reset(ends[target == 0 ? 0 : 1]);
      parent.reset(ends[target == 0 ? 1 : 0]);
      return {};
    }
  }
  return child ? Status{} : fail_errno(stream.path.empty() ? "/dev/null" : stream.path);
}

/// Reads the report pipe. End of file means that exec closed it, so the program runs.
Status read_exec_result(int fd, const ProcessOptions& options) {
  ExecFailure failure{};
  ssize_t got;
  do {
    got = ::read(fd, &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof failure) return {};
  errno = failure.error;
  const std::string what = failure.step == kDirectory ? options.cwd : options.argv[0];
  return fail_errno("cannot " + std::string(kSteps[static_cast<std::size_t>(failure.step)]) + " " + what);
}

ExitStatus from_siginfo(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return {info.si_status, 0};
  return {0, info.si_status};
}

/// Polls `fds` until an event or `deadline`. Rounds up to whole milliseconds, so that it does not spin near
/// the deadline.
int poll_until(std::vector<pollfd>& fds, MonoTime deadline) {
  const std::int64_t micros = std::max<std::int64_t>(0, (deadline - mono_now()).count());
  const int timeout = static_cast<int>(std::min<std::int64_t>((micros + 999) / 1000, INT_MAX));
  return ::poll(fds.data(), fds.size(), timeout);
}

/// Reads once and keeps up to `limit` bytes. Closes the descriptor at end of file.
void drain(UniqueFd& fd, std::string& kept, std::int64_t limit, bool& truncated) {
  char buffer[64 * 1024];
  const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    fd.reset();
    return;
  }
  const auto room =
      static_cast<std::size_t>(std::max<std::int64_t>(0, limit - static_cast<std::int64_t>(kept.size())));
  kept.append(buffer, std::min(room, static_cast<std::size_t>(got)));
  if (static_cast<std::size_t>(got) > room) truncated = true;
}

/// Writes some input. Closes the descriptor when all is written, or when the child has closed its end.
void feed(UniqueFd& fd, std::string_view& input) {
  const ssize_t wrote = input.empty() ? 0 : ::write(fd.get(), input.data(), input.size());
  if (wrote > 0) input.remove_prefix(static_cast<std::size_t>(wrote));
  if (input.empty() || (wrote < 0 && errno != EINTR && errno != EAGAIN)) fd.reset();
}

}  // namespace

PipeSignalHeld::PipeSignalHeld() {
  ::sigemptyset(&pipe_);
  ::sigaddset(&pipe_, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
}

PipeSignalHeld::~PipeSignalHeld() {
  // Discards the SIGPIPE that was raised meanwhile, unless the caller had blocked it already.
  const timespec none{};
  if (::sigismember(&before_, SIGPIPE) == 0) {
    while (::sigtimedwait(&pipe_, nullptr, &none) > 0) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int cpu_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

std::string to_string(const ExitStatus& status) {
  if (status.signal == 0) return "exit code " + std::to_string(status.code);
  const char* name = ::sigdescr_np(status.signal);
  return "signal " + std::to_string(status.signal) + " (" + (name != nullptr ? name : "unknown") + ")";
}

void lower_priority(pid_t leader) {
  constexpr int kLowest = 19;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(leader), kLowest);
  // Absent where the kernel does not schedule by session.
  const UniqueFd group(
      ::open(("/proc/" + std::to_string(leader) + "/autogroup").c_str(), O_WRONLY | O_CLOEXEC));
  const std::string value = std::to_string(kLowest);
  if (group) (void)!::write(group.get(), value.data(), value.size());
}

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> lines = process_environment();
  for (const std::string& change : changes) {
    const std::string prefix = change.substr(0, change.find('=')) + "=";
    std::erase_if(lines, [&](const std::string& line) { return line.starts_with(prefix); });
    if (change.find('=') != std::string::npos) lines.push_back(change);
  }
  return lines;
}

Result<Child> Child::spawn(const ProcessOptions& options) {
  if (options.argv.empty()) return fail(Code::kInvalidArgument, "no program was named");
  Launch launch;
  TRY_ASSIGN(launch.program, find_program(options.argv[0]));
  const std::vector<std::string> env = options.env ? *options.env : process_environment();
  launch.argv = pointers(options.argv);
  launch.env = pointers(env);
  launch.cwd = options.cwd.empty() ? nullptr : options.cwd.c_str();
  launch.uid = options.uid;
  launch.gid = options.gid;
  launch.new_session = options.new_session;
  if (options.dies_with_us) launch.dies_with = ::getpid();
  launch.blocks_sigterm = options.blocks_sigterm;

  Child child;
  std::array<UniqueFd, 3> theirs;
  TRY(open_stream(options.in, 0, theirs[0], child.in_));
  TRY(open_stream(options.out, 1, theirs[1], child.out_));
  TRY(open_stream(options.err, 2, theirs[2], child.err_));
  for (std::size_t i = 0; i < 3; ++i) launch.streams[i] = theirs[i].get();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
  UniqueFd report_in(ends[0]), report_out(ends[1]);
  // A report descriptor in 0..2 would be overwritten by a redirection.
  if (report_out.get() < 3) report_out.reset(::fcntl(report_out.get(), F_DUPFD_CLOEXEC, 3));
  launch.report = report_out.get();

  // Blocks all signals: no handler of ours may run in the child before exec. vfork() does not copy the
  // mappings of this process, which takes milliseconds in a large one.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::vfork();
  if (pid == 0) become_program(launch);
  const int fork_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    errno = fork_error;
    return fail_errno("fork");
  }
  child.pid_ = pid;
  // A pidfd cannot refer to a recycled pid, unlike the pid itself.
  child.pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!child.pidfd_) return fail_errno("pidfd_open");
  // Our copy of the write end must be closed, or the read below never sees end of file.
  report_out.reset();
  if (Status started = read_exec_result(report_in.get(), options); !started) {
    (void)child.wait(std::chrono::hours(1));  // it is in _exit
    return tl::unexpected(std::move(started).error());
  }
  return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      status_(std::exchange(other.status_, std::nullopt)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  end();
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::move(other.pidfd_);
  in_ = std::move(other.in_);
  out_ = std::move(other.out_);
  err_ = std::move(other.err_);
  status_ = std::exchange(other.status_, std::nullopt);
  return *this;
}

Child::~Child() { end(); }

void Child::end() {
  if (pid_ < 0) return;
  if (!status_) {
    // The child itself too: it may have moved to another process group.
    (void)signal_group(SIGKILL);
    (void)signal(SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
}

void Child::detach() {
  pid_ = -1;
  pidfd_.reset();
}

Status Child::signal(int number) {
  if (pid_ < 0 || status_) return {};
  const long sent =
      pidfd_ ? ::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0) : ::kill(pid_, number);
  return sent == 0 || errno == ESRCH ? Status{} : fail_errno("kill");
}

Status Child::signal_group(int number) {
  // After reaping, the pid may belong to another process.
  if (pid_ < 0 || status_) return {};
  return ::kill(-pid_, number) == 0 || errno == ESRCH ? Status{} : fail_errno("kill");
}

bool Child::ended() const {
  pollfd end{pidfd_.get(), POLLIN, 0};
  return status_.has_value() || ::poll(&end, 1, 0) > 0;
}

std::optional<ExitStatus> Child::wait(Duration timeout) {
  if (status_ || pid_ < 0) return status_;
  const MonoTime deadline = mono_now() + timeout;
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) == 0 && info.si_pid == pid_) {
      status_ = from_siginfo(info);
      return status_;
    }
    if (mono_now() >= deadline) return std::nullopt;
    std::vector<pollfd> fds{{pidfd_.get(), POLLIN, 0}};
    poll_until(fds, deadline);
  }
}

ExitStatus Child::stop(Duration grace) {
  (void)signal_group(SIGTERM);
  if (const auto status = wait(grace)) return *status;
  (void)signal_group(SIGKILL);
  (void)signal(SIGKILL);
  for (;;) {
    if (const auto status = wait(std::chrono::hours(1))) return *status;
  }
}

Result<ProcessResult> run_process(const ProcessOptions& options, const RunLimits& limits,
                                  std::string_view input) {
  ProcessOptions piped = options;
  piped.in = input.empty() ? Stream::null() : Stream::pipe();
  piped.out = piped.err = Stream::pipe();
  TRY_ASSIGN(Child child, Child::spawn(piped));
  if (child.in()) ::fcntl(child.in().get(), F_SETFL, O_NONBLOCK);

  const PipeSignalHeld held;
  const MonoTime deadline = mono_now() + limits.timeout;
  ProcessResult result;
  bool ended = false;
  // After the child's end the pipes are drained, but a grandchild that holds them open is not waited for.
  while (!ended && !result.timed_out) {
    std::vector<pollfd> fds{{child.pidfd(), POLLIN, 0},
                            {child.out() ? child.out().get() : -1, POLLIN, 0},
                            {child.err() ? child.err().get() : -1, POLLIN, 0},
                            {child.in() ? child.in().get() : -1, POLLOUT, 0}};
    const int events = poll_until(fds, deadline);
    if (events > 0 && fds[1].revents != 0)
      drain(child.out(), result.out, limits.output_bytes, result.truncated);
    if (events > 0 && fds[2].revents != 0)
      drain(child.err(), result.err, limits.output_bytes, result.truncated);
    if (events > 0 && fds[3].revents != 0) feed(child.in(), input);
    if (events > 0 && fds[0].revents != 0 && fds[1].revents == 0 && fds[2].revents == 0) ended = true;
    result.timed_out = !ended && mono_now() >= deadline;
  }
  // Kills what is left of the group, on timeout and after a normal end alike.
  result.status = child.stop(Duration(0));
  return result;
}

}  // namespace det
