// Owns the program det-supervisor: the small parent of one allocation's processes. It starts the task, writes
// its output to the allocation's log, and ends only when nothing of the task is left; then, and only then,
// exit.json is there. It outlives the agent and never speaks to the network. `det-supervisor DIR`, see
// task/task_dir.h. SIGTERM: the task is asked to end (SIGTERM to its process group) and, after the grace,
// made to. So is one that hangs (task/hang_watch.h).
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <iostream>
#include <optional>

#include "agent/task/hang_watch.h"
#include "agent/task/log_file.h"
#include "agent/task/memory.h"
#include "agent/task/processes.h"
#include "agent/task/task_dir.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/process.h"
#include "base/units.h"

namespace det::agent {
namespace {

constexpr std::size_t kLastLines = 5;
constexpr std::size_t kLastLineBytes = 300;
constexpr std::size_t kDescribed = 20;  ///< most processes of which the log tells what they did

/// One output of the task, on its way into the log.
struct Output {
  UniqueFd fd;
  LogStream stream;
  LineSplitter lines;
  std::deque<std::string> last;  ///< for who asks why it ended

  void keep(LogWriter& log, std::string line) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) {
      if (last.size() == kLastLines) last.pop_front();
      last.push_back(line.substr(0, kLastLineBytes));
    }
    log.append(stream, std::move(line));
  }

  /// False at its end.
  bool read_some(LogWriter& log) {
    char buffer[64 * 1024];
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    auto sink = [&](std::string line) { keep(log, std::move(line)); };
    if (got > 0) {
      lines.feed({buffer, static_cast<std::size_t>(got)}, sink);
      return true;
    }
    lines.finish(sink);
    fd.reset();
    return false;
  }
};

class Supervisor {
 public:
  Supervisor(TaskDir dir, TaskSpec spec, LogWriter log, UniqueFd signals)
      : dir_(std::move(dir)),
        spec_(std::move(spec)),
        log_(std::move(log)),
        signals_(std::move(signals)),
        watch_(dir_.heartbeat(), spec_.hang_timeout, mono_now()) {}

  /// Runs the task to its end and records it.
  Status run() {
    if (auto started = start(); !started) {
      const int code = started.error().code == Code::kPermissionDenied ? 126 : 127;
      log_.append(LogStream::kAgent, "ERROR: " + started.error().message);
      return dir_.write_exit({{code, 0}, started.error().message});
    }
    while (!exit_ || children_left_) turn();
    drain();
    log_.flush_dropped();
    return dir_.write_exit(how_it_ended());
  }

 private:
  TaskExit how_it_ended() const {
    TaskExit end{*exit_, "", {}, {}};
    if (hung_) end.hung_for = watch_.timeout();
    if (end.status.ok() && !hung_) return end;
    const auto& lines = outputs_[1].last.empty() ? outputs_[0].last : outputs_[1].last;
    end.last_lines.assign(lines.begin(), lines.end());
    // Others may share our control group: it must look like one of ours, too.
    const bool killed = end.status.shell_code() == 128 + SIGKILL ||
                        std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
                          return line.find("Killed") != std::string::npos;
                        });
    if (killed && oom_kills() > oom_before_) end.memory_limit = memory_limit();
    return end;
  }

  Status start() {
    ProcessOptions options{.argv = spec_.argv,
                           .env = spec_.env,
                           .cwd = spec_.cwd,
                           .out = Stream::pipe(),
                           .err = Stream::pipe(),
                           .dies_with_us = true};
    TRY_ASSIGN(Child child, Child::spawn(options));
    main_ = child.pid();
    outputs_[0].fd = std::move(child.out());
    outputs_[1].fd = std::move(child.err());
    child.detach();  // all children are reaped in one place below
    return {};
  }

  /// One wait for whatever comes, and what it asks for.
  void turn() {
    std::array<pollfd, 3> fds{
        {{signals_.get(), POLLIN, 0}, {outputs_[0].fd.get(), POLLIN, 0}, {outputs_[1].fd.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), wait_ms()) > 0) {
      for (std::size_t i = 0; i < outputs_.size(); ++i) {
        if (outputs_[i].fd && fds[i + 1].revents != 0 && outputs_[i].read_some(log_))
          watch_.saw_output(mono_now());
      }
      if (fds[0].revents != 0) take_signals();
    }
    reap();
    if (!exit_ && !kill_at_ && watch_.hangs(mono_now())) end_hang();
    // With the main process the allocation ends: nothing else may go on. New ones may be born while we kill.
    // Orphans become our children, so when none is left there is nobody to look for.
    if (children_left_ && (exit_ || (kill_at_ && mono_now() >= *kill_at_))) kill_all();
  }

  int wait_ms() const {
    if (exit_) return 20;
    if (!kill_at_ && !watch_.watches()) return -1;
    const MonoTime next = kill_at_ ? *kill_at_ : watch_.next_look();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - mono_now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 20, kill_at_ ? 1000 : 60'000));
  }

  void ask_to_end() {
    ::kill(-main_, SIGTERM);
    kill_at_ = mono_now() + spec_.grace;
  }

  void end_hang() {
    hung_ = true;
    log_.append(LogStream::kAgent, "ERROR: it hangs: no batch, no report and no output for " +
                                       human_duration(watch_.timeout()) + " (hang_timeout); it is ended");
    std::vector<pid_t> processes = descendants(::getpid());
    if (processes.size() > kDescribed) processes.resize(kDescribed);
    for (const pid_t pid : processes) {
      if (const std::string text = describe_process(pid); !text.empty())
        log_.append(LogStream::kAgent, "ERROR: " + text);
    }
    ask_to_end();
  }

  void take_signals() {
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGTERM || kill_at_ || exit_) continue;
      ask_to_end();
    }
  }

  void reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid < 0) children_left_ = errno != ECHILD;
      if (pid <= 0) return;
      if (pid != main_) continue;
      exit_ = WIFSIGNALED(status) ? ExitStatus{0, WTERMSIG(status)} : ExitStatus{WEXITSTATUS(status), 0};
    }
  }

  void kill_all() {
    if (!exit_) ::kill(-main_, SIGKILL);
    for (const pid_t pid : descendants(::getpid())) ::kill(pid, SIGKILL);
  }

  /// What is still in the pipes. Nobody of the task is left to write more; who got hold of an end by other
  /// ways is not waited for.
  void drain() {
    for (Output& output : outputs_) {
      pollfd ready{output.fd.get(), POLLIN, 0};
      while (output.fd && ::poll(&ready, 1, 0) > 0 && output.read_some(log_)) {
      }
      output.lines.finish([&](std::string line) { output.keep(log_, std::move(line)); });
    }
  }

  TaskDir dir_;
  TaskSpec spec_;
  LogWriter log_;
  UniqueFd signals_;
  pid_t main_ = 0;
  const std::int64_t oom_before_ = oom_kills();
  std::array<Output, 2> outputs_{Output{{}, LogStream::kStdout, {}, {}},
                                 Output{{}, LogStream::kStderr, {}, {}}};
  std::optional<ExitStatus> exit_;
  std::optional<MonoTime> kill_at_;
  HangWatch watch_;
  bool hung_ = false;
  bool children_left_ = true;
};

/// What the task sees in the place of `place`, which is made where it is missing.
void show(const std::string& directory, const char* place) {
  if (::mkdir(place, 0755) != 0 && errno != EEXIST) return;
  (void)::mount(directory.c_str(), place, nullptr, MS_BIND, nullptr);
}

/// Shows the allocation's own directory as /run/determined to the task, and to nobody else, and the storage
/// of its checkpoints as /determined_shared_fs. Where we may not (we are not root), a Python harness of
/// Determined does not find its cluster; all else goes on.
void show_upstream(const TaskDir& dir) {
  if (!path_exists(dir.upstream()) || ::unshare(CLONE_NEWNS) != 0) return;
  // What the machine mounts later is seen here as well; what we mount is not seen there.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return;
  show(dir.upstream(), "/run/determined");
  if (path_exists(dir.upstream_storage())) show(dir.upstream_storage(), "/determined_shared_fs");
}

Status supervise(const std::string& path) {
  ::setsid();  // fails when we lead a session already
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return fail_errno("PR_SET_CHILD_SUBREAPER");
  // What ends a terminal's processes must not end us.
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE}) ::signal(number, SIG_IGN);
  sigset_t mine;
  ::sigemptyset(&mine);
  ::sigaddset(&mine, SIGTERM);
  ::sigaddset(&mine, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &mine, nullptr);
  UniqueFd signals(::signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) return fail_errno("signalfd");

  TaskDir dir(path);
  TRY_ASSIGN(TaskSpec spec, dir.read_spec());
  TRY_ASSIGN(LogWriter log, LogWriter::open(dir.log(), dir.shipped(), spec.unshipped_bytes));
  const auto self = identify(::getpid());
  if (!self) return fail(Code::kInternal, "/proc does not show this process");
  show_upstream(dir);
  // Before the task exists: a task without this file has no supervisor to look for.
  TRY(dir.write_supervisor(*self));
  return Supervisor(std::move(dir), std::move(spec), std::move(log), std::move(signals)).run();
}

}  // namespace
}  // namespace det::agent

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: det-supervisor DIR\nStarted by det-agent; not for use by hand.\n";
    return 2;
  }
  const det::Status done = det::agent::supervise(argv[1]);
  if (done) return 0;
  std::cerr << "det-supervisor: " << done.error().message << "\n";
  return 1;
}
