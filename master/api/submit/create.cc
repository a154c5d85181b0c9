// Handlers CreateExperiment, CreateFromCodeArchive and UploadExperiment, and the steps of a submission.
#include "master/api/submit/create.h"

#include <algorithm>
#include <array>

#include "common/archive/archive.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/expconf/entrypoint.h"
#include "common/expconf/parse.h"
#include "master/api/accounts/policy.h"
#include "master/api/cluster/quota.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/experiment.h"
#include "master/api/experiments/facts.h"
#include "master/api/submit/code_archive.h"
#include "master/api/submit/secrets.h"
#include "master/api/submit/stored_checkpoint.h"
#include "master/db/queries/code_archives.h"
#include "master/db/queries/projects.h"
#include "master/db/queries/templates.h"

namespace det::api {
namespace {

constexpr const char* kUploadMethod = "/det.v1.ExperimentService/UploadExperiment";

/// Code archive of a parent experiment, for forks without files of their own. Empty if the parent has none.
Result<CodeArchive> code_archive_of_parent(const Context& context, ExperimentId parent) {
  auto bytes = db::get_code_archive(context.pool, parent);
  if (!bytes && bytes.error().code == Code::kNotFound) return CodeArchive{};
  if (!bytes) return tl::unexpected(bytes.error());
  CodeArchive result{.bytes = std::move(*bytes), .items = {}};
  TRY_ASSIGN(result.items, check_archive(result.bytes));
  return result;
}

std::vector<std::string> paths_of(const CodeArchive& archive) {
  std::vector<std::string> paths;
  for (const ArchiveItem& item : archive.items) {
    if (!item.directory) paths.push_back(item.path);
  }
  return paths;
}

}  // namespace

Result<expconf::Document> template_of(const Context& context, const Caller& caller, const std::string& name) {
  auto found = db::get_template(context.pool, name);
  const db::Role role = found ? caller.grants.in(found->workspace) : db::Role::kNone;
  if (role >= db::Role::kViewer) {
    // Viewers read templates with masked secrets. A program of their own could print them.
    if (role < db::Role::kEditorRestricted && masked_yaml(found->text) != found->text)
      return fail(Code::kPermissionDenied, "access denied: template \"" + name +
                                               "\" has secrets, and you have no role in workspace " +
                                               std::to_string(found->workspace) + " that allows their use");
    return expconf::Document{"template \"" + name + "\"", std::move(found->text)};
  }
  if (!found && found.error().code != Code::kNotFound) return tl::unexpected(found.error());
  // Only names that the caller may see are suggested.
  TRY_ASSIGN(const auto all, db::list_templates(context.pool, {.visible = caller.grants.visible()}));
  std::vector<std::string> names;
  for (const db::TemplateRow& row : all.rows) names.push_back(row.name);
  return fail(Code::kNotFound,
              "there is no template \"" + make_utf8(name) + "\"" + did_you_mean(name, names));
}

namespace {

std::string file_of(const v1::CreateExperimentRequest& request) {
  return request.config_name().empty() ? "config" : make_utf8(request.config_name().substr(0, 256));
}

/// A seed of 31 bits. Random: experiments submitted in the same second must not draw the same numbers.
std::uint32_t random_seed() {
  std::uint32_t seed = 0;
  for (const char byte : random_bytes(sizeof seed)) seed = seed << 8 | static_cast<unsigned char>(byte);
  return seed >> 1;
}

/// Layers below the configuration, except policies, which depend on the workspace.
Result<expconf::Defaults> defaults_of(const Context& context, const Caller& caller,
                                      const v1::CreateExperimentRequest& request) {
  expconf::Defaults defaults = settings_defaults(context.settings);
  // A seed of the configuration takes precedence.
  defaults.experiment_seed = random_seed();
  defaults.name = random_name();
  // A trial outside the cluster starts nothing here.
  if (request.detached()) defaults.entrypoint = "none";
  if (!request.template_().empty()) {
    TRY_ASSIGN(defaults.template_, template_of(context, caller, request.template_()));
  }
  return defaults;
}

Result<expconf::Parsed> parse_config(const Context& context, const Caller& caller,
                                     const v1::CreateExperimentRequest& request,
                                     const expconf::Defaults& defaults, Pools& pools,
                                     std::int64_t workspace) {
  TRY_ASSIGN(expconf::ClusterFacts facts, cluster_facts(context, caller, pools, workspace));
  facts.storage_section = [policy = context.storages->get(), workspace](const std::string& name) {
    return policy->section_of(name, workspace);
  };
  if (request.detached()) facts.pools.clear();  // takes no slots of this cluster
  return expconf::parse(request.config(), file_of(request), defaults, {}, &facts);
}

/// Project of the experiment: the one of the request, else of the configuration, else the default project.
Result<db::Destination> destination_of(const Context& context, const Caller& caller,
                                       const v1::CreateExperimentRequest& request,
                                       expconf::Defaults defaults) {
  constexpr const char* kWorkload = "EXPERIMENT";
  if (request.project_id() != 0) return db::find_destination(context.pool, kWorkload, request.project_id());
  const auto find = [&](const expconf::Placement& named) {
    return named.workspace.empty() || named.project.empty()
               ? db::find_destination(context.pool, kWorkload, db::kDefaultProject)
               : db::find_destination(context.pool, kWorkload, named.workspace, named.project,
                                      caller.grants.visible());
  };
  const expconf::Placement named = placement(request.config(), file_of(request), defaults);
  TRY_ASSIGN(db::Destination found, find(named));
  if (found.cluster_policies.empty()) return found;
  // Cluster policies may set another project than the file, and take precedence.
  defaults.policies = policies_at({.cluster_policies = found.cluster_policies});
  const expconf::Placement fixed = placement(request.config(), file_of(request), defaults);
  return fixed == named ? found : find(fixed);
}

/// Checks that the caller may create experiments in the project. A project of 0 does not exist.
Status check_destination(const Context& context, const Caller& caller, const db::Destination& to,
                         std::int64_t asked) {
  if (to.project == 0 && asked == 0)
    return fail(Code::kNotFound, "the configuration's project was not found");
  const std::string id = std::to_string(to.project == 0 ? asked : to.project);
  // Authorization comes first: a missing and a hidden project get the same error.
  TRY(authorize(caller, Action::kEdit, Target::kProject, {id}, context.pool));
  if (to.project == 0) return fail(Code::kNotFound, "project " + id + " not found");
  if (to.archived)
    return fail(Code::kFailedPrecondition, "project " + to.name + " is archived; unarchive it first");
  if (to.deleting)
    return fail(Code::kFailedPrecondition,
                "project " + to.name + " is being deleted; choose another project");
  return {};
}

/// Returns the experiment of this request id if the caller has created it before. One that the caller may not
/// edit is reported as a conflict, without details.
Result<std::optional<ExperimentId>> made_already(const Context& context, const Caller& caller,
                                                 const std::string& request_id) {
  if (request_id.empty()) return std::optional<ExperimentId>();
  TRY_ASSIGN(const auto known, db::find_experiment(context.pool, RequestId(request_id)));
  if (!known) return known;
  const auto seen =
      authorize(caller, Action::kEdit, Target::kExperiment, {std::to_string(known->value)}, context.pool);
  if (!seen) return fail(Code::kAlreadyExists, "request_id: used by another experiment; choose another");
  return known;
}

Status check_request(const Context& context, const Caller& caller,
                     const v1::CreateExperimentRequest& request) {
  if (request.request_id().size() > 128 || has_control_characters(request.request_id()) ||
      find_bad_utf8(request.request_id())) {
    return fail(Code::kInvalidArgument, "request_id: at most 128 bytes, no control characters");
  }
  if (request.parent_id() != 0) {
    TRY(authorize(caller, Action::kView, Target::kExperiment, {std::to_string(request.parent_id())},
                  context.pool));
    TRY(db::get_experiment(context.pool, ExperimentId(request.parent_id())));
  }
  return {};
}

/// Fails for a bucket that cannot be written, before any time is spent on training. A trial outside the
/// cluster may reach storages that the master does not.
Status check_storage(const Context& context, const expconf::ExperimentConfig& config,
                     const v1::CreateExperimentRequest& request) {
  const Status good = check_bucket(*context.storages->get(), config.resolved.at("checkpoint_storage"));
  if (good || request.detached()) return {};
  return fail({Problem{.code = "E-CFG-REF",
                       .path = "checkpoint_storage",
                       .message = make_utf8(good.error().message),
                       .file = file_of(request)}});
}

/// Replaces `source_trial_id` by the newest checkpoint of that trial, so that all trials start from the same
/// one. The caller's right to read the trial has been checked with the configuration.
Status pin_source(const Context& context, expconf::ExperimentConfig& config) {
  if (!config.searcher.source_trial_id) return {};
  TRY_ASSIGN(const db::TrialRow row, db::get_trial(context.pool, TrialId(*config.searcher.source_trial_id)));
  config.searcher.source_checkpoint_uuid = row.trial.latest_checkpoint;
  config.searcher.source_trial_id.reset();
  Json& searcher = config.resolved["searcher"];
  searcher.erase("source_trial_id");
  searcher["source_checkpoint_uuid"] = row.trial.latest_checkpoint;
  return {};
}

Status answer(const Context& context, ExperimentId id, v1::CreateExperimentResponse* response) {
  TRY_ASSIGN(const auto row, db::get_experiment(context.pool, id));
  to_proto(row, response->mutable_experiment());
  *response->mutable_config() = response->experiment().config();
  return {};
}

}  // namespace

Result<Json> task_account(const Context& context, const Caller& caller, const std::string& of_workspace) {
  if (!caller.user.agent && of_workspace.empty() && !context.settings.tasks_as_root) return Json();
  Json account{{"uid", 0}, {"user", "root"}, {"gid", 0}, {"group", "root"}};
  if (const auto& own = caller.user.agent)
    account = {{"uid", own->uid}, {"user", own->user}, {"gid", own->gid}, {"group", own->group}};
  if (of_workspace.empty()) return account;
  TRY_ASSIGN(const Json workspace, parse_json(of_workspace));
  account.update(workspace);
  return account;
}

std::string random_name() {
  static constexpr std::array kFirst = {"able",  "bold",  "brave", "brisk", "calm",  "clear",
                                        "eager", "fair",  "fine",  "glad",  "keen",  "kind",
                                        "light", "merry", "neat",  "proud", "quick", "quiet",
                                        "ready", "sharp", "smart", "solid", "sunny", "swift"};
  static constexpr std::array kSecond = {"amber", "azure",  "beige", "black",  "bronze", "coral",
                                         "cyan",  "gold",   "green", "indigo", "ivory",  "jade",
                                         "lilac", "olive",  "pearl", "plum",   "red",    "rose",
                                         "ruby",  "silver", "teal",  "violet", "white",  "yellow"};
  static constexpr std::array kThird = {"badger", "beaver", "bison", "crane", "falcon", "finch",
                                        "fox",    "gecko",  "heron", "ibex",  "koala",  "lemur",
                                        "lynx",   "marten", "newt",  "otter", "owl",    "panda",
                                        "puffin", "raven",  "robin", "seal",  "stork",  "wren"};
  const std::string bytes = random_bytes(3);
  const auto pick = [&](const auto& words, int i) {
    return words[static_cast<unsigned char>(bytes[i]) % words.size()];
  };
  return std::string("Experiment (") + pick(kFirst, 0) + "-" + pick(kSecond, 1) + "-" + pick(kThird, 2) + ")";
}

Status create_experiment(const Context& context, const Caller& caller,
                         const v1::CreateExperimentRequest& request, std::optional<std::string> archive,
                         v1::CreateExperimentResponse* response) {
  TRY(check_request(context, caller, request));
  // A repeat returns the experiment, whatever its configuration is now.
  TRY_ASSIGN(const auto known, made_already(context, caller, request.request_id()));
  if (known) return answer(context, *known, response);
  Pools pools(context);
  TRY_ASSIGN(expconf::Defaults defaults, defaults_of(context, caller, request));
  TRY_ASSIGN(const db::Destination to, destination_of(context, caller, request, defaults));
  const Status open = check_destination(context, caller, to, request.project_id());
  // Policies of a workspace are only revealed to callers that may use it.
  defaults.policies = policies_at(open ? to : db::Destination{.cluster_policies = to.cluster_policies});
  if (open && !to.checkpoint_storage.empty()) {
    TRY_ASSIGN(Json storage, parse_json(to.checkpoint_storage, {.bytes = 1 << 20, .depth = 16}));
    defaults.checkpoint_storage = std::move(storage["checkpoint_storage"]);
  }
  TRY_ASSIGN(expconf::Parsed parsed, parse_config(context, caller, request, defaults, pools, to.workspace));
  TRY(open);  // after parsing, so that all problems of the file are reported at once
  TRY_ASSIGN(CodeArchive files, code_archive_of(request.model_definition(), std::move(archive)));
  if (files.bytes.empty() && request.parent_id() != 0) {
    TRY_ASSIGN(files, code_archive_of_parent(context, ExperimentId(request.parent_id())));
  }
  if (!request.detached())
    TRY(expconf::check_entrypoint(parsed.config, paths_of(files), request.config_name()));
  TRY(check_storage(context, parsed.config, request));
  TRY(pin_source(context, parsed.config));
  TRY_ASSIGN(const Json account, task_account(context, caller, to.agent_account));
  parsed.config.resolved.erase("agent_user_group");  // a fork has the account of its submitter
  if (!account.is_null()) parsed.config.resolved["agent_user_group"] = account;
  for (const Problem& warning : parsed.warnings) response->add_config_warnings(make_utf8(to_string(warning)));
  // Nothing has been stored at this point.
  if (request.validate_only()) {
    Json shown = parsed.config.resolved;
    mask_secrets(shown);
    to_struct(shown, response->mutable_config());
    // Empty; clients of Determined AI require the field.
    response->mutable_experiment()->mutable_config();
    return {};
  }
  TRY(check_data_quotas(context, {caller.user.id, to.workspace}));
  // The archive is stored before the core refers to it.
  std::string digest;
  if (!files.bytes.empty()) {
    TRY_ASSIGN(digest, db::put_code_archive(context.pool, files.bytes));
  }
  core::SubmitExperiment submit{
      .request_id = RequestId(request.request_id().empty() ? uuid4() : request.request_id()),
      .owner = caller.user.id,
      .project = to.project,
      .workspace = to.workspace,
      .config = std::make_shared<const expconf::ExperimentConfig>(std::move(parsed.config)),
      .original_config = request.config(),
      .code_archive = std::move(digest),
      .activate = request.activate(),
      .detached = request.detached()};
  if (request.parent_id() != 0) submit.parent = ExperimentId(request.parent_id());
  TRY_ASSIGN(const core::ReplyValue reply, context.loop.ask(std::move(submit)));
  return answer(context, std::get<core::ExperimentCreated>(reply).experiment, response);
}

Status ExperimentService::CreateExperiment(const Caller& caller, const v1::CreateExperimentRequest& request,
                                           v1::CreateExperimentResponse* response) {
  return create_experiment(context_, caller, request, std::nullopt, response);
}

Status ExperimentService::CreateFromCodeArchive(const Caller& caller,
                                                const v1::CreateFromCodeArchiveRequest& request,
                                                v1::CreateFromCodeArchiveResponse* response) {
  auto archive = db::get_own_code_archive(context_.pool, request.code_archive(), caller.user.id);
  if (!archive && archive.error().code != Code::kNotFound) return tl::unexpected(archive.error());
  response->set_unknown(!archive);
  if (!archive) return {};
  return create_experiment(context_, caller, request.create(), std::move(*archive),
                           response->mutable_created());
}

grpc::ServerReadReactor<v1::UploadExperimentRequest>* ExperimentService::UploadExperiment(
    grpc::CallbackServerContext* call, v1::CreateExperimentResponse* response) {
  const auto first = [](v1::UploadExperimentRequest& part) {
    return part.has_create() ? part.mutable_create() : nullptr;
  };
  return new Upload<v1::UploadExperimentRequest, v1::CreateExperimentRequest, v1::CreateExperimentResponse>(
      context_, call, kUploadMethod, first, create_experiment, response);
}

}  // namespace det::api
