// Terminal: color, width, prompts, hidden input, Ctrl-C.
#pragma once

#include <string>

#include "common/base/result.h"

namespace det::cli {

/// Installs the signal handlers: Ctrl-C restores the terminal and exits with code 3; SIGPIPE ends the process
/// silently. Call once at the start.
void set_up_signals();

bool is_terminal(int fd);
/// True when colors may be used on `fd`: it is a terminal, and NO_COLOR is unset or empty.
bool wants_color(int fd);
/// Returns the columns of the terminal at `fd`; 80 when unknown.
int terminal_width(int fd);

/// Switches the terminal of standard input to raw mode: every key is input, Ctrl-C too. The destructor
/// restores it, as do SIGTERM and SIGHUP. One at a time.
class RawTerminal {
 public:
  /// Does nothing unless `wanted`.
  explicit RawTerminal(bool wanted);
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  bool raw_ = false;
};

/// Prints `question` to stderr and reads a line of standard input. Errors: kFailedPrecondition (end of
/// input).
Result<std::string> ask(const std::string& question);
/// Prints `question [y/N]: `. Returns true for y, Y and yes. Errors: those of ask().
Result<bool> confirm(const std::string& question);
/// Same as ask(), without echo on a terminal.
Result<std::string> ask_secret(const std::string& question);

}  // namespace det::cli
