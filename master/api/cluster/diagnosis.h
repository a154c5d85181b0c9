// DiagnosisService: self-test of the master for `det doctor`.
#pragma once

#include <atomic>

#include "det/v1/diagnosis.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Checks the parts that the master depends on.
class DiagnosisService final : public Service {
 public:
  explicit DiagnosisService(const Context& context);
  /// Runs a query on the database and writes and removes a file in the default checkpoint storage. Defects of
  /// the storage are part of the response. Blocks on the storage. Errors: those of the database; kUnavailable
  /// while another call runs.
  Status GetDiagnosis(const Caller& caller, const v1::GetDiagnosisRequest& request,
                      v1::GetDiagnosisResponse* response);

 private:
  std::atomic<bool> running_{false};
};

}  // namespace det::api
