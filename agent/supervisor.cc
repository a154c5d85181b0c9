// Program det-supervisor: parent of one allocation's processes. Usage: `det-supervisor DIR [FORK_SERVER]`,
// see common/task/task_dir.h. It starts the task in its sandbox, writes the output to the allocation's log,
// and ends only when no process of the task is left; only then does exit.json exist. It outlives the agent
// and does not use the network itself: the relay of a task with a network of its own is a child. On a queued
// SIGTERM (request_stop), or when the task hangs (task/hang_watch.h), the process group of the task gets
// SIGTERM and, after the grace, all its processes get SIGKILL. With TaskSpec::ends_with_agent the end of
// standard input kills them at once. det-task-init is the parent of the task inside the sandbox, and process
// 1 there.
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <deque>
#include <filesystem>
#include <iostream>
#include <optional>

#include "agent/task/hang_report.h"
#include "agent/task/hang_watch.h"
#include "agent/task/log_file.h"
#include "agent/task/master_relay.h"
#include "agent/task/memory.h"
#include "agent/task/processes.h"
#include "agent/task/shell_frames.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/task/message.h"
#include "common/task/task_dir.h"

namespace det::agent {
namespace {

constexpr std::size_t kLastLines = 5;
constexpr std::size_t kLastLineBytes = 300;
/// Bytes of the end that a shortened line keeps: the place of an error stands there.
constexpr std::size_t kLineEndBytes = 120;
/// Limits of a report about a hung task: processes and stacks in the log, and time for all stacks.
constexpr std::size_t kDescribed = 20, kMaxStacks = 4;
constexpr Duration kStackPatience = std::chrono::seconds(6);

/// Relays of one task, one after the other. The kernel may kill one for lack of memory.
constexpr int kMaxRelays = 20;

/// Whether a process belongs to the sandbox rather than to the task.
bool is_ours(pid_t pid) {
  const std::string text = describe_process(pid);
  return text.starts_with("bwrap (") || text.starts_with("det-task-init (") ||
         text.starts_with("det-task-shell (") || text.starts_with("det-task-ssh (") ||
         text.starts_with("det-relay (");
}

/// Returns the line, without its middle when it exceeds kLastLineBytes.
std::string without_middle(const std::string& line) {
  constexpr std::string_view kCut = " ... ";
  if (line.size() <= kLastLineBytes) return line;
  return line.substr(0, kLastLineBytes - kLineEndBytes - kCut.size()) + std::string(kCut) +
         line.substr(line.size() - kLineEndBytes);
}

/// One output stream of the task.
struct Output {
  UniqueFd fd;
  LogStream stream;
  LineSplitter lines;
  std::deque<std::string> last;  ///< shown with the exit of a failed task

  void keep(LogWriter& log, std::string line) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) {
      if (last.size() == kLastLines) last.pop_front();
      last.push_back(without_middle(line));
    }
    log.append(stream, std::move(line));
  }

  /// Reads what is available. Returns false at the end of the stream.
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

/// The event loop around one task. Single-threaded.
class Supervisor {
 public:
  /// `fork_server`: socket of the det-fork-server that the task is forked from; "": its program is executed.
  Supervisor(TaskDir dir, TaskSpec spec, std::string fork_server, LogWriter log, UniqueFd signals)
      : dir_(std::move(dir)),
        spec_(std::move(spec)),
        fork_server_(std::move(fork_server)),
        log_(std::move(log)),
        signals_(std::move(signals)),
        watch_(dir_.heartbeat(), spec_.hang_timeout, mono_now()) {}

  /// Runs the task to its end and writes exit.json.
  Status run() {
    if (auto started = start(); !started) refuse(started.error());
    if (auto shells = listen_for_shells(dir_))
      shells_ = std::move(*shells);
    else
      log_.append(LogStream::kAgent, "WARNING: no shells in this task: " + shells.error().message);
    // Until the main process has ended and no descendant is left.
    while (!exit_ || children_left_) turn();
    drain();
    if (refused_) {
      log_.append(LogStream::kAgent, "ERROR: " + *refused_);
      return dir_.write_exit({*exit_, *refused_});
    }
    log_.flush_dropped();
    return dir_.write_exit(how_it_ended());
  }

 private:
  TaskExit how_it_ended() const {
    TaskExit end{*exit_, "", {}, {}};
    if (hung_) end.hung_for = watch_.timeout(), end.hang = hang_;
    if (end.status.ok() && !hung_) return end;
    const auto& lines = outputs_[1].last.empty() ? outputs_[0].last : outputs_[1].last;
    end.last_lines.assign(lines.begin(), lines.end());
    // Other tasks may share the control group, so an OOM kill counts only if this task shows signs of one.
    const bool killed = end.status.shell_code() == 128 + SIGKILL ||
                        std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
                          return line.find("Killed") != std::string::npos;
                        });
    if (killed && oom_kills(memory_group()) > oom_before_) end.memory_limit = memory_limit(memory_group());
    return end;
  }

  /// Returns the directory of the task's own group; "" if it has the group of this process.
  std::string memory_group() const { return spec_.groups.empty() ? "" : spec_.groups[0]; }

  /// The task could not be started.
  void refuse(const Error& error) {
    refused_ = error.message;
    exit_ = ExitStatus{error.code == Code::kPermissionDenied ? 126 : 127, 0};
  }

  Status start() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return fail_errno("socketpair");
    init_.reset(ends[0]);
    const UniqueFd theirs(ends[1]);
    const UniqueFd server = reach_fork_server();
    const std::string bin = std::filesystem::path(program_path()).parent_path().string();
    std::vector<std::string> argv{bin + "/det-task-init", "run", dir_.path()};
    if (spec_.sandbox) {
      TRY_ASSIGN(const auto warnings, map_owners(*spec_.sandbox, dir_.mounts()));
      for (const std::string& warning : warnings) log_.append(LogStream::kAgent, "WARNING: " + warning);
      argv = sandbox_command(*spec_.sandbox, argv);
    }
    // The mark of the allocation, and nothing else of the agent's environment.
    TRY_ASSIGN(Child child, Child::spawn({.argv = argv,
                                          .env = {{"PATH=/usr/local/bin:/usr/bin:/bin",
                                                   "DET_RUN_DIR=" + environment_variable("DET_RUN_DIR")}},
                                          .cwd = "/",
                                          .in = Stream::descriptor(theirs.get()),
                                          .out = Stream::pipe(),
                                          .err = Stream::pipe(),
                                          .dies_with_us = true,
                                          .blocks_sigterm = true}));
    first_ = child.pid();
    outputs_[0].fd = std::move(child.out());
    outputs_[1].fd = std::move(child.err());
    // All children are reaped in reap().
    child.detach();
    std::string begin = "start";
    std::vector<int> fds;
    if (server) begin += " fork", fds.push_back(server.get());
    UniqueFd ports;
    if (spec_.sandbox && spec_.sandbox->own_network) {
      TRY_ASSIGN(ports, listen_for_ports(dir_.path()));
      begin += " ports", fds.push_back(ports.get());
    }
    TRY_ASSIGN(const auto group, open_group(spec_.groups));
    for (const UniqueFd& file : group) begin += " group", fds.push_back(file.get());
    return send_message(init_.get(), begin, fds);
  }

  /// Connects to det-fork-server, which then forks while the sandbox is made. Returns none if the task is to
  /// be executed.
  UniqueFd reach_fork_server() {
    if (fork_server_.empty() || !spec_.sandbox) return {};
    auto server = connect_messages(fork_server_);
    if (server) return std::move(*server);
    log_cold(server.error().message);
    return {};
  }

  void log_cold(const std::string& reason) {
    log_.append(LogStream::kAgent,
                "WARNING: det-fork-server is not used, so the start takes longer: " + reason);
  }

  /// Waits for the next event and handles it.
  void turn() {
    std::array<pollfd, 6> fds{{{signals_.get(), POLLIN, 0},
                               {outputs_[0].fd.get(), POLLIN, 0},
                               {outputs_[1].fd.get(), POLLIN, 0},
                               {init_.get(), POLLIN, 0},
                               {watches_agent_ ? STDIN_FILENO : -1, POLLIN, 0},
                               {shells_.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), wait_ms()) > 0) {
      for (std::size_t i = 0; i < outputs_.size(); ++i) {
        if (outputs_[i].fd && fds[i + 1].revents != 0 && outputs_[i].read_some(log_))
          watch_.saw_output(mono_now());
      }
      if (fds[0].revents != 0) take_signals();
      if (fds[3].revents != 0) read_init();
      if (fds[4].revents != 0) end_with_agent();
      if (fds[5].revents != 0) accept_shell();
    }
    reap();
    if (!exit_ && !kill_at_ && watch_.hangs(mono_now())) end_hang();
    // The allocation ends with its main process. Killing repeats, since new processes may appear meanwhile.
    // The subreaper adopts orphans, so without children nothing is left.
    if (children_left_ && is_killing()) kill_all();
  }

  /// Passes the connection of a shell to det-task-init, which may refuse it by closing it.
  void accept_shell() {
    const UniqueFd agent(::accept4(shells_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (agent && init_ && started_) (void)send_message(init_.get(), "shell", {agent.get()});
  }

  bool is_killing() const { return exit_ || (kill_at_ && mono_now() >= *kill_at_); }

  int wait_ms() const {
    // Poll quickly while killing; otherwise sleep until the next deadline.
    if (exit_) return 20;
    if (!kill_at_ && !watch_.watches()) return -1;
    const MonoTime next = kill_at_ ? *kill_at_ : watch_.next_look();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - mono_now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 20, kill_at_ ? 1000 : 60'000));
  }

  void terminate() {
    (void)::send(init_.get(), "term", 4, MSG_NOSIGNAL);
    kill_at_ = mono_now() + spec_.grace;
  }

  void end_with_agent() {
    watches_agent_ = false;
    log_.append(LogStream::kAgent, "ERROR: the agent has died; killing the task");
    kill_at_ = mono_now();
  }

  void end_hang() {
    hung_ = true;
    log_.append(LogStream::kAgent, "ERROR: the task hangs: no batch, no report and no output for " +
                                       human_duration(watch_.timeout()) + " (hang_timeout); sending SIGTERM");
    // Describe the processes before the signal changes their state.
    std::vector<pid_t> processes = descendants(::getpid());
    std::erase_if(processes, [](pid_t pid) { return is_ours(pid); });
    const std::vector<RankRecord> ranks = read_ranks(processes);
    if (processes.size() > kDescribed) processes.resize(kDescribed);
    for (const pid_t pid : processes) {
      if (const std::string text = describe_process(pid); !text.empty())
        log_.append(LogStream::kAgent, "ERROR: " + text);
    }
    explain_hang(ranks);
    terminate();
  }

  /// Logs which ranks are stuck, and their stacks. Blocks for at most kStackPatience.
  void explain_hang(const std::vector<RankRecord>& ranks) {
    HangDiagnosis found = diagnose(ranks, mono_now());
    if (found.stuck.empty()) return;
    if (found.stuck.size() > kMaxStacks) found.stuck.resize(kMaxStacks);
    if (!found.text.empty()) log_.append(LogStream::kAgent, "ERROR: " + found.text);
    hang_.push_back(std::move(found.text));
    std::vector<const RankRecord*> stuck;
    for (const std::size_t i : found.stuck) stuck.push_back(&ranks[i]);
    const std::vector<std::string> stacks = take_stacks(stuck, kStackPatience);
    for (std::size_t i = 0; i < stacks.size(); ++i) {
      const std::string owner = "rank " + std::to_string(stuck[i]->rank);
      if (stacks[i].empty()) log_.append(LogStream::kAgent, "ERROR: no stack of " + owner);
      for (const std::string& line : split(trim(stacks[i]), '\n')) {
        if (line.empty()) continue;
        log_.append(LogStream::kAgent, "ERROR: " + owner + ": " + line);
        if (i == 0) hang_.push_back(line);
      }
    }
  }

  void take_signals() {
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      // Only the agent queues its signal. An engine that signals every process of a job leaves the decision
      // to the agent, which got the signal, too.
      if (info.ssi_signo != SIGTERM || info.ssi_code != SI_QUEUE || kill_at_ || exit_) continue;
      terminate();
    }
  }

  /// Reads the messages of det-task-init, see task_init.cc. Closes the socket at its end.
  void read_init() {
    for (;;) {
      auto received = receive_message(init_.get(), mono_now());
      if (!received && received.error().code == Code::kDeadlineExceeded) return;
      if (!received) return init_.reset();
      const std::string_view message = received->text;
      const std::vector<std::string> words = split(message, ' ');
      int first = 0, second = 0;
      if (words.size() > 1) std::from_chars(words[1].data(), words[1].data() + words[1].size(), first);
      if (words.size() > 2) std::from_chars(words[2].data(), words[2].data() + words[2].size(), second);
      if (words[0] == "network" && !received->fds.empty()) {
        listener_ = std::move(received->fds[0]);
        relay();
      }
      if (words[0] == "started") started_ = true;
      if (words[0] == "cold") log_cold(std::string(message.substr(std::min<std::size_t>(5, message.size()))));
      if (words[0] == "exit" && !exit_) exit_ = ExitStatus{first, second};
      if (words[0] == "failed" && !exit_) {
        const std::size_t text = message.find(' ', message.find(' ') + 1);
        refuse(
            {static_cast<Code>(first), std::string(message.substr(std::min(text, message.size() - 1) + 1))});
      }
    }
  }

  /// The first process of the task has ended, with or without a report.
  void first_ended() {
    if (init_) read_init();
    if (exit_) return;
    if (started_ || kill_at_) {
      exit_ = ExitStatus{0, SIGKILL};
    } else {
      refuse({Code::kInternal, "the sandbox of the task could not be created; the log has the reason"});
    }
  }

  /// Starts the relay of the task. Without one the task does not reach the master.
  void relay() {
    if (++relays_ > kMaxRelays) return;
    if (auto pid = start_relay(listener_, spec_.master, spec_.sandbox ? spec_.sandbox->uid : std::nullopt))
      relay_ = *pid;
    else
      log_.append(LogStream::kAgent, "ERROR: no relay to the master: " + pid.error().message);
  }

  void reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      // ECHILD: every process of the task has been reaped.
      if (pid < 0) children_left_ = errno != ECHILD;
      if (pid <= 0) return;
      if (pid == first_) first_ended();
      if (pid == relay_ && !is_killing()) {
        log_.append(LogStream::kAgent, "WARNING: the relay to the master has ended; starting another one");
        relay();
      }
    }
  }

  void kill_all() {
    for (const pid_t pid : descendants(::getpid())) ::kill(pid, SIGKILL);
  }

  /// Reads what is left in the pipes. No process of the task can write any more. A descriptor that leaked
  /// elsewhere must not delay the end, so this never waits.
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
  const std::string fork_server_;
  LogWriter log_;
  UniqueFd signals_;
  UniqueFd shells_;    ///< listens for shells
  UniqueFd init_;      ///< socket to det-task-init
  pid_t first_ = 0;    ///< bubblewrap, or det-task-init without a sandbox
  UniqueFd listener_;  ///< of the relay, in the network of the task
  pid_t relay_ = 0;
  int relays_ = 0;  ///< started
  const std::int64_t oom_before_ = oom_kills(memory_group());
  std::array<Output, 2> outputs_{Output{{}, LogStream::kStdout, {}, {}},
                                 Output{{}, LogStream::kStderr, {}, {}}};
  std::optional<ExitStatus> exit_;
  std::optional<std::string> refused_;  ///< why the task could not be started
  bool started_ = false;
  bool watches_agent_ = spec_.ends_with_agent;
  std::optional<MonoTime> kill_at_;
  HangWatch watch_;
  bool hung_ = false;
  std::vector<std::string> hang_;  ///< of TaskExit
  bool children_left_ = true;
};

/// Bind-mounts `directory` at `place`, which is created if missing. Best effort.
void show(const std::string& directory, const char* place) {
  if (::mkdir(place, 0755) != 0 && errno != EEXIST) return;
  (void)::mount(directory.c_str(), place, nullptr, MS_BIND, nullptr);
}

/// Without a sandbox: shows the allocation's own directory as /run/determined to the task only, and the
/// storage of its checkpoints as /determined_shared_fs. Needs root; otherwise a Python harness of Determined
/// AI does not detect its cluster, and everything else works.
void show_upstream(const TaskDir& dir) {
  if (!path_exists(dir.upstream()) || ::unshare(CLONE_NEWNS) != 0) return;
  // Slave propagation: later mounts of the machine appear here, but the mounts made here stay private.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return;
  show(dir.upstream(), "/run/determined");
  if (path_exists(dir.upstream_storage())) show(dir.upstream_storage(), "/determined_shared_fs");
}

Status supervise(const std::string& path, const std::string& fork_server) {
  ::setsid();  // fails if this process leads a session already
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return fail_errno("PR_SET_CHILD_SUBREAPER");
  // Signals that end the processes of a terminal must not end the supervisor.
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
  if (!self) return fail(Code::kInternal, "/proc/self is not readable; mount /proc");
  if (!spec.sandbox) show_upstream(dir);
  // Written before the task exists: a task without this file has no supervisor to look for.
  TRY(dir.write_supervisor(*self));
  return Supervisor(std::move(dir), std::move(spec), fork_server, std::move(log), std::move(signals)).run();
}

}  // namespace
}  // namespace det::agent

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: det-supervisor DIR [FORK_SERVER]\nStarted by det-agent only.\n";
    return 2;
  }
  const det::Status done = det::agent::supervise(argv[1], argc == 3 ? argv[2] : "");
  if (done) return 0;
  std::cerr << "det-supervisor: " << done.error().message << "\n";
  return 1;
}
