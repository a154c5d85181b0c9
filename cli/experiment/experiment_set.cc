// `det experiment set`: name, description, queue settings and checkpoint policy.
#include <iostream>

#include "cli/commands/not_offered.h"
#include "cli/experiment/experiment_verbs.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "det/v1/experiment.grpc.pb.h"

namespace det::cli {
namespace {

/// Sends the changed fields. Unset fields keep their value.
Status patch(Session& session, const v1::PatchExperiment& patch) {
  TRY_ASSIGN(Client * client, session.client());
  v1::PatchExperimentRequest request;
  *request.mutable_experiment() = patch;
  TRY(client->call(&v1::ExperimentService::Stub::PatchExperiment, request));
  return {};
}

/// Declares a verb that sets one value of an experiment. `put` writes it into the patch; `check` validates it
/// on the command line.
template <typename Value, typename Put>
Command value_verb(std::string name, std::string summary, std::string what, Put put,
                   std::function<void(CLI::Option&)> check = {}) {
  return {{name}, std::move(summary), [=](CLI::App& app) -> Action {
            auto id = std::make_shared<int>();
            auto value = std::make_shared<Value>();
            add_id(app, *id, "The experiment's id.");
            CLI::Option* option =
                app.add_option(std::is_arithmetic_v<Value> ? "VALUE" : "TEXT", *value, what)->required();
            if (check) check(*option);
            return [=](Session& session) -> Result<int> {
              v1::PatchExperiment change;
              change.set_id(*id);
              put(change, *value);
              TRY(patch(session, change));
              std::cout << "Set " << name << " of experiment " << *id << " to ";
              if constexpr (std::is_arithmetic_v<Value>) {
                std::cout << *value << '\n';
              } else {
                std::cout << '\'' << printable(*value) << "'\n";
              }
              return 0;
            };
          }};
}

/// Sets how many checkpoints are kept. Prompts unless --yes is set: the next collection deletes the others.
Action declare_gc_policy(CLI::App& app) {
  struct Flags {
    int id = 0, best = 0, trial_best = 0, trial_latest = 0;
    bool yes = false;
  };
  auto flags = std::make_shared<Flags>();
  const CLI::Range count(0, std::numeric_limits<int>::max());
  add_id(app, flags->id, "The experiment's id.");
  app.add_option("--save-experiment-best", flags->best, "How many of the best of all trials.")
      ->required()
      ->check(count);
  app.add_option("--save-trial-best", flags->trial_best, "How many of the best of each trial.")
      ->required()
      ->check(count);
  app.add_option("--save-trial-latest", flags->trial_latest, "How many of the latest of each trial.")
      ->required()
      ->check(count);
  app.add_flag("-y,--yes", flags->yes, "Do not ask.");
  return [=](Session& session) -> Result<int> {
    if (!flags->yes) {
      TRY_ASSIGN(const bool sure,
                 confirm("Checkpoints of experiment " + std::to_string(flags->id) +
                         " that the policy does not keep are deleted at the next collection. Go on?"));
      if (!sure) return fail(Code::kCancelled, "nothing was changed");
    }
    v1::PatchExperiment change;
    change.set_id(flags->id);
    change.mutable_checkpoint_storage()->set_save_experiment_best(flags->best);
    change.mutable_checkpoint_storage()->set_save_trial_best(flags->trial_best);
    change.mutable_checkpoint_storage()->set_save_trial_latest(flags->trial_latest);
    TRY(patch(session, change));
    std::cout << "Set checkpoint policy of experiment " << flags->id
              << "; it takes effect at the next collection\n";
    return 0;
  };
}

}  // namespace

Command set_verb() {
  using Text = std::string;
  // Range of a numeric value, checked before the call.
  const auto in = [](double least, double most) {
    return [=](CLI::Option& option) { option.check(CLI::Range(least, most)); };
  };
  return {
      {"set"},
      "Change what is said of an experiment.",
      {},
      {value_verb<Text>(
           "name", "Give the experiment another name.", "The new name.",
           [](v1::PatchExperiment& change, const Text& text) { change.mutable_name()->set_value(text); }),
       value_verb<Text>("description", "Give the experiment another description.", "The new description.",
                        [](v1::PatchExperiment& change, const Text& text) {
                          change.mutable_description()->set_value(text);
                        }),
       value_verb<int>(
           "priority", "Change its place in the queue.", "1 to 99; smaller goes first.",
           [](v1::PatchExperiment& change, int value) {
             change.mutable_resources()->mutable_priority()->set_value(value);
           },
           in(1, 99)),
       value_verb<double>(
           "weight", "Change its part of its user's share, in pools that share fairly.", "Above 0.",
           [](v1::PatchExperiment& change, double value) {
             change.mutable_resources()->mutable_weight()->set_value(value);
           },
           in(1e-6, 1e6)),
       value_verb<int>(
           "max-slots", "Limit how many slots it has at once.", "Never more slots than this; 0: no limit.",
           [](v1::PatchExperiment& change, int value) {
             change.mutable_resources()->mutable_max_slots()->set_value(value);
           },
           in(0, 1e6)),
       {{"gc-policy"}, "Say which checkpoints to keep.", declare_gc_policy},
       not_offered({"log-retention"}, "retention_policy of the configuration says it")}};
}

}  // namespace det::cli
