// `det notebook`, `det shell` and `det tensorboard`: tasks with a program of the cluster.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/commands/not_offered.h"
#include "cli/output/logs.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/submit/code_archive.h"
#include "cli/tasks/port_forward.h"
#include "cli/tasks/shell_session.h"
#include "cli/tasks/tunnel_call.h"
#include "common/base/files.h"
#include "common/base/secret.h"
#include "common/base/wait.h"
#include "common/expconf/parse.h"
#include "common/yaml/yaml.h"
#include "det/v1/auth.methods.h"
#include "det/v1/interactive.methods.h"

namespace det::cli {
namespace {

/// Time for a task to get its slots and for its program to serve.
constexpr Duration kStartPatience = std::chrono::minutes(10);
/// Size of a request that the master accepts (kMaxRequestBytes in master/api/server.cc), and the part of it
/// for fields other than files and configuration.
constexpr std::int64_t kMaxLaunchBytes = 4 << 20, kLaunchFieldBytes = 4 << 10;

// Calls and messages of the kinds. `noun` as in the command, `title` as in sentences.
struct Notebooks {
  static constexpr const char* noun = "notebook";
  static constexpr const char* title = "notebook";
  using Task = v1::Notebook;
  using List = v1::GetNotebooksRequest;
  using Get = v1::GetNotebookRequest;
  using Launch = v1::LaunchNotebookRequest;
  using Kill = v1::KillNotebookRequest;
  using Priority = v1::SetNotebookPriorityRequest;
  static constexpr auto list = v1::InteractiveService::GetNotebooks;
  static constexpr auto get = v1::InteractiveService::GetNotebook;
  static constexpr auto launch = v1::InteractiveService::LaunchNotebook;
  static constexpr auto kill = v1::InteractiveService::KillNotebook;
  static constexpr auto set_priority = v1::InteractiveService::SetNotebookPriority;
  static const auto& tasks(const v1::GetNotebooksResponse& page) { return page.notebooks(); }
  template <typename Response>
  static const Task& task(const Response& response) {
    return response.notebook();
  }
  template <typename Request>
  static void set_id(Request& request, const std::string& id) {
    request.set_notebook_id(id);
  }
};
struct Shells {
  static constexpr const char* noun = "shell";
  static constexpr const char* title = "shell";
  using Task = v1::Shell;
  using List = v1::GetShellsRequest;
  using Get = v1::GetShellRequest;
  using Launch = v1::LaunchShellRequest;
  using Kill = v1::KillShellRequest;
  using Priority = v1::SetShellPriorityRequest;
  static constexpr auto list = v1::InteractiveService::GetShells;
  static constexpr auto get = v1::InteractiveService::GetShell;
  static constexpr auto launch = v1::InteractiveService::LaunchShell;
  static constexpr auto kill = v1::InteractiveService::KillShell;
  static constexpr auto set_priority = v1::InteractiveService::SetShellPriority;
  static const auto& tasks(const v1::GetShellsResponse& page) { return page.shells(); }
  template <typename Response>
  static const Task& task(const Response& response) {
    return response.shell();
  }
  template <typename Request>
  static void set_id(Request& request, const std::string& id) {
    request.set_shell_id(id);
  }
};
struct Tensorboards {
  static constexpr const char* noun = "tensorboard";
  static constexpr const char* title = "TensorBoard";
  using Task = v1::Tensorboard;
  using List = v1::GetTensorboardsRequest;
  using Get = v1::GetTensorboardRequest;
  using Launch = v1::LaunchTensorboardRequest;
  using Kill = v1::KillTensorboardRequest;
  using Priority = v1::SetTensorboardPriorityRequest;
  static constexpr auto list = v1::InteractiveService::GetTensorboards;
  static constexpr auto get = v1::InteractiveService::GetTensorboard;
  static constexpr auto launch = v1::InteractiveService::LaunchTensorboard;
  static constexpr auto kill = v1::InteractiveService::KillTensorboard;
  static constexpr auto set_priority = v1::InteractiveService::SetTensorboardPriority;
  static const auto& tasks(const v1::GetTensorboardsResponse& page) { return page.tensorboards(); }
  template <typename Response>
  static const Task& task(const Response& response) {
    return response.tensorboard();
  }
  template <typename Request>
  static void set_id(Request& request, const std::string& id) {
    request.set_tensorboard_id(id);
  }
};

template <typename Task>
std::string state_of(const Task& task) {
  return v1::Command::State_Name(task.state()).substr(std::string_view("STATE_").size());
}

/// Options of a noun's verbs with a task.
struct TaskOptions {
  std::string id;
  void declare(CLI::App& app) { app.add_option("ID", id, "Task id.")->required(); }
};

template <typename Kind>
Result<typename Kind::Task> get_task(Client& client, const std::string& id) {
  typename Kind::Get request;
  Kind::set_id(request, id);
  TRY_ASSIGN(const auto response, client.call(Kind::get, request));
  return Kind::task(response);
}

struct StartOptions {
  std::string config, context, template_name, workspace;
  std::vector<std::string> includes, overrides;
  bool detach = false;
  void declare(CLI::App& app) {
    const auto repeated = [](CLI::Option* option) { option->allow_extra_args(false)->take_all(); };
    app.add_option("--config-file", config, "Configuration file of the task (YAML).");
    app.add_option("-c,--context", context, "Directory to upload; the task runs in it.");
    repeated(app.add_option("-i,--include", includes, "Additional file or directory to upload; repeatable."));
    app.add_option("-w,--workspace-name", workspace, "Workspace of the task.");
    repeated(app.add_option("--config", overrides,
                            "Override path.to.key=value, as resources.slots=0; repeatable."));
    app.add_option("--template", template_name, "Template with values for unset fields.");
    app.add_flag("-d,--detach", detach, "Print the task's id and exit.");
  }
};
struct NotebookStartOptions : StartOptions {
  bool preview = false, no_browser = false;
  void declare(CLI::App& app) {
    StartOptions::declare(app);
    app.add_flag("--preview", preview, "Print the resulting configuration and exit.");
    app.add_flag("--no-browser", no_browser, "Accepted; no browser is ever opened.");
  }
};
struct TensorboardStartOptions : StartOptions {
  std::vector<int> experiments, trials;
  bool no_browser = false;
  void declare(CLI::App& app) {
    StartOptions::declare(app);
    app.add_option("EXPERIMENT", experiments, "Ids of experiments.");
    app.add_option("-t,--trial-ids", trials, "Ids of trials.");
    app.add_flag("--no-browser", no_browser, "Accepted; no browser is ever opened.");
  }
};

/// Fills the fields that all requests to launch have.
template <typename Request>
Status fill_launch(Client& client, const StartOptions& options, Request& request) {
  std::string text = "{}";
  if (!options.config.empty()) {
    auto read = read_file(options.config, 64 << 20);
    if (!read) return fail(Code::kInvalidArgument, read.error().message);
    text = std::move(*read);
  }
  const std::string file = options.config.empty() ? "config" : options.config;
  std::vector<expconf::Override> overrides;
  for (const std::string& assignment : options.overrides) overrides.push_back({assignment});
  TRY_ASSIGN(text, expconf::apply_overrides(text, file, overrides));
  TRY_ASSIGN(const YamlNode tree, parse_yaml(text, file));
  const auto read = google::protobuf::util::JsonStringToMessage(dump_json(Json(det::to_json(tree))),
                                                                request.mutable_config());
  if (!read.ok()) return fail(Code::kInvalidArgument, file + ": must be a map");
  TRY_ASSIGN(const auto entries, read_code_entries(options.context, options.includes));
  for (const ArchiveEntry& entry : entries) {
    v1::File* out = request.add_files();
    out->set_path(entry.path);
    out->set_type(entry.directory ? '5' : '0');
    out->set_mode(static_cast<int>(entry.mode));
    out->set_content(entry.content);
  }
  const auto bytes = static_cast<std::int64_t>(request.ByteSizeLong());
  if (bytes > kMaxLaunchBytes - kLaunchFieldBytes)
    return fail(Code::kInvalidArgument,
                (options.context.empty() ? "the files of --include" : "--context " + options.context) + ": " +
                    std::to_string(bytes) + " bytes to upload, the maximum is " +
                    std::to_string(kMaxLaunchBytes >> 20) + " MiB; name what is not needed in .detignore");
  request.set_template_name(options.template_name);
  request.set_request_id(uuid4());
  if (options.workspace.empty()) return {};
  TRY_ASSIGN(const v1::Workspace workspace, find_workspace(client, options.workspace));
  request.set_workspace_id(workspace.id());
  return {};
}

/// Waits until a tunnel to the task can be opened. Errors: kAborted when the task has ended.
template <typename Kind>
Status wait_until_served(Client& client, const std::string& id, const v1::TunnelTarget& target) {
  Status ended;
  const bool served = wait_until(
      [&] {
        TunnelCall call(client, target);
        const auto opened = call.opened();
        if (opened) {
          call.cancel();
          (void)call.finish();
          return true;
        }
        if (opened.error().code == Code::kUnavailable) return false;
        ended = tl::unexpected(opened.error());
        return true;
      },
      kStartPatience);
  if (!served)
    return fail(Code::kDeadlineExceeded, std::string(Kind::title) + " " + id +
                                             " does not serve yet; det task logs " + id +
                                             " may have the reason");
  if (ended) return {};
  TRY_ASSIGN(const auto task, get_task<Kind>(client, id));
  if (task.exit_status().empty()) return ended;
  return fail(Code::kAborted, std::string(Kind::title) + " " + id + " has ended: " + task.exit_status() +
                                  "; det task logs " + id + " has the reason");
}

v1::TunnelTarget page_of(const std::string& id) {
  v1::TunnelTarget target;
  target.set_task_id(id);
  return target;
}

/// Prints where the pages of a task are. `task` was launched or read with the right to edit it.
template <typename Kind>
void print_addresses(Client& client, const typename Kind::Task& task) {
  std::cout << "The " << Kind::title << " serves at " << client.address().url()
            << printable(task.service_address()) << "\nOn a local port: det " << Kind::noun << " open "
            << task.id() << std::endl;
}

template <typename Kind>
Result<int> await_pages(Client& client, const typename Kind::Task& task, bool detach) {
  if (detach) {
    std::cout << task.id() << '\n';
    return 0;
  }
  std::cout << "Launched " << Kind::title << " (id: " << task.id() << ")." << std::endl;
  TRY(wait_until_served<Kind>(client, task.id(), page_of(task.id())));
  print_addresses<Kind>(client, task);
  return 0;
}

Result<int> start_notebook(Client& client, const NotebookStartOptions& options) {
  v1::LaunchNotebookRequest request;
  TRY(fill_launch(client, options, request));
  request.set_preview(options.preview);
  TRY_ASSIGN(const auto response, client.call(Notebooks::launch, request));
  print_warnings(response.config_warnings());
  if (!options.preview) return await_pages<Notebooks>(client, response.notebook(), options.detach);
  TRY_ASSIGN(const Json config, to_json(response.config()));
  std::cout << printable_lines(to_yaml(config));
  return 0;
}

Result<int> start_tensorboard(Client& client, const TensorboardStartOptions& options) {
  v1::LaunchTensorboardRequest request;
  TRY(fill_launch(client, options, request));
  request.mutable_experiment_ids()->Assign(options.experiments.begin(), options.experiments.end());
  request.mutable_trial_ids()->Assign(options.trials.begin(), options.trials.end());
  TRY_ASSIGN(const auto response, client.call(Tensorboards::launch, request));
  print_warnings(response.config_warnings());
  return await_pages<Tensorboards>(client, response.tensorboard(), options.detach);
}

/// Returns a target that starts nothing visible, to learn whether shells can be started.
v1::TunnelTarget probe_of(const std::string& id) {
  v1::TunnelTarget target = page_of(id);
  target.mutable_shell()->add_command("true");
  return target;
}

Result<int> start_shell(Client& client, const StartOptions& options) {
  v1::LaunchShellRequest request;
  TRY(fill_launch(client, options, request));
  TRY_ASSIGN(const auto response, client.call(Shells::launch, request));
  print_warnings(response.config_warnings());
  const std::string& id = response.shell().id();
  if (options.detach) {
    std::cout << id << '\n';
    return 0;
  }
  std::cout << "Launched shell (id: " << id << ")." << std::endl;
  TRY(wait_until_served<Shells>(client, id, probe_of(id)));
  TRY_ASSIGN(const int code, run_shell(client, id, {}));
  std::cerr << "The task goes on. To reconnect: det shell open " << id << "; to end it: det shell kill " << id
            << '\n';
  return code;
}

struct ShellOpenOptions : TaskOptions {
  std::vector<std::string> words;  ///< command line
  void declare(CLI::App& app) {
    TaskOptions::declare(app);
    declare_command_line(app, words);
  }
};

Result<int> open_shell(Client& client, const ShellOpenOptions& options) {
  return run_shell(client, options.id, options.words);
}

struct OpenOptions : TaskOptions {
  int port = 0;
  void declare(CLI::App& app) {
    TaskOptions::declare(app);
    app.add_option("-p,--port", port, "Port of this machine; default: any free one.")
        ->check(CLI::Range(1, 65535));
  }
};

/// Forwards a local port to the pages of a task until Ctrl-C.
template <typename Kind>
Status open_pages(Client& client, const OpenOptions& options) {
  TRY_ASSIGN(const auto task, get_task<Kind>(client, options.id));
  TRY(wait_until_served<Kind>(client, options.id, page_of(options.id)));
  return forward_port(client, options.id, {.local = options.port, .task = 0}, task.service_address());
}

struct ListOptions {
  bool all = false, quiet = false;
  std::string workspace, sort_by = "startTime", order_by = "asc";
  Output output;
  void declare(CLI::App& app) {
    output.declare(app);
    app.add_flag("-a,--all", all, "Include tasks of other users.");
    app.add_flag("-q,--quiet", quiet, "Print only ids.");
    app.add_option("-w,--workspace-name", workspace, "Only tasks of this workspace.");
    app.add_option("--sort-by", sort_by, "Sort key: id, description or startTime.")
        ->check(CLI::IsMember({"id", "description", "startTime"}));
    app.add_option("--order-by", order_by, "Sort order: asc or desc.")->check(CLI::IsMember({"asc", "desc"}));
  }
};

/// Lists all pages of tasks of a kind; by default those of the current user only.
template <typename Kind>
Status list_interactive(Client& client, const ListOptions& options) {
  using List = typename Kind::List;
  List request;
  request.set_sort_by(options.sort_by == "id"            ? List::SORT_BY_ID
                      : options.sort_by == "description" ? List::SORT_BY_DESCRIPTION
                                                         : List::SORT_BY_START_TIME);
  request.set_order_by(options.order_by == "desc" ? v1::ORDER_BY_DESC : v1::ORDER_BY_ASC);
  if (!options.workspace.empty()) {
    TRY_ASSIGN(const v1::Workspace workspace, find_workspace(client, options.workspace));
    request.set_workspace_id(workspace.id());
  }
  if (!options.all) {
    TRY_ASSIGN(const auto me, client.call(v1::AuthService::CurrentUser, v1::CurrentUserRequest()));
    request.add_user_ids(me.user().id());
  }
  google::protobuf::RepeatedPtrField<typename Kind::Task> tasks;
  TRY(each_page(
      Paging(), request, [&](const auto& page) { return client.call(Kind::list, page); },
      [&](const auto& page) { tasks.MergeFrom(Kind::tasks(page)); }));
  if (options.quiet) {
    for (const auto& task : tasks) std::cout << task.id() << '\n';
    return {};
  }
  Table table{{"Id", "Owner", "Description", "State", "Exit Status", "Resource Pool", "Workspace ID"}, {}};
  for (const auto& task : tasks) {
    table.rows.push_back({task.id(), task.username(), task.description(), state_of(task), task.exit_status(),
                          task.resource_pool(), std::to_string(task.workspace_id())});
  }
  return options.output.print(table, [&] { return list_to_json(tasks); });
}

template <typename Kind>
Status print_interactive_config(Client& client, const TaskOptions& options) {
  typename Kind::Get request;
  Kind::set_id(request, options.id);
  TRY_ASSIGN(const auto response, client.call(Kind::get, request));
  TRY_ASSIGN(const Json config, to_json(response.config()));
  std::cout << printable_lines(to_yaml(config));
  return {};
}

struct InteractiveLogOptions : TaskOptions {
  LogFlags lines;
  void declare(CLI::App& app) {
    TaskOptions::declare(app);
    lines.declare(app);
  }
};

Status print_interactive_log(Client& client, const InteractiveLogOptions& options) {
  return print_task_logs(client, options.id, options.lines);
}

struct KillOptions {
  std::vector<std::string> ids;
  bool force = false;
  void declare(CLI::App& app) {
    app.add_option("ID", ids, "Task ids.")->required();
    app.add_flag("-f,--force", force, "Continue when a task cannot be killed.");
  }
};

/// Kills several tasks. With --force a failure does not stop the others; the exit code is then 1.
template <typename Kind>
Result<int> kill_interactive(Client& client, const KillOptions& options) {
  int code = 0;
  for (const std::string& id : options.ids) {
    typename Kind::Kill request;
    Kind::set_id(request, id);
    if (const auto done = client.call(Kind::kill, request); !done) {
      if (!options.force) return tl::unexpected(done.error());
      print_error(done.error());
      code = 1;
      continue;
    }
    std::cout << "Killed " << Kind::title << " " << printable(id) << '\n';
  }
  return code;
}

struct PriorityOptions : TaskOptions {
  int priority = 0;
  void declare(CLI::App& app) {
    TaskOptions::declare(app);
    app.add_option("PRIORITY", priority, "Priority from 1 to 99; smaller values go first.")
        ->required()
        ->check(CLI::Range(1, 99));
  }
};

template <typename Kind>
Status set_interactive_priority(Client& client, const PriorityOptions& options) {
  typename Kind::Priority request;
  Kind::set_id(request, options.id);
  request.set_priority(options.priority);
  TRY(client.call(Kind::set_priority, request));
  std::cout << "Set priority of " << Kind::title << " " << printable(options.id) << " to " << options.priority
            << '\n';
  return {};
}

/// Returns the noun of a kind with the verbs that all kinds have, and `start` and `open`.
template <typename Kind>
Command noun_of(const std::string& summary, Command start, Command open) {
  const std::string title = Kind::title;
  return {
      {Kind::noun},
      summary,
      {},
      {{{"list", "ls"}, "List " + title + "s.", action(list_interactive<Kind>)},
       std::move(start),
       std::move(open),
       {{"config"}, "Print the configuration of a " + title + ".", action(print_interactive_config<Kind>)},
       {{"logs"}, "Print the log of a " + title + ".", action(print_interactive_log)},
       {{"kill"}, "Kill " + title + "s.", action(kill_interactive<Kind>)},
       {{"set"},
        "Change a " + title + ".",
        {},
        {{{"priority"}, "Set the priority of a " + title + ".", action(set_interactive_priority<Kind>)}}}}};
}

}  // namespace

Command notebook_command() {
  return noun_of<Notebooks>("Run notebooks on the cluster.",
                            {{"start"}, "Start Jupyter on the cluster.", action(start_notebook)},
                            {{"open"}, "Forward a local port to a notebook.", action(open_pages<Notebooks>)});
}

Command shell_command() {
  Command noun = noun_of<Shells>(
      "Run shells on the cluster.",
      {{"start"}, "Start a task for shells, and open one.", action(start_shell)},
      {{"open"}, "Open a shell in a running task, or run a command line there.", action(open_shell)});
  noun.verbs.push_back(not_offered(
      {"show-ssh-command"}, "shells need no ssh; det shell open ID COMMAND runs a command line in a task"));
  return noun;
}

Command tensorboard_command() {
  return noun_of<Tensorboards>(
      "Show metrics in TensorBoard.",
      {{"start"}, "Start TensorBoard on the files of experiments and trials.", action(start_tensorboard)},
      {{"open"}, "Forward a local port to a TensorBoard.", action(open_pages<Tensorboards>)});
}

}  // namespace det::cli
