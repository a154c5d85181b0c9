// Owns MasterService: the settings of this process, and the newest lines of its log.
#pragma once

#include <memory>
#include <vector>

#include "det/v1/master.pb.h"
#include "master/api/service.h"

namespace det::api {

class MasterService final : public Service {
 public:
  explicit MasterService(const Context& context);
  ~MasterService() override;
  Status GetMasterConfig(const Caller& caller, const v1::GetMasterConfigRequest& request,
                         v1::GetMasterConfigResponse* response);
  Status PatchMasterConfig(const Caller& caller, const v1::PatchMasterConfigRequest& request,
                           v1::PatchMasterConfigResponse* response);
  grpc::ServerWriteReactor<v1::MasterLogsResponse>* MasterLogs(grpc::CallbackServerContext* call,
                                                               const v1::MasterLogsRequest* request);

  /// Looks for new lines on behalf of those who follow. On the edge worker, several times a second.
  void tick();

 private:
  class Reader;
  std::vector<std::weak_ptr<Reader>> readers_;  ///< of the edge worker
};

}  // namespace det::api
