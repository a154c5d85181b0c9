// Owns the partial configurations that the cluster keeps: templates and config policies, as the YAML that
// somebody wrote. What it means is expconf's.
#pragma once

#include "master/db/queries.h"

namespace det::db {

struct TemplateRow {
  std::string name;
  std::string text;  ///< YAML
  std::int64_t workspace = 1;
};
struct TemplateFilter {
  std::string part;                                  ///< of the name, whatever the case
  std::optional<std::vector<std::int64_t>> visible;  ///< the workspaces that may be looked into; nothing: all
  std::vector<std::int64_t> workspaces;              ///< any of these; empty: all
  Window window;
};
/// In order of the name.
Result<Page<TemplateRow>> list_templates(Pool& pool, const TemplateFilter& filter);
/// kNotFound.
Result<TemplateRow> get_template(Pool& pool, const std::string& name);
/// kAlreadyExists when the name is taken: by anyone when `replace` is false, by another workspace with it.
Status set_template(Pool& pool, const TemplateRow& row, bool replace);
/// kNotFound; kAlreadyExists.
Status rename_template(Pool& pool, const std::string& name, const std::string& new_name);
/// kNotFound.
Status delete_template(Pool& pool, const std::string& name);

/// Whose policies: a workspace's, or the whole cluster's; `workload` is "EXPERIMENT".
struct PolicyKey {
  std::string workload;
  std::optional<std::int64_t> workspace;
};
/// "" when there are none.
Result<std::string> get_config_policies(Pool& pool, const PolicyKey& key);
/// Repeats safely.
Status set_config_policies(Pool& pool, const PolicyKey& key, const std::string& text, UserId by);
/// Repeats safely.
Status delete_config_policies(Pool& pool, const PolicyKey& key);

}  // namespace det::db
