#include "master/db/queries/config_policies.h"

#include "master/db/store/at_rest.h"

namespace det::db {

Result<std::string> get_config_policies(Pool& pool, const PolicyKey& key) {
  // IS NOT DISTINCT FROM also matches the NULL workspace of cluster-wide policies.
  TRY_ASSIGN(const Rows rows, pool.query("SELECT text FROM config_policies WHERE workload = $1"
                                         " AND workspace_id IS NOT DISTINCT FROM $2",
                                         key.workload, key.workspace));
  if (rows.empty()) return std::string();
  return open_yaml(rows[0].next<std::string>());
}

Status set_config_policies(Pool& pool, const PolicyKey& key, const std::string& text, UserId by) {
  TRY(
      pool.query("INSERT INTO config_policies (workload, workspace_id, text, set_by) VALUES ($1, $2, $3, $4)"
                 " ON CONFLICT (workload, coalesce(workspace_id, 0))"
                 " DO UPDATE SET text = excluded.text, set_by = excluded.set_by, changed = now()",
                 key.workload, key.workspace, seal_yaml(text), by));
  return {};
}

Status delete_config_policies(Pool& pool, const PolicyKey& key) {
  TRY(pool.query("DELETE FROM config_policies WHERE workload = $1 AND workspace_id IS NOT DISTINCT FROM $2",
                 key.workload, key.workspace));
  return {};
}

}  // namespace det::db
