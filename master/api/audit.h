// Owns AuditService: reading the audit log.
#pragma once

#include "det/v1/audit.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class AuditService final : public v1::AuditService::CallbackService {
 public:
  explicit AuditService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetAuditLog(grpc::CallbackServerContext* call,
                                        const v1::GetAuditLogRequest* request,
                                        v1::GetAuditLogResponse* response) override;

 private:
  const Context& context_;
};

}  // namespace det::api
