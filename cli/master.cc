// Owns `det master`.
#include <iostream>

#include "base/yaml.h"
#include "cli/command.h"
#include "cli/not_offered.h"
#include "cli/print.h"
#include "det/v1/cluster.grpc.pb.h"

namespace det::cli {
namespace {

Action declare_info(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::Option* as_json = app.add_flag("--json", *json, "Print as JSON instead of YAML.");
  app.add_flag_callback("--yaml", [] {}, "Print as YAML, which is what happens anyway.")->excludes(as_json);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.anonymous());
    TRY_ASSIGN(const auto response,
               client->call(&v1::ClusterService::Stub::GetMaster, v1::GetMasterRequest()));
    TRY_ASSIGN(const Json value, to_json(response));
    if (*json) {
      print_json(value);
    } else {
      std::cout << to_yaml(value);
    }
    return 0;
  };
}

constexpr const char* kFiles = "the master's configuration and log are files on its machine";

}  // namespace

Command master_command() {
  return {{"master"},
          "Look at the master.",
          {},
          {{{"info"}, "Show the master's version and ids.", declare_info},
           {{"config"},
            "The master's settings.",
            {},
            {not_offered({"show"}, kFiles), not_offered({"set"}, kFiles)}},
           not_offered({"logs"}, kFiles),
           not_offered({"cluster-message"}, "there is no message of the day")}};
}

}  // namespace det::cli
