// Placeholders for commands of Determined AI's client that det does not have.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace det::cli {

/// Reason for commands about the retention of logs.
inline constexpr const char* kLogRetention = "set retention_policy in the configuration";

/// Declares a command that accepts any arguments and fails with kUnimplemented and the reason (exit code 1).
/// Its help shows the reason as well.
Command not_offered(std::vector<std::string> names, const std::string& why);

}  // namespace det::cli
