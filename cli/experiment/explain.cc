// `det explain`: shows why a trial or experiment waits, and what would start it.
#include <iostream>

#include "cli/command.h"
#include "cli/output/print.h"
#include "det/v1/explanation.methods.h"

namespace det::cli {
namespace {

struct ExplainOptions {
  const char* help;
  int id = 0;
  bool json = false;
  void declare(CLI::App& app) {
    app.add_option("ID", id, help)->required();
    app.add_flag("--json", json, "Print as JSON.");
  }
};

void print_text(const v1::Explanation& explanation) { std::cout << printable_lines(explanation.text()); }

/// Prints the explanation as sentences; --json prints its structured form.
Status explain_trial(Client& client, const ExplainOptions& options) {
  v1::ExplainTrialRequest request;
  request.set_trial_id(options.id);
  TRY_ASSIGN(const auto response, client.call(v1::ExplanationService::ExplainTrial, request));
  if (options.json) return print_json(response.explanation());
  print_text(response.explanation());
  return {};
}

/// Explains the first waiting trial, and counts the others.
Status explain_experiment(Client& client, const ExplainOptions& options) {
  v1::ExplainExperimentRequest request;
  request.set_experiment_id(options.id);
  TRY_ASSIGN(const auto response, client.call(v1::ExplanationService::ExplainExperiment, request));
  if (options.json) return print_json(response);
  print_text(response.explanation());
  if (response.waiting() > 1) {
    std::cout << response.waiting() << " trials of the experiment wait, " << response.running() << " run\n";
  }
  return {};
}

}  // namespace

Command explain_command() {
  return {{"explain"},
          "Show why a trial waits, and what would start it.",
          {},
          {{{"experiment", "e"},
            "Explain the first waiting trial of an experiment.",
            action(explain_experiment, {"Experiment id."})},
           {{"trial", "t"}, "Explain a trial.", action(explain_trial, {"Trial id."})}}};
}

}  // namespace det::cli
