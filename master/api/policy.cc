#include "master/api/policy.h"

#include "base/log.h"
#include "base/text.h"
#include "master/api/convert.h"
#include "master/api/secrets.h"
#include "master/db/queries_config.h"
#include "master/expconf/policies.h"

namespace det::api {
namespace {

Status check_workload(const std::string& type) {
  if (to_upper(type) == kExperimentWorkload) return {};
  return fail(Code::kInvalidArgument, "workload type must be EXPERIMENT, got \"" + make_utf8(type) +
                                          "\"; this release has no other workloads");
}

}  // namespace

grpc::ServerUnaryReactor* ConfigPolicyService::GetGlobalConfigPolicies(
    grpc::CallbackServerContext* call, const v1::GetGlobalConfigPoliciesRequest* request,
    v1::GetGlobalConfigPoliciesResponse* response) {
  return unary(context_, call, request, "/det.v1.ConfigPolicyService/GetGlobalConfigPolicies",
               [this, request, response](const Caller&) -> Status {
                 TRY(check_workload(request->workload_type()));
                 TRY_ASSIGN(const std::string text,
                            db::get_config_policies(context_.pool, kExperimentWorkload));
                 const std::string shown = masked_policies(text);
                 yaml_to_struct(shown, response->mutable_config_policies());
                 response->set_text(shown);
                 return {};
               });
}

grpc::ServerUnaryReactor* ConfigPolicyService::PutGlobalConfigPolicies(
    grpc::CallbackServerContext* call, const v1::PutGlobalConfigPoliciesRequest* request,
    v1::PutGlobalConfigPoliciesResponse* response) {
  return unary(context_, call, request, "/det.v1.ConfigPolicyService/PutGlobalConfigPolicies",
               [this, request, response](const Caller& caller) -> Status {
                 TRY(check_workload(request->workload_type()));
                 const std::string& text = request->config_policies();
                 const std::string file = request->file_name().empty()
                                              ? "config policy"
                                              : make_utf8(request->file_name().substr(0, 256));
                 TRY_ASSIGN(const expconf::Policies policies, expconf::read_policies(text, file));
                 TRY(db::set_config_policies(context_.pool, kExperimentWorkload, text, caller.user.id));
                 log::info("config policies set", {{"user", caller.user.name}});
                 for (const Problem& warning : policies.warnings)
                   response->add_warnings(make_utf8(to_string(warning)));
                 yaml_to_struct(masked_policies(text), response->mutable_config_policies());
                 return {};
               });
}

grpc::ServerUnaryReactor* ConfigPolicyService::DeleteGlobalConfigPolicies(
    grpc::CallbackServerContext* call, const v1::DeleteGlobalConfigPoliciesRequest* request,
    v1::DeleteGlobalConfigPoliciesResponse*) {
  return unary(context_, call, request, "/det.v1.ConfigPolicyService/DeleteGlobalConfigPolicies",
               [this, request](const Caller& caller) -> Status {
                 TRY(check_workload(request->workload_type()));
                 TRY(db::delete_config_policies(context_.pool, kExperimentWorkload));
                 log::info("config policies deleted", {{"user", caller.user.name}});
                 return {};
               });
}

}  // namespace det::api
