// Verbs of the noun `experiment`, one file each. Internal to cli/: checkpoint.cc and trial.cc use it as well.
#pragma once

#include "cli/command.h"

namespace det::cli {

Command brackets_verb();
Command describe_verb();
Command diff_verb();
Command list_verb();
Command list_trials_verb();
/// `set` with its verbs: name, description, priority, weight, max-slots, gc-policy.
Command set_verb();
Command simulate_verb();
Command watch_verb();
/// Also a verb of `det checkpoint`, with other names.
Command list_checkpoints_verb(std::vector<std::string> names);
/// delete, label, set, fork and continue.
std::vector<Command> life_verbs();
/// `det trial files` and `det trial download-files`.
std::vector<Command> trial_file_verbs();
/// `det trial profile`.
Command trial_profile_verb();
/// Adds the flags of `create` to `app` and returns its action.
Action declare_create(CLI::App& app);

/// Adds the required argument ID, at least 1. `what` is its help text.
CLI::Option* add_id(CLI::App& app, int& id, const char* what);

/// Options of a verb about one experiment.
struct ExperimentOptions {
  int id = 0;
  void declare(CLI::App& app) { add_id(app, id, "Experiment id."); }
};

}  // namespace det::cli
