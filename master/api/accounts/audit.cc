#include "master/api/accounts/audit.h"

#include "common/base/text.h"
#include "det/v1/audit.methods.h"
#include "master/api/convert/convert.h"
#include "master/db/accounts/audit.h"

namespace det::api {

AuditService::AuditService(const Context& context) : Service(context, v1::AuditService::full_name) {
  unary(v1::AuditService::GetAuditLog, &AuditService::GetAuditLog);
}

Status AuditService::GetAuditLog(const Caller&, const v1::GetAuditLogRequest& request,
                                 v1::GetAuditLogResponse* response) {
  // Applies when the request leaves `limit` at 0.
  constexpr int kDefaultLimit = 100;
  db::AuditFilter filter{
      .username = make_utf8(request.username()),
      .window = to_window(request.offset(), request.limit(), request.order_by(), kDefaultLimit)};
  if (request.has_timestamp_after()) filter.after = from_proto(request.timestamp_after());
  TRY_ASSIGN(const auto page, db::list_audit(context_.pool, filter));
  for (const db::AuditRow& row : page.rows) {
    v1::AuditEntry* out = response->add_entries();
    out->set_id(row.id);
    to_proto(row.time, out->mutable_timestamp());
    // Entries of unknown users (failed logins) and of agents have no user id.
    if (row.user) out->set_user_id(static_cast<int>(row.user->value));
    out->set_username(row.username);
    out->set_action(row.action);
    out->set_object(row.object);
    out->set_outcome(row.outcome);
    out->set_address(row.address);
  }
  to_pagination(page, filter.window, response->mutable_pagination());
  return {};
}

}  // namespace det::api
