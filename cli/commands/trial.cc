// `det trial`: shows, logs, kills and downloads trials.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/experiment/experiment_verbs.h"
#include "cli/experiment/log_retention.h"
#include "cli/experiment/workloads.h"
#include "cli/output/download.h"
#include "cli/output/logs.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/tasks/shell_session.h"
#include "common/archive/archive.h"
#include "common/base/files.h"
#include "det/v1/cluster.methods.h"

namespace det::cli {
namespace {

struct TrialOptions {
  int id = 0;
  void declare(CLI::App& app) { add_id(app, id, "Trial id."); }
};

struct TrialDescribeOptions : TrialOptions {
  bool metrics = false, summary = false;
  Output output;
  Paging paging;
  void declare(CLI::App& app) {
    TrialOptions::declare(app);
    app.add_flag("--metrics", metrics, "Include the metrics of all training reports.");
    app.add_flag("--metrics-summary", summary, "Include count, minimum, maximum and mean of each metric.");
    output.declare(app);
    paging.declare(app);
  }
};

/// Prints a trial and its workloads: one JSON object, or two tables.
Status describe_trial(Client& client, const TrialDescribeOptions& options) {
  TRY_ASSIGN(const v1::Trial trial, get_trial(client, options.id));
  TRY_ASSIGN(const auto workloads,
             get_workloads(client, options.id, options.metrics, options.paging.resolved(options.output)));
  if (options.output.structured()) {
    TRY_ASSIGN(Json value, to_json(trial));
    TRY_ASSIGN(value["workloads"], list_to_json(workloads));
    options.output.print_value(value);
    return {};
  }
  TRY_ASSIGN(const Json hparams, to_json(trial.hparams()));
  Table head{{"Experiment ID", "State", "Restarts", "H-Params", "Started", "Ended"},
             {{std::to_string(trial.experiment_id()), state_text(trial, wall_now()),
               std::to_string(trial.restarts()), dump_json(hparams),
               time_text(trial.start_time(), trial.has_start_time()),
               time_text(trial.end_time(), trial.has_end_time())}}};
  if (options.summary) {
    TRY_ASSIGN(const Json summary, to_json(trial.summary_metrics()));
    head.columns.emplace_back("Summary Metrics");
    head.rows.front().push_back(dump_json(summary));
  }
  const Table body = workload_table({{options.id, workloads}}, false);
  std::cout << options.output.text(head) << (options.output.csv ? "\r\n" : "\n") << options.output.text(body);
  if (!trial.exit_reason().empty()) std::cout << "\nLast failure: " << printable_lines(trial.exit_reason());
  return {};
}

struct TrialLogOptions : TrialOptions {
  LogFlags lines;
  void declare(CLI::App& app) {
    TrialOptions::declare(app);
    lines.declare(app);
  }
};

Status print_trial_log(Client& client, const TrialLogOptions& options) {
  return print_logs(client, options.id, options.lines);
}

Status kill_trial(Client& client, const TrialOptions& options) {
  v1::KillTrialRequest request;
  request.set_id(options.id);
  TRY(client.call(v1::TrialService::KillTrial, request));
  std::cout << "Killed trial " << options.id << '\n';
  return {};
}

struct TrialDownloadOptions : TrialOptions {
  bool best = false, latest = false, quiet = false;
  std::string uuid, directory;
  MetricOrder order;
  void declare(CLI::App& app) {
    TrialOptions::declare(app);
    CLI::Option* by_metric =
        app.add_flag("--best", best, "Select the best checkpoint by the searcher's metric.");
    CLI::Option* newest = app.add_flag("--latest", latest, "Select the latest checkpoint (default).");
    app.add_option("--uuid", uuid, "Select the checkpoint with this UUID.")
        ->excludes(by_metric)
        ->excludes(newest);
    by_metric->excludes(newest);
    order.declare(app, "Select the best checkpoint by this validation metric.")->excludes(newest);
    app.add_option("-o,--output-dir", directory, "Destination directory (default: checkpoints/UUID).");
    app.add_flag("-q,--quiet", quiet, "Print only the directory.");
  }
};

/// Returns the uuid of the selected checkpoint: --uuid, the best by a metric, else the latest. Errors:
/// kNotFound.
Result<std::string> choose_checkpoint(Client& client, const TrialDownloadOptions& options) {
  if (!options.uuid.empty()) return options.uuid;
  TRY_ASSIGN(const v1::Trial trial, get_trial(client, options.id));
  const std::string none = "trial " + std::to_string(options.id) + " has no completed checkpoint";
  if (options.best || !options.order.sort_by.empty()) {
    TRY_ASSIGN(const v1::Experiment experiment, get_experiment(client, trial.experiment_id()));
    TRY_ASSIGN(auto checkpoints, get_trial_checkpoints(client, options.id));
    checkpoints = options.order.best_first(std::move(checkpoints), experiment.config());
    if (checkpoints.empty()) return fail(Code::kNotFound, none + " with a validation; use --latest");
    return checkpoints.front().uuid();
  }
  if (trial.latest_checkpoint_uuid().empty()) return fail(Code::kNotFound, none + "; try again later");
  return trial.latest_checkpoint_uuid();
}

/// Downloads one checkpoint of a trial: by default the latest.
Status download_from_trial(Client& client, const TrialDownloadOptions& options) {
  TRY_ASSIGN(const std::string uuid, choose_checkpoint(client, options));
  const std::string target = options.directory.empty() ? "checkpoints/" + uuid : options.directory;
  TRY(download_checkpoint(client, uuid, target));
  std::cout << (options.quiet ? target : "Downloaded checkpoint " + uuid + " to " + target) << '\n';
  return {};
}

struct TrialShellOptions : TrialOptions {
  std::vector<std::string> words;  ///< command line
  void declare(CLI::App& app) {
    TrialOptions::declare(app);
    declare_command_line(app, words);
  }
};

/// Opens a shell in the current allocation of a trial. Exits with the shell's exit code.
Result<int> open_trial_shell(Client& client, const TrialShellOptions& options) {
  TRY_ASSIGN(const v1::Trial trial, get_trial(client, options.id));
  return run_shell(client, trial.task_id(), options.words);
}

struct TrialRetentionOptions : TrialOptions {
  LogRetention retention;
  void declare(CLI::App& app) {
    TrialOptions::declare(app);
    retention.declare(app);
  }
};

/// Sets how long the log of a trial is kept.
Status set_trial_retention(Client& client, const TrialRetentionOptions& options) {
  v1::PutTrialRetainLogsRequest request;
  request.set_trial_id(options.id);
  request.set_num_days(options.retention.sent());
  TRY(client.call(v1::LogService::PutTrialRetainLogs, request));
  options.retention.print("trial " + std::to_string(options.id));
  return {};
}

struct SupportBundleOptions : TrialOptions {
  std::string directory = ".";
  void declare(CLI::App& app) {
    TrialOptions::declare(app);
    app.add_option("-o,--output-dir", directory, "Destination directory.")->capture_default_str();
  }
};

/// Writes an archive for a bug report: log, trial, experiment, workloads and master information.
Status write_support_bundle(Client& client, const SupportBundleOptions& options) {
  TRY_ASSIGN(const v1::Trial trial, get_trial(client, options.id));
  TRY_ASSIGN(const v1::Experiment experiment, get_experiment(client, trial.experiment_id()));
  TRY_ASSIGN(const auto workloads, get_workloads(client, options.id, true));
  TRY_ASSIGN(const auto master, client.call(v1::ClusterService::GetMaster, v1::GetMasterRequest()));
  std::string log;
  v1::TrialLogsRequest request;
  request.set_trial_id(options.id);
  TRY(client.stream(v1::LogService::TrialLogs, request,
                    [&](const v1::LogEntry& entry) { return log += log_line(entry), true; }));
  TRY_ASSIGN(const Json about_trial, to_json(trial));
  TRY_ASSIGN(const Json about_experiment, to_json(experiment));
  TRY_ASSIGN(const Json about_workloads, list_to_json(workloads));
  TRY_ASSIGN(const Json about_master, to_json(master));
  const std::string name = "det-bundle-trial-" + std::to_string(options.id);
  std::vector<ArchiveEntry> entries{{name, "", true, 0755}, {name + "/trial.log", std::move(log)}};
  for (const auto& [file, value] :
       {std::pair{"trial.json", &about_trial}, std::pair{"experiment.json", &about_experiment},
        std::pair{"workloads.json", &about_workloads}, std::pair{"master.json", &about_master}})
    entries.push_back({name + "/" + file, dump_json(*value, 2) + "\n"});
  TRY_ASSIGN(const std::string bytes, pack_entries(std::move(entries)));
  const std::string path = options.directory + "/" + name + ".tar.gz";
  TRY(make_directories(options.directory));
  TRY(write_file_atomic(path, bytes));
  std::cout << "Wrote " << path << '\n';
  return {};
}

}  // namespace

Command trial_command() {
  Command trial{{"trial", "t"},
                "Manage trials.",
                {},
                {{{"describe"}, "Show a trial with its metrics and checkpoints.", action(describe_trial)},
                 {{"logs"}, "Print the log of a trial.", action(print_trial_log)},
                 {{"download"}, "Download a checkpoint of a trial.", action(download_from_trial)},
                 {{"kill"}, "Kill a trial.", action(kill_trial)},
                 {{"shell"},
                  "Open a shell beside the processes of a running trial, or run a command line there.",
                  action(open_trial_shell)},
                 {{"support-bundle"},
                  "Write log, metrics and configuration of a trial to an archive.",
                  action(write_support_bundle)},
                 {{"set"},
                  "Change a trial.",
                  {},
                  {{{"log-retention"}, "Set how long the log is kept.", action(set_trial_retention)}}}}};
  for (Command& verb : trial_file_verbs()) trial.verbs.push_back(std::move(verb));
  trial.verbs.push_back(trial_profile_verb());
  return trial;
}

}  // namespace det::cli
