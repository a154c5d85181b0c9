// `det config-policies`: fixed values and limits that administrators set for new experiments and tasks.
#include <functional>
#include <iostream>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/print.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "common/expconf/policies.h"
#include "det/v1/policy.grpc.pb.h"

namespace det::cli {
namespace {

using PolicyStub = v1::ConfigPolicyService::Stub;

/// Scope of a command: a kind of workload, in one workspace or the whole cluster.
struct Whose {
  std::string workload, workspace;

  void declare(CLI::App& app) {
    app.add_option("WORKLOAD", workload, "What they are for: experiment, or tasks (commands).")
        ->required()
        ->check(CLI::IsMember({"experiment", "tasks"}, CLI::ignore_case));
    app.add_option("-w,--workspace", workspace, "Of this workspace; else of the whole cluster.");
  }
  bool of_tasks() const { return to_lower(workload) == "tasks"; }
  /// The workload type as the API names it.
  const char* type() const { return of_tasks() ? "NTSC" : "EXPERIMENT"; }

  /// Calls `global` for the cluster, or `local` for a workspace. `more` fills in the request; the pointer of
  /// the other kind is null.
  template <typename Global, typename Local, typename Response>
  Result<Response> ask(
      Client& client, grpc::Status (PolicyStub::*global)(grpc::ClientContext*, const Global&, Response*),
      grpc::Status (PolicyStub::*local)(grpc::ClientContext*, const Local&, Response*),
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

Action declare_policy_describe(CLI::App& app) {
  auto whose = std::make_shared<Whose>();
  auto json = std::make_shared<bool>(false), yaml = std::make_shared<bool>(false);
  whose->declare(app);
  CLI::Option* as_json = app.add_flag("--json", *json, "Print as JSON.");
  app.add_flag("--yaml", *yaml, "Print as YAML, which is what happens anyway.")->excludes(as_json);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto response, whose->ask(*client, &PolicyStub::GetGlobalConfigPolicies,
                                               &PolicyStub::GetWorkspaceConfigPolicies));
    if (*json) {
      TRY_ASSIGN(const Json value, to_json(response.config_policies()));
      print_json(value);
    } else {
      std::cout << (response.text().empty() ? "No config policies are set.\n"
                                            : printable_lines(response.text()));
    }
    return 0;
  };
}

Action declare_set(CLI::App& app) {
  auto whose = std::make_shared<Whose>();
  auto file = std::make_shared<std::string>();
  whose->declare(app);
  app.add_option("FILE", *file, "invariant_config and constraints (YAML or JSON).")->required();
  return [=](Session& session) -> Result<int> {
    auto text = read_file(*file, 64 << 20);
    if (!text) return fail(Code::kInvalidArgument, text.error().message);
    // Validated before the call: a bad file needs no master.
    TRY(expconf::read_policies(
        *text, *file, whose->of_tasks() ? expconf::Workload::kTask : expconf::Workload::kExperiment));
    TRY_ASSIGN(Client * client, session.client());
    const auto fill = [&](auto* request) {
      request->set_config_policies(*text);
      request->set_file_name(*file);
    };
    TRY_ASSIGN(
        const auto response,
        whose->ask(*client, &PolicyStub::PutGlobalConfigPolicies, &PolicyStub::PutWorkspaceConfigPolicies,
                   {[&](auto* global, auto* local) { global ? fill(global) : fill(local); }}));
    for (const std::string& warning : response.warnings())
      std::cerr << "warning: " << printable(warning) << '\n';
    std::cout << "Set the config policies for new " << (whose->of_tasks() ? "tasks" : "experiments") << "\n";
    return 0;
  };
}

Action declare_policy_delete(CLI::App& app) {
  auto whose = std::make_shared<Whose>();
  whose->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY(whose->ask(*client, &PolicyStub::DeleteGlobalConfigPolicies,
                   &PolicyStub::DeleteWorkspaceConfigPolicies));
    std::cout << "Deleted the config policies\n";
    return 0;
  };
}

}  // namespace

Command config_policies_command() {
  return {{"config-policies", "cp"},
          "Fix and limit what new experiments and tasks may say.",
          {},
          {{{"describe"}, "Show the policies.", declare_policy_describe},
           {{"set"}, "Set the policies, in place of those there are.", declare_set},
           {{"delete"}, "Delete the policies.", declare_policy_delete}}};
}

}  // namespace det::cli
