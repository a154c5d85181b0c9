// Program det-task-init: parent of a task's main process, process 1 of its sandbox. Started by det-supervisor
// and det-agent only. Single-threaded.
//
//   det-task-init run DIR              runs the task of DIR/spec.json; standard input is a socket to the
//   supervisor det-task-init exec UID|- ARGV...   confines itself, as user UID or the present one, and
//   executes ARGV
//
// Messages to the supervisor: "network", with a listener that the relay serves (task/master_relay.h) |
// "started" | "cold MESSAGE" (the task was executed, not forked) | "failed CODE MESSAGE" | "exit CODE
// SIGNAL". Messages from it: "start [fork] [ports] [group]...", first, with a connection to det-fork-server
// if the task is to be forked, the listener for ports of the task and the files of its control group; "term",
// which sends SIGTERM to the process group of the task; "shell" with a connection to the agent, for which
// det-task-shell is started. SIGTERM itself is blocked here. The end of the socket ends the task: the kernel
// kills all processes of the sandbox with process 1.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "agent/task/master_relay.h"
#include "agent/task/shell_frames.h"
#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/stop_signal.h"
#include "common/base/text.h"
#include "common/sandbox/confine.h"
#include "common/sandbox/control_group.h"
#include "common/sandbox/namespaces.h"
#include "common/sandbox/sandbox.h"
#include "common/task/message.h"
#include "common/task/task_dir.h"

namespace det::agent {
namespace {

/// Time for the supervisor to send "start", and for det-fork-server to fork.
constexpr Duration kPatience = std::chrono::seconds(60), kForkPatience = std::chrono::seconds(5);

/// Sends det-fork-server the namespaces and streams of this process. Errors: of /proc; the server has ended.
Status request_fork(int server, const std::string& directory) {
  TRY_ASSIGN(const std::vector<UniqueFd> namespaces, open_namespaces());
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return fail_errno("/dev/null");
  std::vector<int> fds{null.get(), STDOUT_FILENO, STDERR_FILENO};
  for (const UniqueFd& space : namespaces) fds.push_back(space.get());
  return send_message(server, "run " + directory, fds);
}

/// Waits until the process is forked, moves it into the control group and lets it run. Returns its pid; it is
/// a child of this process. After an error no such process runs the task.
Result<pid_t> await_fork(int server, const std::vector<UniqueFd>& group) {
  TRY_ASSIGN(const Message answer, receive_message(server, mono_now() + kForkPatience));
  const std::vector<std::string> words = split(answer.text, ' ');
  pid_t pid = 0;
  if (words.size() == 2 && words[0] == "ready")
    std::from_chars(words[1].data(), words[1].data() + words[1].size(), pid);
  if (pid <= 0) return fail(Code::kUnavailable, answer.text.substr(answer.text.find(' ') + 1));
  if (::waitpid(pid, nullptr, WNOHANG) != 0) return fail(Code::kUnavailable, "the forked process has ended");
  TRY(enter_group(group, pid));
  TRY(send_message(server, "go"));
  return pid;
}

/// The running task and its supervisor.
class TaskInit {
 public:
  TaskInit(UniqueFd supervisor, UniqueFd signals)
      : supervisor_(std::move(supervisor)), signals_(std::move(signals)) {}

  /// Runs the task to its end. Returns the exit code of this process.
  int run(const std::string& directory) {
    if (auto started = start(directory); !started) {
      send("failed " + std::to_string(static_cast<int>(started.error().code)) + " " +
           started.error().message);
      return 1;
    }
    send("started");
    for (;;) {
      pollfd fds[3] = {
          {supervisor_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}, {ports_.get(), POLLIN, 0}};
      if (::poll(fds, 3, -1) < 0 && errno != EINTR) return end_all();
      if (fds[0].revents != 0 && !obey()) return end_all();
      if (fds[1].revents != 0 && !reap()) return 0;
      if (fds[2].revents != 0) serve_port_request(ports_.get());
    }
  }

 private:
  Status start(const std::string& directory) {
    TRY_ASSIGN(Message begin, receive_message(supervisor_.get(), mono_now() + kPatience));
    TRY_ASSIGN(const TaskSpec spec, TaskDir(directory).read_spec());
    UniqueFd fork_server;
    std::vector<UniqueFd> group;
    const std::vector<std::string> words = split(begin.text, ' ');
    for (std::size_t i = 0; i < begin.fds.size() && i + 1 < words.size(); ++i) {
      if (words[i + 1] == "group")
        group.push_back(std::move(begin.fds[i]));
      else
        (words[i + 1] == "fork" ? fork_server : ports_) = std::move(begin.fds[i]);
    }
    // A forked process would not enter the user namespace of this one.
    if (spec.sandbox && spec.sandbox->shown) fork_server.reset();
    const int server = fork_server.get();
    if (spec.sandbox && spec.sandbox->own_network) {
      TRY_ASSIGN(const UniqueFd listener, listen_for_relay());
      TRY(send_message(supervisor_.get(), "network", {listener.get()}));
    }
    // Before confine(): afterwards /proc/self/ns is not readable.
    const Status requested = server < 0 ? Status() : request_fork(server, directory);
    // It may take a while, in which the server forks.
    TRY(enter_group(group, 0));
    shell_ = {.argv = program_beside("det-task-shell"),
              .env = spec.env,
              .cwd = spec.cwd,
              .out = Stream::null(),
              .err = Stream::null(),
              .dies_with_us = true};
    if (spec.sandbox) {
      TRY(confine(spec.sandbox->uid, spec.sandbox->shown));
      // The task has the same user; it must not trace this process or read its memory.
      if (::prctl(PR_SET_DUMPABLE, 0) != 0) return fail_errno("PR_SET_DUMPABLE");
    }
    if (server >= 0) {
      const Result<pid_t> forked =
          requested ? await_fork(server, group) : Result<pid_t>(tl::unexpected(requested.error()));
      if (forked) return main_ = *forked, Status();
      send("cold " + forked.error().message);
    }
    return execute_task(spec);
  }

  /// Executes the program of the task.
  Status execute_task(const TaskSpec& spec) {
    std::vector<std::string> environment = spec.env;
    environment.push_back(std::string(kSupervisorVariable) + "=" + std::to_string(::getpid()));
    for (const std::string& line : spec.env) {
      // Programs without a directory are searched in the PATH of the task.
      if (line.starts_with("PATH=")) ::setenv("PATH", line.c_str() + std::strlen("PATH="), 1);
    }
    TRY_ASSIGN(Child child, Child::spawn({.argv = spec.argv,
                                          .env = environment,
                                          .cwd = spec.cwd,
                                          .out = Stream::inherit(),
                                          .err = Stream::inherit(),
                                          .dies_with_us = true}));
    main_ = child.pid();
    child.detach();
    return {};
  }

  /// Handles a message of the supervisor. Returns false when the supervisor is gone.
  bool obey() {
    const auto message = receive_message(supervisor_.get(), mono_now());
    if (!message) return message.error().code == Code::kDeadlineExceeded;
    if (message->text == "term") ::kill(-main_, SIGTERM);
    if (message->text == "shell" && message->fds.size() == 1) open_shell(message->fds[0]);
    return true;
  }

  /// Starts det-task-shell with a connection to the agent. After an error the end of the connection tells.
  void open_shell(const UniqueFd& agent) {
    shell_.in = Stream::descriptor(agent.get());
    auto child = Child::spawn(shell_);
    if (child) return child->detach();
    (void)send_frame(agent.get(), ShellFrame::kFailed, child.error().message);
  }

  /// Reaps ended processes. Returns false when the main process has ended.
  bool reap() {
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    }
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != main_) continue;
      const bool killed = WIFSIGNALED(status);
      send("exit " + std::to_string(killed ? 0 : WEXITSTATUS(status)) + " " +
           std::to_string(killed ? WTERMSIG(status) : 0));
      return false;
    }
    return true;
  }

  /// Without a sandbox the kernel does not end the task with this process.
  int end_all() const {
    ::kill(-main_, SIGKILL);
    return 1;
  }

  void send(const std::string& message) const {
    (void)::send(supervisor_.get(), message.data(), message.size(), MSG_NOSIGNAL);
  }

  UniqueFd supervisor_, signals_;
  UniqueFd ports_;  ///< listener for the agent; none if the task has the network of the machine
  pid_t main_ = 0;
  ProcessOptions shell_;  ///< of det-task-shell
};

int run(const std::string& directory) {
  // In the root of an image the kernel names this process after the dynamic loader.
  (void)::prctl(PR_SET_NAME, "det-task-init");
  sigset_t children;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &children, nullptr);
  // Moved away from 0, which becomes /dev/null in the task.
  UniqueFd supervisor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  UniqueFd signals(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!supervisor || !signals) return 1;
  return TaskInit(std::move(supervisor), std::move(signals)).run(directory);
}

int execute(const std::string& user, char** argv) {
  std::optional<uid_t> uid;
  if (user != "-") {
    uid.emplace();
    const auto [end, error] = std::from_chars(user.data(), user.data() + user.size(), *uid);
    if (error != std::errc() || end != user.data() + user.size()) return 2;
  }
  if (auto confined = confine(uid); !confined) {
    std::cerr << confined.error().message << "\n";
    return 126;
  }
  ::execvp(argv[0], argv);
  std::cerr << argv[0] << ": " << std::strerror(errno) << "\n";
  return 127;
}

}  // namespace
}  // namespace det::agent

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "run" && argc == 3) return det::agent::run(argv[2]);
  if (verb == "exec" && argc > 3) return det::agent::execute(argv[2], argv + 3);
  std::cerr << "usage: det-task-init run DIR | exec UID|- ARGV...\nStarted by det-agent only.\n";
  return 2;
}
