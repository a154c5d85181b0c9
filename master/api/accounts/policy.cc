#include "master/api/accounts/policy.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include "det/v1/policy.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/facts.h"
#include "master/api/submit/secrets.h"
#include "master/db/queries/projects.h"
#include "master/db/queries/workspaces.h"

namespace det::api {
namespace {

using expconf::Workload;

/// Name in the database and the API. NTSC is Determined AI's term for notebooks, TensorBoards, shells and
/// commands.
const char* name_of(Workload workload) { return workload == Workload::kTask ? "NTSC" : "EXPERIMENT"; }

// Names of the policies in Problems.
constexpr const char* kPolicy = "config policy";
std::string of_workspace(const std::string& kind, const std::string& name) {
  return kind + " of workspace \"" + name + "\"";
}

Result<db::PolicyKey> key_of(const std::string& workload,
                             std::optional<std::int64_t> workspace = std::nullopt) {
  for (const Workload each : {Workload::kExperiment, Workload::kTask}) {
    // Clients send the type in any case.
    if (to_upper(workload) == name_of(each)) return db::PolicyKey{name_of(each), workspace};
  }
  return fail(Code::kInvalidArgument, "workload type must be EXPERIMENT or NTSC (tasks: commands), got \"" +
                                          make_utf8(workload) + "\"");
}

}  // namespace

std::vector<expconf::Document> policies_at(const db::Destination& place) {
  std::vector<expconf::Document> documents;
  if (!place.cluster_policies.empty()) documents.push_back({kPolicy, place.cluster_policies});
  if (!place.workspace_policies.empty()) {
    documents.push_back({of_workspace(kPolicy, place.workspace_name), place.workspace_policies});
  }
  return documents;
}

Result<std::vector<expconf::Document>> policies_of(db::Pool& pool, Workload workload,
                                                   std::optional<std::int64_t> workspace) {
  const std::string kind = workload == Workload::kTask ? "task config policy" : kPolicy;
  std::vector<expconf::Document> documents;
  TRY_ASSIGN(std::string text, db::get_config_policies(pool, {name_of(workload), std::nullopt}));
  if (!text.empty()) documents.push_back({kind, std::move(text)});
  if (!workspace) return documents;
  TRY_ASSIGN(text, db::get_config_policies(pool, {name_of(workload), workspace}));
  // The name of the workspace is only needed for Problems.
  if (text.empty()) return documents;
  TRY_ASSIGN(const auto row, db::get_workspace(pool, *workspace));
  documents.push_back({of_workspace(kind, row.name), std::move(text)});
  return documents;
}

Result<expconf::Policies> limits_of(db::Pool& pool, Workload workload,
                                    std::optional<std::int64_t> workspace) {
  TRY_ASSIGN(const auto documents, policies_of(pool, workload, workspace));
  expconf::Policies limits;
  for (const expconf::Document& each : documents) {
    TRY_ASSIGN(const expconf::Policies policies, expconf::read_policies(each.text, each.name, workload));
    // The order does not matter: of each limit the strictest value remains.
    expconf::tighten(limits, policies);
  }
  return limits;
}

ConfigPolicyService::ConfigPolicyService(const Context& context)
    : Service(context, v1::ConfigPolicyService::full_name) {
  unary(v1::ConfigPolicyService::GetGlobalConfigPolicies, &ConfigPolicyService::GetGlobalConfigPolicies);
  unary(v1::ConfigPolicyService::PutGlobalConfigPolicies, &ConfigPolicyService::PutGlobalConfigPolicies);
  unary(v1::ConfigPolicyService::DeleteGlobalConfigPolicies,
        &ConfigPolicyService::DeleteGlobalConfigPolicies);
  unary(v1::ConfigPolicyService::GetWorkspaceConfigPolicies,
        &ConfigPolicyService::GetWorkspaceConfigPolicies);
  unary(v1::ConfigPolicyService::PutWorkspaceConfigPolicies,
        &ConfigPolicyService::PutWorkspaceConfigPolicies);
  unary(v1::ConfigPolicyService::DeleteWorkspaceConfigPolicies,
        &ConfigPolicyService::DeleteWorkspaceConfigPolicies);
}

Status ConfigPolicyService::get(const db::PolicyKey& key, v1::GetConfigPoliciesResponse* response) const {
  TRY_ASSIGN(const std::string text, db::get_config_policies(context_.pool, key));
  const std::string shown = masked_policies(text);
  yaml_to_struct(shown, response->mutable_config_policies());
  response->set_text(shown);
  return {};
}

Status ConfigPolicyService::put(const db::PolicyKey& key, const std::string& text,
                                const std::string& file_name, const Caller& caller,
                                v1::PutConfigPoliciesResponse* response) const {
  const std::string file = file_name.empty() ? "config policy" : make_utf8(file_name.substr(0, 256));
  const Workload workload =
      key.workload == name_of(Workload::kTask) ? Workload::kTask : Workload::kExperiment;
  // Parsed before it is stored, so that stored policies are valid.
  TRY_ASSIGN(const expconf::Policies policies, expconf::read_policies(text, file, workload));
  TRY(check_storage_of_part(context_, policies.invariants, file));
  TRY(db::set_config_policies(context_.pool, key, text, caller.user.id));
  log::info(
      "config policies set",
      {{"user", caller.user.name}, {"workload", key.workload}, {"workspace", key.workspace.value_or(0)}});
  for (const Problem& warning : policies.warnings) response->add_warnings(make_utf8(to_string(warning)));
  yaml_to_struct(masked_policies(text), response->mutable_config_policies());
  return {};
}

Status ConfigPolicyService::remove(const db::PolicyKey& key, const Caller& caller) const {
  TRY(db::delete_config_policies(context_.pool, key));
  log::info("config policies deleted",
            {{"user", caller.user.name}, {"workspace", key.workspace.value_or(0)}});
  return {};
}

Status ConfigPolicyService::GetGlobalConfigPolicies(const Caller&,
                                                    const v1::GetGlobalConfigPoliciesRequest& request,
                                                    v1::GetConfigPoliciesResponse* response) {
  TRY_ASSIGN(const auto key, key_of(request.workload_type()));
  return get(key, response);
}

Status ConfigPolicyService::PutGlobalConfigPolicies(const Caller& caller,
                                                    const v1::PutGlobalConfigPoliciesRequest& request,
                                                    v1::PutConfigPoliciesResponse* response) {
  TRY_ASSIGN(const auto key, key_of(request.workload_type()));
  return put(key, request.config_policies(), request.file_name(), caller, response);
}

Status ConfigPolicyService::DeleteGlobalConfigPolicies(const Caller& caller,
                                                       const v1::DeleteGlobalConfigPoliciesRequest& request,
                                                       v1::DeleteConfigPoliciesResponse*) {
  TRY_ASSIGN(const auto key, key_of(request.workload_type()));
  return remove(key, caller);
}

Status ConfigPolicyService::GetWorkspaceConfigPolicies(const Caller&,
                                                       const v1::GetWorkspaceConfigPoliciesRequest& request,
                                                       v1::GetConfigPoliciesResponse* response) {
  TRY_ASSIGN(const auto key, key_of(request.workload_type(), request.workspace_id()));
  return get(key, response);
}

Status ConfigPolicyService::PutWorkspaceConfigPolicies(const Caller& caller,
                                                       const v1::PutWorkspaceConfigPoliciesRequest& request,
                                                       v1::PutConfigPoliciesResponse* response) {
  TRY_ASSIGN(const auto key, key_of(request.workload_type(), request.workspace_id()));
  return put(key, request.config_policies(), request.file_name(), caller, response);
}

Status ConfigPolicyService::DeleteWorkspaceConfigPolicies(
    const Caller& caller, const v1::DeleteWorkspaceConfigPoliciesRequest& request,
    v1::DeleteConfigPoliciesResponse*) {
  TRY_ASSIGN(const auto key, key_of(request.workload_type(), request.workspace_id()));
  return remove(key, caller);
}

}  // namespace det::api
