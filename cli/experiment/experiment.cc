// `det experiment`: the table of its verbs, and the short ones.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/experiment/experiment_verbs.h"
#include "cli/output/download.h"
#include "cli/output/logs.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/submit/follow.h"
#include "common/base/files.h"
#include "common/base/secret.h"
#include "common/yaml/yaml.h"

namespace det::cli {
namespace {

/// An RPC that changes the state of one experiment.
using Act = grpc::Status (v1::ExperimentService::Stub::*)(grpc::ClientContext*,
                                                          const v1::ExperimentActionRequest&,
                                                          v1::ExperimentActionResponse*);

/// Declares a verb that makes the call `act` and prints `done`: activate, pause, cancel, kill, archive,
/// unarchive.
Command steering(std::vector<std::string> names, std::string summary, Act act, std::string done) {
  return {std::move(names), std::move(summary), [=](CLI::App& app) -> Action {
            auto id = std::make_shared<int>();
            add_id(app, *id, "The experiment's id.");
            return [=](Session& session) -> Result<int> {
              TRY_ASSIGN(Client * client, session.client());
              v1::ExperimentActionRequest request;
              request.set_id(*id);
              TRY(client->call(act, request));
              std::cout << done << " experiment " << *id << '\n';
              return 0;
            };
          }};
}

/// Raises the limits of a search. Unset flags keep their value.
Action declare_extend(CLI::App& app) {
  auto id = std::make_shared<int>();
  auto trials = std::make_shared<std::int64_t>(), time = std::make_shared<std::int64_t>();
  add_id(app, *id, "The experiment's id.");
  auto* more_trials = app.add_option("--max-trials", *trials, "How many trials the search makes in all.");
  auto* more_time = app.add_option("--max-time", *time,
                                   "How long a trial trains in all, in the unit of max_time or max_length.");
  return [=](Session& session) -> Result<int> {
    if (more_trials->count() + more_time->count() == 0) {
      return fail(Code::kInvalidArgument, "say how far: --max-trials N, --max-time N, or both");
    }
    TRY_ASSIGN(Client * client, session.client());
    v1::ExtendExperimentRequest request;
    request.set_id(*id);
    if (more_trials->count() > 0) request.set_max_trials(*trials);
    if (more_time->count() > 0) request.set_max_time(*time);
    TRY(client->call(&v1::ExperimentService::Stub::ExtendExperiment, request));
    std::cout << "Extended experiment " << *id << '\n';
    return 0;
  };
}

/// Restarts the failed trials. --failed is accepted, and the only mode there is.
Action declare_retry(CLI::App& app) {
  auto id = std::make_shared<int>();
  add_id(app, *id, "The experiment's id.");
  app.add_flag_callback(
      "--failed", [] {}, "Trials that ended in error; there is no other kind to retry.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::ExperimentActionRequest request;
    request.set_id(*id);
    TRY(client->call(&v1::ExperimentService::Stub::RetryExperiment, request));
    std::cout << "Retrying the failed trials of experiment " << *id << '\n';
    return 0;
  };
}

Action declare_experiment_logs(CLI::App& app) {
  auto id = std::make_shared<int>();
  auto flags = std::make_shared<LogFlags>();
  add_id(app, *id, "The experiment's id; the log is that of its first trial.");
  flags->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto trials, get_trials(*client, *id, Paging{.limit = 1, .pages = "1"}));
    if (trials.empty())
      return fail(Code::kNotFound,
                  "experiment " + std::to_string(*id) + " has no trial yet; try again later");
    return print_logs(*client, trials.front().id(), *flags);
  };
}

/// Waits for the end. The exit code is 0 only for a completed experiment.
Action declare_wait(CLI::App& app) {
  auto id = std::make_shared<int>();
  auto interval = std::make_shared<double>(5);
  add_id(app, *id, "The experiment's id.");
  app.add_option("--polling-interval", *interval, "Seconds between two looks.")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    const Duration pause(static_cast<std::int64_t>(*interval * 1e6));
    TRY_ASSIGN(const v1::Experiment end, wait_for_end(*client, *id, pause));
    std::cout << "Experiment " << *id << " terminated with state " << state_text(end.state()) << '\n';
    return exit_code(end);
  };
}

Action declare_experiment_config(CLI::App& app) {
  auto id = std::make_shared<int>();
  add_id(app, *id, "The experiment's id.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Experiment experiment, get_experiment(*client, *id));
    TRY_ASSIGN(const Json config, to_json(experiment.config()));
    // nlohmann::json sorts the keys, which have no order on the wire.
    std::cout << to_yaml(Json(nlohmann::json(config)));
    return 0;
  };
}

Action declare_download_model_def(CLI::App& app) {
  auto id = std::make_shared<int>();
  auto directory = std::make_shared<std::string>(".");
  add_id(app, *id, "The experiment's id.");
  app.add_option("--output-dir", *directory, "Where the archive goes.")->capture_default_str();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::GetModelDefRequest request;
    request.set_experiment_id(*id);
    TRY_ASSIGN(const auto response, client->call(&v1::ExperimentService::Stub::GetModelDef, request));
    TRY_ASSIGN(const std::string bytes, from_base64(response.b64_tgz()));
    const std::string name = "experiment_" + std::to_string(*id) + "_model_def.tgz";
    TRY(make_directories(*directory));
    TRY(write_file_atomic(*directory + "/" + name, bytes));
    std::cout << "Wrote " << name << '\n';
    return 0;
  };
}

struct ExperimentDownloadFlags {
  int id = 0, top = 1;
  std::string directory = "checkpoints", sort_by;
  bool smaller = false, larger = false, quiet = false;
};

/// Downloads the best checkpoints, each into a directory named by its uuid.
Result<int> download(Session& session, const ExperimentDownloadFlags& flags) {
  TRY_ASSIGN(Client * client, session.client());
  TRY_ASSIGN(const v1::Experiment experiment, get_experiment(*client, flags.id));
  TRY_ASSIGN(auto checkpoints, get_checkpoints(*client, flags.id));
  // Without a flag the searcher's direction applies, also to another metric of --sort-by.
  const bool smaller = flags.smaller || (!flags.larger && smaller_is_better(experiment.config()));
  checkpoints = best_first(std::move(checkpoints), flags.sort_by, smaller);
  if (checkpoints.empty())
    return fail(Code::kNotFound,
                "experiment " + std::to_string(flags.id) +
                    " has no completed checkpoint with a validation; see `det experiment lc`");
  Table table{{"Batch", "UUID", "Validation Metric", "Directory"}, {}};
  for (const v1::Checkpoint& checkpoint : checkpoints) {
    if (static_cast<int>(table.rows.size()) == flags.top) break;
    const std::string target = flags.directory + "/" + checkpoint.uuid();
    TRY(download_checkpoint(*client, checkpoint.uuid(), target));
    if (flags.quiet) std::cout << target << '\n';
    table.rows.push_back({std::to_string(checkpoint.steps_completed()), checkpoint.uuid(),
                          number_text(*metric_of(checkpoint, flags.sort_by)), target});
  }
  if (!flags.quiet) std::cout << to_text(table);
  return 0;
}

Action declare_experiment_download(CLI::App& app) {
  auto flags = std::make_shared<ExperimentDownloadFlags>();
  add_id(app, flags->id, "The experiment's id.");
  app.add_option("-o,--output-dir", flags->directory, "Where a directory for each checkpoint is made.")
      ->capture_default_str();
  app.add_option("--top-n", flags->top, "How many of the best.")->check(kPositive)->capture_default_str();
  app.add_option("--sort-by", flags->sort_by, "The validation metric; else the searcher's.");
  CLI::Option* smaller =
      app.add_flag("--smaller-is-better", flags->smaller, "Of --sort-by; else as the searcher says.");
  app.add_flag("--larger-is-better", flags->larger, "Of --sort-by.")->excludes(smaller);
  app.add_flag("-q,--quiet", flags->quiet, "Print only the directories.");
  return [=](Session& session) { return download(session, *flags); };
}

}  // namespace

CLI::Option* add_id(CLI::App& app, int& id, const char* what) {
  return app.add_option("ID", id, what)->required()->check(kPositive);
}

Command experiment_command() {
  using Stub = v1::ExperimentService::Stub;
  Command command{
      {"experiment", "e"},
      "Create, watch and steer experiments.",
      {},
      {{{"create"}, "Create an experiment from a configuration and a model directory.", declare_create},
       {{"list", "ls"}, "List experiments.", declare_list},
       {{"describe"}, "Show experiments with their trials.", declare_describe},
       {{"logs"}, "Print the log of the first trial.", declare_experiment_logs},
       {{"list-trials", "lt"}, "List the trials of an experiment.", declare_list_trials},
       {{"list-checkpoints", "lc"}, "List the checkpoints of an experiment.", declare_list_checkpoints},
       {{"brackets"}, "Show the brackets and rungs of a search by halving.", declare_brackets},
       {{"config"}, "Print the configuration as YAML.", declare_experiment_config},
       {{"download"}, "Download the best checkpoints.", declare_experiment_download},
       {{"download-model-def"}, "Download the model directory as it was sent.", declare_download_model_def},
       {{"simulate"}, "Run the search in virtual time and show what ran when.", declare_simulate},
       {{"wait"}, "Wait for the end; exit 1 unless it has completed.", declare_wait},
       steering({"activate", "unpause"}, "Let a paused experiment go on.", &Stub::ActivateExperiment,
                "Activated"),
       steering({"pause"}, "Checkpoint, stop and free the slots.", &Stub::PauseExperiment, "Paused"),
       steering({"cancel"}, "Checkpoint and end.", &Stub::CancelExperiment, "Canceled"),
       steering({"kill"}, "End at once.", &Stub::KillExperiment, "Killed"),
       {{"diff"},
        "Show how two experiments differ: code, configuration, environment, metrics.",
        declare_diff},
       {{"watch"}, "Show an experiment live, with its metrics drawn.", declare_watch},
       {{"move"}, "File an experiment under another project.", declare_move},
       {{"extend"}, "Give a search more trials or time, also after its end.", declare_extend},
       {{"retry"}, "Run failed trials again from their checkpoints.", declare_retry},
       steering({"archive"}, "Put an experiment that has ended out of sight.", &Stub::ArchiveExperiment,
                "Archived"),
       steering({"unarchive"}, "Bring it back.", &Stub::UnarchiveExperiment, "Unarchived")}};
  std::vector<Command> more = life_verbs();
  for (Command& verb : more) command.verbs.push_back(std::move(verb));
  return command;
}

}  // namespace det::cli
