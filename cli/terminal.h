// Owns what depends on a terminal being there: colour, width, secrets typed unseen, Ctrl-C.
#pragma once

#include <string>

#include "base/result.h"

namespace det::cli {

/// Ctrl-C ends the program with exit code 3 and the terminal as it was; a closed pipe ends it silently.
void set_up_signals();

bool is_terminal(int fd);
/// Colours may be used on `fd`: it is a terminal and NO_COLOR is not set.
bool wants_color(int fd);
/// Columns of the terminal at `fd`; 80 when unknown.
int terminal_width(int fd);

/// Prints `question` on stderr and reads a line of standard input. kFailedPrecondition at its end.
Result<std::string> ask(const std::string& question);
/// `question [y/N]: `; true for y and yes.
Result<bool> confirm(const std::string& question);
/// As ask(); on a terminal nothing that is typed shows.
Result<std::string> ask_secret(const std::string& question);

}  // namespace det::cli
