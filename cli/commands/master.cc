// `det master`: information, settings and log of the master; `det version`.
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/commands/not_offered.h"
#include "cli/output/print.h"
#include "common/base/event.h"
#include "common/yaml/yaml.h"
#include "det/v1/cluster.methods.h"
#include "det/v1/master.methods.h"

namespace det::cli {
namespace {

/// Time that the master may be unreachable while its log is followed.
constexpr Duration kMasterLogPatience = std::chrono::minutes(10);
constexpr const char* kClusterMessage = "set it with `det dev curl -X PUT /api/v1/master/cluster_message`";

Result<v1::GetMasterResponse> get_master(Client& client) {
  return client.call(v1::ClusterService::GetMaster, v1::GetMasterRequest());
}

/// Needs no login: the master serves its version and ids to every client.
Status print_master_info(Session& session, const ValueOutput& output) {
  TRY_ASSIGN(Client * client, session.anonymous());
  TRY_ASSIGN(const auto response, get_master(*client));
  return print_yaml(response, output);
}

Status print_master_config(Client& client, const ValueOutput& output) {
  TRY_ASSIGN(const auto response,
             client.call(v1::MasterService::GetMasterConfig, v1::GetMasterConfigRequest()));
  return print_yaml(response.config(), output);
}

struct MasterConfigOptions {
  std::string level;
  void declare(CLI::App& app) {
    app.add_option("--log.level", level,
                   "Log level until the master restarts: trace, debug, info, warn or error.")
        ->required();
  }
};

/// Changes the log level until the master restarts.
Status set_master_config(Client& client, const MasterConfigOptions& options) {
  v1::PatchMasterConfigRequest request;
  request.mutable_config()->mutable_log()->set_level(options.level);
  request.mutable_field_mask()->add_paths("log");
  TRY(client.call(v1::MasterService::PatchMasterConfig, request));
  std::cout << "Set the log level of the master to " << options.level << " until its next restart\n";
  return {};
}

struct MasterLogOptions {
  bool follow = false, json = false;
  int tail = 0;
  void declare(CLI::App& app) {
    app.add_flag("-f,--follow", follow, "Follow the log, also across restarts of the master.");
    app.add_option("--tail", tail, "Only the last N lines.")->check(kPositive);
    app.add_flag("--json", json, "Print one JSON object per line.");
  }
};

/// Prints log entries and advances the request's offset behind each, so that the stream can be resumed.
Status print_log(Client& client, const MasterLogOptions& options, v1::MasterLogsRequest& request) {
  return client.stream(v1::MasterService::MasterLogs, request, [&](const v1::MasterLogsResponse& response) {
    const auto& entry = response.log_entry();
    if (options.json) {
      const auto value = to_json(entry);
      if (value) std::cout << dump_json(*value) << '\n';
    } else {
      std::string level = v1::LogLevel_Name(entry.level());
      level.erase(0, std::string_view("LOG_LEVEL_").size());
      std::cout << time_text(entry.timestamp(), true) << " [" << level << "]: " << printable(entry.message())
                << '\n';
    }
    if (options.follow) std::cout.flush();
    request.set_offset(entry.id());
    return true;
  });
}

/// Follows the log across restarts of the master. Each process of the master numbers its entries from the
/// start, so the offset is reset when the master's id has changed.
Status follow_master_log(Client& client, const MasterLogOptions& options, v1::MasterLogsRequest& request) {
  client.set_patience(kMasterLogPatience);
  for (std::string before;;) {
    TRY_ASSIGN(const auto master, get_master(client));
    if (!before.empty() && master.master_id() != before) request.set_offset(0);
    before = master.master_id();
    Status ended = print_log(client, options, request);
    if ((!ended && ended.error().code != Code::kUnavailable) || !client.reconnect()) return ended;
    // A busy master is reachable and still returns UNAVAILABLE.
    Event().wait_for(std::chrono::seconds(1));
  }
}

Status print_master_log(Client& client, const MasterLogOptions& options) {
  v1::MasterLogsRequest request;
  // A negative offset counts from the end.
  request.set_offset(-options.tail);
  request.set_follow(options.follow);
  return options.follow ? follow_master_log(client, options, request) : print_log(client, options, request);
}

Status print_versions(Session& session, const NoOptions&) {
  Json value = {{"client", {{"version", DET_VERSION}}}};
  TRY_ASSIGN(Client * client, session.anonymous());
  const auto response = get_master(*client);
  if (response) {
    value["master"] = {{"address", client->address().url()},
                       {"version", response->release()},
                       {"cluster_id", response->cluster_id()},
                       {"cluster_name", response->cluster_name()}};
  }
  // The client's version is printed also when the master is unreachable.
  std::cout << to_yaml(value);
  TRY(response);
  return {};
}

}  // namespace

Command master_command() {
  return {{"master"},
          "Show and configure the master.",
          {},
          {{{"info"}, "Show version and ids of the master.", action(print_master_info)},
           {{"config"},
            "Settings of the master.",
            {},
            {{{"show"},
              "Show the settings without secrets. Requires a cluster admin.",
              action(print_master_config)},
             {{"set"}, "Change settings while the master runs: the log level.", action(set_master_config)}}},
           {{"logs"},
            "Show the newest lines of the master's log. Requires a cluster admin.",
            action(print_master_log)},
           not_offered({"cluster-message"}, kClusterMessage)}};
}

Command version_command() {
  return {{"version"}, "Show the versions of det and of the master.", action(print_versions)};
}

}  // namespace det::cli
