#include "master/api/tasks/interactive.h"

#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/crypto/ssh_key.h"
#include "det/v1/interactive.methods.h"
#include "master/api/accounts/policy.h"
#include "master/api/cluster/job.h"
#include "master/api/convert/convert.h"
#include "master/api/submit/secrets.h"
#include "master/api/tasks/command.h"
#include "master/api/tasks/idle_tasks.h"
#include "master/api/tasks/interactive_launch.h"
#include "master/db/queries/workspaces.h"

namespace det::api {
namespace {

// Messages of the kinds. `noun` is the name in errors.
struct NotebookKind {
  static constexpr const char* kind = "NOTEBOOK";
  static constexpr const char* noun = "notebook";
  using Task = v1::Notebook;
  static constexpr auto list = v1::InteractiveService::GetNotebooks;
  static constexpr auto get = v1::InteractiveService::GetNotebook;
  static constexpr auto launch = v1::InteractiveService::LaunchNotebook;
  static constexpr auto kill = v1::InteractiveService::KillNotebook;
  static constexpr auto set_priority = v1::InteractiveService::SetNotebookPriority;
  template <typename Request>
  static TaskId id(const Request& request) {
    return TaskId(request.notebook_id());
  }
  template <typename Response>
  static Task* task(Response* response) {
    return response->mutable_notebook();
  }
  static Task* add(decltype(list)::Response* response) { return response->add_notebooks(); }
};
struct ShellKind {
  static constexpr const char* kind = "SHELL";
  static constexpr const char* noun = "shell";
  using Task = v1::Shell;
  static constexpr auto list = v1::InteractiveService::GetShells;
  static constexpr auto get = v1::InteractiveService::GetShell;
  static constexpr auto launch = v1::InteractiveService::LaunchShell;
  static constexpr auto kill = v1::InteractiveService::KillShell;
  static constexpr auto set_priority = v1::InteractiveService::SetShellPriority;
  template <typename Request>
  static TaskId id(const Request& request) {
    return TaskId(request.shell_id());
  }
  template <typename Response>
  static Task* task(Response* response) {
    return response->mutable_shell();
  }
  static Task* add(decltype(list)::Response* response) { return response->add_shells(); }
};

struct TensorboardKind {
  static constexpr const char* kind = "TENSORBOARD";
  static constexpr const char* noun = "TensorBoard";
  using Task = v1::Tensorboard;
  static constexpr auto list = v1::InteractiveService::GetTensorboards;
  static constexpr auto get = v1::InteractiveService::GetTensorboard;
  static constexpr auto launch = v1::InteractiveService::LaunchTensorboard;
  static constexpr auto kill = v1::InteractiveService::KillTensorboard;
  static constexpr auto set_priority = v1::InteractiveService::SetTensorboardPriority;
  template <typename Request>
  static TaskId id(const Request& request) {
    return TaskId(request.tensorboard_id());
  }
  template <typename Response>
  static Task* task(Response* response) {
    return response->mutable_tensorboard();
  }
  static Task* add(decltype(list)::Response* response) { return response->add_tensorboards(); }
};

/// Fields that all kinds have.
template <typename Task>
void to_task(const db::CommandRow& row, const std::string& default_pool, Task* out) {
  v1::Command command;
  to_proto(row, default_pool, &command);
  out->set_id(command.id());
  out->set_description(command.description());
  out->set_state(command.state());
  *out->mutable_start_time() = command.start_time();
  if (command.has_end_time()) *out->mutable_end_time() = command.end_time();
  out->set_username(command.username());
  out->set_display_name(command.display_name());
  out->set_user_id(command.user_id());
  out->set_resource_pool(command.resource_pool());
  out->set_exit_status(command.exit_status());
  out->set_job_id(command.job_id());
  out->set_workspace_id(command.workspace_id());
  out->set_slots(command.slots());
  out->set_idle_timeout_seconds(row.interactive.idle_timeout);
}

/// `secret`: the address contains the token of the task.
void convert_task(const db::CommandRow& row, const std::string& default_pool, bool secret,
                  v1::Notebook* out) {
  to_task(row, default_pool, out);
  out->set_service_address(service_address(row, secret));
}
void convert_task(const db::CommandRow& row, const std::string& default_pool, bool, v1::Shell* out) {
  to_task(row, default_pool, out);
  // Clients of Determined AI read the user of their ssh from here.
  to_struct(Json{{"user", ""}, {"group", ""}}, out->mutable_agent_user_group());
}

void convert_task(const db::CommandRow& row, const std::string& default_pool, bool secret,
                  v1::Tensorboard* out) {
  to_task(row, default_pool, out);
  out->set_service_address(service_address(row, secret));
  for (const std::int64_t id : row.interactive.experiments) out->add_experiment_ids(static_cast<int>(id));
  for (const std::int64_t id : row.interactive.trials) out->add_trial_ids(static_cast<int>(id));
}

/// Adds the keys of a shell. No effect for other kinds.
template <typename Task>
Status add_keys(const Context&, const db::CommandRow&, Task*) {
  return {};
}
Status add_keys(const Context& context, const db::CommandRow& row, v1::Shell* out) {
  if (!context.settings.shell_ssh) return {};
  TRY_ASSIGN(const std::string key, db::find_ssh_key(context.pool, row.command.task));
  if (key.empty()) return {};
  TRY_ASSIGN(*out->mutable_public_key(), ssh_public_key(key));
  out->set_private_key(key);
  return {};
}

template <typename Kind>
Result<db::CommandRow> find_task(const Context& context, const TaskId& task) {
  auto row = db::get_command(context.pool, task);
  if (row && row->interactive.kind == Kind::kind) return row;
  if (!row && row.error().code != Code::kNotFound) return row;
  return fail(Code::kNotFound, std::string(Kind::noun) + " " + task.value + " not found");
}

template <typename Kind, typename Response>
Status answer_task(const Context& context, const TaskId& task, Response* response) {
  TRY_ASSIGN(const auto row, find_task<Kind>(context, task));
  convert_task(row, context.settings.default_pool, true, Kind::task(response));
  return add_keys(context, row, Kind::task(response));
}

template <typename Request>
db::CommandFilter::Sort sort_of(const Request& request) {
  using Sort = db::CommandFilter::Sort;
  if (request.sort_by() == Request::SORT_BY_ID) return Sort::kId;
  if (request.sort_by() == Request::SORT_BY_DESCRIPTION) return Sort::kDescription;
  return request.sort_by() == Request::SORT_BY_WORKSPACE_ID ? Sort::kWorkspace : Sort::kStarted;
}

bool is_preview(const v1::LaunchNotebookRequest& request) { return request.preview(); }
template <typename Request>
bool is_preview(const Request&) {
  return false;
}

/// Right that a launch needs in the workspace.
template <typename Request>
Action action_of(const Request&) {
  return Action::kRunTasks;
}
/// Settings could run programs of the user; without them a TensorBoard only shows what its user may see.
Action action_of(const v1::LaunchTensorboardRequest& request) {
  if (!request.files().empty() || !request.template_name().empty()) return Action::kRunTasks;
  const auto config = from_struct(request.config(), "config");
  if (!config) return Action::kRunTasks;
  for (const auto& [name, value] : config->items()) {
    if (!value.empty() && name != "description" && name != "idle_timeout") return Action::kRunTasks;
  }
  return Action::kUseBoards;
}

/// Adds what a TensorBoard shows to `task`, and returns its event files. Null for other kinds.
template <typename Request>
Result<Json> sources_of(const Context&, const Caller&, const Request&, db::InteractiveTask&) {
  return Json();
}
Result<Json> sources_of(const Context& context, const Caller& caller,
                        const v1::LaunchTensorboardRequest& request, db::InteractiveTask& task) {
  if (request.has_filters())
    return fail(Code::kUnimplemented, "filters: not supported; name the experiments in experiment_ids");
  std::vector<std::string> experiments, trials;
  for (const int id : request.experiment_ids()) experiments.push_back(std::to_string(id));
  for (const int id : request.trial_ids()) trials.push_back(std::to_string(id));
  for (const auto& [target, ids] : {std::pair{Target::kExperiment, experiments}, {Target::kTrial, trials}}) {
    const Status seen = authorize(caller, Action::kView, target, ids, context.pool);
    // The workspace is one of the user's: as in Determined AI this is refused, not hidden.
    if (!seen && seen.error().code == Code::kNotFound && caller.grants.visible())
      return fail(Code::kPermissionDenied,
                  "access denied: " + seen.error().message + ", or not yours to see");
    TRY(seen);
  }
  task.experiments.assign(request.experiment_ids().begin(), request.experiment_ids().end());
  task.trials.assign(request.trial_ids().begin(), request.trial_ids().end());
  return event_files_of(context, task);
}

}  // namespace

template <typename Kind>
Status InteractiveService::list(const Caller& caller, const typename decltype(Kind::list)::Request& request,
                                typename decltype(Kind::list)::Response* response) {
  TRY(check_listed_workspace(context_, caller, request.workspace_id()));
  db::CommandFilter filter{.visible = caller.grants.visible(),
                           .kind = Kind::kind,
                           .workspace = request.workspace_id(),
                           .users = {},
                           .user_ids = {request.user_ids().begin(), request.user_ids().end()},
                           .sort = sort_of(request),
                           .window = to_window(request.offset(), request.limit(), request.order_by(), -1)};
  for (const std::string& user : request.users()) filter.users.push_back(make_utf8(user));
  TRY_ASSIGN(const auto page, db::list_commands(context_.pool, filter));
  for (const db::CommandRow& row : page.rows)
    convert_task(row, context_.settings.default_pool, false, Kind::add(response));
  to_pagination(page, filter.window, response->mutable_pagination());
  return {};
}

template <typename Kind>
Status InteractiveService::get(const Caller& caller, const typename decltype(Kind::get)::Request& request,
                               typename decltype(Kind::get)::Response* response) {
  TRY_ASSIGN(const auto row, find_task<Kind>(context_, Kind::id(request)));
  const bool secret =
      authorize(caller, Action::kRunTasks, Target::kTask, {row.command.task.value}, context_.pool)
          .has_value();
  convert_task(row, context_.settings.default_pool, secret, Kind::task(response));
  if (secret) TRY(add_keys(context_, row, Kind::task(response)));
  Json config = row.command.config->resolved;
  mask_secrets(config);
  to_struct(config, response->mutable_config());
  return {};
}

template <typename Kind>
Status InteractiveService::launch(const Caller& caller,
                                  const typename decltype(Kind::launch)::Request& request,
                                  typename decltype(Kind::launch)::Response* response) {
  const int workspace =
      request.workspace_id() == 0 ? static_cast<int>(db::kDefaultWorkspace) : request.workspace_id();
  // Before the configuration and the experiments, which are then of interest.
  const Action action = action_of(request);
  TRY(authorize(caller, action, Target::kWorkspace, {std::to_string(workspace)}, context_.pool));
  v1::LaunchCommandRequest launch;
  launch.set_request_id(request.request_id().empty() ? uuid4() : request.request_id());
  launch.set_template_name(request.template_name());
  *launch.mutable_files() = request.files();
  launch.set_workspace_id(workspace);
  launch.set_validate_only(is_preview(request));
  TRY_ASSIGN(const Json own, from_struct(request.config(), "config"));
  TRY_ASSIGN(InteractiveConfig config,
             interactive_config(Kind::kind, own, launch.request_id(), random_task_port(), random_token()));
  if (config.task.kind == ShellKind::kind && context_.settings.shell_ssh) {
    TRY_ASSIGN(config.task.ssh_key, make_ssh_key());
  }
  TRY_ASSIGN(const Json event_files, sources_of(context_, caller, request, config.task));
  to_struct(config.command, launch.mutable_config());
  v1::LaunchCommandResponse launched;
  TRY(launch_command(context_, caller, launch, std::nullopt, {event_files, action}, &launched));
  *response->mutable_config() = launched.config();
  *response->mutable_config_warnings() = launched.config_warnings();
  if (is_preview(request)) return {};
  const TaskId task(launched.command().id());
  TRY(db::put_interactive_task(context_.pool, task, config.task));
  return answer_task<Kind>(context_, task, response);
}

template <typename Kind>
Status InteractiveService::kill(const Caller& caller, const typename decltype(Kind::kill)::Request& request,
                                typename decltype(Kind::kill)::Response* response) {
  const TaskId task = Kind::id(request);
  TRY_ASSIGN(const auto row, find_task<Kind>(context_, task));
  // A user with the role Viewer may kill its own TensorBoards.
  if (row.command.owner != caller.user.id)
    TRY(authorize(caller, Action::kRunTasks, Target::kTask, {task.value}, context_.pool));
  auto done = context_.loop.ask(core::KillCommand{.task = task});
  // The core drops ended commands. Killing one is a success.
  if (!done && done.error().code != Code::kNotFound) return tl::unexpected(done.error());
  return answer_task<Kind>(context_, task, response);
}

template <typename Kind>
Status InteractiveService::set_priority(const Caller&,
                                        const typename decltype(Kind::set_priority)::Request& request,
                                        typename decltype(Kind::set_priority)::Response* response) {
  const TaskId task = Kind::id(request);
  TRY_ASSIGN(const auto row, find_task<Kind>(context_, task));
  TRY(set_command_priority(context_, row, request.priority()));
  return answer_task<Kind>(context_, task, response);
}

Status InteractiveService::report_idle(const Caller&, const v1::IdleNotebookRequest& request,
                                       v1::IdleNotebookResponse*) {
  TRY(find_task<NotebookKind>(context_, TaskId(request.notebook_id())));
  if (request.idle()) return {};
  context_.edge.post([idle = context_.idle_tasks, task = request.notebook_id(), now = mono_now()] {
    idle->touch(task, now);
  });
  return {};
}

template <typename Kind>
void InteractiveService::offer() {
  unary(Kind::list, &InteractiveService::list<Kind>);
  unary(Kind::get, &InteractiveService::get<Kind>);
  unary(Kind::launch, &InteractiveService::launch<Kind>, context_.pools.submit);
  unary(Kind::kill, &InteractiveService::kill<Kind>);
  unary(Kind::set_priority, &InteractiveService::set_priority<Kind>);
}

InteractiveService::InteractiveService(const Context& context)
    : Service(context, v1::InteractiveService::full_name) {
  offer<NotebookKind>();
  offer<ShellKind>();
  offer<TensorboardKind>();
  unary(v1::InteractiveService::IdleNotebook, &InteractiveService::report_idle);
}

}  // namespace det::api
