// `det experiment brackets`: progress of a search with successive halving, a row per rung.
#include <iostream>

#include "cli/experiment/experiment_verbs.h"
#include "cli/output/print.h"
#include "det/v1/bracket.methods.h"

namespace det::cli {
namespace {

struct BracketsOptions : ExperimentOptions {
  Output output;
  void declare(CLI::App& app) {
    ExperimentOptions::declare(app);
    output.declare(app);
  }
};

/// "1/4": trials that the bracket has created, and the number it may create.
std::string created_text(const v1::Bracket& bracket) {
  return std::to_string(bracket.trial_ids_size()) + "/" + std::to_string(bracket.max_trials());
}

/// Rows of bracket and rung, both numbered from 1.
Table rungs_table(const v1::GetExperimentBracketsResponse& search) {
  const std::string unit = search.time_metric().empty() ? "batches" : search.time_metric();
  Table table{{"Bracket", "Trials Created", "Rung", "Length (" + unit + ")", "Trials Reached"}, {}};
  for (int number = 0; number < search.brackets_size(); ++number) {
    const v1::Bracket& bracket = search.brackets(number);
    for (int rung = 0; rung < bracket.rungs_size(); ++rung) {
      table.rows.push_back({std::to_string(number + 1), created_text(bracket), std::to_string(rung + 1),
                            std::to_string(bracket.rungs(rung).length()),
                            std::to_string(bracket.rungs(rung).trials())});
    }
  }
  return table;
}

Status print_brackets(Client& client, const BracketsOptions& options) {
  v1::GetExperimentBracketsRequest request;
  request.set_experiment_id(options.id);
  TRY_ASSIGN(const auto search, client.call(v1::BracketService::GetExperimentBrackets, request));
  // Programs that read CSV or JSON expect an empty list; people expect the reason.
  if (search.brackets().empty() && !options.output.for_programs()) {
    std::cout << "Experiment " << options.id << " has no brackets: its searcher stops no trial early\n";
    return {};
  }
  return options.output.print(rungs_table(search), [&] { return to_json(search); });
}

}  // namespace

Command brackets_verb() {
  return {{"brackets"}, "Show the brackets and rungs of a search.", action(print_brackets)};
}

}  // namespace det::cli
