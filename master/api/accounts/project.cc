#include "master/api/accounts/project.h"

#include <nlohmann/json.hpp>

#include "common/base/json.h"
#include "common/base/text.h"
#include "det/v1/project.methods.h"
#include "master/api/cluster/quota.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/experiment.h"

namespace det::api {
namespace {

constexpr std::size_t kMaxProjectDescription = 4096;
constexpr std::size_t kMaxProjectNote = 1 << 20;

Status check_project_description(const std::string& text) {
  if (text.size() <= kMaxProjectDescription && !find_bad_utf8(text)) return {};
  return fail(Code::kInvalidArgument, "a description has at most 4096 bytes of UTF-8");
}

Status check_key(const std::string& key) {
  const bool plain = !key.empty() && key.size() <= 10 &&
                     key.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == std::string::npos;
  // "P" and a number is the key that a project gets by default.
  const bool taken =
      key.size() > 1 && key[0] == 'P' && key.find_first_not_of("0123456789", 1) == std::string::npos;
  if (plain && !taken) return {};
  return fail(Code::kInvalidArgument, "key: 1 to 10 capital letters and digits, other than P and a number");
}

/// Parses the stored notes. Ignores invalid ones.
void read_notes(const std::string& json, google::protobuf::RepeatedPtrField<v1::Note>* out) {
  // Room for 100 escaped notes of 1 MiB: older releases had no limit of their sum.
  const auto notes = parse_json(json, {.bytes = 256 << 20, .depth = 4});
  if (!notes || !notes->is_array()) return;
  for (const Json& note : *notes) {
    v1::Note* one = out->Add();
    one->set_name(note.value("name", ""));
    one->set_contents(note.value("contents", ""));
  }
}

template <typename Notes>
Result<std::string> notes_text(const Notes& notes) {
  Json list = Json::array();
  for (const v1::Note& note : notes) {
    if (note.name().size() > 256 || note.contents().size() > kMaxProjectNote || find_bad_utf8(note.name()) ||
        find_bad_utf8(note.contents()) || note.contents().find('\0') != std::string::npos ||
        has_control_characters(note.name()))
      return fail(Code::kInvalidArgument, "notes: a name of at most 256 bytes, at most 1 MiB of text");
    list.push_back({{"name", note.name()}, {"contents", note.contents()}});
  }
  if (list.size() > db::kMaxProjectNotes) return fail(Code::kInvalidArgument, "notes: at most 100");
  std::string text = dump_json(list);
  if (text.size() > db::kMaxProjectNoteBytes)
    return fail(Code::kInvalidArgument, "notes: at most 8 MiB as JSON; shorten or remove some");
  return text;
}

/// Refuses changes of the default project, as Determined AI does: 400 for admins, 403 for other users; a
/// patch is 400 for all.
Status check_project_changeable(const Caller& caller, std::int64_t id, bool patch = false) {
  if (id != db::kDefaultProject) return {};
  return fail(caller.user.admin || patch ? Code::kFailedPrecondition : Code::kPermissionDenied,
              "project 1 is the default one and cannot be changed");
}

/// Refuses a workspace that takes no projects: an archived one, and the default one.
Status check_takes_projects(const db::WorkspaceRow& workspace) {
  if (workspace.archived)
    return fail(Code::kFailedPrecondition,
                "workspace " + workspace.name + " is archived; unarchive it first");
  if (workspace.deletion && workspace.deletion->empty())
    return fail(Code::kFailedPrecondition,
                "workspace " + workspace.name + " is being deleted; choose another workspace");
  if (workspace.id == db::kDefaultWorkspace)
    return fail(Code::kFailedPrecondition,
                "workspace 1 is the default one and accepts no projects; choose another workspace");
  return {};
}

}  // namespace

Status check_open(db::Pool& pool, std::int64_t project) {
  TRY_ASSIGN(const db::ProjectRow row, db::get_project(pool, project));
  if (!row.archived) return {};
  return fail(Code::kFailedPrecondition,
              "project " + std::to_string(project) + " is archived; unarchive it first");
}

Status check_title(const std::string& name, const std::string& what) {
  const bool plain = !trim(name).empty() && trim(name).size() == name.size() && name.size() <= 80 &&
                     !has_control_characters(name) && !find_bad_utf8(name);
  if (plain) return {};
  return fail(
      Code::kInvalidArgument,
      "the name of a " + what + " has 1 to 80 bytes, no control characters and no spaces at its ends");
}

void to_proto(const db::ProjectRow& row, v1::Project* out) {
  out->set_id(static_cast<int>(row.id));
  out->set_name(row.name);
  out->set_workspace_id(static_cast<int>(row.workspace));
  out->set_workspace_name(row.workspace_name);
  out->set_description(row.description);
  if (row.last_experiment) to_proto(*row.last_experiment, out->mutable_last_experiment_started_at());
  out->set_num_experiments(static_cast<int>(row.num_experiments));
  out->set_num_active_experiments(static_cast<int>(row.num_active_experiments));
  out->set_num_runs(static_cast<int>(row.num_runs));
  out->set_key(row.key);
  read_notes(row.notes, out->mutable_notes());
  out->set_archived(row.archived);
  out->set_username(row.username);
  // The default project is protected by check_project_changeable().
  out->set_immutable(row.id == db::kDefaultProject);
  show_deletion(row.deletion, out);
  if (row.owner) out->set_user_id(static_cast<int>(row.owner->value));
}

ProjectService::ProjectService(const Context& context, Deletions& deletions)
    : Service(context, v1::ProjectService::full_name), deletions_(deletions) {
  unary(v1::ProjectService::GetProjectsByUserActivity, &ProjectService::GetProjectsByUserActivity);
  unary(v1::ProjectService::GetProject, &ProjectService::GetProject);
  unary(v1::ProjectService::PostProject, &ProjectService::PostProject);
  unary(v1::ProjectService::PatchProject, &ProjectService::PatchProject);
  unary(v1::ProjectService::ArchiveProject, &ProjectService::ArchiveProject);
  unary(v1::ProjectService::UnarchiveProject, &ProjectService::UnarchiveProject);
  unary(v1::ProjectService::DeleteProject, &ProjectService::DeleteProject);
  unary(v1::ProjectService::GetProjectByKey, &ProjectService::GetProjectByKey);
  unary(v1::ProjectService::GetProjectColumns, &ProjectService::GetProjectColumns);
  unary(v1::ProjectService::GetProjectNumericMetricsRange, &ProjectService::GetProjectNumericMetricsRange);
  unary(v1::ProjectService::AddProjectNote, &ProjectService::AddProjectNote);
  unary(v1::ProjectService::PutProjectNotes, &ProjectService::PutProjectNotes);
  unary(v1::ProjectService::MoveProject, &ProjectService::MoveProject);
  unary(v1::ProjectService::MoveExperiment, &ProjectService::MoveExperiment);
  unary(v1::ProjectService::MoveExperiments, &ProjectService::MoveExperiments);
}

Status ProjectService::GetProjectsByUserActivity(const Caller& caller,
                                                 const v1::GetProjectsByUserActivityRequest& request,
                                                 v1::GetProjectsByUserActivityResponse* response) {
  constexpr int kDefault = 5, kMaxVisited = 100;
  const int limit = request.limit() <= 0 ? kDefault : std::min(request.limit(), kMaxVisited);
  TRY_ASSIGN(const auto rows,
             db::visited_projects(context_.pool, caller.user.id, caller.grants.visible(), limit));
  for (const db::ProjectRow& row : rows) to_proto(row, response->add_projects());
  return {};
}

Status ProjectService::GetProject(const Caller&, const v1::GetProjectRequest& request,
                                  v1::GetProjectResponse* response) {
  TRY_ASSIGN(const auto row, db::get_project(context_.pool, request.id()));
  to_proto(row, response->mutable_project());
  return {};
}

Status ProjectService::post(const v1::PostProjectRequest& request, const Caller& caller,
                            v1::Project* response) const {
  TRY(check_title(request.name(), "project"));
  TRY(check_project_description(request.description()));
  TRY_ASSIGN(const auto workspace, db::get_workspace(context_.pool, request.workspace_id()));
  TRY(check_takes_projects(workspace));
  if (!request.key().empty()) TRY(check_key(request.key()));
  TRY_ASSIGN(const std::int64_t id, db::create_project(context_.pool, workspace.id, request.name(),
                                                       request.description(), caller.user.id, request.key()));
  TRY_ASSIGN(const auto row, db::get_project(context_.pool, id));
  to_proto(row, response);
  return {};
}

Status ProjectService::PostProject(const Caller& caller, const v1::PostProjectRequest& request,
                                   v1::PostProjectResponse* response) {
  return post(request, caller, response->mutable_project());
}

Status ProjectService::patch(const Caller& caller, const v1::PatchProjectRequest& request,
                             v1::Project* response) const {
  TRY(check_project_changeable(caller, request.id(), true));
  TRY(check_open(context_.pool, request.id()));
  std::optional<std::string> name, description, key;
  if (request.project().has_name()) {
    name = request.project().name().value();
    TRY(check_title(*name, "project"));
  }
  if (request.project().has_description()) {
    description = request.project().description().value();
    TRY(check_project_description(*description));
  }
  if (request.project().has_key()) {
    key = request.project().key().value();
    TRY_ASSIGN(const auto row, db::get_project(context_.pool, request.id()));
    // Clients of Determined AI send the whole project, with the key that it got by default.
    if (*key == row.key) key.reset();
    if (key) TRY(check_key(*key));
  }
  TRY(db::change_project(context_.pool, request.id(), name, description, key));
  TRY_ASSIGN(const auto row, db::get_project(context_.pool, request.id()));
  to_proto(row, response);
  return {};
}

Status ProjectService::PatchProject(const Caller& caller, const v1::PatchProjectRequest& request,
                                    v1::PatchProjectResponse* response) {
  return patch(caller, request, response->mutable_project());
}

Status ProjectService::archive(const Caller& caller, const v1::ProjectActionRequest& request,
                               bool archived) const {
  TRY(check_project_changeable(caller, request.id()));
  TRY_ASSIGN(const auto project, db::get_project(context_.pool, request.id()));
  TRY_ASSIGN(const auto workspace, db::get_workspace(context_.pool, project.workspace));
  if (workspace.archived)
    return fail(Code::kFailedPrecondition,
                "workspace " + workspace.name + " is archived; unarchive it first");
  return db::archive_project(context_.pool, request.id(), archived);
}

Status ProjectService::ArchiveProject(const Caller& caller, const v1::ProjectActionRequest& request,
                                      v1::ProjectActionResponse*) {
  return archive(caller, request, true);
}

Status ProjectService::UnarchiveProject(const Caller& caller, const v1::ProjectActionRequest& request,
                                        v1::ProjectActionResponse*) {
  return archive(caller, request, false);
}

Status ProjectService::DeleteProject(const Caller& caller, const v1::ProjectActionRequest& request,
                                     v1::DeleteProjectResponse* response) {
  TRY(check_project_changeable(caller, request.id()));
  TRY_ASSIGN(const bool completed, deletions_.start({db::Container::Kind::kProject, request.id()}));
  response->set_completed(completed);
  return {};
}

Status ProjectService::GetProjectByKey(const Caller& caller, const v1::GetProjectByKeyRequest& request,
                                       v1::GetProjectResponse* response) {
  TRY_ASSIGN(const std::int64_t id,
             db::find_project_by_key(context_.pool, make_utf8(request.key()), caller.grants.visible()));
  TRY_ASSIGN(const auto row, db::get_project(context_.pool, id));
  to_proto(row, response->mutable_project());
  return {};
}

Status ProjectService::GetProjectNumericMetricsRange(const Caller&,
                                                     const v1::GetProjectNumericMetricsRangeRequest& request,
                                                     v1::GetProjectNumericMetricsRangeResponse* response) {
  TRY_ASSIGN(const auto ranges, db::metric_ranges(context_.pool, request.id()));
  for (const db::MetricRange& range : ranges) {
    v1::MetricsRange* out = response->add_ranges();
    out->set_metrics_name(range.name);
    out->set_min(range.min);
    out->set_max(range.max);
  }
  return {};
}

Status ProjectService::show_notes(std::int64_t id, v1::ProjectNotesResponse* response) const {
  TRY_ASSIGN(const auto row, db::get_project(context_.pool, id));
  read_notes(row.notes, response->mutable_notes());
  return {};
}

Status ProjectService::AddProjectNote(const Caller&, const v1::AddProjectNoteRequest& request,
                                      v1::ProjectNotesResponse* response) {
  // Validates the note and brings it into the stored form.
  TRY_ASSIGN(const std::string notes, notes_text(std::vector{request.note()}));
  TRY(db::add_project_notes(context_.pool, request.project_id(), notes));
  return show_notes(request.project_id(), response);
}

Status ProjectService::PutProjectNotes(const Caller&, const v1::PutProjectNotesRequest& request,
                                       v1::ProjectNotesResponse* response) {
  TRY_ASSIGN(const std::string notes, notes_text(request.notes()));
  TRY(db::set_project_notes(context_.pool, request.project_id(), notes));
  return show_notes(request.project_id(), response);
}

Status ProjectService::MoveProject(const Caller& caller, const v1::MoveProjectRequest& request,
                                   v1::ProjectActionResponse*) {
  TRY(check_project_changeable(caller, request.project_id()));
  TRY(check_open(context_.pool, request.project_id()));
  TRY_ASSIGN(const auto workspace, db::get_workspace(context_.pool, request.destination_workspace_id()));
  TRY(check_takes_projects(workspace));
  TRY(db::move_project(context_.pool, request.project_id(), workspace.id));
  return place_experiments(context_, request.project_id());
}

Status ProjectService::MoveExperiment(const Caller&, const v1::MoveExperimentRequest& request,
                                      v1::MoveExperimentResponse*) {
  TRY_ASSIGN(const auto row, db::get_experiment(context_.pool, ExperimentId(request.experiment_id())));
  TRY(check_open(context_.pool, row.project));
  TRY(check_open(context_.pool, request.destination_project_id()));
  return move_experiments(context_, {request.experiment_id()}, request.destination_project_id());
}

Status ProjectService::MoveExperiments(const Caller&, const v1::MoveExperimentsRequest& request,
                                       v1::MoveExperimentsResponse* response) {
  TRY(check_open(context_.pool, request.destination_project_id()));
  const std::vector<std::int64_t> ids(request.experiment_ids().begin(), request.experiment_ids().end());
  TRY(move_experiments(context_, ids, request.destination_project_id()));
  // All experiments were moved, so no result has an error.
  for (const std::int64_t id : ids) response->add_results()->set_id(static_cast<int>(id));
  return {};
}

}  // namespace det::api
