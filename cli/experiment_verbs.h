// Owns the division of the noun `experiment` into files. Private to cli/experiment*.cc.
#pragma once

#include "cli/command.h"

namespace det::cli {

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

/// delete, label, set, fork, continue.
std::vector<Command> life_verbs();
/// set name, description, priority and so on.
Command set_verb();

/// The required argument "ID".
CLI::Option* add_id(CLI::App& app, int& id, const char* what);

}  // namespace det::cli
