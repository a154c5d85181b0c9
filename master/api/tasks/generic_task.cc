// Generic tasks of Determined AI's API. A generic task is a command with a record of its submission.
#include <nlohmann/json.hpp>

#include "common/yaml/yaml.h"
#include "master/api/submit/secrets.h"
#include "master/api/tasks/command.h"
#include "master/api/tasks/task.h"
#include "master/db/queries/code_archives.h"
#include "master/db/queries/commands.h"
#include "master/db/queries/projects.h"

namespace det::api {
namespace {

Result<db::GenericTask> generic_task(const Context& context, const TaskId& id) {
  TRY_ASSIGN(auto found, db::find_generic_task(context.pool, id));
  if (!found) return fail(Code::kNotFound, "generic task " + id.value + " not found");
  return std::move(*found);
}

/// Returns the configuration of a fork: top-level fields of `own` replace those of `base`.
Result<std::string> forked_config(const std::string& base, const std::string& own) {
  TRY_ASSIGN(const YamlNode below, parse_yaml(base, "forkedFrom"));
  TRY_ASSIGN(const YamlNode above, parse_yaml(own, "config"));
  if (above.is_null()) return base;
  if (!above.is_map() || !below.is_map()) return fail(Code::kInvalidArgument, "config: must be a map");
  nlohmann::ordered_json merged = to_json(below);
  merged.update(to_json(above));
  return to_yaml(merged);
}

/// The core drops ended commands, so it does not find one that ended long ago.
Status changed(const Result<core::ReplyValue>& done, const TaskId& id) {
  if (done) return {};
  if (done.error().code == Code::kNotFound)
    return fail(Code::kFailedPrecondition, "task " + id.value + " has ended");
  return tl::unexpected(done.error());
}

}  // namespace

Status TaskService::CreateGenericTask(const Caller& caller, const v1::CreateGenericTaskRequest& request,
                                      v1::CreateGenericTaskResponse* response) {
  if (!request.parent_id().empty() || request.inherit_context())
    return fail(
        Code::kUnimplemented,
        "parentId, inheritContext: a task has no child tasks; create it without them, with its files");
  db::GenericTask task{
      .config = request.config(), .forked_from = request.forked_from(), .no_pause = request.no_pause()};
  v1::LaunchCommandRequest launch;
  *launch.mutable_files() = request.context_directory();
  std::optional<std::string> archive;
  if (!task.forked_from.empty()) {
    const TaskId base(task.forked_from);
    // The secrets of the base are masked for its readers, and plain for the code of a fork.
    TRY(authorize(caller, Action::kRunTasks, Target::kTask, {base.value}, context_.pool));
    TRY_ASSIGN(const db::GenericTask from, generic_task(context_, base));
    TRY_ASSIGN(task.config, forked_config(from.config, request.config()));
    TRY_ASSIGN(const db::CommandRow row, db::get_command(context_.pool, base));
    if (request.context_directory().empty() && !row.command.code_archive.empty()) {
      TRY_ASSIGN(archive, db::get_code_archive(context_.pool, row.command.code_archive));
    }
  }
  if (request.project_id() > 0) {
    TRY(authorize(caller, Action::kRunTasks, Target::kProject, {std::to_string(request.project_id())},
                  context_.pool));
    TRY_ASSIGN(const db::ProjectRow project, db::get_project(context_.pool, request.project_id()));
    launch.set_workspace_id(static_cast<int>(project.workspace));
  }
  launch.set_text(task.config);
  v1::LaunchCommandResponse launched;
  TRY(launch_command(context_, caller, launch, std::move(archive), &launched));
  const std::string& id = launched.command().id();
  TRY(db::put_generic_task(context_.pool, TaskId(id), task));
  response->set_task_id(id);
  *response->mutable_config_warnings() = launched.config_warnings();
  return {};
}

Status TaskService::GetGenericTaskConfig(const Caller&, const v1::GetGenericTaskConfigRequest& request,
                                         v1::GetGenericTaskConfigResponse* response) {
  TRY_ASSIGN(const db::GenericTask task, generic_task(context_, TaskId(request.task_id())));
  // launch_command() has parsed it before.
  TRY_ASSIGN(const YamlNode tree, parse_yaml(task.config, "config"));
  response->set_config(masked_json(to_json(tree).dump()));
  return {};
}

Status TaskService::PauseGenericTask(const Caller&, const v1::PauseGenericTaskRequest& request,
                                     v1::PauseGenericTaskResponse*) {
  const TaskId id(request.task_id());
  TRY_ASSIGN(const db::GenericTask task, generic_task(context_, id));
  if (task.no_pause)
    return fail(Code::kFailedPrecondition, "task " + id.value + " was created with noPause; kill it instead");
  return changed(context_.loop.ask(core::PauseCommand{.task = id}), id);
}

Status TaskService::UnpauseGenericTask(const Caller&, const v1::UnpauseGenericTaskRequest& request,
                                       v1::UnpauseGenericTaskResponse*) {
  const TaskId id(request.task_id());
  TRY(generic_task(context_, id));
  return changed(context_.loop.ask(core::ResumeCommand{.task = id}), id);
}

Status TaskService::KillGenericTask(const Caller&, const v1::KillGenericTaskRequest& request,
                                    v1::KillGenericTaskResponse*) {
  const TaskId id(request.task_id());
  TRY(generic_task(context_, id));
  auto done = context_.loop.ask(core::KillCommand{.task = id});
  // The core drops ended commands. Killing one is a success.
  if (!done && done.error().code != Code::kNotFound) return tl::unexpected(done.error());
  return {};
}

}  // namespace det::api
