// Owns the partial configurations that the cluster keeps: templates and config policies, as the YAML that
// somebody wrote. What it means is expconf's.
#pragma once

#include "master/db/queries.h"

namespace det::db {

struct TemplateRow {
  std::string name;
  std::string text;  ///< YAML
};
/// By name; only those whose name holds `part`, whatever the case.
Result<Page<TemplateRow>> list_templates(Pool& pool, const std::string& part, const Window& window);
/// kNotFound.
Result<TemplateRow> get_template(Pool& pool, const std::string& name);
/// kAlreadyExists when `replace` is false and the name is taken. With it, repeats safely.
Status set_template(Pool& pool, const TemplateRow& row, bool replace);
/// kNotFound.
Status delete_template(Pool& pool, const std::string& name);

/// "" when there is none. `workload` is "EXPERIMENT".
Result<std::string> get_config_policies(Pool& pool, const std::string& workload);
/// Repeats safely.
Status set_config_policies(Pool& pool, const std::string& workload, const std::string& text, UserId by);
/// Repeats safely.
Status delete_config_policies(Pool& pool, const std::string& workload);

/// Every project there is, as (workspace, project).
Result<std::vector<std::pair<std::string, std::string>>> list_project_names(Pool& pool);

}  // namespace det::db
