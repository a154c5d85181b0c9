// `det experiment brackets`: progress of a search with successive halving, a row per rung.
#include <iostream>

#include "cli/experiment/experiment_verbs.h"
#include "cli/output/print.h"
#include "det/v1/bracket.grpc.pb.h"

namespace det::cli {
namespace {

struct ExperimentBracketsFlags {
  int id = 0;
  Output output;
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

Result<int> print_brackets(Session& session, const ExperimentBracketsFlags& flags) {
  TRY_ASSIGN(Client * client, session.client());
  v1::GetExperimentBracketsRequest request;
  request.set_experiment_id(flags.id);
  TRY_ASSIGN(const auto search, client->call(&v1::BracketService::Stub::GetExperimentBrackets, request));
  // Programs that read CSV or JSON expect an empty list; people expect the reason.
  if (search.brackets().empty() && !flags.output.structured() && !flags.output.csv) {
    std::cout << "The search of experiment " << flags.id << " stops no trial early: it has no brackets.\n";
    return 0;
  }
  TRY(flags.output.print(rungs_table(search), [&] { return to_json(search); }));
  return 0;
}

}  // namespace

Action declare_brackets(CLI::App& app) {
  auto flags = std::make_shared<ExperimentBracketsFlags>();
  add_id(app, flags->id, "The experiment's id.");
  flags->output.declare(app);
  return [=](Session& session) { return print_brackets(session, *flags); };
}

}  // namespace det::cli
