// `det trial`: shows, logs, kills and downloads trials.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands/not_offered.h"
#include "cli/experiment/experiment_verbs.h"
#include "cli/experiment/workloads.h"
#include "cli/output/download.h"
#include "cli/output/logs.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "common/archive/archive.h"
#include "common/base/files.h"
#include "det/v1/cluster.grpc.pb.h"

namespace det::cli {
namespace {

struct DescribeFlags {
  int id = 0;
  bool metrics = false, summary = false;
  Output output;
  Paging paging{.limit = 1000};
};

/// Prints a trial and its workloads: one JSON object, or two tables.
Result<int> describe_trial(Session& session, const DescribeFlags& flags) {
  TRY_ASSIGN(Client * client, session.client());
  TRY_ASSIGN(const v1::Trial trial, get_trial(*client, flags.id));
  TRY_ASSIGN(const auto workloads, get_workloads(*client, flags.id, flags.metrics, flags.paging));
  if (flags.output.structured()) {
    TRY_ASSIGN(Json value, to_json(trial));
    TRY_ASSIGN(value["workloads"], list_to_json(workloads));
    flags.output.print_value(value);
    return 0;
  }
  TRY_ASSIGN(const Json hparams, to_json(trial.hparams()));
  Table head{
      {"Experiment ID", "State", "Restarts", "H-Params", "Started", "Ended"},
      {{std::to_string(trial.experiment_id()), state_text(trial.state()), std::to_string(trial.restarts()),
        dump_json(hparams), time_text(trial.start_time(), trial.has_start_time()),
        time_text(trial.end_time(), trial.has_end_time())}}};
  if (flags.summary) {
    TRY_ASSIGN(const Json summary, to_json(trial.summary_metrics()));
    head.columns.emplace_back("Summary Metrics");
    head.rows.front().push_back(dump_json(summary));
  }
  const Table body = workload_table({{flags.id, workloads}}, false);
  std::cout << (flags.output.csv ? to_csv(head) + "\r\n" + to_csv(body)
                                 : to_text(head) + "\n" + to_text(body));
  if (!trial.exit_reason().empty()) std::cout << "\nLast failure: " << printable_lines(trial.exit_reason());
  return 0;
}

Action declare_describe_trial(CLI::App& app) {
  auto flags = std::make_shared<DescribeFlags>();
  add_id(app, flags->id, "The trial's id.");
  app.add_flag("--metrics", flags->metrics, "With what each training report said.");
  app.add_flag("--metrics-summary", flags->summary,
               "With each metric's count, least, largest and mean value.");
  flags->output.declare(app);
  flags->paging.declare(app);
  return [=](Session& session) { return describe_trial(session, *flags); };
}

Action declare_trial_logs(CLI::App& app) {
  auto id = std::make_shared<int>();
  auto flags = std::make_shared<LogFlags>();
  add_id(app, *id, "The trial's id.");
  flags->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    return print_logs(*client, *id, *flags);
  };
}

Action declare_trial_kill(CLI::App& app) {
  auto id = std::make_shared<int>();
  add_id(app, *id, "The trial's id.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::KillTrialRequest request;
    request.set_id(*id);
    TRY(client->call(&v1::TrialService::Stub::KillTrial, request));
    std::cout << "Killed trial " << *id << '\n';
    return 0;
  };
}

struct TrialDownloadFlags {
  int id = 0;
  bool best = false, latest = false, quiet = false, smaller = false, larger = false;
  std::string uuid, directory, sort_by;
};

/// Returns the uuid of the selected checkpoint: --uuid, the best by a metric, else the latest. Errors:
/// kNotFound.
Result<std::string> choose_trial(Client& client, const TrialDownloadFlags& flags) {
  if (!flags.uuid.empty()) return flags.uuid;
  TRY_ASSIGN(const v1::Trial trial, get_trial(client, flags.id));
  const std::string none = "trial " + std::to_string(flags.id) + " has no completed checkpoint";
  // Without a flag the searcher's direction applies, also to another metric of --sort-by.
  if (flags.best || !flags.sort_by.empty()) {
    TRY_ASSIGN(const v1::Experiment experiment, get_experiment(client, trial.experiment_id()));
    TRY_ASSIGN(auto checkpoints, get_trial_checkpoints(client, flags.id));
    const bool smaller = flags.smaller || (!flags.larger && smaller_is_better(experiment.config()));
    checkpoints = best_first(std::move(checkpoints), flags.sort_by, smaller);
    if (checkpoints.empty()) return fail(Code::kNotFound, none + " with a validation; try --latest");
    return checkpoints.front().uuid();
  }
  if (trial.latest_checkpoint_uuid().empty()) return fail(Code::kNotFound, none + " yet");
  return trial.latest_checkpoint_uuid();
}

/// Downloads one checkpoint of a trial: by default the latest.
Action declare_trial_download(CLI::App& app) {
  auto flags = std::make_shared<TrialDownloadFlags>();
  add_id(app, flags->id, "The trial's id.");
  CLI::Option* best = app.add_flag("--best", flags->best, "The best by the searcher's metric.");
  CLI::Option* latest =
      app.add_flag("--latest", flags->latest, "The latest; what is done when nothing is said.");
  app.add_option("--uuid", flags->uuid, "This one.")->excludes(best)->excludes(latest);
  best->excludes(latest);
  app.add_option("--sort-by", flags->sort_by, "The best by this validation metric.")->excludes(latest);
  CLI::Option* smaller =
      app.add_flag("--smaller-is-better", flags->smaller, "Of --sort-by; else as the searcher says.");
  app.add_flag("--larger-is-better", flags->larger, "Of --sort-by.")->excludes(smaller);
  app.add_option("-o,--output-dir", flags->directory, "Where the files go; else checkpoints/<uuid>.");
  app.add_flag("-q,--quiet", flags->quiet, "Print only the directory.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const std::string uuid, choose_trial(*client, *flags));
    const std::string target = flags->directory.empty() ? "checkpoints/" + uuid : flags->directory;
    TRY(download_checkpoint(*client, uuid, target));
    std::cout << (flags->quiet ? target : "Downloaded checkpoint " + uuid + " to " + target) << '\n';
    return 0;
  };
}

/// Writes an archive for a bug report: log, trial, experiment, workloads and master information.
Action declare_support_bundle(CLI::App& app) {
  auto id = std::make_shared<int>();
  auto directory = std::make_shared<std::string>(".");
  add_id(app, *id, "The trial's id.");
  app.add_option("-o,--output-dir", *directory, "Where the archive goes.")->capture_default_str();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Trial trial, get_trial(*client, *id));
    TRY_ASSIGN(const v1::Experiment experiment, get_experiment(*client, trial.experiment_id()));
    TRY_ASSIGN(const auto workloads, get_workloads(*client, *id, true));
    TRY_ASSIGN(const auto master, client->call(&v1::ClusterService::Stub::GetMaster, v1::GetMasterRequest()));
    std::string log;
    v1::TrialLogsRequest request;
    request.set_trial_id(*id);
    TRY(client->stream(&v1::LogService::Stub::TrialLogs, request,
                       [&](const v1::LogEntry& entry) { return log += log_line(entry), true; }));
    TRY_ASSIGN(const Json about_trial, to_json(trial));
    TRY_ASSIGN(const Json about_experiment, to_json(experiment));
    TRY_ASSIGN(const Json about_workloads, list_to_json(workloads));
    TRY_ASSIGN(const Json about_master, to_json(master));
    const std::string name = "det-bundle-trial-" + std::to_string(*id);
    std::vector<ArchiveEntry> entries{{name, "", true, 0755}, {name + "/trial.log", std::move(log)}};
    for (const auto& [file, value] :
         {std::pair{"trial.json", &about_trial}, std::pair{"experiment.json", &about_experiment},
          std::pair{"workloads.json", &about_workloads}, std::pair{"master.json", &about_master}})
      entries.push_back({name + "/" + file, dump_json(*value, 2) + "\n"});
    TRY_ASSIGN(const std::string bytes, pack_entries(std::move(entries)));
    const std::string path = *directory + "/" + name + ".tar.gz";
    TRY(make_directories(*directory));
    TRY(write_file_atomic(path, bytes));
    std::cout << "Wrote " << path << '\n';
    return 0;
  };
}

}  // namespace

Command trial_command() {
  return {{"trial", "t"},
          "Look at trials.",
          {},
          {{{"describe"}, "Show a trial with its metrics and checkpoints.", declare_describe_trial},
           {{"logs"}, "Print a trial's log.", declare_trial_logs},
           {{"download"}, "Download a checkpoint of a trial.", declare_trial_download},
           {{"kill"}, "End a trial at once.", declare_trial_kill},
           {{"support-bundle"},
            "Put a trial's log, metrics and configuration into one archive.",
            declare_support_bundle},
           {{"set"},
            "Change what is said of a trial.",
            {},
            {not_offered({"log-retention"}, "retention_policy of the configuration says it")}}}};
}

}  // namespace det::cli
