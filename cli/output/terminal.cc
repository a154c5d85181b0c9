#include "cli/output/terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

namespace det::cli {
namespace {

// State that the Ctrl-C handler restores. Valid only while terminal_is_changed is set, during hidden input
// and in raw mode.
termios saved_terminal;
volatile sig_atomic_t terminal_is_changed = 0;

/// Calls only async-signal-safe functions.
void on_interrupt(int) {
  if (terminal_is_changed != 0) ::tcsetattr(STDIN_FILENO, TCSANOW, &saved_terminal);
  const char newline = '\n';
  static_cast<void>(!::write(STDERR_FILENO, &newline, 1));
  ::_exit(3);
}

}  // namespace

void set_up_signals() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
  // `det … | head` ends without an error message.
  ::signal(SIGPIPE, SIG_DFL);
}

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

bool wants_color(int fd) {
  const char* no = std::getenv("NO_COLOR");
  return is_terminal(fd) && (no == nullptr || *no == '\0');
}

int terminal_width(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

RawTerminal::RawTerminal(bool wanted) {
  if (!wanted || ::tcgetattr(STDIN_FILENO, &saved_terminal) != 0) return;
  for (const int number : {SIGTERM, SIGHUP}) {
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    ::sigaction(number, &action, nullptr);
  }
  termios raw = saved_terminal;
  ::cfmakeraw(&raw);
  terminal_is_changed = 1;
  raw_ = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

RawTerminal::~RawTerminal() {
  if (raw_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &saved_terminal);
  terminal_is_changed = 0;
}

Result<std::string> ask(const std::string& question) {
  std::cerr << question << std::flush;
  std::string line;
  if (std::getline(std::cin, line)) return line;
  std::cerr << '\n';
  return fail(Code::kFailedPrecondition, "no answer: standard input has ended");
}

Result<bool> confirm(const std::string& question) {
  const auto answer = ask(question + " [y/N]: ");
  if (!answer) return tl::unexpected(answer.error());
  return *answer == "y" || *answer == "Y" || *answer == "yes";
}

Result<std::string> ask_secret(const std::string& question) {
  if (!is_terminal(STDIN_FILENO) || ::tcgetattr(STDIN_FILENO, &saved_terminal) != 0) return ask(question);
  termios silent = saved_terminal;
  silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  // Set before the change: a signal in between restores an unchanged terminal, which is harmless.
  terminal_is_changed = 1;
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
  auto answer = ask(question);
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved_terminal);
  terminal_is_changed = 0;
  std::cerr << '\n';
  return answer;
}

}  // namespace det::cli
