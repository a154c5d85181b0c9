// `det master`: information, settings and log of the master.
#include <iostream>

#include "cli/command.h"
#include "cli/commands/not_offered.h"
#include "cli/output/print.h"
#include "common/yaml/yaml.h"
#include "det/v1/cluster.grpc.pb.h"
#include "det/v1/master.grpc.pb.h"

namespace det::cli {
namespace {

/// Time that the master may be unreachable while its log is followed.
constexpr Duration kMasterLogPatience = std::chrono::minutes(10);

/// Needs no login: the master serves its version and ids to every client.
Action declare_info(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::Option* as_json = app.add_flag("--json", *json, "Print as JSON instead of YAML.");
  app.add_flag_callback(
         "--yaml", [] {}, "Print as YAML, which is what happens anyway.")
      ->excludes(as_json);
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

Action declare_config_show(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::Option* as_json = app.add_flag("--json", *json, "Print as JSON instead of YAML.");
  app.add_flag_callback(
         "--yaml", [] {}, "Print as YAML, which is what happens anyway.")
      ->excludes(as_json);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto response,
               client->call(&v1::MasterService::Stub::GetMasterConfig, v1::GetMasterConfigRequest()));
    TRY_ASSIGN(const Json value, to_json(response.config()));
    if (*json) {
      print_json(value);
    } else {
      std::cout << to_yaml(value);
    }
    return 0;
  };
}

/// Changes the log level until the master restarts.
Action declare_config_set(CLI::App& app) {
  auto level = std::make_shared<std::string>();
  app.add_option("--log.level", *level, "trace, debug, info, warn or error; until the master ends.")
      ->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::PatchMasterConfigRequest request;
    request.mutable_config()->mutable_log()->set_level(*level);
    request.mutable_field_mask()->add_paths("log");
    TRY(client->call(&v1::MasterService::Stub::PatchMasterConfig, request));
    std::cout << "The master logs from level " << *level << " up, until it ends.\n";
    return 0;
  };
}

struct MasterLogFlags {
  bool follow = false, json = false;
  int tail = 0;
};

/// Prints log entries and advances the request's offset behind each, so that the stream can be resumed.
Status print_log(Client& client, const MasterLogFlags& flags, v1::MasterLogsRequest& request) {
  return client.stream(&v1::MasterService::Stub::MasterLogs, request,
                       [&](const v1::MasterLogsResponse& response) {
                         const auto& entry = response.log_entry();
                         if (flags.json) {
                           const auto value = to_json(entry);
                           if (value) std::cout << dump_json(*value) << '\n';
                         } else {
                           std::string level = v1::LogLevel_Name(entry.level());
                           level.erase(0, std::string_view("LOG_LEVEL_").size());
                           std::cout << time_text(entry.timestamp(), true) << " [" << level
                                     << "]: " << printable(entry.message()) << '\n';
                         }
                         if (flags.follow) std::cout.flush();
                         request.set_offset(entry.id());
                         return true;
                       });
}

/// Follows the log across restarts of the master. Each process of the master numbers its entries from the
/// start, so the offset is reset when the master's id has changed.
Status follow_log(Client& client, const MasterLogFlags& flags, v1::MasterLogsRequest& request) {
  client.set_patience(kMasterLogPatience);
  for (std::string before;;) {
    TRY_ASSIGN(const auto master, client.call(&v1::ClusterService::Stub::GetMaster, v1::GetMasterRequest()));
    if (!before.empty() && master.master_id() != before) request.set_offset(0);
    before = master.master_id();
    const Status ended = print_log(client, flags, request);
    if ((!ended && ended.error().code != Code::kUnavailable) || !client.reconnect()) return ended;
  }
}

Action declare_master_logs(CLI::App& app) {
  auto flags = std::make_shared<MasterLogFlags>();
  app.add_flag("-f,--follow", flags->follow, "Go on, also with the master that comes after this one.");
  app.add_option("--tail", flags->tail, "Only the last N lines.")->check(kPositive);
  app.add_flag("--json", flags->json, "One JSON object a line.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::MasterLogsRequest request;
    // A negative offset counts from the end.
    request.set_offset(-flags->tail);
    request.set_follow(flags->follow);
    TRY(flags->follow ? follow_log(*client, *flags, request) : print_log(*client, *flags, request));
    return 0;
  };
}

}  // namespace

Command master_command() {
  return {
      {"master"},
      "Look at the master.",
      {},
      {{{"info"}, "Show the master's version and ids.", declare_info},
       {{"config"},
        "The master's settings.",
        {},
        {{{"show"}, "Show the master's settings, without secrets; for administrators.", declare_config_show},
         {{"set"},
          "Change what can be changed while the master runs: how much it logs.",
          declare_config_set}}},
       {{"logs"}, "Show the newest lines of the master's log; for administrators.", declare_master_logs},
       not_offered({"cluster-message"}, "there is no message of the day")}};
}

}  // namespace det::cli
