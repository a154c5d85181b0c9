// Owns the table of requirements.
#include "master/api/authorize.h"

#include <google/protobuf/descriptor.h>
#include <sodium.h>

#include <map>

#include "base/digest.h"
#include "base/secret.h"
#include "base/text.h"
#include "det/v1/agent.pb.h"
#include "det/v1/allocation.pb.h"
#include "det/v1/auth.pb.h"
#include "det/v1/checkpoint.pb.h"
#include "det/v1/cluster.pb.h"
#include "det/v1/experiment.pb.h"
#include "det/v1/harness.pb.h"
#include "det/v1/log.pb.h"
#include "det/v1/policy.pb.h"
#include "det/v1/search.pb.h"
#include "det/v1/template.pb.h"
#include "det/v1/trial.pb.h"

namespace det::api {
namespace {

using R = Requirement;

const std::map<std::string_view, Requirement>& table() {
  static const std::map<std::string_view, Requirement> requirements = {
      {"/det.v1.AuthService/Login", R::kNobody},
      {"/det.v1.AuthService/Logout", R::kUser},
      {"/det.v1.AuthService/CurrentUser", R::kUser},
      {"/det.v1.ClusterService/GetMaster", R::kNobody},
      {"/det.v1.ClusterService/GetAgents", R::kUser},
      {"/det.v1.ClusterService/GetAgent", R::kUser},
      {"/det.v1.ClusterService/GetSlots", R::kUser},
      {"/det.v1.ExperimentService/CreateExperiment", R::kUser},
      {"/det.v1.ExperimentService/UploadExperiment", R::kUser},
      {"/det.v1.ExperimentService/GetExperiments", R::kUser},
      {"/det.v1.ExperimentService/GetExperiment", R::kUser},
      {"/det.v1.ExperimentService/GetExperimentTrials", R::kUser},
      {"/det.v1.ExperimentService/GetExperimentCheckpoints", R::kUser},
      {"/det.v1.ExperimentService/GetModelDef", R::kUser},
      {"/det.v1.ExperimentService/ActivateExperiment", R::kUser},
      {"/det.v1.ExperimentService/PauseExperiment", R::kUser},
      {"/det.v1.ExperimentService/CancelExperiment", R::kUser},
      {"/det.v1.ExperimentService/KillExperiment", R::kUser},
      {"/det.v1.ExperimentService/ExtendExperiment", R::kUser},
      {"/det.v1.ExperimentService/RetryExperiment", R::kUser},
      {"/det.v1.TrialService/GetTrial", R::kUser},
      {"/det.v1.TrialService/GetTrialWorkloads", R::kUser},
      {"/det.v1.TrialService/GetTrialCheckpoints", R::kUser},
      {"/det.v1.TrialService/KillTrial", R::kUser},
      {"/det.v1.TrialService/CompareTrials", R::kUser},
      {"/det.v1.TrialService/GetMetricSeries", R::kUser},
      {"/det.v1.AllocationService/GetTrialAllocations", R::kUser},
      {"/det.v1.SearchService/SearchExperiments", R::kUser},
      {"/det.v1.CheckpointService/GetCheckpoint", R::kUser},
      {"/det.v1.CheckpointService/DownloadCheckpoint", R::kUser},
      {"/det.v1.LogService/TrialLogs", R::kUser},
      {"/det.v1.TemplateService/GetTemplates", R::kUser},
      {"/det.v1.TemplateService/GetTemplate", R::kUser},
      {"/det.v1.TemplateService/PostTemplate", R::kUser},
      {"/det.v1.TemplateService/PutTemplate", R::kUser},
      {"/det.v1.TemplateService/DeleteTemplate", R::kUser},
      {"/det.v1.ConfigPolicyService/GetGlobalConfigPolicies", R::kUser},
      {"/det.v1.ConfigPolicyService/PutGlobalConfigPolicies", R::kAdmin},
      {"/det.v1.ConfigPolicyService/DeleteGlobalConfigPolicies", R::kAdmin},
      {"/det.v1.HarnessService/Session", R::kAllocation},
      {"/det.v1.AgentService/Link", R::kLoopbackAgent},
      {"/det.v1.AgentService/GetContext", R::kLoopbackAgent},
      {"/det.v1.AgentService/ShipLogs", R::kLoopbackAgent},
  };
  return requirements;
}

std::string metadata(const grpc::ServerContextBase& context, const char* key) {
  const auto& all = context.client_metadata();
  auto it = all.find(key);
  return it == all.end() ? "" : std::string(it->second.data(), it->second.size());
}

std::string bearer(std::string_view header) {
  constexpr std::string_view kPrefix = "bearer ";
  if (to_lower(header.substr(0, kPrefix.size())) != kPrefix) return "";
  return std::string(trim(header.substr(kPrefix.size())));
}

}  // namespace

std::optional<Requirement> requirement(std::string_view method) {
  auto it = table().find(method);
  if (it == table().end()) return std::nullopt;
  return it->second;
}

std::string peer_address(std::string_view peer) {
  if (!peer.starts_with("ipv4:") && !peer.starts_with("ipv6:")) return "";
  std::string_view rest = peer.substr(5);
  rest = rest.substr(0, rest.rfind(':'));
  std::string address(rest);
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}}) {
    if (const std::size_t at = address.find(from); at != std::string::npos)
      address.replace(at, from.size(), to);
  }
  if (address.starts_with("::ffff:") && address.find('.') != std::string::npos) address = address.substr(7);
  return address;
}

bool is_loopback(std::string_view address) { return address == "::1" || address.starts_with("127."); }

Credentials read_credentials(const grpc::ServerContextBase& context) {
  Credentials credentials;
  credentials.user_token = bearer(metadata(context, "authorization"));
  if (credentials.user_token.empty()) credentials.user_token = bearer(metadata(context, "x-user-token"));
  credentials.allocation_token = bearer(metadata(context, "x-allocation-token"));
  const std::string peer = context.peer();
  credentials.address = peer_address(peer);
  // Only the gateway in this process is believed when it says for whom it calls.
  const bool inside = credentials.address.empty() && !peer.starts_with("unix");
  if (inside) credentials.address = metadata(context, "x-det-peer");
  credentials.loopback = is_loopback(credentials.address);
  return credentials;
}

Result<Caller> authorize(std::string_view method, Credentials credentials, db::Pool& pool) {
  const auto needed = requirement(method);
  if (!needed) return fail(Code::kPermissionDenied, std::string(method) + " is open to nobody");
  Caller caller{.credentials = std::move(credentials)};
  switch (*needed) {
    case Requirement::kNobody:
      return caller;
    case Requirement::kAllocation:
      if (caller.credentials.allocation_token.empty() && caller.credentials.user_token.empty()) {
        return fail(Code::kUnauthenticated,
                    "the allocation's token is missing (metadata x-allocation-token)");
      }
      return caller;
    case Requirement::kLoopbackAgent:
      if (!caller.credentials.loopback) {
        return fail(Code::kPermissionDenied, "agents are accepted from this machine only");
      }
      return caller;
    case Requirement::kUser:
    case Requirement::kAdmin:
      break;
  }
  if (caller.credentials.user_token.empty()) return fail(Code::kUnauthenticated, "not logged in");
  caller.token_hash = token_hash(caller.credentials.user_token);
  auto session = db::find_session(pool, caller.token_hash);
  if (!session && session.error().code == Code::kNotFound) {
    return fail(Code::kUnauthenticated, "the session has ended; log in again");
  }
  if (!session) return tl::unexpected(session.error());
  caller.user = std::move(session->user);
  if (*needed == Requirement::kAdmin && !caller.user.admin) {
    return fail(Code::kPermissionDenied, "this is for admins; user " + caller.user.name + " is none");
  }
  return caller;
}

std::string token_hash(std::string_view token) { return sha256_hex(token); }

std::string allocation_token(std::string_view secret, const AllocationId& id) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(secret.data()), secret.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(id.value.data()),
                                id.value.size());
  std::string mac(crypto_auth_hmacsha256_BYTES, '\0');
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(mac.data()));
  return to_base64url(mac);
}

std::vector<const google::protobuf::ServiceDescriptor*> services() {
  return {
      v1::LoginRequest::descriptor()->file()->service(0),
      v1::GetMasterRequest::descriptor()->file()->service(0),
      v1::CreateExperimentRequest::descriptor()->file()->service(0),
      v1::GetTrialRequest::descriptor()->file()->service(0),
      v1::GetTrialAllocationsRequest::descriptor()->file()->service(0),
      v1::SearchExperimentsRequest::descriptor()->file()->service(0),
      v1::GetCheckpointRequest::descriptor()->file()->service(0),
      v1::TrialLogsRequest::descriptor()->file()->service(0),
      v1::GetTemplatesRequest::descriptor()->file()->service(0),
      v1::GetGlobalConfigPoliciesRequest::descriptor()->file()->service(0),
      v1::HarnessMessage::descriptor()->file()->service(0),
      v1::AgentMessage::descriptor()->file()->service(0),
  };
}

}  // namespace det::api
