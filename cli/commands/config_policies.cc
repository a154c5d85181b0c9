// `det config-policies`: fixed values and limits that administrators set for new experiments and tasks.
#include <functional>
#include <iostream>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/print.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "common/expconf/policies.h"
#include "det/v1/policy.methods.h"

namespace det::cli {
namespace {

/// Scope of a command: a kind of workload, in one workspace or the whole cluster.
struct PolicyOptions {
  std::string workload, workspace;

  void declare(CLI::App& app) {
    app.add_option("WORKLOAD", workload, "Kind of workload: experiment, or tasks (commands).")
        ->required()
        ->check(CLI::IsMember({"experiment", "tasks"}, CLI::ignore_case));
    app.add_option("-w,--workspace", workspace, "Workspace name (default: the whole cluster).");
  }
  bool of_tasks() const { return to_lower(workload) == "tasks"; }
  /// The workload type as the API names it.
  const char* type() const { return of_tasks() ? "NTSC" : "EXPERIMENT"; }

  /// Calls `global` for the cluster, or `local` for a workspace. `more` fills in the request; the pointer of
  /// the other kind is null.
  template <typename Global, typename Local, typename Response>
  Result<Response> ask(
      Client& client, UnaryMethod<Global, Response> global, UnaryMethod<Local, Response> local,
      const std::function<void(Global*, Local*)>& more = [](Global*, Local*) {}) const {
    if (workspace.empty()) {
      Global request;
      request.set_workload_type(type());
      more(&request, nullptr);
      return client.call(global, request);
    }
    TRY_ASSIGN(const v1::Workspace found, find_workspace(client, workspace));
    Local request;
    request.set_workspace_id(found.id());
    request.set_workload_type(type());
    more(nullptr, &request);
    return client.call(local, request);
  }
};

struct DescribePolicyOptions : PolicyOptions {
  bool json = false;
  void declare(CLI::App& app) {
    PolicyOptions::declare(app);
    CLI::Option* as_json = app.add_flag("--json", json, "Print as JSON.");
    app.add_flag_callback(
           "--yaml", [] {}, "Print as YAML (default).")
        ->excludes(as_json);
  }
};

Status describe_policies(Client& client, const DescribePolicyOptions& options) {
  TRY_ASSIGN(const auto response, options.ask(client, v1::ConfigPolicyService::GetGlobalConfigPolicies,
                                              v1::ConfigPolicyService::GetWorkspaceConfigPolicies));
  if (options.json) return print_json(response.config_policies());
  std::cout << (response.text().empty() ? "No config policies are set.\n" : printable_lines(response.text()));
  return {};
}

struct SetPolicyOptions : PolicyOptions {
  std::string file;
  void declare(CLI::App& app) {
    PolicyOptions::declare(app);
    app.add_option("FILE", file, "File with invariant_config and constraints (YAML or JSON).")->required();
  }
};

Status set_policies(Session& session, const SetPolicyOptions& options) {
  auto text = read_file(options.file, 64 << 20);
  if (!text) return fail(Code::kInvalidArgument, text.error().message);
  // Validated before the call: a bad file needs no master.
  TRY(expconf::read_policies(*text, options.file,
                             options.of_tasks() ? expconf::Workload::kTask : expconf::Workload::kExperiment));
  TRY_ASSIGN(Client * client, session.client());
  const auto fill = [&](auto* request) {
    request->set_config_policies(*text);
    request->set_file_name(options.file);
  };
  TRY_ASSIGN(const auto response,
             options.ask(*client, v1::ConfigPolicyService::PutGlobalConfigPolicies,
                         v1::ConfigPolicyService::PutWorkspaceConfigPolicies,
                         {[&](auto* global, auto* local) { global ? fill(global) : fill(local); }}));
  print_warnings(response.warnings());
  std::cout << "Set the config policies for new " << (options.of_tasks() ? "tasks" : "experiments") << "\n";
  return {};
}

Status delete_policies(Client& client, const PolicyOptions& options) {
  TRY(options.ask(client, v1::ConfigPolicyService::DeleteGlobalConfigPolicies,
                  v1::ConfigPolicyService::DeleteWorkspaceConfigPolicies));
  std::cout << "Deleted the config policies\n";
  return {};
}

}  // namespace

Command config_policies_command() {
  return {{"config-policies", "cp"},
          "Manage fixed values and limits of new experiments and tasks.",
          {},
          {{{"describe"}, "Show the config policies.", action(describe_policies)},
           {{"set"}, "Replace the config policies.", action(set_policies)},
           {{"delete"}, "Delete the config policies.", action(delete_policies)}}};
}

}  // namespace det::cli
