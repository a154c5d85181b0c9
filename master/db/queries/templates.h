// Configuration templates, stored as the YAML that a user submitted. Parsing is the task of expconf.
#pragma once

#include "master/db/queries/page.h"

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
  Visible visible;
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

}  // namespace det::db
