// Owns MasterService: the settings of this process, and the newest lines of its log.
#pragma once

#include <memory>
#include <vector>

#include "det/v1/master.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class MasterService final : public v1::MasterService::CallbackService {
 public:
  explicit MasterService(const Context& context);
  ~MasterService() override;
  grpc::ServerUnaryReactor* GetMasterConfig(grpc::CallbackServerContext* call, const v1::GetMasterConfigRequest* request,
                                            v1::GetMasterConfigResponse* response) override;
  grpc::ServerUnaryReactor* PatchMasterConfig(grpc::CallbackServerContext* call,
                                              const v1::PatchMasterConfigRequest* request,
                                              v1::PatchMasterConfigResponse* response) override;
  grpc::ServerWriteReactor<v1::MasterLogsResponse>* MasterLogs(grpc::CallbackServerContext* call,
                                                               const v1::MasterLogsRequest* request) override;

  /// Looks for new lines on behalf of those who follow. On the edge worker, several times a second.
  void tick();

 private:
  class Reader;
  const Context& context_;
  std::vector<std::weak_ptr<Reader>> readers_;  ///< of the edge worker
};

}  // namespace det::api
