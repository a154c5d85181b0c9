#include "master/db/accounts/audit.h"

namespace det::db {

Status add_audit(Pool& pool, const AuditRow& row) {
  TRY(
      pool.query("INSERT INTO audit (user_id, username, action, object, outcome, address)"
                 " VALUES ($1, $2, $3, $4, $5, $6)",
                 row.user, row.username, row.action, row.object, row.outcome, row.address));
  return {};
}

Result<Page<AuditRow>> list_audit(Pool& pool, const AuditFilter& filter) {
  using A = AuditRow;
  static const Columns<A> kColumns(column<&A::id>("id"), column<&A::time>("time"),
                                   column<&A::user>("user_id"), column<&A::username>("username"),
                                   column<&A::action>("action"), column<&A::object>("object"),
                                   column<&A::outcome>("outcome"), column<&A::address>("address"));
  static const std::string from =
      " FROM audit WHERE ($1 = '' OR username = $1) AND ($2::timestamptz IS NULL OR time > $2)";
  return list_page(pool, from, "id" + direction(filter.window), Params(filter.username, filter.after),
                   filter.window, kColumns);
}

}  // namespace det::db
