// `det experiment set`: name, description, queue settings and checkpoint policy.
#include <iostream>

#include "cli/experiment/experiment_verbs.h"
#include "cli/experiment/log_retention.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "det/v1/experiment.methods.h"
#include "det/v1/log.methods.h"

namespace det::cli {
namespace {

/// Sends the changed fields. Unset fields keep their value.
Status patch(Client& client, const v1::PatchExperiment& change) {
  v1::PatchExperimentRequest request;
  *request.mutable_experiment() = change;
  TRY(client.call(v1::ExperimentService::PatchExperiment, request));
  return {};
}

/// `least` and `most` limit a number on the command line; they are ignored for a text.
template <typename Value>
struct ValueOptions : ExperimentOptions {
  const char* help = "";
  double least = 0, most = 0;
  Value value = {};
  void declare(CLI::App& app) {
    ExperimentOptions::declare(app);
    if constexpr (std::is_arithmetic_v<Value>) {
      app.add_option("VALUE", value, help)->required()->check(CLI::Range(least, most));
    } else {
      app.add_option("TEXT", value, help)->required();
    }
  }
};

/// Declares a verb that sets one value of an experiment. `put` writes it into the patch.
template <typename Value, typename Put>
Command value_verb(std::string name, std::string summary, ValueOptions<Value> initial, Put put) {
  const auto run = [=](Client& client, const ValueOptions<Value>& options) -> Status {
    v1::PatchExperiment change;
    change.set_id(options.id);
    put(change, options.value);
    TRY(patch(client, change));
    std::cout << "Set " << name << " of experiment " << options.id << " to ";
    if constexpr (std::is_arithmetic_v<Value>) {
      std::cout << options.value << '\n';
    } else {
      std::cout << '\'' << printable(options.value) << "'\n";
    }
    return {};
  };
  return {{name}, std::move(summary), action(run, initial)};
}

struct GcPolicyOptions : ExperimentOptions {
  int best = 0, trial_best = 0, trial_latest = 0;
  bool yes = false;
  void declare(CLI::App& app) {
    const CLI::Range count(0, std::numeric_limits<int>::max());
    ExperimentOptions::declare(app);
    app.add_option("--save-experiment-best", best, "Number of best checkpoints to keep across all trials.")
        ->required()
        ->check(count);
    app.add_option("--save-trial-best", trial_best, "Number of best checkpoints to keep per trial.")
        ->required()
        ->check(count);
    app.add_option("--save-trial-latest", trial_latest, "Number of latest checkpoints to keep per trial.")
        ->required()
        ->check(count);
    app.add_flag("-y,--yes", yes, "Skip the confirmation prompt.");
  }
};

/// Sets how many checkpoints are kept. Prompts unless --yes is set: the next collection deletes the others.
Status set_gc_policy(Session& session, const GcPolicyOptions& options) {
  if (!options.yes) {
    TRY_ASSIGN(const bool sure, confirm("The next collection deletes all other checkpoints of experiment " +
                                        std::to_string(options.id) + ". Continue?"));
    if (!sure) return fail(Code::kCancelled, "nothing was changed");
  }
  TRY_ASSIGN(Client * client, session.client());
  v1::PatchExperiment change;
  change.set_id(options.id);
  change.mutable_checkpoint_storage()->set_save_experiment_best(options.best);
  change.mutable_checkpoint_storage()->set_save_trial_best(options.trial_best);
  change.mutable_checkpoint_storage()->set_save_trial_latest(options.trial_latest);
  TRY(patch(*client, change));
  std::cout << "Set checkpoint policy of experiment " << options.id
            << "; it takes effect at the next collection\n";
  return {};
}

struct ExperimentRetentionOptions : ExperimentOptions {
  LogRetention retention;
  void declare(CLI::App& app) {
    ExperimentOptions::declare(app);
    retention.declare(app);
  }
};

/// Sets how long the logs of all trials are kept.
Status set_experiment_retention(Client& client, const ExperimentRetentionOptions& options) {
  v1::PutExperimentRetainLogsRequest request;
  request.set_experiment_id(options.id);
  request.set_num_days(options.retention.sent());
  TRY(client.call(v1::LogService::PutExperimentRetainLogs, request));
  options.retention.print("experiment " + std::to_string(options.id));
  return {};
}

}  // namespace

Command set_verb() {
  using Text = std::string;
  using Patch = v1::PatchExperiment;
  return {{"set"},
          "Change an experiment.",
          {},
          {value_verb<Text>("name", "Rename an experiment.", {{}, "New name."},
                            [](Patch& change, const Text& text) { change.mutable_name()->set_value(text); }),
           value_verb<Text>(
               "description", "Set the description of an experiment.", {{}, "New description."},
               [](Patch& change, const Text& text) { change.mutable_description()->set_value(text); }),
           value_verb<int>("priority", "Set the priority of an experiment.",
                           {{}, "Priority from 1 to 99; smaller values go first.", 1, 99},
                           [](Patch& change, int value) {
                             change.mutable_resources()->mutable_priority()->set_value(value);
                           }),
           value_verb<double>("weight", "Set the weight of an experiment in fair-share pools.",
                              {{}, "Weight relative to other jobs of the user, above 0.", 1e-6, 1e6},
                              [](Patch& change, double value) {
                                change.mutable_resources()->mutable_weight()->set_value(value);
                              }),
           value_verb<int>("max-slots", "Limit the slots of an experiment.",
                           {{}, "Maximum number of slots; 0: no limit.", 0, 1e6},
                           [](Patch& change, int value) {
                             change.mutable_resources()->mutable_max_slots()->set_value(value);
                           }),
           {{"gc-policy"}, "Set the number of checkpoints to keep.", action(set_gc_policy)},
           {{"log-retention"},
            "Set how long the logs of all trials are kept.",
            action(set_experiment_retention)}}};
}

}  // namespace det::cli
