#include "fake_master.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "common/base/secret.h"
#include "common/crypto/digest.h"
#include "test_paths.h"
#include "tests/wire/fake_service.h"

namespace det::cli::test {
namespace {

using grpc::ServerContext;
using grpc::Status;

Status check_token(const ServerContext& context) {
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  if (begin != end && begin->second == "Bearer token-of-admin") return Status::OK;
  return {grpc::StatusCode::UNAUTHENTICATED, "the session has ended"};
}
#define NEEDS_TOKEN(context) \
  if (const Status token_status = check_token(*(context)); !token_status.ok()) return token_status

/// Fills in the requested page.
template <typename List, typename Request, typename Target>
void page(const List& all, const Request& request, Target* target, v1::Pagination* pagination) {
  const int total = static_cast<int>(all.size()), begin = std::min(request.offset(), total);
  const int end = request.limit() > 0 ? std::min(begin + request.limit(), total) : total;
  for (int i = begin; i < end; ++i) *target->Add() = all[static_cast<std::size_t>(i)];
  pagination->set_start_index(begin);
  pagination->set_end_index(end);
  pagination->set_total(total);
}

Status missing(const std::string& what) { return {grpc::StatusCode::NOT_FOUND, what + " not found"}; }

struct Cluster : FakeService {
  explicit Cluster(World& w) : world(w) {
    serve(v1::ClusterService::GetMaster, &Cluster::GetMaster);
    serve(v1::ClusterService::GetAgents, &Cluster::GetAgents);
    serve(v1::AuthService::Login, &Cluster::Login);
    serve(v1::AuthService::Logout, &Cluster::Logout);
    serve(v1::AuthService::CurrentUser, &Cluster::CurrentUser);
  }

  Status GetMaster(ServerContext*, const v1::GetMasterRequest*, v1::GetMasterResponse* response) {
    response->set_release("9.9.9");
    response->set_cluster_id("cluster-1");
    return Status::OK;
  }
  Status GetAgents(ServerContext* context, const v1::GetAgentsRequest*, v1::GetAgentsResponse* response) {
    NEEDS_TOKEN(context);
    for (const v1::Agent& agent : world.agents) *response->add_agents() = agent;
    return Status::OK;
  }
  Status Login(ServerContext*, const v1::LoginRequest* request, v1::LoginResponse* response) {
    if (request->username() != "admin" || request->password() != "secret password")
      return {grpc::StatusCode::UNAUTHENTICATED, "wrong user name or password"};
    response->set_token("token-of-admin");
    response->mutable_user()->set_username("admin");
    return Status::OK;
  }
  Status Logout(ServerContext* context, const v1::LogoutRequest*, v1::LogoutResponse*) {
    NEEDS_TOKEN(context);
    return Status::OK;
  }
  Status CurrentUser(ServerContext* context, const v1::CurrentUserRequest*,
                     v1::CurrentUserResponse* response) {
    NEEDS_TOKEN(context);
    response->mutable_user()->set_username("admin");
    return Status::OK;
  }
  World& world;
};

struct Experiments : FakeService {
  explicit Experiments(World& w) : world(w) {
    serve(v1::ExperimentService::CreateExperiment, &Experiments::CreateExperiment);
    serve(v1::ExperimentService::UploadExperiment, &Experiments::UploadExperiment);
    serve(v1::ExperimentService::CreateFromCodeArchive, &Experiments::CreateFromCodeArchive);
    serve(v1::ExperimentService::GetExperiments, &Experiments::GetExperiments);
    serve(v1::ExperimentService::GetExperiment, &Experiments::GetExperiment);
    serve(v1::ExperimentService::GetExperimentTrials, &Experiments::GetExperimentTrials);
    serve(v1::ExperimentService::GetExperimentCheckpoints, &Experiments::GetExperimentCheckpoints);
    serve(v1::ExperimentService::PatchExperiment, &Experiments::PatchExperiment);
    serve(v1::ExperimentService::ArchiveExperiment, &Experiments::ArchiveExperiment);
    serve(v1::ExperimentService::GetModelDef, &Experiments::GetModelDef);
    serve(v1::ExperimentService::ActivateExperiment, &Experiments::ActivateExperiment);
    serve(v1::ExperimentService::PauseExperiment, &Experiments::PauseExperiment);
    serve(v1::ExperimentService::CancelExperiment, &Experiments::CancelExperiment);
    serve(v1::ExperimentService::KillExperiment, &Experiments::KillExperiment);
    serve(v1::DiagnosisService::GetDiagnosis, &Experiments::GetDiagnosis);
    serve(v1::BracketService::GetExperimentBrackets, &Experiments::GetExperimentBrackets);
  }

  Status CreateExperiment(ServerContext* context, const v1::CreateExperimentRequest* request,
                          v1::CreateExperimentResponse* response) {
    NEEDS_TOKEN(context);
    world.created.push_back(*request);
    response->mutable_experiment()->set_id(2);
    return Status::OK;
  }
  Status UploadExperiment(ServerContext* context, grpc::ServerReader<v1::UploadExperimentRequest>* reader,
                          v1::CreateExperimentResponse* response) {
    NEEDS_TOKEN(context);
    v1::UploadExperimentRequest part;
    v1::CreateExperimentRequest create;
    std::string archive;
    while (reader->Read(&part)) {
      if (part.has_create()) create = part.create();
      if (part.chunk().size() > 1 << 20) return {grpc::StatusCode::INVALID_ARGUMENT, "too large a chunk"};
      archive += part.chunk();
    }
    world.created.push_back(create);
    world.archives.push_back(archive);
    if (!world.refuse_create.ok()) return world.refuse_create;
    if (world.uploads_lost-- > 0) return {grpc::StatusCode::UNAVAILABLE, "the answer was lost"};
    response->mutable_experiment()->set_id(1);
    response->add_config_warnings("be careful");
    return Status::OK;
  }
  Status CreateFromCodeArchive(ServerContext* context, const v1::CreateFromCodeArchiveRequest* request,
                               v1::CreateFromCodeArchiveResponse* response) {
    NEEDS_TOKEN(context);
    world.by_digest.push_back(*request);
    if (std::none_of(world.archives.begin(), world.archives.end(), [&](const std::string& archive) {
          return sha256_hex(archive) == request->code_archive();
        })) {
      response->set_unknown(true);
      return Status::OK;
    }
    if (!world.refuse_create.ok()) return world.refuse_create;
    response->mutable_created()->mutable_experiment()->set_id(2);
    return Status::OK;
  }
  Status GetExperiments(ServerContext* context, const v1::GetExperimentsRequest* request,
                        v1::GetExperimentsResponse* response) {
    NEEDS_TOKEN(context);
    std::vector<v1::Experiment> all;
    const v1::Int32FieldFilter& ids = request->experiment_id_filter();
    for (const auto& [id, experiment] : world.experiments) {
      if ((!ids.has_gte() || id >= ids.gte().value()) && (!ids.has_lte() || id <= ids.lte().value()))
        all.push_back(experiment);
    }
    if (request->order_by() == v1::ORDER_BY_DESC) std::reverse(all.begin(), all.end());
    page(all, *request, response->mutable_experiments(), response->mutable_pagination());
    return Status::OK;
  }
  Status GetExperiment(ServerContext* context, const v1::GetExperimentRequest* request,
                       v1::GetExperimentResponse* response) {
    NEEDS_TOKEN(context);
    const auto found = world.experiments.find(request->experiment_id());
    if (found == world.experiments.end()) return missing("experiment");
    *response->mutable_experiment() = found->second;
    return Status::OK;
  }
  Status GetExperimentTrials(ServerContext* context, const v1::GetExperimentTrialsRequest* request,
                             v1::GetExperimentTrialsResponse* response) {
    NEEDS_TOKEN(context);
    std::vector<v1::Trial> all;  // trials without an experiment id belong to every experiment
    for (const v1::Trial& trial : world.trials) {
      if (trial.experiment_id() == 0 || trial.experiment_id() == request->experiment_id())
        all.push_back(trial);
    }
    page(all, *request, response->mutable_trials(), response->mutable_pagination());
    return Status::OK;
  }
  Status GetExperimentCheckpoints(ServerContext* context, const v1::GetExperimentCheckpointsRequest* request,
                                  v1::GetExperimentCheckpointsResponse* response) {
    NEEDS_TOKEN(context);
    page(world.checkpoints, *request, response->mutable_checkpoints(), response->mutable_pagination());
    return Status::OK;
  }
  Status PatchExperiment(ServerContext* context, const v1::PatchExperimentRequest* request,
                         v1::PatchExperimentResponse*) {
    NEEDS_TOKEN(context);
    world.patches.push_back(request->experiment());
    return Status::OK;
  }
  Status GetModelDef(ServerContext* context, const v1::GetModelDefRequest* request,
                     v1::GetModelDefResponse* response) {
    NEEDS_TOKEN(context);
    const auto found = world.model_defs.find(request->experiment_id());
    response->set_b64_tgz(found == world.model_defs.end() ? "aGVsbG8=" : to_base64(found->second));
    return Status::OK;
  }
  Status act(const char* word, ServerContext* context, const v1::ExperimentActionRequest* request) {
    NEEDS_TOKEN(context);
    if (!world.experiments.contains(request->id())) return missing("experiment");
    world.actions.push_back(std::string(word) + " " + std::to_string(request->id()));
    return Status::OK;
  }
  using Request = v1::ExperimentActionRequest;
  using Response = v1::ExperimentActionResponse;
  Status ArchiveExperiment(ServerContext* c, const Request* r, Response*) { return act("archive", c, r); }
  Status ActivateExperiment(ServerContext* c, const Request* r, Response*) { return act("activate", c, r); }
  Status PauseExperiment(ServerContext* c, const Request* r, Response*) { return act("pause", c, r); }
  Status CancelExperiment(ServerContext* c, const Request* r, Response*) { return act("cancel", c, r); }
  Status KillExperiment(ServerContext* c, const Request* r, Response*) { return act("kill", c, r); }
  Status GetDiagnosis(ServerContext* c, const v1::GetDiagnosisRequest*, v1::GetDiagnosisResponse* r) {
    NEEDS_TOKEN(c);
    *r = world.diagnosis;
    return Status::OK;
  }
  Status GetExperimentBrackets(ServerContext* context, const v1::GetExperimentBracketsRequest*,
                               v1::GetExperimentBracketsResponse* response) {
    NEEDS_TOKEN(context);
    *response = world.brackets;
    return Status::OK;
  }
  World& world;
};

struct Templates : FakeService {
  explicit Templates(World& w) : world(w) {
    serve(v1::TemplateService::GetTemplates, &Templates::GetTemplates);
    serve(v1::TemplateService::GetTemplate, &Templates::GetTemplate);
    serve(v1::TemplateService::PutTemplate, &Templates::PutTemplate);
    serve(v1::TemplateService::DeleteTemplate, &Templates::DeleteTemplate);
    serve(v1::ConfigPolicyService::GetGlobalConfigPolicies, &Templates::GetGlobalConfigPolicies);
    serve(v1::ConfigPolicyService::PutGlobalConfigPolicies, &Templates::PutGlobalConfigPolicies);
    serve(v1::ConfigPolicyService::DeleteGlobalConfigPolicies, &Templates::DeleteGlobalConfigPolicies);
  }

  Status GetTemplates(ServerContext* context, const v1::GetTemplatesRequest*,
                      v1::GetTemplatesResponse* response) {
    NEEDS_TOKEN(context);
    for (const auto& [name, text] : world.templates) {
      v1::Template* out = response->add_templates();
      out->set_name(name);
      out->set_text(text);
    }
    return Status::OK;
  }
  Status GetTemplate(ServerContext* context, const v1::GetTemplateRequest* request,
                     v1::GetTemplateResponse* response) {
    NEEDS_TOKEN(context);
    const auto found = world.templates.find(request->template_name());
    if (found == world.templates.end()) return missing("template");
    response->mutable_template_()->set_name(found->first);
    response->mutable_template_()->set_text(found->second);
    return Status::OK;
  }
  Status PutTemplate(ServerContext* context, const v1::SetTemplateRequest* request,
                     v1::SetTemplateResponse*) {
    NEEDS_TOKEN(context);
    world.templates[request->template_name()] = request->text();
    return Status::OK;
  }
  Status DeleteTemplate(ServerContext* context, const v1::DeleteTemplateRequest* request,
                        v1::DeleteTemplateResponse*) {
    NEEDS_TOKEN(context);
    return world.templates.erase(request->template_name()) > 0 ? Status::OK : missing("template");
  }
  Status GetGlobalConfigPolicies(ServerContext* context, const v1::GetGlobalConfigPoliciesRequest*,
                                 v1::GetConfigPoliciesResponse* response) {
    NEEDS_TOKEN(context);
    response->set_text(world.policies);
    return Status::OK;
  }
  Status PutGlobalConfigPolicies(ServerContext* context, const v1::PutGlobalConfigPoliciesRequest* request,
                                 v1::PutConfigPoliciesResponse*) {
    NEEDS_TOKEN(context);
    world.policies = request->config_policies();
    return Status::OK;
  }
  Status DeleteGlobalConfigPolicies(ServerContext* context, const v1::DeleteGlobalConfigPoliciesRequest*,
                                    v1::DeleteConfigPoliciesResponse*) {
    NEEDS_TOKEN(context);
    world.policies.clear();
    return Status::OK;
  }
  World& world;
};

struct Trials : FakeService {
  explicit Trials(World& w) : world(w) {
    serve(v1::TrialService::GetTrial, &Trials::GetTrial);
    serve(v1::TrialService::GetTrialWorkloads, &Trials::GetTrialWorkloads);
    serve(v1::TrialService::GetTrialCheckpoints, &Trials::GetTrialCheckpoints);
    serve(v1::TrialService::GetMetricSeries, &Trials::GetMetricSeries);
    serve(v1::TrialService::KillTrial, &Trials::KillTrial);
  }
  Status GetTrial(ServerContext* context, const v1::GetTrialRequest* request,
                  v1::GetTrialResponse* response) {
    NEEDS_TOKEN(context);
    for (const v1::Trial& trial : world.trials) {
      if (trial.id() == request->trial_id()) *response->mutable_trial() = trial;
    }
    return response->has_trial() ? Status::OK : missing("trial");
  }
  Status GetTrialWorkloads(ServerContext* context, const v1::GetTrialWorkloadsRequest* request,
                           v1::GetTrialWorkloadsResponse* response) {
    NEEDS_TOKEN(context);
    page(world.workloads, *request, response->mutable_workloads(), response->mutable_pagination());
    return Status::OK;
  }
  Status GetTrialCheckpoints(ServerContext* context, const v1::GetTrialCheckpointsRequest* request,
                             v1::GetTrialCheckpointsResponse* response) {
    NEEDS_TOKEN(context);
    page(world.checkpoints, *request, response->mutable_checkpoints(), response->mutable_pagination());
    return Status::OK;
  }
  Status GetMetricSeries(ServerContext* context, const v1::GetMetricSeriesRequest*,
                         v1::GetMetricSeriesResponse* response) {
    NEEDS_TOKEN(context);
    for (const v1::MetricSeries& each : world.series) *response->add_series() = each;
    return Status::OK;
  }
  Status KillTrial(ServerContext* context, const v1::KillTrialRequest* request, v1::KillTrialResponse*) {
    NEEDS_TOKEN(context);
    world.actions.push_back("kill trial " + std::to_string(request->id()));
    return Status::OK;
  }
  World& world;
};

/// Serves the same log for every trial and task.
template <typename Request>
Status serve_log(World& world, const Request& request, grpc::ServerWriter<v1::LogEntry>* writer,
                 bool cut = false) {
  std::vector<v1::LogEntry> entries;
  for (const v1::LogEntry& entry : world.log) {
    if (std::stoll(entry.id()) > request.after_id()) entries.push_back(entry);
  }
  if (request.order_by() == v1::ORDER_BY_DESC) std::reverse(entries.begin(), entries.end());
  if (request.limit() > 0 && static_cast<int>(entries.size()) > request.limit())
    entries.resize(static_cast<std::size_t>(request.limit()));
  if (cut && static_cast<int>(entries.size()) > world.log_cut_after)
    entries.resize(static_cast<std::size_t>(world.log_cut_after));
  for (const v1::LogEntry& entry : entries) writer->Write(entry);
  return cut ? Status(grpc::StatusCode::UNAVAILABLE, "going down") : Status::OK;
}

struct Logs : FakeService {
  explicit Logs(World& w) : world(w) {
    serve(v1::LogService::TrialLogs, &Logs::TrialLogs);
    serve(v1::LogService::PutTrialRetainLogs, &Logs::PutTrialRetainLogs);
    serve(v1::LogService::PutExperimentRetainLogs, &Logs::PutExperimentRetainLogs);
    serve(v1::TaskService::TaskLogs, &Logs::TaskLogs);
  }

  Status TrialLogs(ServerContext* context, const v1::TrialLogsRequest* request,
                   grpc::ServerWriter<v1::LogEntry>* writer) {
    NEEDS_TOKEN(context);
    world.log_requests.push_back(*request);
    if (world.log_refusals-- > 0) return Status(grpc::StatusCode::UNAVAILABLE, "starting");
    return serve_log(world, *request, writer, world.log_cut_after >= 0 && world.log_requests.size() == 1);
  }
  Status PutTrialRetainLogs(ServerContext* context, const v1::PutTrialRetainLogsRequest* request,
                            v1::PutRetainLogsResponse*) {
    return retain(context, "trial " + std::to_string(request->trial_id()), request->num_days());
  }
  Status PutExperimentRetainLogs(ServerContext* context, const v1::PutExperimentRetainLogsRequest* request,
                                 v1::PutRetainLogsResponse*) {
    return retain(context, "experiment " + std::to_string(request->experiment_id()), request->num_days());
  }
  Status retain(ServerContext* context, const std::string& object, int days) {
    NEEDS_TOKEN(context);
    world.retentions.push_back(object + ": " + std::to_string(days));
    return Status::OK;
  }
  Status TaskLogs(ServerContext* context, const v1::TaskLogsRequest* request,
                  grpc::ServerWriter<v1::LogEntry>* writer) {
    NEEDS_TOKEN(context);
    return serve_log(world, *request, writer);
  }
  World& world;
};

struct Checkpoints : FakeService {
  explicit Checkpoints(World& w) : world(w) {
    serve(v1::CheckpointService::GetCheckpoint, &Checkpoints::GetCheckpoint);
    serve(v1::CheckpointService::DownloadCheckpoint, &Checkpoints::DownloadCheckpoint);
    serve(v1::MediaService::GetTrialFiles, &Checkpoints::GetTrialFiles);
    serve(v1::MediaService::ProfileTrial, &Checkpoints::ProfileTrial);
    serve(v1::MediaService::GetTrialProfile, &Checkpoints::GetTrialProfile);
    serve(v1::MediaService::DownloadTrialFile, &Checkpoints::DownloadTrialFile);
  }

  Status GetCheckpoint(ServerContext* context, const v1::GetCheckpointRequest* request,
                       v1::GetCheckpointResponse* response) {
    NEEDS_TOKEN(context);
    for (const v1::Checkpoint& checkpoint : world.checkpoints) {
      if (checkpoint.uuid() == request->checkpoint_uuid()) *response->mutable_checkpoint() = checkpoint;
    }
    return response->has_checkpoint() ? Status::OK : missing("checkpoint");
  }
  Status DownloadCheckpoint(ServerContext* context, const v1::DownloadCheckpointRequest* request,
                            grpc::ServerWriter<v1::DownloadCheckpointResponse>* writer) {
    NEEDS_TOKEN(context);
    const std::string& bytes = world.checkpoint_archives[request->checkpoint_uuid()];
    for (std::size_t at = 0; at < bytes.size(); at += 100) {
      v1::DownloadCheckpointResponse part;
      part.set_chunk(bytes.substr(at, 100));
      writer->Write(part);
    }
    return Status::OK;
  }
  Status GetTrialFiles(ServerContext* context, const v1::GetTrialFilesRequest*,
                       v1::GetTrialFilesResponse* response) {
    NEEDS_TOKEN(context);
    for (const auto& [path, content] : world.trial_files) {
      v1::TrialFile* file = response->add_files();
      file->set_path(path);
      file->set_size(static_cast<std::int64_t>(content.size()));
    }
    return Status::OK;
  }
  Status ProfileTrial(ServerContext* context, const v1::ProfileTrialRequest* request,
                      v1::TrialProfile* response) {
    NEEDS_TOKEN(context);
    world.profile_requests.push_back(*request);
    return next_profile(response);
  }
  Status GetTrialProfile(ServerContext* context, const v1::GetTrialProfileRequest* request,
                         v1::TrialProfile* response) {
    NEEDS_TOKEN(context);
    if (request->request_id() != world.profile_requests.back().request_id()) return missing("request");
    return next_profile(response);
  }
  /// The next scripted progress; one without a state stands for a process that has forgotten the request.
  Status next_profile(v1::TrialProfile* response) {
    if (world.profiles.empty()) return {grpc::StatusCode::FAILED_PRECONDITION, "trial 3 has ended"};
    *response = world.profiles.front();
    world.profiles.erase(world.profiles.begin());
    return response->state() == v1::ProfileStatus::STATE_UNSPECIFIED ? missing("request") : Status::OK;
  }
  Status DownloadTrialFile(ServerContext* context, const v1::DownloadTrialFileRequest* request,
                           grpc::ServerWriter<v1::DownloadTrialFileResponse>* writer) {
    NEEDS_TOKEN(context);
    const std::string& bytes = world.trial_files[request->path()];
    for (std::size_t at = 0; at < bytes.size(); at += 100) {
      v1::DownloadTrialFileResponse part;
      part.set_chunk(bytes.substr(at, 100));
      writer->Write(part);
    }
    return Status::OK;
  }
  World& world;
};

}  // namespace

struct FakeMaster::Services {
  explicit Services(World& world)
      : cluster(world),
        experiments(world),
        trials(world),
        logs(world),
        checkpoints(world),
        templates(world) {}
  Cluster cluster;
  Experiments experiments;
  Trials trials;
  Logs logs;
  Checkpoints checkpoints;
  Templates templates;
};

FakeMaster::FakeMaster()
    : services_(std::make_unique<Services>(world)), home_(TemporaryDirectory::create("det-cli").value()) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  for (grpc::Service* service : std::initializer_list<grpc::Service*>{
           &services_->cluster, &services_->experiments, &services_->trials, &services_->logs,
           &services_->checkpoints, &services_->templates})
    builder.RegisterService(service);
  server_ = builder.BuildAndStart();
  REQUIRE(server_);
}

FakeMaster::~FakeMaster() { server_->Shutdown(); }

ProcessResult FakeMaster::det(std::vector<std::string> arguments, const std::string& cwd,
                              const std::string& token, const std::string& input,
                              const std::vector<std::string>& environment) const {
  arguments.insert(arguments.begin(), build_path("/bin/det"));
  ProcessOptions options;
  options.argv = std::move(arguments);
  options.cwd = cwd.empty() ? home_.path() : cwd;
  std::vector<std::string> changes{"DET_MASTER=" + url(),
                                   "XDG_CONFIG_HOME=" + config_home(),
                                   "XDG_CACHE_HOME=" + home_.path() + "/cache",
                                   "DETERMINED_MASTER",
                                   "DET_MASTER_ADDR",
                                   "DET_USER",
                                   "DET_PASS",
                                   token.empty() ? "DET_USER_TOKEN" : "DET_USER_TOKEN=" + token};
  changes.insert(changes.end(), environment.begin(), environment.end());
  options.env = environment_with(changes);
  auto result = run_process(options, {.timeout = std::chrono::seconds(30)}, input);
  INFO((result ? "" : result.error().message));
  REQUIRE(result);
  CHECK_FALSE(result->timed_out);
  return *result;
}

}  // namespace det::cli::test
