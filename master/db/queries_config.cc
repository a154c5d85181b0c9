#include "master/db/queries_config.h"

namespace det::db {
namespace {

auto no_template(const std::string& name) {
  return fail(Code::kNotFound, "template \"" + name + "\" not found");
}

}  // namespace

Result<Page<TemplateRow>> list_templates(Pool& pool, const std::string& part, const Window& window) {
  TRY_ASSIGN(const Rows counted,
             pool.query("SELECT count(*) FROM templates WHERE strpos(lower(name), lower($1)) > 0", part));
  Page<TemplateRow> page;
  page.total = counted[0].next<std::int64_t>();
  const Span span = resolve(window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  TRY_ASSIGN(const Rows rows,
             pool.query(window.descending
                            ? "SELECT name, text FROM templates WHERE strpos(lower(name), lower($1)) > 0"
                              " ORDER BY name DESC OFFSET $2 LIMIT $3"
                            : "SELECT name, text FROM templates WHERE strpos(lower(name), lower($1)) > 0"
                              " ORDER BY name OFFSET $2 LIMIT $3",
                        part, span.first, span.count));
  for (int i = 0; i < rows.size(); ++i) {
    TemplateRow& row = page.rows.emplace_back();
    rows[i].into(row.name, row.text);
  }
  return page;
}

Result<TemplateRow> get_template(Pool& pool, const std::string& name) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT name, text FROM templates WHERE name = $1", name));
  if (rows.empty()) return no_template(name);
  TemplateRow row;
  rows[0].into(row.name, row.text);
  return row;
}

Status set_template(Pool& pool, const TemplateRow& row, bool replace) {
  TRY_ASSIGN(const Rows made,
             pool.query("INSERT INTO templates (name, text) VALUES ($1, $2) ON CONFLICT (name)"
                        " DO UPDATE SET text = excluded.text, changed = now() WHERE $3"
                        " RETURNING name",
                        row.name, row.text, replace));
  if (made.empty())
    return fail(Code::kAlreadyExists, "template \"" + row.name + "\" exists already; replace it with PUT");
  return {};
}

Status delete_template(Pool& pool, const std::string& name) {
  TRY_ASSIGN(const Rows gone, pool.query("DELETE FROM templates WHERE name = $1 RETURNING name", name));
  if (gone.empty()) return no_template(name);
  return {};
}

Result<std::string> get_config_policies(Pool& pool, const std::string& workload) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT text FROM config_policies WHERE workload = $1", workload));
  if (rows.empty()) return std::string();
  return rows[0].next<std::string>();
}

Status set_config_policies(Pool& pool, const std::string& workload, const std::string& text, UserId by) {
  TRY(pool.query(
      "INSERT INTO config_policies (workload, text, set_by) VALUES ($1, $2, $3) ON CONFLICT (workload)"
      " DO UPDATE SET text = excluded.text, set_by = excluded.set_by, changed = now()",
      workload, text, by));
  return {};
}

Status delete_config_policies(Pool& pool, const std::string& workload) {
  TRY(pool.query("DELETE FROM config_policies WHERE workload = $1", workload));
  return {};
}

Result<std::vector<std::pair<std::string, std::string>>> list_project_names(Pool& pool) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT w.name, p.name FROM projects p JOIN workspaces w"
                                         " ON w.id = p.workspace_id ORDER BY w.name, p.name"));
  std::vector<std::pair<std::string, std::string>> names;
  for (int i = 0; i < rows.size(); ++i) {
    auto& [workspace, project] = names.emplace_back();
    rows[i].into(workspace, project);
  }
  return names;
}

}  // namespace det::db
