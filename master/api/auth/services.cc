// The list of all services of the server.
#include <google/protobuf/descriptor.h>

#include "det/v1/agent.pb.h"
#include "det/v1/allocation.pb.h"
#include "det/v1/audit.pb.h"
#include "det/v1/auth.pb.h"
#include "det/v1/binding.pb.h"
#include "det/v1/bracket.pb.h"
#include "det/v1/checkpoint.pb.h"
#include "det/v1/cluster.pb.h"
#include "det/v1/command.pb.h"
#include "det/v1/detached.pb.h"
#include "det/v1/diagnosis.pb.h"
#include "det/v1/experiment.pb.h"
#include "det/v1/explanation.pb.h"
#include "det/v1/group.pb.h"
#include "det/v1/harness.pb.h"
#include "det/v1/interactive.pb.h"
#include "det/v1/job.pb.h"
#include "det/v1/join.pb.h"
#include "det/v1/log.pb.h"
#include "det/v1/master.pb.h"
#include "det/v1/media.pb.h"
#include "det/v1/model.pb.h"
#include "det/v1/pilot.pb.h"
#include "det/v1/policy.pb.h"
#include "det/v1/project.pb.h"
#include "det/v1/prometheus.pb.h"
#include "det/v1/quota.pb.h"
#include "det/v1/role.pb.h"
#include "det/v1/run.pb.h"
#include "det/v1/search.pb.h"
#include "det/v1/task.pb.h"
#include "det/v1/template.pb.h"
#include "det/v1/token.pb.h"
#include "det/v1/trial.pb.h"
#include "det/v1/usage.pb.h"
#include "det/v1/user.pb.h"
#include "det/v1/webhook.pb.h"
#include "det/v1/workspace.pb.h"
#include "master/api/auth/access.h"

namespace det::api {

namespace pb = google::protobuf;

std::vector<const pb::ServiceDescriptor*> services() {
  // One message of each .proto file leads to its service. Each file defines one service.
  return {
      v1::LoginRequest::descriptor()->file()->service(0),
      v1::GetUsersRequest::descriptor()->file()->service(0),
      v1::GetAccessTokensRequest::descriptor()->file()->service(0),
      v1::ListRolesRequest::descriptor()->file()->service(0),
      v1::GetGroupsRequest::descriptor()->file()->service(0),
      v1::GetAuditLogRequest::descriptor()->file()->service(0),
      v1::GetMasterConfigRequest::descriptor()->file()->service(0),
      v1::GetWorkspacesRequest::descriptor()->file()->service(0),
      v1::WorkspaceBindingsRequest::descriptor()->file()->service(0),
      v1::GetProjectRequest::descriptor()->file()->service(0),
      v1::GetMasterRequest::descriptor()->file()->service(0),
      v1::GetJoinTokensRequest::descriptor()->file()->service(0),
      v1::CreateExperimentRequest::descriptor()->file()->service(0),
      v1::GetTrialRequest::descriptor()->file()->service(0),
      v1::GetTrialAllocationsRequest::descriptor()->file()->service(0),
      v1::SearchExperimentsRequest::descriptor()->file()->service(0),
      v1::GetCheckpointRequest::descriptor()->file()->service(0),
      v1::TrialLogsRequest::descriptor()->file()->service(0),
      v1::GetTemplatesRequest::descriptor()->file()->service(0),
      v1::GetWebhooksRequest::descriptor()->file()->service(0),
      v1::GetGlobalConfigPoliciesRequest::descriptor()->file()->service(0),
      v1::GetJobsRequest::descriptor()->file()->service(0),
      v1::ExplainTrialRequest::descriptor()->file()->service(0),
      v1::GetTaskRequest::descriptor()->file()->service(0),
      v1::GetRunMetadataRequest::descriptor()->file()->service(0),
      v1::GetCommandsRequest::descriptor()->file()->service(0),
      v1::GetNotebooksRequest::descriptor()->file()->service(0),
      v1::ScrapeRequest::descriptor()->file()->service(0),
      v1::GetPilotsRequest::descriptor()->file()->service(0),
      v1::GetQuotasRequest::descriptor()->file()->service(0),
      v1::ResourceAllocationRawRequest::descriptor()->file()->service(0),
      v1::GetModelsRequest::descriptor()->file()->service(0),
      v1::PutTrialRequest::descriptor()->file()->service(0),
      v1::HarnessMessage::descriptor()->file()->service(0),
      v1::AgentMessage::descriptor()->file()->service(0),
      v1::GetDiagnosisRequest::descriptor()->file()->service(0),
      v1::GetExperimentBracketsRequest::descriptor()->file()->service(0),
      v1::GetMediaRequest::descriptor()->file()->service(0),
  };
}

}  // namespace det::api
