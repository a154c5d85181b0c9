// `det explain`: shows why a trial or experiment waits, and what would start it.
#include <iostream>

#include "cli/command.h"
#include "cli/output/print.h"
#include "det/v1/explanation.grpc.pb.h"

namespace det::cli {
namespace {

using ExplainStub = v1::ExplanationService::Stub;

struct ExplainFlags {
  int id = 0;
  bool json = false;
  void declare(CLI::App& app, const char* what) {
    app.add_option("ID", id, what)->required();
    app.add_flag("--json", json, "Print as JSON.");
  }
};

void print_text(const v1::Explanation& explanation) { std::cout << printable_lines(explanation.text()); }

/// Prints the explanation as sentences; --json prints its structured form.
Action declare_trial(CLI::App& app) {
  auto flags = std::make_shared<ExplainFlags>();
  flags->declare(app, "The trial's id.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::ExplainTrialRequest request;
    request.set_trial_id(flags->id);
    TRY_ASSIGN(const auto response, client->call(&ExplainStub::ExplainTrial, request));
    if (!flags->json) return print_text(response.explanation()), 0;
    TRY_ASSIGN(const Json value, to_json(response.explanation()));
    print_json(value);
    return 0;
  };
}

/// Explains the first waiting trial, and counts the others.
Action declare_experiment(CLI::App& app) {
  auto flags = std::make_shared<ExplainFlags>();
  flags->declare(app, "The experiment's id.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::ExplainExperimentRequest request;
    request.set_experiment_id(flags->id);
    TRY_ASSIGN(const auto response, client->call(&ExplainStub::ExplainExperiment, request));
    if (flags->json) {
      TRY_ASSIGN(const Json value, to_json(response));
      print_json(value);
      return 0;
    }
    print_text(response.explanation());
    if (response.waiting() > 1) {
      std::cout << response.waiting() << " trials of the experiment wait, " << response.running() << " run\n";
    }
    return 0;
  };
}

}  // namespace

Command explain_command() {
  return {{"explain"},
          "Say why something waits, and what would start it now.",
          {},
          {{{"experiment", "e"}, "Explain the first trial of an experiment that waits.", declare_experiment},
           {{"trial", "t"}, "Explain a trial.", declare_trial}}};
}

}  // namespace det::cli
