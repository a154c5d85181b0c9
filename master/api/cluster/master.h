// MasterService: settings and log of the master process. For cluster admins.
#pragma once

#include <memory>
#include <vector>

#include "det/v1/master.pb.h"
#include "master/api/service.h"
#include "master/db/queries/cluster.h"

namespace det::api {

/// Settings other than the log level need a restart.
class MasterService final : public Service {
 public:
  explicit MasterService(const Context& context);
  ~MasterService() override;
  /// Returns the configuration with secrets masked, and the current log level.
  Status GetMasterConfig(const Caller& caller, const v1::GetMasterConfigRequest& request,
                         v1::GetMasterConfigResponse* response);
  /// Changes log.level until the process ends. Errors: kInvalidArgument for every other setting.
  Status PatchMasterConfig(const Caller& caller, const v1::PatchMasterConfigRequest& request,
                           v1::PatchMasterConfigResponse* response);
  /// Returns the message to all users unless it has ended.
  Status GetTelemetry(const Caller& caller, const v1::GetTelemetryRequest& request,
                      v1::GetTelemetryResponse* response);
  Status GetClusterMessage(const Caller& caller, const v1::GetClusterMessageRequest& request,
                           v1::GetClusterMessageResponse* response);
  /// Replaces the message. Errors: kInvalidArgument for a text that is empty or over 250 bytes, and for an
  /// end that is past or before the beginning.
  Status SetClusterMessage(const Caller& caller, const v1::SetClusterMessageRequest& request,
                           v1::SetClusterMessageResponse* response);
  /// Removes the message. Idempotent.
  Status DeleteClusterMessage(const Caller& caller, const v1::DeleteClusterMessageRequest& request,
                              v1::DeleteClusterMessageResponse* response);
  /// Streams the last lines of this process's log, oldest first. A negative offset counts from the end. With
  /// `follow` new lines are sent as they are written.
  grpc::ServerWriteReactor<v1::MasterLogsResponse>* MasterLogs(grpc::CallbackServerContext* call,
                                                               const Unread<v1::MasterLogsRequest>& request);

  /// Sends new lines to streams that follow. Called on the edge worker several times a second.
  void tick();

 private:
  class Reader;
  // Belongs to the edge worker.
  std::vector<std::weak_ptr<Reader>> readers_;
};

void to_proto(const db::ClusterMessage& message, v1::ClusterMessage* out);

}  // namespace det::api
