// `det experiment`: the table of its verbs, and the short ones.
#include <iostream>
#include <optional>

#include "cli/commands/accounts.h"
#include "cli/experiment/experiment_verbs.h"
#include "cli/output/download.h"
#include "cli/output/logs.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/submit/follow.h"
#include "common/base/files.h"
#include "common/base/secret.h"
#include "common/yaml/yaml.h"
#include "det/v1/project.methods.h"

namespace det::cli {
namespace {

/// An RPC that changes the state of one experiment.
using Act = UnaryMethod<v1::ExperimentActionRequest, v1::ExperimentActionResponse>;

/// Declares a verb that makes the call `act` and prints `done`: activate, pause, cancel, kill, archive,
/// unarchive.
Command act_verb(std::vector<std::string> names, std::string summary, Act act, const std::string& done) {
  return {std::move(names), std::move(summary),
          action<ExperimentOptions>([=](Client& client, const ExperimentOptions& options) -> Status {
            v1::ExperimentActionRequest request;
            request.set_id(options.id);
            TRY(client.call(act, request));
            std::cout << done << " experiment " << options.id << '\n';
            return {};
          })};
}

struct ExtendOptions : ExperimentOptions {
  std::optional<std::int64_t> max_trials, max_time;
  void declare(CLI::App& app) {
    ExperimentOptions::declare(app);
    app.add_option("--max-trials", max_trials, "Total number of trials.");
    app.add_option("--max-time", max_time,
                   "Total training length of a trial, in the unit of max_time or max_length.");
  }
};

/// Raises the limits of a search. Unset flags keep their value.
Status extend(Session& session, const ExtendOptions& options) {
  if (!options.max_trials && !options.max_time)
    return fail(Code::kInvalidArgument, "nothing to extend; give --max-trials N, --max-time N, or both");
  TRY_ASSIGN(Client * client, session.client());
  v1::ExtendExperimentRequest request;
  request.set_id(options.id);
  if (options.max_trials) request.set_max_trials(*options.max_trials);
  if (options.max_time) request.set_max_time(*options.max_time);
  TRY(client->call(v1::ExperimentService::ExtendExperiment, request));
  std::cout << "Extended experiment " << options.id << '\n';
  return {};
}

struct RetryOptions : ExperimentOptions {
  void declare(CLI::App& app) {
    ExperimentOptions::declare(app);
    app.add_flag_callback(
        "--failed", [] {}, "Retry the failed trials (default, the only mode).");
  }
};

/// Restarts the failed trials.
Status retry(Client& client, const RetryOptions& options) {
  v1::ExperimentActionRequest request;
  request.set_id(options.id);
  TRY(client.call(v1::ExperimentService::RetryExperiment, request));
  std::cout << "Retrying the failed trials of experiment " << options.id << '\n';
  return {};
}

struct ExperimentLogOptions : ExperimentOptions {
  LogFlags lines;
  void declare(CLI::App& app) {
    ExperimentOptions::declare(app);
    lines.declare(app);
  }
};

Status print_experiment_log(Client& client, const ExperimentLogOptions& options) {
  TRY_ASSIGN(const auto trials, get_trials(client, options.id, Paging{.limit = 1}));
  if (trials.empty())
    return fail(Code::kNotFound,
                "experiment " + std::to_string(options.id) + " has no trial yet; try again later");
  return print_logs(client, trials.front().id(), options.lines);
}

struct WaitOptions : ExperimentOptions {
  double interval = 5;
  void declare(CLI::App& app) {
    ExperimentOptions::declare(app);
    app.add_option("--polling-interval", interval, "Polling interval in seconds.")
        ->check(CLI::Range(0.1, 3600.0))
        ->capture_default_str();
  }
};

/// Waits for the end. The exit code is 0 only for a completed experiment.
Result<int> wait(Client& client, const WaitOptions& options) {
  const Duration pause(static_cast<std::int64_t>(options.interval * 1e6));
  TRY_ASSIGN(const v1::Experiment end, wait_for_end(client, options.id, pause));
  std::cout << "Experiment " << options.id << " terminated with state " << state_text(end.state()) << '\n';
  return exit_code(end);
}

Status print_experiment_config(Client& client, const ExperimentOptions& options) {
  TRY_ASSIGN(const v1::Experiment experiment, get_experiment(client, options.id));
  TRY_ASSIGN(const Json config, to_json(experiment.config()));
  std::cout << to_yaml(config);
  return {};
}

struct DownloadModelDefOptions : ExperimentOptions {
  std::string directory = ".";
  void declare(CLI::App& app) {
    ExperimentOptions::declare(app);
    app.add_option("--output-dir", directory, "Destination directory.")->capture_default_str();
  }
};

Status download_model_def(Client& client, const DownloadModelDefOptions& options) {
  v1::GetModelDefRequest request;
  request.set_experiment_id(options.id);
  TRY_ASSIGN(const auto response, client.call(v1::ExperimentService::GetModelDef, request));
  TRY_ASSIGN(const std::string bytes, from_base64(response.b64_tgz()));
  const std::string name = "experiment_" + std::to_string(options.id) + "_model_def.tgz";
  TRY(make_directories(options.directory));
  TRY(write_file_atomic(options.directory + "/" + name, bytes));
  std::cout << "Wrote " << name << '\n';
  return {};
}

struct ExperimentDownloadOptions : ExperimentOptions {
  int top = 1;
  std::string directory = "checkpoints";
  MetricOrder order;
  bool quiet = false;
  void declare(CLI::App& app) {
    ExperimentOptions::declare(app);
    app.add_option("-o,--output-dir", directory, "Destination; each checkpoint gets a subdirectory.")
        ->capture_default_str();
    app.add_option("--top-n", top, "Number of checkpoints, the best first.")
        ->check(kPositive)
        ->capture_default_str();
    order.declare(app, "Validation metric (default: the searcher's metric).");
    app.add_flag("-q,--quiet", quiet, "Print only the directories.");
  }
};

/// Downloads the best checkpoints, each into a directory named by its uuid.
Status download_best(Client& client, const ExperimentDownloadOptions& options) {
  TRY_ASSIGN(const v1::Experiment experiment, get_experiment(client, options.id));
  TRY_ASSIGN(auto checkpoints, get_checkpoints(client, options.id));
  checkpoints = options.order.best_first(std::move(checkpoints), experiment.config());
  if (checkpoints.empty())
    return fail(Code::kNotFound,
                "experiment " + std::to_string(options.id) +
                    " has no completed checkpoint with a validation; see `det experiment lc`");
  Table table{{"Batch", "UUID", "Validation Metric", "Directory"}, {}};
  for (const v1::Checkpoint& checkpoint : checkpoints) {
    if (static_cast<int>(table.rows.size()) == options.top) break;
    const std::string target = options.directory + "/" + checkpoint.uuid();
    TRY(download_checkpoint(client, checkpoint.uuid(), target));
    if (options.quiet) std::cout << target << '\n';
    table.rows.push_back({std::to_string(checkpoint.steps_completed()), checkpoint.uuid(),
                          number_text(*metric_of(checkpoint, options.order.sort_by)), target});
  }
  if (!options.quiet) std::cout << shown(table);
  return {};
}

struct MoveOptions : ExperimentOptions {
  std::string workspace, project;
  void declare(CLI::App& app) {
    ExperimentOptions::declare(app);
    app.add_option("WORKSPACE", workspace, "Destination workspace.")->required();
    app.add_option("PROJECT", project, "Destination project.")->required();
  }
};

Status move_experiment(Client& client, const MoveOptions& options) {
  TRY_ASSIGN(const v1::Project project, find_project(client, options.workspace, options.project));
  v1::MoveExperimentRequest request;
  request.set_experiment_id(options.id);
  request.set_destination_project_id(project.id());
  TRY(client.call(v1::ProjectService::MoveExperiment, request));
  std::cout << "Moved experiment " << options.id << " to project " << printable(options.project) << '\n';
  return {};
}

}  // namespace

CLI::Option* add_id(CLI::App& app, int& id, const char* what) {
  return app.add_option("ID", id, what)->required()->check(kPositive);
}

Command experiment_command() {
  Command command{
      {"experiment", "e"},
      "Manage experiments.",
      {},
      {{{"create"}, "Create an experiment from a configuration and a model directory.", declare_create},
       list_verb(),
       describe_verb(),
       {{"logs"}, "Print the log of the first trial.", action(print_experiment_log)},
       list_trials_verb(),
       list_checkpoints_verb({"list-checkpoints", "lc"}),
       brackets_verb(),
       {{"config"}, "Print the configuration as YAML.", action(print_experiment_config)},
       {{"download"}, "Download the best checkpoints.", action(download_best)},
       {{"download-model-def"}, "Download the code archive.", action(download_model_def)},
       simulate_verb(),
       {{"wait"}, "Wait for the end. Exits with 1 unless the experiment has completed.", action(wait)},
       act_verb({"activate", "unpause"}, "Resume a paused experiment.",
                v1::ExperimentService::ActivateExperiment, "Activated"),
       act_verb({"pause"}, "Save checkpoints and release the slots.", v1::ExperimentService::PauseExperiment,
                "Paused"),
       act_verb({"cancel"}, "Save checkpoints and end the experiment.",
                v1::ExperimentService::CancelExperiment, "Canceled"),
       act_verb({"kill"}, "End the experiment without checkpoints.", v1::ExperimentService::KillExperiment,
                "Killed"),
       diff_verb(),
       watch_verb(),
       {{"move"}, "Move an experiment to another project.", action(move_experiment)},
       {{"extend"}, "Raise the limits of a search, also after its end.", action(extend)},
       {{"retry"}, "Retry failed trials from their checkpoints.", action(retry)},
       act_verb({"archive"}, "Archive an experiment that has ended.",
                v1::ExperimentService::ArchiveExperiment, "Archived"),
       act_verb({"unarchive"}, "Unarchive an experiment.", v1::ExperimentService::UnarchiveExperiment,
                "Unarchived")}};
  std::vector<Command> more = life_verbs();
  for (Command& verb : more) command.verbs.push_back(std::move(verb));
  return command;
}

}  // namespace det::cli
