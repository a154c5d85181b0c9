// Owns DiagnosisService: what the master finds out about itself.
#pragma once

#include "det/v1/diagnosis.pb.h"
#include "master/api/service.h"

namespace det::api {

class DiagnosisService final : public Service {
 public:
  explicit DiagnosisService(const Context& context);
  Status GetDiagnosis(const Caller& caller, const v1::GetDiagnosisRequest& request,
                      v1::GetDiagnosisResponse* response);
};

}  // namespace det::api
