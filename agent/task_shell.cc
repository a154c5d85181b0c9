// Program det-task-shell: runs one shell beside a task, in its sandbox. Started by det-task-init only, with
// the user and the environment of the task; standard input is the socket to the agent (task/shell_frames.h).
// If the agent asks for an SSH connection, it executes det-task-ssh. The shell ends with the socket.
// Single-threaded: one wait for the socket, the process and its output. At most one frame per direction is
// held, so a side that does not read stops the other one.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>

#include "agent/task/shell_frames.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/sandbox/sandbox.h"

namespace det::agent {
namespace {

/// Time for the request to arrive, and for a shell to end after its connection.
constexpr Duration kRequestPatience = std::chrono::seconds(10), kHangUpPatience = std::chrono::seconds(2);
/// Output that is still sent after the end of the process; its children may write more.
constexpr std::size_t kMaxLateOutput = 1 << 20;
constexpr char kEndOfInput = '\x04';  // VEOF of a terminal

/// Descriptors of the shell's process.
struct ShellStreams {
  UniqueFd input;           ///< writes to the process
  UniqueFd output, errors;  ///< read from it; no errors if they are part of the output
  /// The process's ends: its standard input, output and error.
  UniqueFd child_input, child_output, child_errors;
};

winsize to_winsize(const TerminalSize& size) {
  winsize out{};
  out.ws_row = static_cast<unsigned short>(size.rows);
  out.ws_col = static_cast<unsigned short>(size.columns);
  return out;
}

Result<ShellStreams> open_terminal(const TerminalSize& size) {
  ShellStreams streams;
  streams.output.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!streams.output || ::grantpt(streams.output.get()) != 0 || ::unlockpt(streams.output.get()) != 0)
    return fail_errno("no terminal: /dev/ptmx");
  std::array<char, 64> name{};
  if (::ptsname_r(streams.output.get(), name.data(), name.size()) != 0) return fail_errno("ptsname");
  streams.child_input.reset(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  streams.child_output.reset(::fcntl(streams.child_input.get(), F_DUPFD_CLOEXEC, 3));
  streams.input.reset(::fcntl(streams.output.get(), F_DUPFD_CLOEXEC, 3));
  if (!streams.child_output || !streams.input) return fail_errno(name.data());
  const winsize window = to_winsize(size);
  (void)::ioctl(streams.output.get(), TIOCSWINSZ, &window);
  return streams;
}

Result<ShellStreams> open_pipes(bool errors_apart) {
  int down[2], up[2], errors[2];
  if (::pipe2(down, O_CLOEXEC) != 0) return fail_errno("pipe");
  ShellStreams streams;
  streams.child_input.reset(down[0]);
  streams.input.reset(down[1]);
  if (::pipe2(up, O_CLOEXEC) != 0) return fail_errno("pipe");
  streams.output.reset(up[0]);
  streams.child_output.reset(up[1]);
  if (!errors_apart) return streams;
  if (::pipe2(errors, O_CLOEXEC) != 0) return fail_errno("pipe");
  streams.errors.reset(errors[0]);
  streams.child_errors.reset(errors[1]);
  return streams;
}

std::vector<std::string> command_of(const ShellRequest& request) {
  if (!request.command.empty()) return request.command;
  return request.terminal ? std::vector{default_shell(), std::string("-i")} : std::vector{default_shell()};
}

/// Runs in the child. Does not return.
[[noreturn]] void execute(const ShellRequest& request, const ShellStreams& streams) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  if (request.terminal) {
    ::ioctl(streams.child_input.get(), TIOCSCTTY, 0);
    ::setenv("TERM", request.term.empty() ? "xterm" : request.term.c_str(), 1);
  }
  ::dup2(streams.child_input.get(), STDIN_FILENO);
  ::dup2(streams.child_output.get(), STDOUT_FILENO);
  ::dup2((streams.child_errors ? streams.child_errors : streams.child_output).get(), STDERR_FILENO);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  std::vector<std::string> words = command_of(request);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  std::cerr << words[0] << ": " << std::strerror(errno) << "\n" << std::flush;
  ::_exit(errno == EACCES ? 126 : 127);
}

class ShellSession {
 public:
  explicit ShellSession(UniqueFd agent) : agent_(std::move(agent)) {}

  /// Runs the shell to its end. Returns the exit code of this process.
  int run() {
    if (const Status started = start(); !started) {
      (void)send_frame(agent_.get(), ShellFrame::kFailed, started.error().message);
      return 1;
    }
    (void)send_frame(agent_.get(), ShellFrame::kOpened);
    while (!ended_) {
      if (!turn()) return hang_up();
    }
    return 0;
  }

 private:
  Status start() {
    pollfd ready{agent_.get(), POLLIN, 0};
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(kRequestPatience).count();
    if (::poll(&ready, 1, static_cast<int>(limit)) <= 0)
      return fail(Code::kDeadlineExceeded, "no request for a shell arrived");
    ShellFrame kind{};
    std::string bytes;
    TRY(receive_frame(agent_.get(), kind, bytes));
    if (kind != ShellFrame::kStart) return fail(Code::kInvalidArgument, "a shell begins with its request");
    TRY_ASSIGN(const ShellRequest request, decode_shell_request(bytes));
    terminal_ = request.terminal.has_value();
    TRY_ASSIGN(streams_, terminal_ ? open_terminal(*request.terminal) : open_pipes(request.errors_apart));
    sigset_t children;
    ::sigemptyset(&children);
    ::sigaddset(&children, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &children, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    signals_.reset(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return fail_errno("signalfd");
    process_ = ::fork();
    if (process_ == 0) execute(request, streams_);
    if (process_ < 0) return fail_errno("fork");
    // The end of the process must close its streams.
    streams_.child_input.reset();
    streams_.child_output.reset();
    streams_.child_errors.reset();
    errors_open_ = static_cast<bool>(streams_.errors);
    for (const UniqueFd* fd : {&streams_.input, &streams_.output, &streams_.errors})
      if (*fd) ::fcntl(fd->get(), F_SETFL, ::fcntl(fd->get(), F_GETFL) | O_NONBLOCK);
    return {};
  }

  /// Waits for the next event and handles it. Returns false when the connection is gone.
  bool turn() {
    const auto events = [](bool wanted, short what) { return static_cast<short>(wanted ? what : 0); };
    // After the end of the process nothing is left to wait for but a full socket.
    const bool reads = output_.empty() && !exit_;
    std::array<pollfd, 5> fds{
        {{agent_.get(),
          static_cast<short>(events(input_.empty(), POLLIN) | events(!output_.empty() || exit_, POLLOUT)), 0},
         {reads && output_open_ ? streams_.output.get() : -1, POLLIN, 0},
         {input_.empty() ? -1 : streams_.input.get(), POLLOUT, 0},
         {exit_ ? -1 : signals_.get(), POLLIN, 0},
         {reads && errors_open_ ? streams_.errors.get() : -1, POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return false;
    if ((fds[0].revents & (POLLHUP | POLLERR)) != 0) return false;
    if ((fds[0].revents & POLLIN) != 0 && !receive()) return false;
    if (!input_.empty()) write_input();
    if (fds[3].revents != 0) reap();
    if (output_.empty() && output_open_) read_output(streams_.output, output_open_, ShellFrame::kData);
    if (output_.empty() && errors_open_) read_output(streams_.errors, errors_open_, ShellFrame::kErrors);
    if (!output_.empty() && !send_output()) return false;
    if (exit_ && output_.empty() && !output_open_ && !errors_open_) return send_exit();
    return true;
  }

  bool receive() {
    ShellFrame kind{};
    std::string bytes;
    const auto got = receive_frame(agent_.get(), kind, bytes);
    if (!got) return false;
    if (!*got) return true;
    if (kind == ShellFrame::kEnd) end_input();
    if (kind == ShellFrame::kSize && terminal_) {
      if (const auto size = decode_terminal_size(bytes)) {
        const winsize window = to_winsize(*size);
        (void)::ioctl(streams_.output.get(), TIOCSWINSZ, &window);
      }
    }
    if (kind == ShellFrame::kData) input_ = std::move(bytes);
    return true;
  }

  void end_input() {
    if (!terminal_) return streams_.input.reset();
    // A terminal has no end of its own; programs read this character as one.
    input_.assign(1, kEndOfInput);
  }

  void write_input() {
    if (!streams_.input) return input_.clear();
    const ssize_t count = ::write(streams_.input.get(), input_.data(), input_.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // The process reads no more.
    if (count < 0) return input_.clear();
    input_.erase(0, static_cast<std::size_t>(count));
  }

  /// Reads a piece of one stream into output_, or clears `open` at its end.
  void read_output(const UniqueFd& stream, bool& open, ShellFrame kind) {
    std::array<char, kMaxShellData> piece;
    const ssize_t count = ::read(stream.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) return;
    const bool nothing = count < 0 && errno == EAGAIN;
    // EIO: no process has the terminal open. After the end of the process no output is awaited.
    if (nothing && !exit_) return;
    if (count <= 0 || (exit_ && (late_ += static_cast<std::size_t>(count)) > kMaxLateOutput)) {
      open = false;
      return;
    }
    output_kind_ = kind;
    output_.assign(piece.data(), static_cast<std::size_t>(count));
  }

  /// Returns false when the connection is gone.
  bool send_output() {
    const Status sent = send_frame(agent_.get(), output_kind_, output_);
    if (sent) output_.clear();
    return sent || sent.error().code == Code::kResourceExhausted;
  }

  bool send_exit() {
    const Status sent = send_frame(agent_.get(), ShellFrame::kExit, std::to_string(*exit_));
    ended_ = sent.has_value();
    return sent || sent.error().code == Code::kResourceExhausted;
  }

  void reap() {
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    }
    int status = 0;
    if (::waitpid(process_, &status, WNOHANG) != process_) return;
    exit_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  /// Ends the process as a terminal that is closed would.
  int hang_up() {
    if (exit_) return 0;
    ::kill(-process_, SIGHUP);
    ::kill(-process_, SIGCONT);
    streams_ = {};
    pollfd ended{signals_.get(), POLLIN, 0};
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(kHangUpPatience).count();
    (void)::poll(&ended, 1, static_cast<int>(limit));
    ::kill(-process_, SIGKILL);
    return 0;
  }

  UniqueFd agent_, signals_;
  ShellStreams streams_;
  bool terminal_ = false, output_open_ = true, errors_open_ = false, ended_ = false;
  pid_t process_ = 0;
  std::string input_, output_;  ///< bytes that the other side has not taken yet
  ShellFrame output_kind_ = ShellFrame::kData;
  std::optional<int> exit_;
  std::size_t late_ = 0;  ///< bytes of output after the end
};

/// Executes det-task-ssh, with the socket as standard input, if the agent's first frame asks for it.
/// Otherwise the frame stays unread. Returns the error of the execution.
Status execute_ssh(int agent) {
  pollfd ready{agent, POLLIN, 0};
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(kRequestPatience).count();
  char kind = 0;
  if (::poll(&ready, 1, static_cast<int>(limit)) <= 0 ||
      ::recv(agent, &kind, 1, MSG_PEEK | MSG_DONTWAIT) != 1 || kind != static_cast<char>(ShellFrame::kSsh))
    return {};
  std::vector<std::string> words = program_beside("det-task-ssh");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  return fail_errno("det-task-ssh");
}

}  // namespace
}  // namespace det::agent

int main(int argc, char**) {
  det::UniqueFd agent(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  if (argc != 1 || !agent) {
    std::cerr << "usage: det-task-shell\nStarted by det-task-init only.\n";
    return 2;
  }
  if (const det::Status ssh = det::agent::execute_ssh(agent.get()); !ssh) {
    (void)send_frame(agent.get(), det::agent::ShellFrame::kFailed, ssh.error().message);
    return 1;
  }
  // In the root of an image the kernel names this process after the dynamic loader.
  (void)::prctl(PR_SET_NAME, "det-task-shell");
  ::close(STDIN_FILENO);
  (void)::open("/dev/null", O_RDWR);
  return det::agent::ShellSession(std::move(agent)).run();
}
