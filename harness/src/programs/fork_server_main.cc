// Program det-fork-server: a process with LibTorch and libdet loaded, from which trials are forked. Usage:
// `det-fork-server SOCKET PADDING`. Started by det-agent only.
//
// The server is single-threaded, has the variables that every trial of its agent has in common, and never
// reads anything of a task. It ends with its standard input. One forked entrant waits for a connection at any
// time, because a fork with LibTorch takes milliseconds.
//
//   server ── fork ──> entrant: accepts a connection, receives "run DIR" with the namespaces of a sandbox and
//                      enters them
//   entrant ── vfork ──> parent: the first process of the entrant in the process namespace; ends at once
//   parent ── fork ──> trial: is adopted by process 1 of the sandbox (det-task-init), confines itself, sends
//                      "ready PID" and waits for "go"; then it is det-harness
//
// Each failure before "go" is sent as "failed MESSAGE" or ends the connection; det-task-init executes
// det-harness then.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/stop_signal.h"
#include "common/sandbox/confine.h"
#include "common/sandbox/namespaces.h"
#include "common/task/message.h"
#include "common/task/task_dir.h"
#include "harness/src/programs/harness_program.h"

namespace det {
namespace {

/// Time for bubblewrap to make a sandbox, and for det-task-init to answer.
constexpr Duration kPatience = std::chrono::seconds(60);
/// Time from one connection to the fork of the next entrant, unless there is another connection.
constexpr int kForkDelayMs = 500;
constexpr std::size_t kStreams = 3;  ///< standard streams, the first descriptors of a request

/// Memory of this process that /proc shows: its arguments, and the last variable of its environment.
struct Shown {
  char* arguments;
  std::size_t argument_bytes;
  char* variables;
  std::size_t variable_bytes;
};

/// Writes `lines` to the memory, each with a null byte; lines that do not fit are left out.
void show(const std::vector<std::string>& lines, char* memory, std::size_t bytes) {
  std::memset(memory, 0, bytes);
  for (const std::string& line : lines) {
    if (line.size() + 1 >= bytes) continue;
    std::memcpy(memory, line.c_str(), line.size() + 1);
    memory += line.size() + 1;
    bytes -= line.size() + 1;
  }
}

/// What an entrant has received.
struct Request {
  UniqueFd connection;
  TaskSpec spec;
  std::vector<UniqueFd> streams;
};

/// Restores the signals of a new program.
void reset_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Gives this process the privileges, streams, directory and variables of the trial.
Status become_trial(const Request& request, const Shown& shown) {
  const TaskSpec& spec = request.spec;
  if (!spec.sandbox) return fail(Code::kInvalidArgument, "the task has no sandbox");
  if (::setsid() < 0) return fail_errno("setsid");
  // Those of a user namespace that was entered. Process 1 of the sandbox has lost them to bubblewrap.
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  drop_bounding_set();
  TRY(confine(spec.sandbox->uid));
  // The parent is process 1 since before confine(), which asks for SIGKILL at its end.
  if (::getppid() != 1) return fail(Code::kAborted, "process 1 of the sandbox has ended");
  // As after exec: the change of user has made this process unreadable for itself.
  if (::prctl(PR_SET_DUMPABLE, 1) != 0) return fail_errno("PR_SET_DUMPABLE");
  for (std::size_t i = 0; i < kStreams; ++i)
    if (::dup2(request.streams[i].get(), static_cast<int>(i)) < 0) return fail_errno("dup2");
  if (::chdir(spec.cwd.c_str()) != 0) return fail_errno(spec.cwd);
  std::vector<std::string> variables = spec.env;
  variables.push_back(std::string(kSupervisorVariable) + "=" + std::to_string(::getppid()));
  ::clearenv();
  for (const std::string& line : variables)
    if (const std::size_t equals = line.find('='); equals != std::string::npos)
      ::setenv(line.substr(0, equals).c_str(), line.c_str() + equals + 1, 1);
  show(variables, shown.variables, shown.variable_bytes);
  show(spec.argv, shown.arguments, shown.argument_bytes);
  const std::string name = spec.argv[0].substr(spec.argv[0].rfind('/') + 1);
  (void)::prctl(PR_SET_NAME, name.c_str());
  reset_signals();
  return {};
}

/// The trial. Does not return.
[[noreturn]] void run_trial(Request& request, const Shown& shown) {
  const int connection = request.connection.get();
  if (auto made = become_trial(request, shown); !made) {
    (void)send_message(connection, "failed " + made.error().message);
    ::_exit(1);
  }
  if (!send_message(connection, "ready " + std::to_string(::getpid()))) ::_exit(1);
  const auto go = receive_message(connection, mono_now() + kPatience);
  if (!go || go->text != "go") ::_exit(1);
  std::vector<std::string> arguments = std::move(request.spec.argv);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  // Nothing of the server stays open.
  (void)::syscall(SYS_close_range, kStreams, ~0U, 0);
  std::exit(run_harness(static_cast<int>(arguments.size()), argv.data()));
}

/// Takes the connection on success. A failure is answered on it.
Result<Request> receive_request(UniqueFd& connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::geteuid())
    return fail(Code::kPermissionDenied, "the connection is of another user");
  TRY_ASSIGN(Message message, receive_message(connection.get(), mono_now() + kPatience));
  constexpr std::string_view kRun = "run ";
  if (!message.text.starts_with(kRun) || message.fds.size() <= kStreams)
    return fail(Code::kInvalidArgument, "expected: run DIR");
  Request request;
  std::vector<UniqueFd> namespaces;
  for (std::size_t i = 0; i < message.fds.size(); ++i)
    (i < kStreams ? request.streams : namespaces).push_back(std::move(message.fds[i]));
  TRY(enter_namespaces(namespaces));
  TRY_ASSIGN(request.spec, TaskDir(message.text.substr(kRun.size())).read_spec());
  request.connection = std::move(connection);
  return request;
}

/// Serves one connection in a process of its own. Does not return.
[[noreturn]] void serve(UniqueFd connection, const Shown& shown) {
  ::signal(SIGCHLD, SIG_DFL);
  const int answers = connection.get();
  auto request = receive_request(connection);
  int ends[2];
  if (!request || ::pipe2(ends, O_CLOEXEC) != 0) {
    if (!request) (void)send_message(answers, "failed " + request.error().message);
    ::_exit(1);
  }
  // vfork() saves one copy of this process's memory map.
  const pid_t parent = ::vfork();
  if (parent == 0) {
    const pid_t trial = ::fork();
    if (trial != 0) ::_exit(trial < 0 ? 1 : 0);
    ::close(ends[1]);
    char adopted = 0;
    if (::read(ends[0], &adopted, 1) != 1) ::_exit(1);
    run_trial(*request, shown);
  }
  int status = 0;
  if (parent < 0 || ::waitpid(parent, &status, 0) != parent || status != 0) {
    (void)send_message(answers, "failed fork: no process of the sandbox");
    ::_exit(1);
  }
  // The parent is gone, so process 1 has adopted the trial.
  (void)!::write(ends[1], "y", 1);
  ::_exit(0);
}

/// Forks an entrant, which waits for a connection and serves it. Returns the end of a pipe that is closed
/// when the entrant has a connection or has ended. Errors: of pipe2 and fork.
Result<UniqueFd> fork_entrant(UniqueFd& listener, const Shown& shown) {
  const pid_t server = ::getpid();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe2");
  UniqueFd ours(ends[0]), theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("fork");
  if (pid > 0) return ours;
  ours.reset();
  // After the end of the server the agent starts another one.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != server) ::_exit(1);
  pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {listener.get(), POLLIN, 0}};
  UniqueFd connection;
  while (!connection) {
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) ::_exit(1);
    if (fds[0].revents != 0) ::_exit(0);
    if (fds[1].revents != 0) connection.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  ::prctl(PR_SET_PDEATHSIG, 0);
  listener.reset();
  theirs.reset();
  serve(std::move(connection), shown);
}

/// Keeps one entrant waiting until standard input ends. Returns the exit code.
int run_server(const std::string& socket, const Shown& shown) {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_IGN);  // reaps
  preload_harness();
  auto listener = listen_messages(socket);
  if (!listener) {
    std::cerr << "det-fork-server: " << listener.error().message << "\n";
    return 1;
  }
  for (;;) {
    // Without an entrant connections would wait: the agent starts another server.
    const auto entrant = fork_entrant(*listener, shown);
    if (!entrant) {
      std::cerr << "det-fork-server: " << entrant.error().message << "\n";
      return 1;
    }
    pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {entrant->get(), POLLIN, 0}};
    while (::poll(fds, 2, -1) < 0 && errno == EINTR) {
    }
    if (fds[0].revents != 0) return 0;
    // The next fork would take a core from the trial that starts.
    fds[1] = {listener->get(), POLLIN, 0};
    (void)::poll(fds, 2, kForkDelayMs);
  }
}

}  // namespace
}  // namespace det

int main(int argc, char** argv) {
  char** last = environ;
  while (last != nullptr && *last != nullptr && last[1] != nullptr) ++last;
  const char* const padding = last != nullptr && *last != nullptr ? std::strchr(*last, '=') : nullptr;
  if (argc != 3 || padding == nullptr || !std::string_view(*last).starts_with("DET_PADDING=")) {
    std::cerr << "usage: det-fork-server SOCKET PADDING\nStarted by det-agent only.\n";
    return 2;
  }
  const std::string socket = argv[1];
  const auto bytes = [](const char* first, const char* end) { return static_cast<std::size_t>(end - first); };
  const char* const arguments_end = argv[2] + std::strlen(argv[2]) + 1;
  return det::run_server(socket, {argv[0], bytes(argv[0], arguments_end), *last, std::strlen(*last) + 1});
}
