// Threads: the caller's thread writes the output of the shell; a second one sends the input and the size of
// the terminal.
#include "cli/tasks/shell_session.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "cli/output/terminal.h"
#include "cli/tasks/tunnel_call.h"
#include "common/base/fd.h"
#include "common/base/process.h"

namespace det::cli {
namespace {

constexpr std::size_t kShellPiece = 32 << 10;
/// The master closes a tunnel without a message for 10 minutes; an idle shell stays open.
constexpr int kSizeRepeatMs = 60'000;

// Written by the handler of SIGWINCH. One shell at a time.
int resize_pipe = -1;

void on_resize(int) {
  const char byte = 'r';
  static_cast<void>(!::write(resize_pipe, &byte, 1));
}

v1::TerminalSize terminal_size() {
  winsize size{};
  v1::TerminalSize out;
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;
  out.set_rows(known ? size.ws_row : 24);
  out.set_columns(known ? size.ws_col : 80);
  return out;
}

/// Sends standard input and changes of the terminal's size until stop().
class ShellInput {
 public:
  explicit ShellInput(TunnelCall& call) : call_(call) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
    wake_.reset(ends[0]);
    signal_.reset(ends[1]);
    resize_pipe = signal_.get();
    struct sigaction action {};
    action.sa_handler = on_resize;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGWINCH, &action, &before_);
    thread_ = std::thread([this] { send_all(); });
  }
  /// Ends the thread. A read of standard input is not waited for, since none is begun without input.
  ~ShellInput() {
    if (!thread_.joinable()) return;
    ::sigaction(SIGWINCH, &before_, nullptr);
    const char byte = 'q';
    static_cast<void>(!::write(signal_.get(), &byte, 1));
    thread_.join();
    resize_pipe = -1;
  }
  ShellInput(const ShellInput&) = delete;
  ShellInput& operator=(const ShellInput&) = delete;

 private:
  void send_all() {
    bool input = true;
    for (;;) {
      std::array<pollfd, 2> fds{{{wake_.get(), POLLIN, 0}, {input ? STDIN_FILENO : -1, POLLIN, 0}}};
      const int found = ::poll(fds.data(), fds.size(), kSizeRepeatMs);
      v1::TunnelMessage message;
      if (found < 0) continue;
      if (fds[0].revents != 0) {
        std::array<char, 64> bytes;
        const ssize_t count = ::read(wake_.get(), bytes.data(), bytes.size());
        for (ssize_t i = 0; i < count; ++i)
          if (bytes[static_cast<std::size_t>(i)] == 'q') return;
      }
      // The size goes first: the input may be meant for it.
      if (found == 0 || fds[0].revents != 0) {
        *message.mutable_size() = terminal_size();
        if (!call_.stream().Write(message)) return;
      }
      if (fds[1].revents == 0) continue;
      input = read_input(message);
      if (!call_.stream().Write(message)) return;
    }
  }

  /// Returns false at the end of the input.
  static bool read_input(v1::TunnelMessage& message) {
    std::array<char, kShellPiece> piece;
    const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (count > 0) {
      message.set_data(piece.data(), static_cast<std::size_t>(count));
    } else {
      message.mutable_end();
    }
    return count > 0;
  }

  TunnelCall& call_;
  UniqueFd wake_, signal_;
  struct sigaction before_ {};
  std::thread thread_;
};

/// Returns false if nothing reads the output.
bool write_output(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

void declare_command_line(CLI::App& app, std::vector<std::string>& words) {
  app.fallthrough(false);
  app.prefix_command();
  app.final_callback([&words, &app] { words = app.remaining(); });
}

Result<int> run_shell(Client& client, const std::string& task, const std::vector<std::string>& command) {
  v1::TunnelTarget target;
  target.set_task_id(task);
  v1::ShellStart& start = *target.mutable_shell();
  start.mutable_command()->Assign(command.begin(), command.end());
  const bool terminal = is_terminal(STDIN_FILENO) && is_terminal(STDOUT_FILENO);
  if (terminal) {
    *start.mutable_terminal() = terminal_size();
    start.set_term(environment_variable("TERM"));
  }
  TunnelCall call(client, target);
  TRY(call.opened());
  std::optional<int> code;
  {
    const RawTerminal raw(terminal);
    const ShellInput input(call);
    v1::TunnelMessage message;
    while (!code && call.stream().Read(&message)) {
      if (message.has_exit()) code = message.exit().code();
      if (message.has_data() && !write_output(message.data())) break;
    }
    // A write of the input thread that waits for the master ends with the call.
    call.cancel();
  }
  const Status ended = call.finish();
  if (code) return *code;
  if (!ended && ended.error().code != Code::kCancelled) return tl::unexpected(ended.error());
  return fail(Code::kUnavailable, "the shell has ended with its task or its connection");
}

}  // namespace det::cli
