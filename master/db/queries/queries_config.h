// Queries of partial configurations: templates and config policies, stored as the YAML that a user submitted.
// Parsing is the task of expconf.
#pragma once

#include "master/db/queries/queries.h"

namespace det::db {

/// A configuration template.
struct TemplateRow {
  std::string name;
  std::string text;  ///< YAML.
  std::int64_t workspace = 1;
};
/// Filter of list_templates().
struct TemplateFilter {
  std::string part;  ///< Substring of the name, case-insensitive.
  /// Workspaces visible to the caller; unset: all.
  std::optional<std::vector<std::int64_t>> visible;
  std::vector<std::int64_t> workspaces;  ///< Any of these; empty: all.
  Window window;
};
/// Lists templates by name.
Result<Page<TemplateRow>> list_templates(Pool& pool, const TemplateFilter& filter);
/// Returns one template. kNotFound.
Result<TemplateRow> get_template(Pool& pool, const std::string& name);
/// Stores a template. kAlreadyExists: the name is taken and `replace` is false, or it is taken in another
/// workspace.
Status set_template(Pool& pool, const TemplateRow& row, bool replace);
/// Renames a template. Errors: kNotFound; kAlreadyExists.
Status rename_template(Pool& pool, const std::string& name, const std::string& new_name);
/// Deletes a template. kNotFound.
Status delete_template(Pool& pool, const std::string& name);

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
