#include "master/api/auth/access.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <map>

#include "common/base/text.h"

namespace det::api {
namespace {

namespace pb = google::protobuf;
using A = Action;
using T = Target;

// Shorthands for the rows of the table.
constexpr Access anyone() { return {Requirement::kNone, {}, 0}; }
constexpr Access allocation() { return {Requirement::kAllocation, {}, 0}; }
constexpr Access agent() { return {Requirement::kAgent, {}, 0}; }
constexpr Access user(A action, T target, const char* field = "") {
  return {Requirement::kUser, {{{action, target, field}}}, 1};
}
constexpr Access admin(const char* field) { return user(A::kAdminister, T::kCluster, field); }
constexpr Access user(Rule one, Rule two) { return {Requirement::kUser, {{one, two}}, 2}; }
constexpr Access user(Rule one, Rule two, Rule three) { return {Requirement::kUser, {{one, two, three}}, 3}; }
constexpr Access either(A action, T target, const char* field) {
  return {Requirement::kUserOrAllocation, {{{action, target, field}}}, 1};
}

struct Entry {
  std::string_view method;
  Access access;
};
// Calls that create an object, or that name objects of several workspaces, use kInside: their handlers
// resolve the workspace first. Callers of the allocation() rows are processes of a trial.
constexpr Entry kTable[] = {
    {"/det.v1.AuthService/Login", anyone()},
    {"/det.v1.AuthService/Logout", user(A::kEdit, T::kNothing)},
    {"/det.v1.AuthService/CurrentUser", user(A::kView, T::kNothing)},
    {"/det.v1.AuthService/VisibleExperiments", user(A::kView, T::kListed)},
    {"/det.v1.UserService/GetUsers", user(A::kView, T::kNothing)},
    {"/det.v1.UserService/GetUser", user(A::kView, T::kNothing)},
    {"/det.v1.UserService/GetUserByUsername", user(A::kView, T::kNothing)},
    {"/det.v1.UserService/PostUser", user(A::kAdminister, T::kCluster, "user.username")},
    {"/det.v1.UserService/PatchUser", user(A::kEdit, T::kUser, "user_id")},
    {"/det.v1.UserService/SetUserPassword", user(A::kEdit, T::kUser, "user_id")},
    {"/det.v1.TokenService/PostAccessToken", user(A::kEdit, T::kInside)},
    {"/det.v1.TokenService/GetAccessTokens", user(A::kView, T::kListed)},
    {"/det.v1.TokenService/PatchAccessToken", user(A::kEdit, T::kToken, "token_id")},
    {"/det.v1.RoleService/ListRoles", user(A::kView, T::kNothing)},
    {"/det.v1.RoleService/GetRolesByID", user(A::kView, T::kNothing)},
    {"/det.v1.RoleService/GetPermissionsSummary", user(A::kView, T::kNothing)},
    {"/det.v1.RoleService/GetRolesAssignedToUser", user(A::kView, T::kUser, "user_id")},
    {"/det.v1.RoleService/GetUsersAssignedToWorkspace", user(A::kView, T::kWorkspace, "workspace_id")},
    {"/det.v1.RoleService/GetRolesAssignedToGroup", user(A::kView, T::kNothing)},
    {"/det.v1.RoleService/AssignRoles", user(A::kManage, T::kInside)},
    {"/det.v1.RoleService/RemoveAssignments", user(A::kManage, T::kInside)},
    {"/det.v1.GroupService/GetGroups", user(A::kView, T::kNothing)},
    {"/det.v1.GroupService/GetGroup", user(A::kView, T::kNothing)},
    {"/det.v1.GroupService/CreateGroup", admin("name")},
    {"/det.v1.GroupService/UpdateGroup", admin("group_id")},
    {"/det.v1.GroupService/DeleteGroup", admin("group_id")},
    {"/det.v1.GroupService/AssignMultipleGroups", admin("user_ids")},
    {"/det.v1.AuditService/GetAuditLog", user(A::kAdminister, T::kCluster)},
    {"/det.v1.MasterService/GetMasterConfig", user(A::kAdminister, T::kCluster)},
    {"/det.v1.MasterService/PatchMasterConfig", user(A::kAdminister, T::kCluster)},
    {"/det.v1.MasterService/GetClusterMessage", user(A::kAdminister, T::kCluster)},
    {"/det.v1.MasterService/SetClusterMessage", user(A::kAdminister, T::kCluster)},
    {"/det.v1.MasterService/DeleteClusterMessage", user(A::kAdminister, T::kCluster)},
    {"/det.v1.MasterService/GetTelemetry", user(A::kView, T::kNothing)},
    {"/det.v1.MasterService/MasterLogs", user(A::kAdminister, T::kCluster)},
    {"/det.v1.BindingService/BindRPToWorkspace", user(A::kManage, T::kCluster, "resource_pool_name")},
    {"/det.v1.BindingService/OverwriteRPWorkspaceBindings",
     user(A::kManage, T::kCluster, "resource_pool_name")},
    {"/det.v1.BindingService/UnbindRPFromWorkspace", user(A::kManage, T::kCluster, "resource_pool_name")},
    {"/det.v1.BindingService/ListWorkspacesBoundToRP", user(A::kView, T::kListed)},
    {"/det.v1.BindingService/ListRPsBoundToWorkspace", user(A::kView, T::kWorkspace, "workspace_id")},
    {"/det.v1.BindingService/GetKubernetesResourceManagers", user(A::kView, T::kNothing)},
    {"/det.v1.BindingService/ListWorkspaceIDsWithDefaultBindings", user(A::kView, T::kNothing)},
    {"/det.v1.BindingService/ListWorkspaceNamespaceBindings", user(A::kView, T::kWorkspace, "id")},
    {"/det.v1.BindingService/GetKubernetesResourceQuotas", user(A::kView, T::kWorkspace, "id")},
    {"/det.v1.LogService/PutTrialRetainLogs", user(A::kEdit, T::kTrial, "trial_id")},
    {"/det.v1.LogService/PutExperimentRetainLogs", user(A::kEdit, T::kExperiment, "experiment_id")},
    {"/det.v1.LogService/PutExperimentsRetainLogs", user(A::kEdit, T::kInside)},
    {"/det.v1.LogService/GetTrialRemainingLogRetentionDays", user(A::kView, T::kTrial, "id")},
    {"/det.v1.LogService/CleanupLogs", user(A::kAdminister, T::kCluster)},
    {"/det.v1.WorkspaceService/GetWorkspaces", user(A::kView, T::kListed)},
    {"/det.v1.WorkspaceService/GetWorkspace", user(A::kView, T::kWorkspace, "id")},
    {"/det.v1.WorkspaceService/PostWorkspace", user(A::kCreateWorkspace, T::kInside)},
    {"/det.v1.WorkspaceService/PatchWorkspace", user(A::kManage, T::kWorkspace, "id")},
    {"/det.v1.WorkspaceService/ArchiveWorkspace", user(A::kManage, T::kWorkspace, "id")},
    {"/det.v1.WorkspaceService/UnarchiveWorkspace", user(A::kManage, T::kWorkspace, "id")},
    {"/det.v1.WorkspaceService/DeleteWorkspace", user(A::kManage, T::kWorkspace, "id")},
    {"/det.v1.WorkspaceService/GetWorkspaceProjects", user(A::kView, T::kWorkspace, "id")},
    {"/det.v1.ProjectService/GetProject", user(A::kView, T::kProject, "id")},
    {"/det.v1.ProjectService/PostProject", user(A::kEdit, T::kWorkspace, "workspace_id")},
    {"/det.v1.ProjectService/PatchProject", user(A::kEdit, T::kProject, "id")},
    {"/det.v1.ProjectService/ArchiveProject", user(A::kEdit, T::kProject, "id")},
    {"/det.v1.ProjectService/UnarchiveProject", user(A::kEdit, T::kProject, "id")},
    {"/det.v1.ProjectService/DeleteProject", user(A::kManage, T::kProject, "id")},
    {"/det.v1.ProjectService/MoveProject",
     user({A::kManage, T::kProject, "project_id"}, {A::kManage, T::kWorkspace, "destination_workspace_id"})},
    {"/det.v1.ProjectService/MoveExperiment",
     user({A::kEdit, T::kExperiment, "experiment_id"}, {A::kEdit, T::kProject, "destination_project_id"})},
    {"/det.v1.ProjectService/MoveExperiments",
     user({A::kView, T::kProject, "project_id"}, {A::kEdit, T::kExperiment, "experiment_ids"},
          {A::kEdit, T::kProject, "destination_project_id"})},
    {"/det.v1.ClusterService/GetMaster", anyone()},
    {"/det.v1.ClusterService/GetAgents", user(A::kView, T::kListed)},
    {"/det.v1.ClusterService/GetAgent", user(A::kView, T::kListed)},
    {"/det.v1.ClusterService/GetSlots", user(A::kView, T::kListed)},
    {"/det.v1.ClusterService/DisableAgent", user(A::kAdminister, T::kCluster, "agent_id")},
    {"/det.v1.ClusterService/EnableAgent", user(A::kAdminister, T::kCluster, "agent_id")},
    {"/det.v1.ClusterService/DisableSlot",
     user({A::kAdminister, T::kCluster, "agent_id"}, {A::kAdminister, T::kCluster, "slot_id"})},
    {"/det.v1.ClusterService/EnableSlot",
     user({A::kAdminister, T::kCluster, "agent_id"}, {A::kAdminister, T::kCluster, "slot_id"})},
    {"/det.v1.JobService/GetJobs", user(A::kView, T::kListed)},
    {"/det.v1.JobService/GetJobQueueStats", user(A::kView, T::kNothing)},
    {"/det.v1.JobService/UpdateJobQueue", user(A::kEdit, T::kInside, "updates.job_id")},
    {"/det.v1.ExplanationService/ExplainTrial", user(A::kView, T::kTrial, "trial_id")},
    {"/det.v1.ExplanationService/ExplainExperiment", user(A::kView, T::kExperiment, "experiment_id")},
    {"/det.v1.BracketService/GetExperimentBrackets", user(A::kView, T::kExperiment, "experiment_id")},
    {"/det.v1.ExperimentService/CreateExperiment", user(A::kEdit, T::kInside)},
    {"/det.v1.ExperimentService/UploadExperiment", user(A::kEdit, T::kInside)},
    {"/det.v1.ExperimentService/CreateFromCodeArchive", user(A::kEdit, T::kInside)},
    {"/det.v1.DiagnosisService/GetDiagnosis", user(A::kView, T::kNothing)},
    {"/det.v1.ExperimentService/GetExperiments", user(A::kView, T::kListed)},
    {"/det.v1.ExperimentService/GetExperiment", user(A::kView, T::kExperiment, "experiment_id")},
    {"/det.v1.ExperimentService/GetExperimentTrials", user(A::kView, T::kExperiment, "experiment_id")},
    {"/det.v1.ExperimentService/GetExperimentCheckpoints", user(A::kView, T::kExperiment, "id")},
    {"/det.v1.ExperimentService/GetModelDef", user(A::kView, T::kExperiment, "experiment_id")},
    {"/det.v1.ExperimentService/ActivateExperiment", user(A::kEdit, T::kExperiment, "id")},
    {"/det.v1.ExperimentService/PauseExperiment", user(A::kEdit, T::kExperiment, "id")},
    {"/det.v1.ExperimentService/CancelExperiment", user(A::kEdit, T::kExperiment, "id")},
    {"/det.v1.ExperimentService/KillExperiment", user(A::kEdit, T::kExperiment, "id")},
    {"/det.v1.ExperimentService/ExtendExperiment", user(A::kEdit, T::kExperiment, "id")},
    {"/det.v1.ExperimentService/RetryExperiment", user(A::kEdit, T::kExperiment, "id")},
    {"/det.v1.TrialService/GetTrial", either(A::kView, T::kTrial, "trial_id")},
    {"/det.v1.TrialService/GetTrialByExternalID", user(A::kView, T::kInside)},
    {"/det.v1.TrialService/GetTrialWorkloads", user(A::kView, T::kTrial, "trial_id")},
    {"/det.v1.TrialService/GetTrialCheckpoints", user(A::kView, T::kTrial, "id")},
    {"/det.v1.TrialService/KillTrial", user(A::kEdit, T::kTrial, "id")},
    {"/det.v1.TrialService/CompareTrials", user(A::kView, T::kTrial, "trial_ids")},
    {"/det.v1.TrialService/GetMetricSeries", user(A::kView, T::kTrial, "trial_ids")},
    {"/det.v1.TrialService/GetMetrics", user(A::kView, T::kTrial, "trial_ids")},
    {"/det.v1.TrialService/GetTrainingMetrics", user(A::kView, T::kTrial, "trial_ids")},
    {"/det.v1.TrialService/GetValidationMetrics", user(A::kView, T::kTrial, "trial_ids")},
    {"/det.v1.AllocationService/GetTrialAllocations", user(A::kView, T::kTrial, "trial_id")},
    {"/det.v1.SearchService/SearchExperiments", user(A::kView, T::kListed)},
    {"/det.v1.CheckpointService/GetCheckpoint", either(A::kView, T::kCheckpoint, "checkpoint_uuid")},
    {"/det.v1.CheckpointService/DownloadCheckpoint", user(A::kView, T::kCheckpoint, "checkpoint_uuid")},
    {"/det.v1.MediaService/GetMedia", user(A::kView, T::kTrial, "trial_ids")},
    {"/det.v1.MediaService/GetMediaContents", user(A::kView, T::kTrial, "trial_ids")},
    {"/det.v1.MediaService/GetTrialFiles", user(A::kView, T::kTrial, "trial_id")},
    {"/det.v1.MediaService/DownloadTrialFile", user(A::kView, T::kTrial, "trial_id")},
    {"/det.v1.MediaService/ProfileTrial", user(A::kEdit, T::kTrial, "trial_id")},
    {"/det.v1.MediaService/GetTrialProfile", user(A::kView, T::kTrial, "trial_id")},
    {"/det.v1.MediaService/ReportMedia", allocation()},
    {"/det.v1.CommandService/GetCommands", user(A::kView, T::kListed)},
    {"/det.v1.CommandService/GetCommand", user(A::kView, T::kTask, "command_id")},
    {"/det.v1.CommandService/LaunchCommand", user(A::kRunTasks, T::kInside)},
    {"/det.v1.CommandService/UploadCommand", user(A::kRunTasks, T::kInside)},
    {"/det.v1.CommandService/KillCommand", user(A::kRunTasks, T::kTask, "command_id")},
    {"/det.v1.CommandService/SetCommandPriority", user(A::kRunTasks, T::kTask, "command_id")},
    {"/det.v1.CommandService/ExplainCommand", user(A::kView, T::kTask, "command_id")},
    {"/det.v1.InteractiveService/GetNotebooks", user(A::kView, T::kListed)},
    {"/det.v1.InteractiveService/GetNotebook", user(A::kView, T::kTask, "notebook_id")},
    {"/det.v1.InteractiveService/LaunchNotebook", user(A::kRunTasks, T::kInside)},
    {"/det.v1.InteractiveService/KillNotebook", user(A::kRunTasks, T::kTask, "notebook_id")},
    {"/det.v1.InteractiveService/SetNotebookPriority", user(A::kRunTasks, T::kTask, "notebook_id")},
    {"/det.v1.InteractiveService/GetShells", user(A::kView, T::kListed)},
    {"/det.v1.InteractiveService/GetShell", user(A::kView, T::kTask, "shell_id")},
    {"/det.v1.InteractiveService/LaunchShell", user(A::kRunTasks, T::kInside)},
    {"/det.v1.InteractiveService/KillShell", user(A::kRunTasks, T::kTask, "shell_id")},
    {"/det.v1.InteractiveService/SetShellPriority", user(A::kRunTasks, T::kTask, "shell_id")},
    {"/det.v1.InteractiveService/GetTensorboards", user(A::kView, T::kListed)},
    {"/det.v1.InteractiveService/GetTensorboard", user(A::kView, T::kTask, "tensorboard_id")},
    {"/det.v1.InteractiveService/LaunchTensorboard", user(A::kUseBoards, T::kInside)},
    {"/det.v1.InteractiveService/KillTensorboard", user(A::kUseBoards, T::kTask, "tensorboard_id")},
    {"/det.v1.InteractiveService/SetTensorboardPriority", user(A::kRunTasks, T::kTask, "tensorboard_id")},
    {"/det.v1.InteractiveService/IdleNotebook", user(A::kRunTasks, T::kTask, "notebook_id")},
    {"/det.v1.PrometheusService/Scrape", user(A::kView, T::kCluster)},
    {"/det.v1.UsageService/ResourceAllocationRaw", user(A::kView, T::kListed)},
    {"/det.v1.UsageService/ResourceAllocationAggregated", user(A::kView, T::kListed)},
    {"/det.v1.LogService/TrialLogs", user(A::kView, T::kTrial, "trial_id")},
    {"/det.v1.TemplateService/GetTemplates", user(A::kView, T::kListed)},
    {"/det.v1.TemplateService/GetTemplate", user(A::kView, T::kTemplate, "template_name")},
    {"/det.v1.TemplateService/PostTemplate", user(A::kEdit, T::kInside, "template_name")},
    {"/det.v1.TemplateService/PutTemplate", user(A::kEdit, T::kInside, "template_name")},
    {"/det.v1.TemplateService/DeleteTemplate", user(A::kEdit, T::kTemplate, "template_name")},
    {"/det.v1.ConfigPolicyService/GetGlobalConfigPolicies", user(A::kView, T::kNothing)},
    {"/det.v1.ConfigPolicyService/PutGlobalConfigPolicies", admin("workload_type")},
    {"/det.v1.ConfigPolicyService/GetWorkspaceConfigPolicies", user(A::kView, T::kWorkspace, "workspace_id")},
    {"/det.v1.ConfigPolicyService/PutWorkspaceConfigPolicies",
     user(A::kManage, T::kWorkspace, "workspace_id")},
    {"/det.v1.ConfigPolicyService/DeleteWorkspaceConfigPolicies",
     user(A::kManage, T::kWorkspace, "workspace_id")},
    {"/det.v1.ConfigPolicyService/DeleteGlobalConfigPolicies", admin("workload_type")},
    {"/det.v1.PilotService/GetPilots", user(A::kView, T::kNothing)},
    {"/det.v1.QuotaService/GetQuotas", user(A::kView, T::kListed)},
    {"/det.v1.QuotaService/SetQuota",
     user({A::kAdminister, T::kCluster, "resource"}, {A::kAdminister, T::kCluster, "scope"},
          {A::kAdminister, T::kCluster, "id"})},
    {"/det.v1.QuotaService/DeleteQuota",
     user({A::kAdminister, T::kCluster, "resource"}, {A::kAdminister, T::kCluster, "scope"},
          {A::kAdminister, T::kCluster, "id"})},
    {"/det.v1.ExperimentService/PatchExperiment", user(A::kEdit, T::kExperiment, "experiment.id")},
    {"/det.v1.ExperimentService/ArchiveExperiment", user(A::kEdit, T::kExperiment, "id")},
    {"/det.v1.ExperimentService/UnarchiveExperiment", user(A::kEdit, T::kExperiment, "id")},
    {"/det.v1.ExperimentService/DeleteExperiment", user(A::kEdit, T::kExperiment, "experiment_id")},
    {"/det.v1.ExperimentService/DeleteTensorboardFiles", user(A::kEdit, T::kExperiment, "experiment_id")},
    {"/det.v1.ExperimentService/PutExperimentLabel", user(A::kEdit, T::kExperiment, "experiment_id")},
    {"/det.v1.ExperimentService/DeleteExperimentLabel", user(A::kEdit, T::kExperiment, "experiment_id")},
    {"/det.v1.ExperimentService/GetExperimentLabels", user(A::kView, T::kListed)},
    {"/det.v1.ExperimentService/ContinueExperiment", user(A::kEdit, T::kExperiment, "id")},
    {"/det.v1.ExperimentService/ActivateExperiments", user(A::kEdit, T::kInside)},
    {"/det.v1.ExperimentService/PauseExperiments", user(A::kEdit, T::kInside)},
    {"/det.v1.ExperimentService/CancelExperiments", user(A::kEdit, T::kInside)},
    {"/det.v1.ExperimentService/KillExperiments", user(A::kEdit, T::kInside)},
    {"/det.v1.ExperimentService/ArchiveExperiments", user(A::kEdit, T::kInside)},
    {"/det.v1.ExperimentService/UnarchiveExperiments", user(A::kEdit, T::kInside)},
    {"/det.v1.ExperimentService/DeleteExperiments", user(A::kEdit, T::kInside)},
    {"/det.v1.ExperimentService/GetExperimentValidationHistory",
     user(A::kView, T::kExperiment, "experiment_id")},
    {"/det.v1.ExperimentService/GetBestSearcherValidationMetric",
     either(A::kView, T::kExperiment, "experiment_id")},
    {"/det.v1.ExperimentService/GetModelDefTree", user(A::kView, T::kExperiment, "experiment_id")},
    {"/det.v1.ExperimentService/GetModelDefFile", user(A::kView, T::kExperiment, "experiment_id")},
    {"/det.v1.ExperimentService/PreviewHPSearch", user(A::kView, T::kNothing)},
    {"/det.v1.CheckpointService/PatchCheckpoints", user(A::kEdit, T::kInside, "checkpoints.uuid")},
    {"/det.v1.CheckpointService/DeleteCheckpoints", user(A::kEdit, T::kCheckpoint, "checkpoint_uuids")},
    {"/det.v1.CheckpointService/CheckpointsRemoveFiles", user(A::kEdit, T::kCheckpoint, "checkpoint_uuids")},
    {"/det.v1.CheckpointService/PostCheckpointMetadata", user(A::kEdit, T::kCheckpoint, "checkpoint.uuid")},
    {"/det.v1.TaskService/GetTask", user(A::kView, T::kTask, "task_id")},
    {"/det.v1.TaskService/GetTaskAcceleratorData", user(A::kView, T::kTask, "task_id")},
    {"/det.v1.TaskService/CreateGenericTask", user(A::kRunTasks, T::kInside)},
    {"/det.v1.TaskService/GetGenericTaskConfig", user(A::kView, T::kTask, "task_id")},
    {"/det.v1.TaskService/Connect", user(A::kUseBoards, T::kConnection, "target.task_id")},
    {"/det.v1.TaskService/ConnectSsh", anyone()},
    {"/det.v1.TaskService/KillGenericTask", user(A::kRunTasks, T::kTask, "task_id")},
    {"/det.v1.TaskService/PauseGenericTask", user(A::kRunTasks, T::kTask, "task_id")},
    {"/det.v1.TaskService/UnpauseGenericTask", user(A::kRunTasks, T::kTask, "task_id")},
    {"/det.v1.TaskService/GetTaskContextDirectory", either(A::kView, T::kTask, "task_id")},
    {"/det.v1.RunService/RunPrepareForReporting", either(A::kEdit, T::kTrial, "run_id")},
    {"/det.v1.RunService/GetRunMetadata", either(A::kView, T::kTrial, "run_id")},
    {"/det.v1.RunService/PostRunMetadata", either(A::kEdit, T::kTrial, "run_id")},
    {"/det.v1.RunService/SearchRuns", user(A::kView, T::kListed)},
    {"/det.v1.RunService/KillRuns", user(A::kEdit, T::kInside)},
    {"/det.v1.RunService/PauseRuns", user(A::kEdit, T::kInside)},
    {"/det.v1.RunService/ResumeRuns", user(A::kEdit, T::kInside)},
    {"/det.v1.RunService/ArchiveRuns", user(A::kEdit, T::kInside)},
    {"/det.v1.RunService/UnarchiveRuns", user(A::kEdit, T::kInside)},
    {"/det.v1.RunService/DeleteRuns", user(A::kEdit, T::kInside)},
    {"/det.v1.RunService/MoveRuns", user(A::kEdit, T::kInside)},
    {"/det.v1.WorkspaceService/PinWorkspace", user(A::kView, T::kWorkspace, "id")},
    {"/det.v1.WorkspaceService/UnpinWorkspace", user(A::kView, T::kWorkspace, "id")},
    {"/det.v1.ProjectService/GetProjectByKey", user(A::kView, T::kListed)},
    {"/det.v1.ProjectService/GetProjectColumns", user(A::kView, T::kProject, "id")},
    {"/det.v1.ProjectService/GetProjectNumericMetricsRange", user(A::kView, T::kProject, "id")},
    {"/det.v1.ProjectService/AddProjectNote", user(A::kEdit, T::kProject, "project_id")},
    {"/det.v1.ProjectService/PutProjectNotes", user(A::kEdit, T::kProject, "project_id")},
    {"/det.v1.ClusterService/GetSlot", user(A::kView, T::kListed)},
    {"/det.v1.ClusterService/GetResourcePools", user(A::kView, T::kNothing)},
    {"/det.v1.JobService/GetJobsV2", user(A::kView, T::kListed)},
    {"/det.v1.WebhookService/GetWebhooks", user(A::kView, T::kListed)},
    {"/det.v1.WebhookService/PostWebhook", user(A::kEdit, T::kInside)},
    {"/det.v1.WebhookService/PatchWebhook", user(A::kEdit, T::kInside, "id")},
    {"/det.v1.WebhookService/DeleteWebhook", user(A::kEdit, T::kInside, "id")},
    {"/det.v1.WebhookService/TestWebhook", user(A::kEdit, T::kInside, "id")},
    {"/det.v1.WebhookService/PostWebhookEventData", either(A::kEdit, T::kExperiment, "experiment_id")},
    {"/det.v1.TemplateService/PatchTemplateConfig", user(A::kEdit, T::kTemplate, "template_name")},
    {"/det.v1.TemplateService/PatchTemplateName", user(A::kEdit, T::kTemplate, "old_name")},
    {"/det.v1.UserService/GetUserSetting", user(A::kView, T::kNothing)},
    {"/det.v1.UserService/PostUserSetting", user(A::kEdit, T::kNothing)},
    {"/det.v1.UserService/PostUserActivity", user(A::kView, T::kInside)},
    {"/det.v1.ProjectService/GetProjectsByUserActivity", user(A::kView, T::kListed)},
    {"/det.v1.UserService/ResetUserSetting", user(A::kEdit, T::kNothing)},
    {"/det.v1.UserService/PatchUsers", user(A::kAdminister, T::kCluster)},
    {"/det.v1.AllocationService/GetAllocation", user(A::kView, T::kAllocation, "allocation_id")},
    {"/det.v1.AllocationService/AllocationWaiting", allocation()},
    {"/det.v1.AllocationService/MarkAllocationResourcesDaemon", allocation()},
    {"/det.v1.AllocationService/AllocationAllGather", allocation()},
    {"/det.v1.AllocationService/AllocationPendingPreemptionSignal", allocation()},
    {"/det.v1.TaskService/GetTasks", user(A::kView, T::kListed)},
    {"/det.v1.TaskService/GetActiveTasksCount", user(A::kView, T::kNothing)},
    {"/det.v1.TaskService/TaskLogs", user(A::kView, T::kTask, "task_id")},
    {"/det.v1.TaskService/TaskLogsFields", user(A::kView, T::kTask, "task_id")},
    {"/det.v1.TaskService/TrialLogsFields", user(A::kView, T::kTrial, "trial_id")},
    {"/det.v1.DetachedService/PutExperiment", user(A::kEdit, T::kInside)},
    {"/det.v1.DetachedService/CreateTrial", user(A::kEdit, T::kExperiment, "experiment_id")},
    {"/det.v1.DetachedService/PutTrial",
     user(A::kEdit, T::kExperiment, "create_trial_request.experiment_id")},
    {"/det.v1.DetachedService/StartTrial", user(A::kEdit, T::kTrial, "trial_id")},
    {"/det.v1.DetachedService/PatchTrial", user(A::kEdit, T::kTrial, "trial_id")},
    {"/det.v1.ModelService/GetModels", user(A::kView, T::kListed)},
    {"/det.v1.ModelService/GetModelLabels", user(A::kView, T::kListed)},
    {"/det.v1.ModelService/GetModel", user(A::kViewModel, T::kModel, "model_name")},
    {"/det.v1.ModelService/PostModel", user(A::kEdit, T::kInside)},
    {"/det.v1.ModelService/PatchModel", user(A::kEdit, T::kModel, "model_name")},
    {"/det.v1.ModelService/ArchiveModel", user(A::kEdit, T::kModel, "model_name")},
    {"/det.v1.ModelService/UnarchiveModel", user(A::kEdit, T::kModel, "model_name")},
    {"/det.v1.ModelService/MoveModel",
     user({A::kEdit, T::kModel, "model_name"}, {A::kEdit, T::kWorkspace, "destination_workspace_id"})},
    {"/det.v1.ModelService/DeleteModel", user(A::kEdit, T::kModel, "model_name")},
    {"/det.v1.ModelService/GetModelVersions", user(A::kViewModel, T::kModel, "model_name")},
    {"/det.v1.ModelService/GetModelVersion", user(A::kViewModel, T::kModel, "model_name")},
    {"/det.v1.ModelService/PostModelVersion",
     user({A::kEdit, T::kModel, "model_name"}, {A::kView, T::kCheckpoint, "checkpoint_uuid"})},
    {"/det.v1.ModelService/PatchModelVersion", user(A::kEdit, T::kModel, "model_name")},
    {"/det.v1.ModelService/DeleteModelVersion",
     user({A::kEdit, T::kModel, "model_name"}, {A::kEdit, T::kInside, "model_version_num"})},
    {"/det.v1.TrialService/ReportTrialMetrics", allocation()},
    {"/det.v1.TrialService/ReportTrialTrainingMetrics", allocation()},
    {"/det.v1.TrialService/ReportTrialValidationMetrics", allocation()},
    {"/det.v1.TrialService/ReportTrialProgress", allocation()},
    {"/det.v1.TrialService/PostTrialRunnerMetadata", allocation()},
    {"/det.v1.TrialService/ReportTrialSearcherEarlyExit", allocation()},
    {"/det.v1.CheckpointService/ReportCheckpoint", allocation()},
    {"/det.v1.TaskService/PostTaskLogs", allocation()},
    {"/det.v1.AllocationService/AllocationRendezvousInfo", allocation()},
    {"/det.v1.AllocationService/AllocationPreemptionSignal", allocation()},
    {"/det.v1.AllocationService/AckAllocationPreemptionSignal", allocation()},
    {"/det.v1.AllocationService/PostAllocationAcceleratorData", allocation()},
    {"/det.v1.AllocationService/PostAllocationProxyAddress", allocation()},
    {"/det.v1.AllocationService/AllocationReady", allocation()},
    {"/det.v1.HarnessService/Session", allocation()},
    {"/det.v1.HarnessService/FallBack", allocation()},
    {"/det.v1.JoinService/PostJoinToken", user(A::kAdminister, T::kCluster, "agent_id")},
    {"/det.v1.JoinService/GetJoinTokens", user(A::kAdminister, T::kCluster)},
    {"/det.v1.JoinService/DeleteJoinToken", user(A::kAdminister, T::kCluster, "id")},
    {"/det.v1.JoinService/RevokeAgent", user(A::kAdminister, T::kCluster, "agent_id")},
    {"/det.v1.JoinService/Join", anyone()},
    {"/det.v1.JoinService/Renew", agent()},
    {"/det.v1.AgentService/Link", agent()},
    {"/det.v1.AgentService/GetContext", agent()},
    {"/det.v1.AgentService/ShipLogs", agent()},
    {"/det.v1.AgentService/Tunnel", agent()},
};

std::string rpc_of(const pb::MethodDescriptor& method) {
  return "/" + method.service()->full_name() + "/" + method.name();
}

/// Resolves a dotted path. Null when a part of it does not exist.
const pb::FieldDescriptor* field_of(const pb::Descriptor* type, std::string_view path) {
  const pb::FieldDescriptor* field = nullptr;
  for (const std::string& name : split(path, '.')) {
    if (field) type = field->message_type();
    field = type ? type->FindFieldByName(name) : nullptr;
    if (!field) return nullptr;
  }
  return field;
}

/// Formats an integer or string field; `index` applies to repeated fields.
std::string scalar(const pb::Message& message, const pb::FieldDescriptor* field, int index) {
  const pb::Reflection& read = *message.GetReflection();
  const bool many = field->is_repeated();
  switch (field->cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_INT32:
      return std::to_string(many ? read.GetRepeatedInt32(message, field, index)
                                 : read.GetInt32(message, field));
    case pb::FieldDescriptor::CPPTYPE_INT64:
      return std::to_string(many ? read.GetRepeatedInt64(message, field, index)
                                 : read.GetInt64(message, field));
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return many ? read.GetRepeatedString(message, field, index) : read.GetString(message, field);
    default:
      return "";
  }
}

/// Adds the values of the field at a dotted path, of every element where it passes a repeated field.
void add_ids(const pb::Message& message, std::string_view path, std::vector<std::string>& ids) {
  const std::size_t dot = path.find('.');
  const pb::FieldDescriptor* field =
      message.GetDescriptor()->FindFieldByName(std::string(path.substr(0, dot)));
  if (!field) return;
  const pb::Reflection& read = *message.GetReflection();
  const int count = field->is_repeated() ? read.FieldSize(message, field) : 1;
  for (int i = 0; i < count; ++i) {
    if (dot == path.npos)
      ids.push_back(scalar(message, field, i));
    else
      add_ids(
          field->is_repeated() ? read.GetRepeatedMessage(message, field, i) : read.GetMessage(message, field),
          path.substr(dot + 1), ids);
  }
}

void check_rule(const pb::MethodDescriptor& method, const Rule& rule, std::vector<std::string>& gaps) {
  const std::string name = rpc_of(method);
  if (*rule.field == '\0') {
    if (rule.target > Target::kCluster)
      // Rules up to kCluster have no id to check; their field is only shown in the audit log.
      gaps.push_back(name + ": the rule must say which field holds the object");
    return;
  }
  const pb::FieldDescriptor* field = field_of(method.input_type(), rule.field);
  if (!field)
    return gaps.push_back(name + ": " + method.input_type()->name() + " has no field " + rule.field);
  const auto type = field->cpp_type();
  if (type != pb::FieldDescriptor::CPPTYPE_INT32 && type != pb::FieldDescriptor::CPPTYPE_INT64 &&
      type != pb::FieldDescriptor::CPPTYPE_STRING)
    gaps.push_back(name + ": the field " + rule.field + " is neither number nor text");
}

}  // namespace

const Access* access(std::string_view method) {
  // Leaked on purpose: calls may arrive while static objects are destroyed.
  static const auto* const by_method = [] {
    auto* map = new std::map<std::string_view, const Access*>();
    for (const Entry& entry : kTable) map->emplace(entry.method, &entry.access);
    return map;
  }();
  auto found = by_method->find(method);
  return found == by_method->end() ? nullptr : found->second;
}

bool is_change(const Access& access) {
  for (const Rule& rule : access.rules())
    if (rule.action > Action::kView) return true;
  return false;
}

std::vector<std::string> object_ids(const Rule& rule, const pb::Message& request) {
  std::vector<std::string> ids;
  add_ids(request, rule.field, ids);
  return ids;
}

// Also used in error messages, so the nouns match those of the queries. Order of enum Target.
std::string_view target_name(Target target) {
  static constexpr std::string_view kNouns[] = {
      "",           "",      "",           "",         "user", "token", "workspace", "project",
      "experiment", "trial", "checkpoint", "template", "task", "task",  "model",     "allocation"};
  static_assert(std::size(kNouns) == static_cast<std::size_t>(Target::kAllocation) + 1);
  return kNouns[static_cast<std::size_t>(target)];
}

std::vector<std::string> access_gaps() {
  // Every method needs an entry. Equal counts then show that no entry is left over.
  std::vector<std::string> gaps;
  std::size_t known = 0;
  for (const auto* service : services()) {
    for (int i = 0; i < service->method_count(); ++i) {
      const pb::MethodDescriptor& method = *service->method(i);
      const Access* entry = access(rpc_of(method));
      if (!entry) {
        gaps.push_back(rpc_of(method) + ": has no entry");
        continue;
      }
      ++known;
      if (entry->requirement == Requirement::kUser && entry->rules().empty())
        gaps.push_back(rpc_of(method) + ": has no rule");
      for (const Rule& rule : entry->rules()) check_rule(method, rule, gaps);
    }
  }
  if (known != std::size(kTable)) gaps.push_back("the table has entries of methods that no service has");
  return gaps;
}

}  // namespace det::api
