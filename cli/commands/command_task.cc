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
#include "det/v1/auth.grpc.pb.h"
#include "det/v1/command.grpc.pb.h"

namespace det::cli {
namespace {

using CommandStub = v1::CommandService::Stub;
/// Exit code for a command without one: it was killed before it started, or lost.
constexpr int kNoExitCode = 1;

std::string state_of(const v1::Command& command) {
  const std::string name = v1::Command::State_Name(command.state());
  return name.starts_with("STATE_") ? name.substr(6) : name;
}

/// Flags of `det command run`.
struct RunFlags {
  std::string config, context, template_name, workspace;
  std::vector<std::string> includes, overrides, volumes;
  bool detach = false;
};

/// Parses "/host:/container" into an element of bind_mounts.
Result<Json> mount_of(const std::string& volume) {
  const std::size_t colon = volume.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == volume.size() || colon != volume.rfind(':'))
    return fail(Code::kInvalidArgument, "--volume: HOST_PATH:CONTAINER_PATH was expected, not " + volume);
  return Json{{"host_path", volume.substr(0, colon)}, {"container_path", volume.substr(colon + 1)}};
}

/// Returns the configuration to send. Later sources override earlier ones: the file, --config, `words` as the
/// entrypoint, --volume.
Result<std::string> config_text(const RunFlags& flags, const std::vector<std::string>& words) {
  std::string text = "{}";
  if (!flags.config.empty()) {
    auto read = read_file(flags.config, 64 << 20);
    if (!read) return fail(Code::kInvalidArgument, read.error().message);
    text = std::move(*read);
  }
  std::vector<expconf::Override> overrides;
  for (const std::string& assignment : flags.overrides) overrides.push_back({assignment});
  overrides.push_back({"entrypoint=" + dump_json(Json(words))});
  if (!flags.volumes.empty()) {
    TRY_ASSIGN(const YamlNode root, parse_yaml(text, flags.config));
    // --volume adds to the mounts of the file. An override replaces a list as a whole, so both are merged
    // here.
    const YamlNode* const known = root.is_map() ? root.find("bind_mounts") : nullptr;
    Json mounts = known && known->is_list() ? Json(det::to_json(*known)) : Json::array();
    for (const std::string& volume : flags.volumes) {
      TRY_ASSIGN(Json mount, mount_of(volume));
      mounts.push_back(std::move(mount));
    }
    overrides.push_back({"bind_mounts=" + dump_json(mounts)});
  }
  return expconf::apply_overrides(text, flags.config.empty() ? "config" : flags.config, overrides);
}

Result<v1::GetCommandResponse> get_command(Client& client, const std::string& id) {
  v1::GetCommandRequest request;
  request.set_command_id(id);
  return client.call(&CommandStub::GetCommand, request);
}

/// Prints the command's log until it ends. Returns its exit code.
Result<int> follow_command(Client& client, const std::string& id) {
  v1::TaskLogsRequest request;
  request.set_task_id(id);
  TRY(follow_task_log(client, request,
                      [](const v1::LogEntry& entry) { std::cout << log_line(entry) << std::flush; }));
  TRY_ASSIGN(const auto response, get_command(client, id));
  const v1::Command& command = response.command();
  if (command.has_exit_code() && command.exit_code() == 0) return 0;
  print_error({Code::kUnknown, "command " + id + " ended: " + command.exit_status(), {}});
  return command.has_exit_code() ? command.exit_code() : kNoExitCode;
}

Result<int> run_command(Session& session, const RunFlags& flags, const std::vector<std::string>& words) {
  if (words.empty()) return fail(Code::kInvalidArgument, "say what to run: det command run [FLAGS] COMMAND…");
  // prefix_command() passes unknown flags through as the start of the command line.
  if (words.front().starts_with("-"))
    return fail(Code::kInvalidArgument,
                "unknown flag " + words.front() + "; flags go before the command line");
  // Everything that can fail without the master is done first.
  TRY_ASSIGN(std::string text, config_text(flags, words));
  TRY_ASSIGN(const CodeArchive archive, pack_code_archive(flags.context, flags.includes));
  TRY_ASSIGN(Client * client, session.client());
  v1::UploadCommandRequest first;
  v1::LaunchCommandRequest& request = *first.mutable_launch();
  request.set_text(std::move(text));
  request.set_file_name(flags.config);
  request.set_template_name(flags.template_name);
  request.set_request_id(uuid4());
  if (!flags.workspace.empty()) {
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, flags.workspace));
    request.set_workspace_id(workspace.id());
  }
  client->set_patience(kUploadPatience);
  TRY_ASSIGN(const v1::LaunchCommandResponse response,
             upload(*client, &CommandStub::UploadCommand, first, archive.bytes));
  for (const std::string& warning : response.config_warnings())
    std::cerr << "warning: " << printable(warning) << '\n';
  const std::string& id = response.command().id();
  if (flags.detach) {
    std::cout << id << '\n';
    return 0;
  }
  std::cout << "Launched command (id: " << id << ")." << std::endl;
  return follow_command(*client, id);
}

Action declare_run(CLI::App& app) {
  auto flags = std::make_shared<RunFlags>();
  // The command line starts at the first word that is not a flag, and keeps its own flags.
  app.fallthrough(false);
  app.prefix_command();
  const auto repeated = [](CLI::Option* option) { option->allow_extra_args(false)->take_all(); };
  app.add_option("--config-file", flags->config, "The command's configuration (YAML).");
  repeated(
      app.add_option("-v,--volume", flags->volumes, "HOST_PATH:CONTAINER_PATH to mount; may be repeated."));
  app.add_option("-c,--context", flags->context, "A directory of files that the command runs in.");
  repeated(app.add_option("-i,--include", flags->includes,
                          "One more file or directory to send; may be repeated."));
  app.add_option("-w,--workspace-name", flags->workspace, "The workspace it belongs to.");
  repeated(app.add_option("--config", flags->overrides,
                          "path.to.key=value, as resources.slots=0; may be repeated."));
  app.add_option("--template", flags->template_name,
                 "A template that fills in what the configuration leaves out.");
  app.add_flag("-d,--detach", flags->detach, "Print its id and leave it alone.");
  return [flags, its = &app](Session& session) { return run_command(session, *flags, its->remaining()); };
}

struct CommandListFlags {
  bool all = false, quiet = false;
  std::string workspace, sort_by = "startTime", order_by = "asc";
  Output output;
};

/// Lists all pages of commands; by default those of the current user only.
Result<int> list_commands(Session& session, const CommandListFlags& flags) {
  TRY_ASSIGN(Client * client, session.client());
  v1::GetCommandsRequest request;
  if (flags.sort_by == "id") request.set_sort_by(v1::GetCommandsRequest::SORT_BY_ID);
  if (flags.sort_by == "description") request.set_sort_by(v1::GetCommandsRequest::SORT_BY_DESCRIPTION);
  if (flags.sort_by == "startTime") request.set_sort_by(v1::GetCommandsRequest::SORT_BY_START_TIME);
  request.set_order_by(flags.order_by == "desc" ? v1::ORDER_BY_DESC : v1::ORDER_BY_ASC);
  if (!flags.workspace.empty()) {
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(*client, flags.workspace));
    request.set_workspace_id(workspace.id());
  }
  if (!flags.all) {
    TRY_ASSIGN(const auto me, client->call(&v1::AuthService::Stub::CurrentUser, v1::CurrentUserRequest()));
    request.add_user_ids(me.user().id());
  }
  google::protobuf::RepeatedPtrField<v1::Command> commands;
  TRY(each_page(
      Paging(), request, [&](const auto& page) { return client->call(&CommandStub::GetCommands, page); },
      [&](const v1::GetCommandsResponse& page) { commands.MergeFrom(page.commands()); }));
  if (flags.quiet) {
    for (const v1::Command& command : commands) std::cout << command.id() << '\n';
    return 0;
  }
  Table table{{"Id", "Owner", "Description", "State", "Exit Status", "Resource Pool", "Workspace ID"}, {}};
  for (const v1::Command& command : commands) {
    table.rows.push_back({command.id(), command.username(), command.description(), state_of(command),
                          command.exit_status(), command.resource_pool(),
                          std::to_string(command.workspace_id())});
  }
  TRY(flags.output.print(table, [&] { return list_to_json(commands); }));
  return 0;
}

Action declare_command_list(CLI::App& app) {
  auto flags = std::make_shared<CommandListFlags>();
  flags->output.declare(app);
  app.add_flag("-a,--all", flags->all, "Everybody's, not only your own.");
  app.add_flag("-q,--quiet", flags->quiet, "Only the ids.");
  app.add_option("-w,--workspace-name", flags->workspace, "Only of this workspace.");
  app.add_option("--sort-by", flags->sort_by, "id, description or startTime.")
      ->check(CLI::IsMember({"id", "description", "startTime"}));
  app.add_option("--order-by", flags->order_by, "asc or desc.")->check(CLI::IsMember({"asc", "desc"}));
  return [=](Session& session) { return list_commands(session, *flags); };
}

Action declare_command_describe(CLI::App& app) {
  auto id = std::make_shared<std::string>();
  auto output = std::make_shared<Output>();
  output->declare(app);
  app.add_option("ID", *id, "The command.")->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto response, get_command(*client, *id));
    const v1::Command& command = response.command();
    const Table table{
        {"Id", "Owner", "Description", "State", "Started", "Ended", "Slots", "Priority", "Exit Status",
         "Resource Pool", "Workspace ID"},
        {{command.id(), command.username(), command.description(), state_of(command),
          time_text(command.start_time(), command.has_start_time()),
          time_text(command.end_time(), command.has_end_time()), std::to_string(command.slots()),
          std::to_string(command.priority()), command.exit_status(), command.resource_pool(),
          std::to_string(command.workspace_id())}}};
    TRY(output->print(table, [&] { return to_json(command); }));
    return 0;
  };
}

Action declare_command_config(CLI::App& app) {
  auto id = std::make_shared<std::string>();
  app.add_option("ID", *id, "The command.")->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto response, get_command(*client, *id));
    TRY_ASSIGN(const Json config, to_json(response.config()));
    std::cout << printable_lines(to_yaml(config));
    return 0;
  };
}

Action declare_command_logs(CLI::App& app) {
  auto id = std::make_shared<std::string>();
  auto flags = std::make_shared<LogFlags>();
  app.add_option("ID", *id, "The command.")->required();
  flags->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    return print_task_logs(*client, *id, *flags);
  };
}

/// Kills several commands. With --force a failure does not stop the others; the exit code is then 1.
Action declare_command_kill(CLI::App& app) {
  auto ids = std::make_shared<std::vector<std::string>>();
  auto force = std::make_shared<bool>(false);
  app.add_option("ID", *ids, "Commands.")->required();
  app.add_flag("-f,--force", *force, "Go on when one cannot be killed.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    int code = 0;
    for (const std::string& id : *ids) {
      v1::KillCommandRequest request;
      request.set_command_id(id);
      if (const auto done = client->call(&CommandStub::KillCommand, request); !done) {
        if (!*force) return tl::unexpected(done.error());
        print_error(done.error());
        code = 1;
        continue;
      }
      std::cout << "Killed command " << printable(id) << '\n';
    }
    return code;
  };
}

Action declare_set_priority(CLI::App& app) {
  auto id = std::make_shared<std::string>();
  auto priority = std::make_shared<int>(0);
  app.add_option("ID", *id, "The command.")->required();
  app.add_option("PRIORITY", *priority, "1 to 99, the smaller goes first.")
      ->required()
      ->check(CLI::Range(1, 99));
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::SetCommandPriorityRequest request;
    request.set_command_id(*id);
    request.set_priority(*priority);
    TRY(client->call(&CommandStub::SetCommandPriority, request));
    std::cout << "Set priority of command " << printable(*id) << " to " << *priority << '\n';
    return 0;
  };
}

}  // namespace

Command command_command() {
  return {{"command", "cmd"},
          "Run command lines on the cluster.",
          {},
          {{{"list", "ls"}, "List commands.", declare_command_list},
           {{"run"}, "Run a command line, print its output, end as it ends.", declare_run},
           {{"describe"}, "Show one command.", declare_command_describe},
           {{"config"}, "Print its configuration.", declare_command_config},
           {{"logs"}, "Print its output.", declare_command_logs},
           {{"kill"}, "End commands.", declare_command_kill},
           {{"set"}, "Change one.", {}, {{{"priority"}, "Who goes first.", declare_set_priority}}}}};
}

}  // namespace det::cli
