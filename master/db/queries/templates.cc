#include "master/db/queries/templates.h"

#include "master/db/store/at_rest.h"

namespace det::db {
namespace {

const Columns<TemplateRow>& template_columns() {
  static const Columns<TemplateRow> columns(column<&TemplateRow::name>("name"),
                                            column<&TemplateRow::text>("text"),
                                            column<&TemplateRow::workspace>("workspace_id"));
  return columns;
}

std::string template_name(const std::string& name) { return "template \"" + name + "\""; }

}  // namespace

Result<Page<TemplateRow>> list_templates(Pool& pool, const TemplateFilter& filter) {
  static const std::string from =
      " FROM templates WHERE strpos(lower(name), lower($1)) > 0"
      " AND ($2::bigint[] IS NULL OR workspace_id = ANY ($2))"
      " AND (cardinality($3::bigint[]) = 0 OR workspace_id = ANY ($3))";
  TRY_ASSIGN(Page<TemplateRow> page, list_page(pool, from, "name" + direction(filter.window),
                                               Params(filter.part, filter.visible, filter.workspaces),
                                               filter.window, template_columns()));
  for (TemplateRow& row : page.rows) {
    TRY_ASSIGN(row.text, open_yaml(std::move(row.text)));
  }
  return page;
}

Result<TemplateRow> get_template(Pool& pool, const std::string& name) {
  static const std::string sql = template_columns().select(" FROM templates WHERE name = $1");
  TRY_ASSIGN(TemplateRow row, template_columns().one(pool.query(sql, name), template_name(name)));
  TRY_ASSIGN(row.text, open_yaml(std::move(row.text)));
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
          row.name, seal_yaml(row.text), replace, row.workspace));
  if (made.empty())
    return fail(Code::kAlreadyExists, "template \"" + row.name + "\" exists already; replace it with PUT");
  return {};
}

Status rename_template(Pool& pool, const std::string& name, const std::string& new_name) {
  auto rows = pool.query("UPDATE templates SET name = $2, changed = now() WHERE name = $1", name, new_name);
  if (!rows && rows.error().code == Code::kAlreadyExists)
    return fail(Code::kAlreadyExists, "template \"" + new_name + "\" exists already; choose another name");
  return found(rows, template_name(name));
}

Status delete_template(Pool& pool, const std::string& name) {
  return found(pool.query("DELETE FROM templates WHERE name = $1", name), template_name(name));
}

}  // namespace det::db
