// CommandService: launches, lists, kills and re-prioritizes commands.
#pragma once

#include <optional>
#include <string>

#include "det/v1/command.pb.h"
#include "master/api/service.h"
#include "master/db/queries/commands.h"

namespace det::api {

/// A command is a command line that runs once in an allocation of zero or more slots. Its id is a task id.
class CommandService final : public Service {
 public:
  explicit CommandService(const Context& context);
  /// Lists commands that the caller may see, paged.
  Status GetCommands(const Caller& caller, const v1::GetCommandsRequest& request,
                     v1::GetCommandsResponse* response);
  /// Returns a command and its configuration, secrets masked. Errors: kNotFound.
  Status GetCommand(const Caller& caller, const v1::GetCommandRequest& request,
                    v1::GetCommandResponse* response);
  /// Submits a command with its files in the request. See launch_command().
  Status LaunchCommand(const Caller& caller, const v1::LaunchCommandRequest& request,
                       v1::LaunchCommandResponse* response);
  /// As LaunchCommand, with the code archive in chunks of at most 1 MiB after the request.
  grpc::ServerReadReactor<v1::UploadCommandRequest>* UploadCommand(grpc::CallbackServerContext* call,
                                                                   v1::LaunchCommandResponse* response);
  /// Kills a command. Idempotent, also after its end. Errors: kNotFound.
  Status KillCommand(const Caller& caller, const v1::KillCommandRequest& request,
                     v1::KillCommandResponse* response);
  /// Changes the priority, 1 to 99, smaller first. After the end of the command nothing changes, as in
  /// Determined AI. Errors: kNotFound; kInvalidArgument for a value that a policy forbids.
  Status SetCommandPriority(const Caller& caller, const v1::SetCommandPriorityRequest& request,
                            v1::SetCommandPriorityResponse* response);
  /// Explains why the command waits for slots, or returns its state. Errors: kNotFound.
  Status ExplainCommand(const Caller& caller, const v1::ExplainCommandRequest& request,
                        v1::ExplainCommandResponse* response);
};

/// Parses, checks and submits a command. `archive` is the code archive if it was uploaded in chunks;
/// otherwise the files of the request are packed. Idempotent with a request_id, a lower-case uuid that
/// becomes the command's id. With validate_only nothing is stored. Blocks on the database and the core.
/// Errors: kInvalidArgument with all problems of the configuration; kAlreadyExists for a request_id of
/// another user; kNotFound for an archived workspace.
Status launch_command(const Context& context, const Caller& caller, const v1::LaunchCommandRequest& request,
                      std::optional<std::string> archive, v1::LaunchCommandResponse* response);
/// What launch_command() does for an interactive task only.
struct InteractiveLaunch {
  Json event_files;                   ///< list of {base, below, name}, as v1::EventFiles; null for none
  Action action = Action::kRunTasks;  ///< right that the caller needs in the workspace
};
Status launch_command(const Context& context, const Caller& caller, const v1::LaunchCommandRequest& request,
                      std::optional<std::string> archive, const InteractiveLaunch& interactive,
                      v1::LaunchCommandResponse* response);

/// Checks the workspace of a list; 0 is any. Errors: kNotFound, also for one that is being deleted.
Status check_listed_workspace(const Context& context, const Caller& caller, std::int64_t id);

/// Changes the priority of a command. Errors: those of CommandService::SetCommandPriority but kNotFound.
Status set_command_priority(const Context& context, const db::CommandRow& row, int priority);

/// Returns the description of a command, else the beginning of its command line, at most 80 bytes.
std::string command_name(const expconf::CommandConfig& config);

/// Converts a command for lists, without its configuration.
void to_proto(const db::CommandRow& row, const std::string& default_pool, v1::Command* out);

}  // namespace det::api
