// Config policies, stored as the YAML that an administrator submitted. Parsing is the task of expconf.
#pragma once

#include "master/db/queries/page.h"

namespace det::db {

/// Scope of config policies: one workspace, or the cluster when `workspace` is unset. `workload` is
/// "EXPERIMENT".
struct PolicyKey {
  std::string workload;
  std::optional<std::int64_t> workspace;
};
/// Returns the policies as YAML, "" when there are none.
Result<std::string> get_config_policies(Pool& pool, const PolicyKey& key);
/// Replaces the policies; `by` is recorded as their author. Idempotent.
Status set_config_policies(Pool& pool, const PolicyKey& key, const std::string& text, UserId by);
/// Removes the policies. Idempotent.
Status delete_config_policies(Pool& pool, const PolicyKey& key);

}  // namespace det::db
