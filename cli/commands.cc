// Owns the order of the nouns in help and completion.
#include "cli/command.h"

namespace det::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> table{
      experiment_command(), trial_command(),    checkpoint_command(), agent_command(),    slot_command(),
      job_command(),        explain_command(),  master_command(),     template_command(), model_command(), config_policies_command(),
      preview_search_command(), user_command(), workspace_command(),  project_command(),  token_command(),
      rbac_command(),       audit_command(),    dev_command(),        version_command(),  completion_command()};
  return table;
}

}  // namespace det::cli
