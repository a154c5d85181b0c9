// `det command`: runs any command line in an allocation of the cluster.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/logs.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/submit/code_archive.h"
#include "common/base/files.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/expconf/parse.h"
#include "common/yaml/yaml.h"
#include "det/v1/auth.methods.h"
#include "det/v1/command.methods.h"

namespace det::cli {
namespace {

/// Time that a master may be unreachable while the log is followed.
constexpr Duration kCommandFollowPatience = std::chrono::minutes(10);
/// Exit code for a command without one: it was killed before it started, or lost.
constexpr int kNoExitCode = 1;

std::string state_of(const v1::Command& command) {
  const std::string name = v1::Command::State_Name(command.state());
  return name.starts_with("STATE_") ? name.substr(6) : name;
}

struct RunOptions {
  std::vector<std::string> words;  ///< command line
  std::string config, context, template_name, workspace;
  std::vector<std::string> includes, overrides, volumes;
  std::vector<int> ports;
  bool detach = false;

  void declare(CLI::App& app) {
    // The command line starts at the first word that is not a flag, and keeps its own flags.
    app.fallthrough(false);
    app.prefix_command();
    app.final_callback([this, &app] { words = app.remaining(); });
    const auto repeated = [](CLI::Option* option) { option->allow_extra_args(false)->take_all(); };
    app.add_option("--config-file", config, "Configuration file of the command (YAML).");
    repeated(app.add_option("-v,--volume", volumes, "HOST_PATH:CONTAINER_PATH to mount; repeatable."));
    app.add_option("-c,--context", context, "Directory to upload; the command runs in it.");
    repeated(app.add_option("-i,--include", includes, "Additional file or directory to upload; repeatable."));
    app.add_option("-w,--workspace-name", workspace, "Workspace of the command.");
    repeated(app.add_option("--config", overrides,
                            "Override path.to.key=value, as resources.slots=0; repeatable."));
    app.add_option("--template", template_name, "Template with values for unset fields.");
    repeated(
        app.add_option("-p,--port", ports, "Port of the program to offer at /proxy/COMMAND/; repeatable.")
            ->check(CLI::Range(1, 65535)));
    app.add_flag("-d,--detach", detach, "Print the command's id and exit.");
  }
};

/// Parses "/host:/container" into an element of bind_mounts.
Result<Json> mount_of(const std::string& volume) {
  const std::size_t colon = volume.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == volume.size() || colon != volume.rfind(':'))
    return fail(Code::kInvalidArgument,
                "--volume: \"" + volume + "\" is not of the form HOST_PATH:CONTAINER_PATH");
  return Json{{"host_path", volume.substr(0, colon)}, {"container_path", volume.substr(colon + 1)}};
}

/// Returns the configuration to send. Later sources override earlier ones: the file, --config, `words` as the
/// entrypoint, --port, --volume.
Result<std::string> config_text(const RunOptions& options) {
  std::string text = "{}";
  if (!options.config.empty()) {
    auto read = read_file(options.config, 64 << 20);
    if (!read) return fail(Code::kInvalidArgument, read.error().message);
    text = std::move(*read);
  }
  std::vector<expconf::Override> overrides;
  for (const std::string& assignment : options.overrides) overrides.push_back({assignment});
  overrides.push_back({"entrypoint=" + dump_json(Json(options.words))});
  if (!options.ports.empty()) {
    Json ports = Json::array();
    for (const int port : options.ports)
      ports.push_back({{"proxy_port", port}, {"strip_prefix", true}, {"default_service_id", ports.empty()}});
    overrides.push_back({"environment.proxy_ports=" + dump_json(ports)});
  }
  if (!options.volumes.empty()) {
    TRY_ASSIGN(const YamlNode root, parse_yaml(text, options.config));
    // --volume adds to the mounts of the file. An override replaces a list as a whole, so both are merged
    // here.
    const YamlNode* const known = root.is_map() ? root.find("bind_mounts") : nullptr;
    Json mounts = known && known->is_list() ? Json(det::to_json(*known)) : Json::array();
    for (const std::string& volume : options.volumes) {
      TRY_ASSIGN(Json mount, mount_of(volume));
      mounts.push_back(std::move(mount));
    }
    overrides.push_back({"bind_mounts=" + dump_json(mounts)});
  }
  return expconf::apply_overrides(text, options.config.empty() ? "config" : options.config, overrides);
}

Result<v1::GetCommandResponse> get_command(Client& client, const std::string& id) {
  v1::GetCommandRequest request;
  request.set_command_id(id);
  return client.call(v1::CommandService::GetCommand, request);
}

/// Prints the command's log until it ends. Returns its exit code.
Result<int> follow_command(Client& client, const std::string& id) {
  client.set_patience(kCommandFollowPatience);
  v1::TaskLogsRequest request;
  request.set_task_id(id);
  TRY(follow_task_log(client, request,
                      [](const v1::LogEntry& entry) { std::cout << shown_log_line(entry) << std::flush; }));
  TRY_ASSIGN(const auto response, get_command(client, id));
  const v1::Command& command = response.command();
  if (command.has_exit_code() && command.exit_code() == 0) return 0;
  print_error({Code::kUnknown, "command " + id + " ended: " + command.exit_status(), {}});
  return command.has_exit_code() ? command.exit_code() : kNoExitCode;
}

Result<int> run_command(Session& session, const RunOptions& options) {
  const std::vector<std::string>& words = options.words;
  if (words.empty())
    return fail(Code::kInvalidArgument, "no command line; usage: det command run [FLAGS] COMMAND…");
  // prefix_command() passes unknown flags through as the start of the command line.
  if (words.front().starts_with("-"))
    return fail(Code::kInvalidArgument,
                "unknown flag " + words.front() + "; flags go before the command line");
  // Everything that can fail without the master is done first.
  TRY_ASSIGN(std::string text, config_text(options));
  TRY_ASSIGN(const CodeArchive archive, pack_code_archive(options.context, options.includes));
  TRY_ASSIGN(Client * client, session.client());
  v1::UploadCommandRequest first;
  v1::LaunchCommandRequest& request = *first.mutable_launch();
  request.set_text(std::move(text));
  request.set_file_name(options.config);
  request.set_template_name(options.template_name);
  request.set_request_id(uuid4());
  if (!options.workspace.empty()) {
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, options.workspace));
    request.set_workspace_id(workspace.id());
  }
  client->set_patience(kUploadPatience);
  TRY_ASSIGN(const v1::LaunchCommandResponse response,
             upload(*client, v1::CommandService::UploadCommand, first, archive.bytes));
  print_warnings(response.config_warnings());
  const std::string& id = response.command().id();
  if (options.detach) {
    std::cout << id << '\n';
    return 0;
  }
  std::cout << "Launched command (id: " << id << ")." << std::endl;
  return follow_command(*client, id);
}

struct CommandListOptions {
  bool all = false, quiet = false;
  std::string workspace, sort_by = "startTime", order_by = "asc";
  Output output;
  void declare(CLI::App& app) {
    output.declare(app);
    app.add_flag("-a,--all", all, "Include commands of other users.");
    app.add_flag("-q,--quiet", quiet, "Print only ids.");
    app.add_option("-w,--workspace-name", workspace, "Only commands of this workspace.");
    app.add_option("--sort-by", sort_by, "Sort key: id, description or startTime.")
        ->check(CLI::IsMember({"id", "description", "startTime"}));
    app.add_option("--order-by", order_by, "Sort order: asc or desc.")->check(CLI::IsMember({"asc", "desc"}));
  }
};

/// Lists all pages of commands; by default those of the current user only.
Status list_commands(Client& client, const CommandListOptions& options) {
  v1::GetCommandsRequest request;
  if (options.sort_by == "id") request.set_sort_by(v1::GetCommandsRequest::SORT_BY_ID);
  if (options.sort_by == "description") request.set_sort_by(v1::GetCommandsRequest::SORT_BY_DESCRIPTION);
  if (options.sort_by == "startTime") request.set_sort_by(v1::GetCommandsRequest::SORT_BY_START_TIME);
  request.set_order_by(options.order_by == "desc" ? v1::ORDER_BY_DESC : v1::ORDER_BY_ASC);
  if (!options.workspace.empty()) {
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(client, options.workspace));
    request.set_workspace_id(workspace.id());
  }
  if (!options.all) {
    TRY_ASSIGN(const auto me, client.call(v1::AuthService::CurrentUser, v1::CurrentUserRequest()));
    request.add_user_ids(me.user().id());
  }
  google::protobuf::RepeatedPtrField<v1::Command> commands;
  TRY(each_page(
      Paging(), request, [&](const auto& page) { return client.call(v1::CommandService::GetCommands, page); },
      [&](const v1::GetCommandsResponse& page) { commands.MergeFrom(page.commands()); }));
  if (options.quiet) {
    for (const v1::Command& command : commands) std::cout << command.id() << '\n';
    return {};
  }
  Table table{{"Id", "Owner", "Description", "State", "Exit Status", "Resource Pool", "Workspace ID"}, {}};
  for (const v1::Command& command : commands) {
    table.rows.push_back({command.id(), command.username(), command.description(), state_of(command),
                          command.exit_status(), command.resource_pool(),
                          std::to_string(command.workspace_id())});
  }
  return options.output.print(table, [&] { return list_to_json(commands); });
}

struct CommandOptions {
  std::string id;
  void declare(CLI::App& app) { app.add_option("ID", id, "Command id.")->required(); }
};

struct CommandDescribeOptions : CommandOptions {
  Output output;
  void declare(CLI::App& app) {
    CommandOptions::declare(app);
    output.declare(app);
  }
};

Status describe_command(Client& client, const CommandDescribeOptions& options) {
  TRY_ASSIGN(const auto response, get_command(client, options.id));
  const v1::Command& command = response.command();
  const Table table{{"Id", "Owner", "Description", "State", "Started", "Ended", "Slots", "Priority",
                     "Exit Status", "Resource Pool", "Workspace ID"},
                    {{command.id(), command.username(), command.description(), state_of(command),
                      time_text(command.start_time(), command.has_start_time()),
                      time_text(command.end_time(), command.has_end_time()), std::to_string(command.slots()),
                      std::to_string(command.priority()), command.exit_status(), command.resource_pool(),
                      std::to_string(command.workspace_id())}}};
  return options.output.print(table, [&] { return to_json(command); });
}

Status print_command_config(Client& client, const CommandOptions& options) {
  TRY_ASSIGN(const auto response, get_command(client, options.id));
  TRY_ASSIGN(const Json config, to_json(response.config()));
  std::cout << printable_lines(to_yaml(config));
  return {};
}

struct CommandLogOptions : CommandOptions {
  LogFlags lines;
  void declare(CLI::App& app) {
    CommandOptions::declare(app);
    lines.declare(app);
  }
};

Status print_command_log(Client& client, const CommandLogOptions& options) {
  return print_task_logs(client, options.id, options.lines);
}

struct CommandKillOptions {
  std::vector<std::string> ids;
  bool force = false;
  void declare(CLI::App& app) {
    app.add_option("ID", ids, "Command ids.")->required();
    app.add_flag("-f,--force", force, "Continue when a command cannot be killed.");
  }
};

/// Kills several commands. With --force a failure does not stop the others; the exit code is then 1.
Result<int> kill_commands(Client& client, const CommandKillOptions& options) {
  int code = 0;
  for (const std::string& id : options.ids) {
    v1::KillCommandRequest request;
    request.set_command_id(id);
    if (const auto done = client.call(v1::CommandService::KillCommand, request); !done) {
      if (!options.force) return tl::unexpected(done.error());
      print_error(done.error());
      code = 1;
      continue;
    }
    std::cout << "Killed command " << printable(id) << '\n';
  }
  return code;
}

struct CommandPriorityOptions : CommandOptions {
  int priority = 0;
  void declare(CLI::App& app) {
    CommandOptions::declare(app);
    app.add_option("PRIORITY", priority, "Priority from 1 to 99; smaller values go first.")
        ->required()
        ->check(CLI::Range(1, 99));
  }
};

Status set_command_priority(Client& client, const CommandPriorityOptions& options) {
  v1::SetCommandPriorityRequest request;
  request.set_command_id(options.id);
  request.set_priority(options.priority);
  TRY(client.call(v1::CommandService::SetCommandPriority, request));
  std::cout << "Set priority of command " << printable(options.id) << " to " << options.priority << '\n';
  return {};
}

}  // namespace

Command command_command() {
  return {{"command", "cmd"},
          "Run command lines on the cluster.",
          {},
          {{{"list", "ls"}, "List commands.", action(list_commands)},
           {{"run"},
            "Run a command line and print its output. Exits with the exit code of the command.",
            action(run_command)},
           {{"describe"}, "Show a command.", action(describe_command)},
           {{"config"}, "Print the configuration of a command.", action(print_command_config)},
           {{"logs"}, "Print the log of a command.", action(print_command_log)},
           {{"kill"}, "Kill commands.", action(kill_commands)},
           {{"set"},
            "Change a command.",
            {},
            {{{"priority"}, "Set the priority of a command.", action(set_command_priority)}}}}};
}

}  // namespace det::cli
