// `det version`: versions of the client and the master.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/output/print.h"
#include "common/yaml/yaml.h"
#include "det/v1/cluster.grpc.pb.h"

namespace det::cli {
namespace {

Action declare_version(CLI::App&) {
  return [](Session& session) -> Result<int> {
    Json value = {{"client", {{"version", DET_VERSION}}}};
    TRY_ASSIGN(Client * client, session.anonymous());
    const auto response = client->call(&v1::ClusterService::Stub::GetMaster, v1::GetMasterRequest());
    if (response) {
      value["master"] = {{"address", client->address().url()},
                         {"version", response->release()},
                         {"cluster_id", response->cluster_id()},
                         {"cluster_name", response->cluster_name()}};
    }
    // The client's version is printed also when the master is unreachable.
    std::cout << to_yaml(value);
    if (!response) return tl::unexpected(response.error());
    return 0;
  };
}

}  // namespace

Command version_command() {
  return {{"version"}, "Show the versions of this program and of the master.", declare_version};
}

}  // namespace det::cli
