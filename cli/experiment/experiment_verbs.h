// Verbs of the noun `experiment`, one file each. Internal to cli/: checkpoint.cc and trial.cc use it as well.
#pragma once

#include "cli/command.h"

namespace det::cli {

/// Each adds the verb's flags and arguments to `app` and returns its action (Command::declare).
Action declare_brackets(CLI::App& app);
Action declare_create(CLI::App& app);
Action declare_describe(CLI::App& app);
Action declare_list(CLI::App& app);
Action declare_list_trials(CLI::App& app);
Action declare_list_checkpoints(CLI::App& app);
Action declare_simulate(CLI::App& app);
Action declare_move(CLI::App& app);
Action declare_diff(CLI::App& app);
Action declare_watch(CLI::App& app);

/// delete, label, set, fork and continue.
std::vector<Command> life_verbs();
/// `set` with its verbs: name, description, priority, weight, max-slots, gc-policy.
Command set_verb();

/// Adds the required argument ID, at least 1. `what` is its help text.
CLI::Option* add_id(CLI::App& app, int& id, const char* what);

}  // namespace det::cli
