// Owns DiagnosisService: what the master finds out about itself.
#pragma once

#include "det/v1/diagnosis.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class DiagnosisService final : public v1::DiagnosisService::CallbackService {
 public:
  explicit DiagnosisService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetDiagnosis(grpc::CallbackServerContext* call, const v1::GetDiagnosisRequest* request,
                                         v1::GetDiagnosisResponse* response) override;

 private:
  const Context& context_;
};

}  // namespace det::api
