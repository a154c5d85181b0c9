// A shell in the allocation of a task, on the terminal of this process.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "common/base/result.h"
#include "common/client/client.h"

namespace det::cli {

/// Runs `command` in the allocation of a task, an interactive shell if it is empty, and connects it to
/// standard input and output. It gets a terminal if both are one; Ctrl-C then goes to the command. Returns
/// its exit code. Blocks until it ends. Errors: those of TaskService.Connect; kUnavailable if the connection
/// is lost, with which the shell ends.
Result<int> run_shell(Client& client, const std::string& task, const std::vector<std::string>& command);

/// Takes the words after the options as the command line of a shell.
void declare_command_line(CLI::App& app, std::vector<std::string>& words);

}  // namespace det::cli
