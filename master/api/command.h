// Owns CommandService: launching, listing, killing and moving commands.
#pragma once

#include <optional>
#include <string>

#include "det/v1/command.grpc.pb.h"
#include "master/api/unary.h"
#include "master/db/queries_command.h"

namespace det::api {

class CommandService final : public v1::CommandService::CallbackService {
 public:
  explicit CommandService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetCommands(grpc::CallbackServerContext* call, const v1::GetCommandsRequest* request,
                                        v1::GetCommandsResponse* response) override;
  grpc::ServerUnaryReactor* GetCommand(grpc::CallbackServerContext* call, const v1::GetCommandRequest* request,
                                       v1::GetCommandResponse* response) override;
  grpc::ServerUnaryReactor* LaunchCommand(grpc::CallbackServerContext* call, const v1::LaunchCommandRequest* request,
                                          v1::LaunchCommandResponse* response) override;
  grpc::ServerReadReactor<v1::UploadCommandRequest>* UploadCommand(grpc::CallbackServerContext* call,
                                                                   v1::LaunchCommandResponse* response) override;
  grpc::ServerUnaryReactor* KillCommand(grpc::CallbackServerContext* call, const v1::KillCommandRequest* request,
                                        v1::KillCommandResponse* response) override;
  grpc::ServerUnaryReactor* SetCommandPriority(grpc::CallbackServerContext* call,
                                               const v1::SetCommandPriorityRequest* request,
                                               v1::SetCommandPriorityResponse* response) override;
  grpc::ServerUnaryReactor* ExplainCommand(grpc::CallbackServerContext* call, const v1::ExplainCommandRequest* request,
                                           v1::ExplainCommandResponse* response) override;

 private:
  const Context& context_;
};

/// Waits for the database and the core. `archive` is the context as tar.gz when it came in chunks.
Status launch_command(const Context& context, const Caller& caller, const v1::LaunchCommandRequest& request,
                      std::optional<std::string> archive, v1::LaunchCommandResponse* response);

void to_proto(const db::CommandRow& row, const std::string& default_pool, v1::Command* out);

}  // namespace det::api
