// Owns AuditService: reading the audit log.
#pragma once

#include "det/v1/audit.pb.h"
#include "master/api/service.h"

namespace det::api {

class AuditService final : public Service {
 public:
  explicit AuditService(const Context& context);
  Status GetAuditLog(const Caller& caller, const v1::GetAuditLogRequest& request,
                     v1::GetAuditLogResponse* response);
};

}  // namespace det::api
