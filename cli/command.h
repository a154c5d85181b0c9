// The tree of commands, as data. Argument parsing, help, completion and exit codes are derived from it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "common/base/result.h"
#include "common/client/session.h"

namespace det::cli {

/// Runs a command after its arguments were parsed. Returns the exit code.
using Action = std::function<Result<int>(Session&)>;

/// Adds flags and arguments to the parser and returns the action. The action owns the variables that the
/// options write to, and must live as long as the parser.
using Declare = std::function<Action(CLI::App&)>;

/// A noun with verbs, or a verb with an action.
struct Command {
  std::vector<std::string> names;  ///< the first is shown in help; the others are aliases
  std::string summary;             ///< one line of help
  Declare declare = {};            ///< null for a noun that has only verbs
  /// Verbs of a noun. A noun without a verb on the command line runs `list`, when it has one.
  std::vector<Command> verbs = {};
};

/// Converts the result of a command's function: success is the exit code 0.
inline Result<int> exit_code(Status ended) {
  return ended.map([] { return 0; });
}
inline Result<int> exit_code(Result<int> ended) { return ended; }

/// Binds a function to its options. `Options::declare(CLI::App&)` adds the flags to the parser.
/// `run(target, options)` returns a Status, or a Result<int> with the exit code. Its target is a Session, or
/// a Client when the command always needs a login. Each parser gets a copy of `initial`.
template <typename Options, typename Run>
Declare action(Run run, Options initial = {}) {
  return [run, initial](CLI::App& app) -> Action {
    auto options = std::make_shared<Options>(initial);
    options->declare(app);
    return [run, options](Session& session) -> Result<int> {
      if constexpr (std::is_invocable_v<Run, Session&, const Options&>) {
        return exit_code(run(session, *options));
      } else {
        TRY_ASSIGN(Client * client, session.client());
        return exit_code(run(*client, *options));
      }
    };
  };
}
/// Deduces the options from a function.
template <typename Ended, typename Target, typename Options>
Declare action(Ended (*run)(Target&, const Options&), std::type_identity_t<Options> initial = {}) {
  return action<Options, decltype(run)>(run, std::move(initial));
}

/// Options of a command with one required argument and no flags.
struct Argument {
  const char* name;  ///< as in the help: "NAME"
  const char* help;
  std::string value = {};
  void declare(CLI::App& app) { app.add_option(name, value, help)->required(); }
};

/// Options of a command without arguments and flags.
struct NoOptions {
  void declare(CLI::App&) {}
};

/// Returns the example lines of a command such as "experiment create"; "" when it has none. Defined in
/// cli/commands/examples.cc.
std::string example_of(const std::string& path);

/// Returns all nouns in the order of the help text. Defined in cli/commands.cc.
const std::vector<Command>& commands();

// One function per noun, each defined in its own file.
Command experiment_command();
Command trial_command();
Command checkpoint_command();
Command agent_command();
Command slot_command();
Command job_command();
Command command_command();
Command resource_pool_command();
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
Command deploy_command();
Command dev_command();
Command init_command();
Command join_token_command();
Command webhook_command();
Command quota_command();
Command pilot_command();
Command user_group_command();
Command version_command();
Command completion_command();
Command task_command();
Command doctor_command();
Command notebook_command();
Command shell_command();
Command tensorboard_command();

/// Returns the process's exit code for an error. The exit codes of det are:
///   0  success
///   1  the master rejected the call, or the awaited object failed
///   2  invalid usage or configuration (kInvalidArgument)
///   3  no master or no login (kUnavailable, kDeadlineExceeded, kUnauthenticated)
int exit_code(const Error& error);
/// Prints an error to stderr: one line, or one line per problem of a rejected document.
void print_error(const Error& error);

/// Parses `arguments` (without the program's name), runs the command and prints its error, if any. Returns
/// the exit code.
int run(const std::vector<std::string>& arguments);

}  // namespace det::cli
