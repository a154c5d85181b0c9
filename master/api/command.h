// Owns CommandService: launching, listing, killing and moving commands.
#pragma once

#include <optional>
#include <string>

#include "det/v1/command.pb.h"
#include "master/api/service.h"
#include "master/db/queries_command.h"

namespace det::api {

class CommandService final : public Service {
 public:
  explicit CommandService(const Context& context);
  Status GetCommands(const Caller& caller, const v1::GetCommandsRequest& request,
                     v1::GetCommandsResponse* response);
  Status GetCommand(const Caller& caller, const v1::GetCommandRequest& request,
                    v1::GetCommandResponse* response);
  Status LaunchCommand(const Caller& caller, const v1::LaunchCommandRequest& request,
                       v1::LaunchCommandResponse* response);
  grpc::ServerReadReactor<v1::UploadCommandRequest>* UploadCommand(grpc::CallbackServerContext* call,
                                                                   v1::LaunchCommandResponse* response);
  Status KillCommand(const Caller& caller, const v1::KillCommandRequest& request,
                     v1::KillCommandResponse* response);
  Status SetCommandPriority(const Caller& caller, const v1::SetCommandPriorityRequest& request,
                            v1::SetCommandPriorityResponse* response);
  Status ExplainCommand(const Caller& caller, const v1::ExplainCommandRequest& request,
                        v1::ExplainCommandResponse* response);
};

/// Waits for the database and the core. `archive` is the context as tar.gz when it came in chunks.
Status launch_command(const Context& context, const Caller& caller, const v1::LaunchCommandRequest& request,
                      std::optional<std::string> archive, v1::LaunchCommandResponse* response);

void to_proto(const db::CommandRow& row, const std::string& default_pool, v1::Command* out);

}  // namespace det::api
