#include "master/db/queries/queries_config.h"

// Filter of list_templates(): $1 part of the name, $2 visible workspaces, $3 workspaces.
#define DET_TEMPLATE_FILTER                                                                               \
  " FROM templates WHERE strpos(lower(name), lower($1)) > 0 AND ($2::bigint[] IS NULL OR workspace_id = " \
  "ANY ($2)) AND (cardinality($3::bigint[]) = 0 OR workspace_id = ANY ($3))"

namespace det::db {
namespace {

auto no_template(const std::string& name) {
  return fail(Code::kNotFound, "template \"" + name + "\" not found");
}

}  // namespace

Result<Page<TemplateRow>> list_templates(Pool& pool, const TemplateFilter& filter) {
  TRY_ASSIGN(const Rows counted, pool.query("SELECT count(*)" DET_TEMPLATE_FILTER, filter.part,
                                            filter.visible, filter.workspaces));
  Page<TemplateRow> page;
  page.total = counted[0].next<std::int64_t>();
  const Span span = resolve(filter.window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  TRY_ASSIGN(const Rows rows,
             pool.query(filter.window.descending ? "SELECT name, text, workspace_id" DET_TEMPLATE_FILTER
                                                   " ORDER BY name DESC OFFSET $4 LIMIT $5"
                                                 : "SELECT name, text, workspace_id" DET_TEMPLATE_FILTER
                                                   " ORDER BY name OFFSET $4 LIMIT $5",
                        filter.part, filter.visible, filter.workspaces, span.first, span.count));
  for (int i = 0; i < rows.size(); ++i) {
    TemplateRow& row = page.rows.emplace_back();
    rows[i].into(row.name, row.text, row.workspace);
  }
  return page;
}

Result<TemplateRow> get_template(Pool& pool, const std::string& name) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT name, text, workspace_id FROM templates WHERE name = $1", name));
  if (rows.empty()) return no_template(name);
  TemplateRow row;
  rows[0].into(row.name, row.text, row.workspace);
  return row;
}

Status set_template(Pool& pool, const TemplateRow& row, bool replace) {
  // A conflict in another workspace updates nothing and returns no row, so no template changes hands.
  TRY_ASSIGN(
      const Rows made,
      pool.query(
          "INSERT INTO templates AS t (name, text, workspace_id) VALUES ($1, $2, $4) ON CONFLICT (name)"
          " DO UPDATE SET text = excluded.text, changed = now()"
          " WHERE $3 AND t.workspace_id = excluded.workspace_id RETURNING name",
          row.name, row.text, replace, row.workspace));
  if (made.empty())
    return fail(Code::kAlreadyExists, "template \"" + row.name + "\" exists already; replace it with PUT");
  return {};
}

Status rename_template(Pool& pool, const std::string& name, const std::string& new_name) {
  auto rows = pool.query("UPDATE templates SET name = $2, changed = now() WHERE name = $1", name, new_name);
  if (!rows && rows.error().code == Code::kAlreadyExists)
    return fail(Code::kAlreadyExists, "template \"" + new_name + "\" exists already; choose another name");
  TRY(rows);
  if (rows->affected() == 0) return no_template(name);
  return {};
}

Status delete_template(Pool& pool, const std::string& name) {
  TRY_ASSIGN(const Rows gone, pool.query("DELETE FROM templates WHERE name = $1 RETURNING name", name));
  if (gone.empty()) return no_template(name);
  return {};
}

Result<std::string> get_config_policies(Pool& pool, const PolicyKey& key) {
  // IS NOT DISTINCT FROM also matches the NULL workspace of cluster-wide policies.
  TRY_ASSIGN(const Rows rows, pool.query("SELECT text FROM config_policies WHERE workload = $1"
                                         " AND workspace_id IS NOT DISTINCT FROM $2",
                                         key.workload, key.workspace));
  if (rows.empty()) return std::string();
  return rows[0].next<std::string>();
}

Status set_config_policies(Pool& pool, const PolicyKey& key, const std::string& text, UserId by) {
  TRY(
      pool.query("INSERT INTO config_policies (workload, workspace_id, text, set_by) VALUES ($1, $2, $3, $4)"
                 " ON CONFLICT (workload, coalesce(workspace_id, 0))"
                 " DO UPDATE SET text = excluded.text, set_by = excluded.set_by, changed = now()",
                 key.workload, key.workspace, text, by));
  return {};
}

Status delete_config_policies(Pool& pool, const PolicyKey& key) {
  TRY(pool.query("DELETE FROM config_policies WHERE workload = $1 AND workspace_id IS NOT DISTINCT FROM $2",
                 key.workload, key.workspace));
  return {};
}

}  // namespace det::db
