#include "master/api/accounts/model.h"

#include <algorithm>
#include <map>

#include "common/base/json.h"
#include "common/base/text.h"
#include "det/v1/model.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/trial.h"
#include "master/db/queries/workspaces.h"

namespace det::api {
namespace {

constexpr std::size_t kMaxModelName = 128, kMaxModelLine = 4096, kMaxModelNotes = 1 << 20;
constexpr std::size_t kMaxModelLabels = 100;

/// Purely numeric names are refused: they would be mistaken for ids.
Status check_model_name(const std::string& name) {
  const bool number = name.find_first_not_of("0123456789") == std::string::npos;
  if (!trim(name).empty() && name.size() <= kMaxModelName && !number && !has_control_characters(name) &&
      !find_bad_utf8(name) && name.find('/') == std::string::npos)
    return {};
  return fail(Code::kInvalidArgument,
              "name: 1 to 128 bytes, not only digits or spaces, no control characters and no /");
}

/// `what` names the field in errors.
Status check_text(const char* what, const std::string& text, std::size_t longest) {
  if (text.size() <= longest && !find_bad_utf8(text) && text.find('\0') == std::string::npos) return {};
  return fail(Code::kInvalidArgument,
              std::string(what) + ": at most " + std::to_string(longest) + " bytes of text");
}

/// Checks labels and removes duplicates, in the given order.
template <typename Strings>
Result<std::vector<std::string>> check_labels(const Strings& given) {
  std::vector<std::string> labels;
  for (const std::string& label : given) {
    if (trim(label).empty() || label.size() > kMaxModelName || has_control_characters(label) ||
        find_bad_utf8(label))
      return fail(Code::kInvalidArgument, "labels: each has 1 to 128 bytes and no control characters");
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
  }
  if (labels.size() > kMaxModelLabels) return fail(Code::kInvalidArgument, "labels: at most 100");
  return labels;
}

Result<std::vector<std::string>> check_labels(const google::protobuf::ListValue& given) {
  std::vector<std::string> labels;
  for (const auto& value : given.values()) {
    if (value.kind_case() != google::protobuf::Value::kStringValue)
      return fail(Code::kInvalidArgument, "labels: a list of strings");
    labels.push_back(value.string_value());
  }
  return check_labels(labels);
}

/// Text of a metadata object, within the limits of the database.
Result<std::string> metadata_text(const google::protobuf::Struct& metadata) {
  TRY_ASSIGN(const Json json, from_struct(metadata, "metadata"));
  std::string text = dump_json(json);
  TRY(db::check_json_object(text));
  return text;
}

/// Returns the checked text of a patch, or nothing when the field is not set.
Result<std::optional<std::string>> text_of(const char* what, bool given, const std::string& text,
                                           std::size_t longest) {
  // Unset fields keep their value.
  if (!given) return std::optional<std::string>();
  TRY(check_text(what, text, longest));
  return std::optional(text);
}

db::ModelSort sort_of(v1::GetModelsRequest::SortBy sort) {
  switch (sort) {
    case v1::GetModelsRequest::SORT_BY_NAME:
      return db::ModelSort::kName;
    case v1::GetModelsRequest::SORT_BY_DESCRIPTION:
      return db::ModelSort::kDescription;
    case v1::GetModelsRequest::SORT_BY_CREATION_TIME:
      return db::ModelSort::kCreated;
    case v1::GetModelsRequest::SORT_BY_LAST_UPDATED_TIME:
      return db::ModelSort::kChanged;
    case v1::GetModelsRequest::SORT_BY_NUM_VERSIONS:
      return db::ModelSort::kVersions;
    case v1::GetModelsRequest::SORT_BY_WORKSPACE:
      return db::ModelSort::kWorkspace;
    default:
      return db::ModelSort::kId;
  }
}

void fill(const db::ModelRow& row, v1::Model* out) {
  out->set_id(static_cast<int>(row.id));
  out->set_name(row.name);
  out->set_description(row.description);
  out->set_notes(row.notes);
  json_to_struct(row.metadata, out->mutable_metadata());
  for (const std::string& label : row.labels) out->add_labels(label);
  out->set_workspace_id(static_cast<int>(row.workspace));
  out->set_user_id(static_cast<int>(row.owner.value));
  out->set_username(row.username);
  out->set_archived(row.archived);
  out->set_num_versions(static_cast<int>(row.num_versions));
  api::to_proto(row.created, out->mutable_creation_time());
  api::to_proto(row.changed, out->mutable_last_updated_time());
}

void fill(const db::ModelVersionRow& row, v1::ModelVersion* out) {
  out->set_id(static_cast<int>(row.id));
  out->set_version(static_cast<int>(row.version));
  out->set_name(row.name);
  out->set_comment(row.comment);
  out->set_notes(row.notes);
  json_to_struct(row.metadata, out->mutable_metadata());
  for (const std::string& label : row.labels) out->add_labels(label);
  out->set_user_id(static_cast<int>(row.owner.value));
  out->set_username(row.username);
  api::to_proto(row.created, out->mutable_creation_time());
  api::to_proto(row.changed, out->mutable_last_updated_time());
}

}  // namespace

ModelService::ModelService(const Context& context) : Service(context, v1::ModelService::full_name) {
  unary(v1::ModelService::GetModels, &ModelService::GetModels);
  unary(v1::ModelService::GetModelLabels, &ModelService::GetModelLabels);
  unary(v1::ModelService::GetModel, &ModelService::GetModel);
  unary(v1::ModelService::PostModel, &ModelService::PostModel);
  unary(v1::ModelService::PatchModel, &ModelService::PatchModel);
  unary(v1::ModelService::ArchiveModel, &ModelService::ArchiveModel);
  unary(v1::ModelService::UnarchiveModel, &ModelService::UnarchiveModel);
  unary(v1::ModelService::MoveModel, &ModelService::MoveModel);
  unary(v1::ModelService::DeleteModel, &ModelService::DeleteModel);
  unary(v1::ModelService::GetModelVersions, &ModelService::GetModelVersions);
  unary(v1::ModelService::GetModelVersion, &ModelService::GetModelVersion);
  unary(v1::ModelService::PostModelVersion, &ModelService::PostModelVersion);
  unary(v1::ModelService::PatchModelVersion, &ModelService::PatchModelVersion);
  unary(v1::ModelService::DeleteModelVersion, &ModelService::DeleteModelVersion);
}

Result<std::optional<std::int64_t>> ModelService::workspace_of(const Caller& caller, std::int64_t id,
                                                               const std::string& name) const {
  if (id == 0 && name.empty()) return std::optional<std::int64_t>();
  if (id == 0) {
    TRY_ASSIGN(const auto page, db::list_workspaces(context_.pool, {.exact_name = name}));
    for (const db::WorkspaceRow& row : page.rows)
      if (row.name == name) id = row.id;
    const bool seen = !caller.grants.visible() || (id != 0 && caller.grants.in(id) > db::Role::kNone);
    if (!seen) return no_role_in("workspace \"" + make_utf8(name) + "\"");
    if (id == 0) return fail(Code::kNotFound, "workspace \"" + make_utf8(name) + "\" not found");
  }
  TRY(authorize_storing(caller, id, context_.pool));
  TRY_ASSIGN(const auto row, db::get_workspace(context_.pool, id));
  if (row.archived) return fail(Code::kFailedPrecondition, "workspace " + row.name + " is archived");
  return std::optional(id);
}

Status ModelService::show(const std::string& model, v1::Model* out) const {
  TRY_ASSIGN(const db::ModelRow row, db::get_model(context_.pool, model));
  fill(row, out);
  return {};
}

Status ModelService::show(const Caller& caller, const std::string& model,
                          const std::vector<db::ModelVersionRow>& rows,
                          google::protobuf::RepeatedPtrField<v1::ModelVersion>* out) const {
  v1::Model shown;
  TRY(show(model, &shown));
  std::map<std::int64_t, CheckpointConverter> converters;  // by experiment
  for (const db::ModelVersionRow& row : rows) {
    v1::ModelVersion* version = out->Add();
    fill(row, version);
    *version->mutable_model() = shown;
    // Exists: registered checkpoints keep their rows.
    TRY_ASSIGN(const db::CheckpointRow checkpoint, db::get_checkpoint(context_.pool, row.checkpoint));
    auto known = converters.find(checkpoint.experiment.value);
    // Versions of one model often share an experiment; its configuration is parsed once.
    if (known == converters.end()) {
      TRY_ASSIGN(const auto experiment, db::get_experiment(context_.pool, checkpoint.experiment));
      known = converters.emplace(checkpoint.experiment.value, experiment.config).first;
    }
    known->second.convert(checkpoint, version->mutable_checkpoint());
    const Status seen =
        authorize(caller, Action::kView, Target::kCheckpoint, {row.checkpoint.value}, context_.pool);
    // Hyperparameters and metrics belong to the experiment, not to the registry.
    if (!seen) version->mutable_checkpoint()->clear_training();
  }
  return {};
}

Status ModelService::show(const Caller& caller, const std::string& model, std::int64_t version,
                          v1::ModelVersion* out) const {
  TRY_ASSIGN(const auto row, db::get_model_version(context_.pool, model, version));
  google::protobuf::RepeatedPtrField<v1::ModelVersion> shown;
  TRY(show(caller, model, {row}, &shown));
  *out = std::move(shown[0]);
  return {};
}

Status ModelService::GetModels(const Caller& caller, const v1::GetModelsRequest& request,
                               v1::GetModelsResponse* response) {
  db::ModelFilter filter{
      .visible = caller.grants.visible(db::Role::kModelRegistryViewer),
      .name = make_utf8(request.name()),
      .description = make_utf8(request.description()),
      .labels = {request.labels().begin(), request.labels().end()},
      .users = {request.users().begin(), request.users().end()},
      .user_ids = {request.user_ids().begin(), request.user_ids().end()},
      .workspaces = {request.workspace_ids().begin(), request.workspace_ids().end()},
      .workspace_names = {request.workspace_names().begin(), request.workspace_names().end()},
      .id = request.id(),
      .sort = sort_of(request.sort_by()),
      .window = to_window(request.offset(), request.limit(), request.order_by(), -1)};
  if (request.has_archived()) filter.archived = request.archived().value();
  if (filter.visible && filter.visible->empty())
    return fail(
        Code::kPermissionDenied,
        "user " + caller.user.name + " doesn't have view permissions for the models of any workspace");
  TRY_ASSIGN(const auto page, db::list_models(context_.pool, filter));
  for (const db::ModelRow& row : page.rows) fill(row, response->add_models());
  to_pagination(page, filter.window, response->mutable_pagination());
  return {};
}

Status ModelService::PostModel(const Caller& caller, const v1::PostModelRequest& request,
                               v1::PostModelResponse* response) {
  TRY(check_model_name(request.name()));
  TRY(check_text("description", request.description(), kMaxModelLine));
  TRY(check_text("notes", request.notes(), kMaxModelNotes));
  db::ModelRow row{.name = request.name(), .description = request.description(), .notes = request.notes()};
  TRY_ASSIGN(row.labels, check_labels(request.labels()));
  TRY_ASSIGN(row.metadata, metadata_text(request.metadata()));
  // Without a workspace the model goes to the default one.
  const std::int64_t wanted = request.workspace_id() == 0 && request.workspace_name().empty()
                                  ? db::kDefaultWorkspace
                                  : request.workspace_id();
  TRY_ASSIGN(const auto workspace, workspace_of(caller, wanted, request.workspace_name()));
  row.workspace = *workspace;
  row.owner = caller.user.id;
  TRY(db::create_model(context_.pool, row));
  return show(row.name, response->mutable_model());
}

Status ModelService::PatchModel(const Caller& caller, const v1::PatchModelRequest& request,
                                v1::PatchModelResponse* response) {
  const v1::PatchModel& wish = request.model();
  db::ModelPatch patch;
  if (wish.has_name()) {
    TRY(check_model_name(wish.name().value()));
    patch.name = wish.name().value();
  }
  TRY_ASSIGN(patch.description,
             text_of("description", wish.has_description(), wish.description().value(), kMaxModelLine));
  TRY_ASSIGN(patch.notes, text_of("notes", wish.has_notes(), wish.notes().value(), kMaxModelNotes));
  if (wish.has_labels()) {
    TRY_ASSIGN(patch.labels, check_labels(wish.labels()));
  }
  if (wish.has_metadata()) {
    TRY_ASSIGN(patch.metadata, metadata_text(wish.metadata()));
  }
  TRY_ASSIGN(patch.workspace, workspace_of(caller, wish.workspace_id(), wish.workspace_name()));
  // The reply uses the new name.
  TRY(db::patch_model(context_.pool, request.model_name(), patch));
  return show(patch.name.value_or(request.model_name()), response->mutable_model());
}

Status ModelService::GetModelLabels(const Caller& caller, const v1::GetModelLabelsRequest& request,
                                    v1::GetModelLabelsResponse* response) {
  std::optional<std::int64_t> workspace;
  if (request.workspace_id() != 0) workspace = request.workspace_id();
  TRY_ASSIGN(const auto labels, db::list_model_labels(context_.pool, workspace,
                                                      caller.grants.visible(db::Role::kModelRegistryViewer)));
  response->mutable_labels()->Assign(labels.begin(), labels.end());
  return {};
}

Status ModelService::GetModel(const Caller&, const v1::GetModelRequest& request,
                              v1::GetModelResponse* response) {
  return show(request.model_name(), response->mutable_model());
}

Status ModelService::ArchiveModel(const Caller&, const v1::ArchiveModelRequest& request,
                                  v1::ArchiveModelResponse*) {
  return db::archive_model(context_.pool, request.model_name(), true);
}

Status ModelService::UnarchiveModel(const Caller&, const v1::UnarchiveModelRequest& request,
                                    v1::UnarchiveModelResponse*) {
  return db::archive_model(context_.pool, request.model_name(), false);
}

Status ModelService::MoveModel(const Caller& caller, const v1::MoveModelRequest& request,
                               v1::MoveModelResponse*) {
  TRY_ASSIGN(const auto workspace, workspace_of(caller, request.destination_workspace_id(), ""));
  if (!workspace) return fail(Code::kInvalidArgument, "destination_workspace_id: where to?");
  return db::patch_model(context_.pool, request.model_name(), {.workspace = workspace});
}

Status ModelService::DeleteModel(const Caller& caller, const v1::DeleteModelRequest& request,
                                 v1::DeleteModelResponse*) {
  TRY_ASSIGN(const db::ModelRow row, db::get_model(context_.pool, request.model_name()));
  TRY(authorize_deletion(caller, row.owner, Target::kModel, request.model_name(), context_.pool));
  return db::delete_model(context_.pool, request.model_name());
}

Status ModelService::GetModelVersions(const Caller& caller, const v1::GetModelVersionsRequest& request,
                                      v1::GetModelVersionsResponse* response) {
  TRY(show(request.model_name(), response->mutable_model()));
  // Ordered by version number, which is also the order in time. Newest first is the default of Determined AI.
  db::Window window = to_window(request.offset(), request.limit(), request.order_by(), -1);
  window.descending = request.order_by() != v1::ORDER_BY_ASC;
  TRY_ASSIGN(const auto page, db::list_model_versions(context_.pool, request.model_name(), window));
  TRY(show(caller, request.model_name(), page.rows, response->mutable_model_versions()));
  to_pagination(page, window, response->mutable_pagination());
  return {};
}

Status ModelService::GetModelVersion(const Caller& caller, const v1::GetModelVersionRequest& request,
                                     v1::GetModelVersionResponse* response) {
  return show(caller, request.model_name(), request.model_version_num(), response->mutable_model_version());
}

Status ModelService::PostModelVersion(const Caller& caller, const v1::PostModelVersionRequest& request,
                                      v1::PostModelVersionResponse* response) {
  TRY(check_text("name", request.name(), kMaxModelName));
  TRY(check_text("comment", request.comment(), kMaxModelLine));
  TRY(check_text("notes", request.notes(), kMaxModelNotes));
  db::ModelVersionRow row{.checkpoint = CheckpointId(request.checkpoint_uuid()),
                          .name = request.name(),
                          .comment = request.comment(),
                          .notes = request.notes(),
                          .owner = caller.user.id};
  TRY_ASSIGN(row.labels, check_labels(request.labels()));
  TRY_ASSIGN(row.metadata, metadata_text(request.metadata()));
  TRY_ASSIGN(const std::int64_t version, db::add_model_version(context_.pool, request.model_name(), row));
  return show(caller, request.model_name(), version, response->mutable_model_version());
}

Status ModelService::PatchModelVersion(const Caller& caller, const v1::PatchModelVersionRequest& request,
                                       v1::PatchModelVersionResponse* response) {
  const v1::PatchModelVersion& wish = request.model_version();
  db::ModelVersionPatch patch;
  TRY_ASSIGN(patch.name, text_of("name", wish.has_name(), wish.name().value(), kMaxModelName));
  TRY_ASSIGN(patch.comment, text_of("comment", wish.has_comment(), wish.comment().value(), kMaxModelLine));
  TRY_ASSIGN(patch.notes, text_of("notes", wish.has_notes(), wish.notes().value(), kMaxModelNotes));
  if (wish.has_labels()) {
    TRY_ASSIGN(patch.labels, check_labels(wish.labels()));
  }
  if (wish.has_metadata()) {
    TRY_ASSIGN(patch.metadata, metadata_text(wish.metadata()));
  }
  TRY(db::patch_model_version(context_.pool, request.model_name(), request.model_version_num(), patch));
  return show(caller, request.model_name(), request.model_version_num(), response->mutable_model_version());
}

Status ModelService::DeleteModelVersion(const Caller& caller, const v1::DeleteModelVersionRequest& request,
                                        v1::DeleteModelVersionResponse*) {
  TRY_ASSIGN(const auto row,
             db::get_model_version(context_.pool, request.model_name(), request.model_version_num()));
  TRY(authorize_deletion(caller, row.owner, Target::kModel, request.model_name(), context_.pool));
  return db::delete_model_version(context_.pool, request.model_name(), request.model_version_num());
}

}  // namespace det::api
