// `det experiment move`: moves an experiment to another project.
#include <iostream>

#include "cli/commands/accounts.h"
#include "cli/experiment/experiment_verbs.h"
#include "cli/output/print.h"
#include "det/v1/project.grpc.pb.h"

namespace det::cli {

Action declare_move(CLI::App& app) {
  struct Flags {
    int id = 0;
    std::string workspace, project;
  };
  auto flags = std::make_shared<Flags>();
  add_id(app, flags->id, "The experiment's id.");
  app.add_option("WORKSPACE", flags->workspace, "The workspace to move it to.")->required();
  app.add_option("PROJECT", flags->project, "The project to move it to.")->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Project project, find_project(*client, flags->workspace, flags->project));
    v1::MoveExperimentRequest request;
    request.set_experiment_id(flags->id);
    request.set_destination_project_id(project.id());
    TRY(client->call(&v1::ProjectService::Stub::MoveExperiment, request));
    std::cout << "Moved experiment " << flags->id << " to project " << printable(flags->project) << '\n';
    return 0;
  };
}

}  // namespace det::cli
