// Owns `det config-policies`: what the admin fixes in new experiments, and how far users may go.
#include <iostream>

#include "base/files.h"
#include "cli/command.h"
#include "cli/print.h"
#include "det/v1/policy.grpc.pb.h"
#include "master/expconf/policies.h"

namespace det::cli {
namespace {

using Stub = v1::ConfigPolicyService::Stub;

/// Upstream's other kind, tasks, the master refuses with the reason.
void add_workload(CLI::App& app, std::string& workload) {
  app.add_option("WORKLOAD", workload, "What they are for: experiment.")->required();
}

Action declare_describe(CLI::App& app) {
  auto workload = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false), yaml = std::make_shared<bool>(false);
  add_workload(app, *workload);
  CLI::Option* as_json = app.add_flag("--json", *json, "Print as JSON.");
  app.add_flag("--yaml", *yaml, "Print as YAML, which is what happens anyway.")->excludes(as_json);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::GetGlobalConfigPoliciesRequest request;
    request.set_workload_type(*workload);
    TRY_ASSIGN(const auto response, client->call(&Stub::GetGlobalConfigPolicies, request));
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
  auto workload = std::make_shared<std::string>(), file = std::make_shared<std::string>();
  add_workload(app, *workload);
  app.add_option("FILE", *file, "invariant_config and constraints (YAML or JSON).")->required();
  return [=](Session& session) -> Result<int> {
    auto text = read_file(*file, 64 << 20);
    if (!text) return fail(Code::kInvalidArgument, text.error().message);
    TRY(expconf::read_policies(*text, *file));
    TRY_ASSIGN(Client * client, session.client());
    v1::PutGlobalConfigPoliciesRequest request;
    request.set_workload_type(*workload);
    request.set_config_policies(*text);
    request.set_file_name(*file);
    TRY_ASSIGN(const auto response, client->call(&Stub::PutGlobalConfigPolicies, request));
    for (const std::string& warning : response.warnings())
      std::cerr << "warning: " << printable(warning) << '\n';
    std::cout << "Set the config policies for new experiments\n";
    return 0;
  };
}

Action declare_delete(CLI::App& app) {
  auto workload = std::make_shared<std::string>();
  add_workload(app, *workload);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::DeleteGlobalConfigPoliciesRequest request;
    request.set_workload_type(*workload);
    TRY(client->call(&Stub::DeleteGlobalConfigPolicies, request));
    std::cout << "Deleted the config policies\n";
    return 0;
  };
}

}  // namespace

Command config_policies_command() {
  return {{"config-policies", "cp"},
          "Fix and limit what new experiments may say.",
          {},
          {{{"describe"}, "Show the policies.", declare_describe},
           {{"set"}, "Set the policies, in place of those there are.", declare_set},
           {{"delete"}, "Delete the policies.", declare_delete}}};
}

}  // namespace det::cli
