// The table of all nouns, in the order of help and completion.
#include "cli/command.h"

namespace det::cli {

const std::vector<Command>& commands() {
  // Built on first use, after all static initializers have run.
  static const std::vector<Command> table{experiment_command(),     trial_command(),
                                          checkpoint_command(),     agent_command(),
                                          slot_command(),           job_command(),
                                          explain_command(),        master_command(),
                                          template_command(),       config_policies_command(),
                                          preview_search_command(), user_command(),
                                          workspace_command(),      project_command(),
                                          token_command(),          rbac_command(),
                                          audit_command(),          dev_command(),
                                          version_command(),        completion_command(),
                                          task_command(),           command_command(),
                                          resources_command(),      doctor_command(),
                                          deploy_command(),         model_command(),
                                          join_token_command(),     webhook_command(),
                                          quota_command(),          init_command(),
                                          notebook_command(),       shell_command(),
                                          tensorboard_command(),    pilot_command(),
                                          user_group_command(),     resource_pool_command()};
  return table;
}

}  // namespace det::cli
