#include "master/db/accounts/audit.h"

// Filter of list_audit(): $1 user name, $2 exclusive lower bound of the time.
#define DET_AUDIT_FILTER \
  " FROM audit WHERE ($1 = '' OR username = $1) AND ($2::timestamptz IS NULL OR time > $2)"

namespace det::db {

Status add_audit(Pool& pool, const AuditRow& row) {
  std::optional<std::int64_t> user;
  if (row.user) user = row.user->value;
  TRY(
      pool.query("INSERT INTO audit (user_id, username, action, object, outcome, address)"
                 " VALUES ($1, $2, $3, $4, $5, $6)",
                 user, row.username, row.action, row.object, row.outcome, row.address));
  return {};
}

Result<Page<AuditRow>> list_audit(Pool& pool, const AuditFilter& filter) {
  TRY_ASSIGN(const Rows counted,
             pool.query("SELECT count(*)" DET_AUDIT_FILTER, filter.username, filter.after));
  Page<AuditRow> page;
  page.total = counted[0].next<std::int64_t>();
  const Span span = resolve(filter.window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  TRY_ASSIGN(
      const Rows rows,
      pool.query(filter.window.descending
                     ? "SELECT id, time, user_id, username, action, object, outcome, address" DET_AUDIT_FILTER
                       " ORDER BY id DESC OFFSET $3 LIMIT $4"
                     : "SELECT id, time, user_id, username, action, object, outcome, address" DET_AUDIT_FILTER
                       " ORDER BY id OFFSET $3 LIMIT $4",
                 filter.username, filter.after, span.first, span.count));
  for (int i = 0; i < rows.size(); ++i) {
    AuditRow& row = page.rows.emplace_back();
    rows[i].into(row.id, row.time, row.user, row.username, row.action, row.object, row.outcome, row.address);
  }
  return page;
}

}  // namespace det::db
