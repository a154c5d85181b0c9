#include "master/api/tasks/command.h"

#include <algorithm>

#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/expconf/command.h"
#include "common/yaml/yaml.h"
#include "det/v1/command.methods.h"
#include "master/api/accounts/policy.h"
#include "master/api/cluster/job.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/explanation.h"
#include "master/api/experiments/facts.h"
#include "master/api/submit/code_archive.h"
#include "master/api/submit/create.h"
#include "master/api/submit/secrets.h"
#include "master/db/queries/code_archives.h"
#include "master/db/queries/workspaces.h"

namespace det::api {
namespace {

/// Section of a configuration that gives a task directories of a storage.
constexpr const char* kEventFiles = "event_files";
constexpr const char* kAgentUserGroup = "agent_user_group";
constexpr const char* kCommandUploadMethod = "/det.v1.CommandService/UploadCommand";

/// State as clients see it: the stored one, refined by the live allocation.
v1::Command::State state_of(const db::CommandRow& row) {
  if (core::is_terminal(row.command.state)) return v1::Command::STATE_TERMINATED;
  if (row.command.state == core::State::kStoppingKilled) return v1::Command::STATE_TERMINATING;
  // Neither ended nor killed, and without an allocation.
  if (!row.live) return v1::Command::STATE_QUEUED;
  switch (*row.live) {
    case core::AllocationState::kAssigned:
    case core::AllocationState::kPulling:
      return v1::Command::STATE_PULLING;
    case core::AllocationState::kStarting:
      return v1::Command::STATE_STARTING;
    case core::AllocationState::kRunning:
      return v1::Command::STATE_RUNNING;
    case core::AllocationState::kTerminating:
    case core::AllocationState::kTerminated:
      break;
  }
  return v1::Command::STATE_TERMINATING;
}

/// Configuration for responses, secrets masked.
void shown_config(const core::Command& command, google::protobuf::Struct* out) {
  Json config = command.config->resolved;
  mask_secrets(config);
  to_struct(config, out);
}

Status answer(const Context& context, const TaskId& task, v1::Command* out) {
  TRY_ASSIGN(const auto row, db::get_command(context.pool, task));
  to_proto(row, context.settings.default_pool, out);
  return {};
}

bool is_uuid(const std::string& text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (dash ? text[i] != '-' : !hex) return false;
  }
  return true;
}

Result<expconf::ParsedCommand> parse_config(const Context& context, const Caller& caller,
                                            const v1::LaunchCommandRequest& request, std::int64_t workspace) {
  // The core is queried while templates and policies are loaded from the database.
  Pools pools(context);
  const std::string file =
      request.file_name().empty() ? "config" : make_utf8(request.file_name().substr(0, 256));
  expconf::Defaults defaults = settings_defaults(context.settings);
  if (!request.template_name().empty()) {
    TRY_ASSIGN(defaults.template_, template_of(context, caller, request.template_name()));
  }
  TRY_ASSIGN(defaults.policies, policies_of(context.pool, expconf::Workload::kTask, workspace));
  TRY_ASSIGN(const expconf::ClusterFacts facts, cluster_facts(context, caller, pools, workspace));
  // Text is preferred over the struct: problems can then name line and column.
  std::string text = request.text();
  if (text.empty()) {
    TRY_ASSIGN(const Json config, from_struct(request.config(), "config"));
    text = to_yaml(config);
  }
  return expconf::parse_command(text, file, defaults, &facts);
}

/// Whether the caller has launched this command before. A command of the same id that the caller may not edit
/// is reported as a conflict, without details.
Result<bool> launched_already(const Context& context, const Caller& caller, const std::string& id) {
  const auto known = db::get_command(context.pool, TaskId(id));
  if (!known && known.error().code == Code::kNotFound) return false;
  if (!known) return tl::unexpected(known.error());
  // The right to see a task does not make a TensorBoard of it, whose pages all its viewers may use.
  const bool own_board = known->interactive.kind == "TENSORBOARD" && known->command.owner == caller.user.id;
  if (!own_board && !authorize(caller, Action::kRunTasks, Target::kTask, {id}, context.pool))
    return fail(Code::kAlreadyExists, "request_id: used by another command; choose another");
  return true;
}

/// Returns the workspace of a new command.
Result<db::WorkspaceRow> workspace_of(const Context& context, const Caller& caller, Action action,
                                      const v1::LaunchCommandRequest& request) {
  const std::int64_t id = request.workspace_id() == 0 ? db::kDefaultWorkspace : request.workspace_id();
  TRY(authorize(caller, action, Target::kWorkspace, {std::to_string(id)}, context.pool));
  TRY_ASSIGN(db::WorkspaceRow row, db::get_workspace(context.pool, id));
  // Determined AI answers 404 as well.
  if (row.archived)
    return fail(Code::kNotFound, "workspace " + row.name + " is archived; unarchive it first");
  if (row.deletion && row.deletion->empty())
    return fail(Code::kNotFound, "workspace " + row.name + " is being deleted; choose another workspace");
  return row;
}

}  // namespace

Status check_listed_workspace(const Context& context, const Caller& caller, std::int64_t id) {
  if (id == 0) return {};
  TRY(authorize(caller, Action::kView, Target::kWorkspace, {std::to_string(id)}, context.pool));
  TRY_ASSIGN(const auto row, db::get_workspace(context.pool, id));
  if (row.deletion && row.deletion->empty())
    return fail(Code::kNotFound, "workspace " + std::to_string(id) + " not found: it is being deleted");
  return {};
}

std::string command_name(const expconf::CommandConfig& config) {
  constexpr std::size_t kMaxBytes = 80;
  if (!config.description.empty()) return config.description;
  return make_utf8(join(config.entrypoint, " ").substr(0, kMaxBytes));
}

/// Name of a command, or of an interactive task without a description.
static std::string task_name(const db::CommandRow& row) {
  const std::string& kind = row.interactive.kind;
  if (kind.empty() || !row.command.config->description.empty()) return command_name(*row.command.config);
  const char* name = kind == "NOTEBOOK" ? "Notebook" : kind == "SHELL" ? "Shell" : "TensorBoard";
  return std::string(name) + " " + row.command.task.value.substr(0, 8);
}

void to_proto(const db::CommandRow& row, const std::string& default_pool, v1::Command* out) {
  const core::Command& command = row.command;
  out->set_id(command.task.value);
  out->set_description(task_name(row));
  out->set_state(state_of(row));
  to_proto(command.submitted, out->mutable_start_time());
  if (command.ended) to_proto(*command.ended, out->mutable_end_time());
  out->set_display_name(row.display_name);
  out->set_username(row.username);
  out->set_user_id(static_cast<int>(command.owner.value));
  out->set_resource_pool(command.queue.pool.empty() ? default_pool : command.queue.pool);
  out->set_job_id(command.job_id);
  out->set_workspace_id(static_cast<int>(command.workspace));
  out->set_slots(command.config->slots);
  out->set_priority(command.queue.priority);
  if (!command.ended) return;
  // Killed while it waited in the queue.
  if (!command.exit) return out->set_exit_status("killed before it began");
  // Exit code 0 with a failure means that no process was started; then there is no exit code to show.
  const bool began = command.exit->kind == core::ExitKind::kSucceeded || command.exit->code != 0;
  if (began) out->set_exit_code(command.exit->code);
  // Clients of Determined AI look for the word.
  const bool succeeded = command.exit->kind == core::ExitKind::kSucceeded;
  out->set_exit_status((succeeded ? "success: " : "") + command.exit->message);
}

Status launch_command(const Context& context, const Caller& caller, const v1::LaunchCommandRequest& request,
                      std::optional<std::string> archive, v1::LaunchCommandResponse* response) {
  return launch_command(context, caller, request, std::move(archive), InteractiveLaunch(), response);
}

Status launch_command(const Context& context, const Caller& caller, const v1::LaunchCommandRequest& request,
                      std::optional<std::string> archive, const InteractiveLaunch& interactive,
                      v1::LaunchCommandResponse* response) {
  const std::string id = request.request_id().empty() ? uuid4() : request.request_id();
  if (!is_uuid(id)) return fail(Code::kInvalidArgument, "request_id: a uuid in lower case was expected");
  // A repeat returns the command, whatever its configuration is now.
  TRY_ASSIGN(const bool known, launched_already(context, caller, id));
  if (!known) {
    TRY_ASSIGN(const db::WorkspaceRow workspace, workspace_of(context, caller, interactive.action, request));
    TRY_ASSIGN(expconf::ParsedCommand parsed, parse_config(context, caller, request, workspace.id));
    TRY_ASSIGN(const Json account, task_account(context, caller, workspace.agent_account.value_or("")));
    parsed.config.resolved.erase(kAgentUserGroup);
    if (!account.is_null()) parsed.config.resolved[kAgentUserGroup] = account;
    if (parsed.config.resolved.contains(kEventFiles))
      return fail(Code::kInvalidArgument, "event_files: set by the cluster only; remove it");
    if (!interactive.event_files.is_null()) parsed.config.resolved[kEventFiles] = interactive.event_files;
    TRY_ASSIGN(const CodeArchive files, code_archive_of(request.files(), std::move(archive)));
    for (const Problem& warning : parsed.warnings)
      response->add_config_warnings(make_utf8(to_string(warning)));
    // Nothing has been stored at this point.
    if (request.validate_only()) {
      mask_secrets(parsed.config.resolved);
      to_struct(parsed.config.resolved, response->mutable_config());
      return {};
    }
    core::SubmitCommand submit{
        .task = TaskId(id),
        .owner = caller.user.id,
        .workspace = workspace.id,
        .config = std::make_shared<const expconf::CommandConfig>(std::move(parsed.config))};
    if (!files.bytes.empty()) {
      TRY_ASSIGN(submit.code_archive, db::put_code_archive(context.pool, files.bytes));
    }
    TRY(context.loop.ask(std::move(submit)));
  }
  TRY_ASSIGN(const auto row, db::get_command(context.pool, TaskId(id)));
  to_proto(row, context.settings.default_pool, response->mutable_command());
  shown_config(row.command, response->mutable_config());
  return {};
}

Status set_command_priority(const Context& context, const db::CommandRow& row, int priority) {
  const core::UpdateJob update{.job = row.command.id, .priority = priority};
  // A command's queue settings are changed like those of an experiment.
  TRY(check_job_update(context, update));
  auto done = context.loop.ask(update);
  // The core drops ended commands.
  if (!done && done.error().code != Code::kNotFound) return tl::unexpected(done.error());
  return {};
}

CommandService::CommandService(const Context& context) : Service(context, v1::CommandService::full_name) {
  unary(v1::CommandService::GetCommands, &CommandService::GetCommands);
  unary(v1::CommandService::GetCommand, &CommandService::GetCommand);
  unary(v1::CommandService::LaunchCommand, &CommandService::LaunchCommand, context_.pools.submit);
  client_stream(v1::CommandService::UploadCommand, &CommandService::UploadCommand);
  unary(v1::CommandService::KillCommand, &CommandService::KillCommand);
  unary(v1::CommandService::SetCommandPriority, &CommandService::SetCommandPriority);
  unary(v1::CommandService::ExplainCommand, &CommandService::ExplainCommand);
}

Status CommandService::LaunchCommand(const Caller& caller, const v1::LaunchCommandRequest& request,
                                     v1::LaunchCommandResponse* response) {
  return launch_command(context_, caller, request, std::nullopt, response);
}

grpc::ServerReadReactor<v1::UploadCommandRequest>* CommandService::UploadCommand(
    grpc::CallbackServerContext* call, v1::LaunchCommandResponse* response) {
  const auto first = [](v1::UploadCommandRequest& part) {
    return part.has_launch() ? part.mutable_launch() : nullptr;
  };
  return new Upload<v1::UploadCommandRequest, v1::LaunchCommandRequest, v1::LaunchCommandResponse>(
      context_, call, kCommandUploadMethod, first,
      [](const Context& context, const Caller& caller, const v1::LaunchCommandRequest& request,
         std::optional<std::string> archive, v1::LaunchCommandResponse* launched) {
        return launch_command(context, caller, request, std::move(archive), launched);
      },
      response);
}

Status CommandService::GetCommands(const Caller& caller, const v1::GetCommandsRequest& request,
                                   v1::GetCommandsResponse* response) {
  TRY(check_listed_workspace(context_, caller, request.workspace_id()));
  db::CommandFilter filter{.visible = caller.grants.visible(),
                           .workspace = request.workspace_id(),
                           .users = {},
                           .user_ids = {request.user_ids().begin(), request.user_ids().end()},
                           .window = to_window(request.offset(), request.limit(), request.order_by(), -1)};
  for (const std::string& user : request.users()) filter.users.push_back(make_utf8(user));
  switch (request.sort_by()) {
    case v1::GetCommandsRequest::SORT_BY_ID:
      filter.sort = db::CommandFilter::Sort::kId;
      break;
    case v1::GetCommandsRequest::SORT_BY_DESCRIPTION:
      filter.sort = db::CommandFilter::Sort::kDescription;
      break;
    case v1::GetCommandsRequest::SORT_BY_WORKSPACE_ID:
      filter.sort = db::CommandFilter::Sort::kWorkspace;
      break;
    default:
      break;
  }
  TRY_ASSIGN(const auto page, db::list_commands(context_.pool, filter));
  for (const db::CommandRow& row : page.rows)
    to_proto(row, context_.settings.default_pool, response->add_commands());
  to_pagination(page, filter.window, response->mutable_pagination());
  return {};
}

Status CommandService::GetCommand(const Caller&, const v1::GetCommandRequest& request,
                                  v1::GetCommandResponse* response) {
  TRY_ASSIGN(const auto row, db::get_command(context_.pool, TaskId(request.command_id())));
  to_proto(row, context_.settings.default_pool, response->mutable_command());
  shown_config(row.command, response->mutable_config());
  return {};
}

Status CommandService::KillCommand(const Caller&, const v1::KillCommandRequest& request,
                                   v1::KillCommandResponse* response) {
  const TaskId task(request.command_id());
  TRY(db::get_command(context_.pool, task));
  auto done = context_.loop.ask(core::KillCommand{.task = task});
  // The core drops ended commands. Killing one is a success.
  if (!done && done.error().code != Code::kNotFound) return tl::unexpected(done.error());
  return answer(context_, task, response->mutable_command());
}

Status CommandService::SetCommandPriority(const Caller&, const v1::SetCommandPriorityRequest& request,
                                          v1::SetCommandPriorityResponse* response) {
  const TaskId task(request.command_id());
  TRY_ASSIGN(const auto row, db::get_command(context_.pool, task));
  TRY(set_command_priority(context_, row, request.priority()));
  return answer(context_, task, response->mutable_command());
}

Status CommandService::ExplainCommand(const Caller&, const v1::ExplainCommandRequest& request,
                                      v1::ExplainCommandResponse* response) {
  TRY_ASSIGN(const auto row, db::get_command(context_.pool, TaskId(request.command_id())));
  return explain_command(context_, row.command, response->mutable_explanation());
}

}  // namespace det::api
