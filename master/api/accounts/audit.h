// AuditService: reads the audit log.
#pragma once

#include "det/v1/audit.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Lists changes and refused calls. Entries are written by audit() in authorize.h and by the login and join
/// handlers.
class AuditService final : public Service {
 public:
  explicit AuditService(const Context& context);
  /// Lists entries of a user or since a time, paged, 100 by default. For cluster admins.
  Status GetAuditLog(const Caller& caller, const v1::GetAuditLogRequest& request,
                     v1::GetAuditLogResponse* response);
};

}  // namespace det::api
