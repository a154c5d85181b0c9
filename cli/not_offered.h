// Owns how a command that upstream's client has, and this one has not, says why.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace det::cli {

/// Takes any arguments, and fails with the reason (exit code 1). The help says it too.
Command not_offered(std::vector<std::string> names, const std::string& why);

/// Nouns of which nothing is offered: notebook, shell and so on.
std::vector<Command> not_offered_nouns();

}  // namespace det::cli
