// Owns how commands are declared: a tree of data. Reading arguments, help, completion and exit codes follow
// from it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/session.h"

namespace det::cli {

/// What a command does once its arguments are read; the exit code.
using Action = std::function<Result<int>(Session&)>;

struct Command {
  std::vector<std::string> names;  ///< the first is shown, the others are as good
  std::string summary;             ///< one line
  /// Declares flags and arguments; null for a noun that has only verbs.
  std::function<Action(CLI::App&)> declare = {};
  std::vector<Command> verbs = {};  ///< of a noun; alone it does its verb `list`, when it has one
};

/// Example lines of the command "experiment create"; "" when there is none. From cli/examples.cc.
std::string example_of(const std::string& path);

/// The whole table.
const std::vector<Command>& commands();

// One file a noun.
Command experiment_command();
Command trial_command();
Command checkpoint_command();
Command agent_command();
Command slot_command();
Command job_command();
Command command_command();
Command resources_command();
Command explain_command();
Command master_command();
Command template_command();
Command model_command();
Command config_policies_command();
Command preview_search_command();
Command user_command();
Command workspace_command();
Command project_command();
Command token_command();
Command rbac_command();
Command audit_command();
Command dev_command();
Command version_command();
Command completion_command();
Command task_command();
Command doctor_command();

/// Exit codes: 0 fine, 1 the master said no or what was waited for failed, 2 wrong usage or configuration, 3
/// no master or nobody logged in.
int exit_code(const Error& error);
/// Prints the failure on stderr: one line, or one for each problem of a document.
void print_error(const Error& error);

/// Reads the arguments (without the program's name) and does what they say; the exit code.
int run(const std::vector<std::string>& arguments);

}  // namespace det::cli
