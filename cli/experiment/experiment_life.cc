// Verbs of `det experiment` about its record and its successors: delete, label, fork, continue.
#include <iostream>

#include "cli/commands/not_offered.h"
#include "cli/experiment/experiment_verbs.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "cli/submit/follow.h"
#include "common/base/files.h"
#include "common/base/secret.h"
#include "common/expconf/parse.h"
#include "det/v1/experiment.grpc.pb.h"

namespace det::cli {
namespace {

using ExperimentStub = v1::ExperimentService::Stub;

/// Deletes an experiment that has ended, with checkpoints, metrics and logs. Prompts unless --yes is set.
Action declare_experiment_delete(CLI::App& app) {
  auto id = std::make_shared<int>();
  auto yes = std::make_shared<bool>(false);
  add_id(app, *id, "The experiment's id; it must have ended.");
  app.add_flag("--yes", *yes, "Do not ask.");
  return [=](Session& session) -> Result<int> {
    const std::string name = "experiment " + std::to_string(*id);
    if (!*yes) {
      TRY_ASSIGN(const bool sure, confirm("Delete " + name + " with its checkpoints, metrics and logs?"));
      if (!sure) return fail(Code::kCancelled, "nothing was deleted");
    }
    TRY_ASSIGN(Client * client, session.client());
    v1::DeleteExperimentRequest request;
    request.set_experiment_id(*id);
    TRY(client->call(&ExperimentStub::DeleteExperiment, request));
    std::cout << "Deleted " << name << '\n';
    return 0;
  };
}

/// Declares `label add` or `label remove`.
Command label_verb(std::string name, std::string summary, bool add) {
  return {
      {std::move(name)}, std::move(summary), [add](CLI::App& app) -> Action {
        auto id = std::make_shared<int>();
        auto label = std::make_shared<std::string>();
        add_id(app, *id, "The experiment's id.");
        app.add_option("LABEL", *label, "The label.")->required();
        return [=](Session& session) -> Result<int> {
          TRY_ASSIGN(Client * client, session.client());
          v1::ExperimentLabelRequest request;
          request.set_experiment_id(*id);
          request.set_label(*label);
          TRY(client->call(add ? &ExperimentStub::PutExperimentLabel : &ExperimentStub::DeleteExperimentLabel,
                           request));
          std::cout << (add ? "Added label " : "Removed label ") << *label << (add ? " to" : " from")
                    << " experiment " << *id << '\n';
          return 0;
        };
      }};
}

/// Creates an experiment from the configuration and the model definition of another. Overrides apply to the
/// configuration as it was submitted.
Action declare_fork(CLI::App& app) {
  auto id = std::make_shared<int>();
  auto overrides = std::make_shared<std::vector<std::string>>();
  auto paused = std::make_shared<bool>(false);
  add_id(app, *id, "The experiment whose configuration and files the new one takes.");
  app.add_option("--config", *overrides, "path.to.key=value, put over the configuration; repeatable.")
      ->allow_extra_args(false);
  app.add_flag("--paused", *paused, "Do not start it.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Experiment parent, get_experiment(*client, *id));
    std::vector<expconf::Override> changes;
    for (const std::string& each : *overrides) changes.push_back({each});
    const std::string name = "experiment " + std::to_string(*id);
    v1::CreateExperimentRequest request;
    TRY_ASSIGN(*request.mutable_config(), expconf::apply_overrides(parent.original_config(), name, changes));
    request.set_config_name(name);
    // The master copies the model definition of the parent; nothing is uploaded.
    request.set_parent_id(*id);
    request.set_activate(!*paused);
    request.set_request_id(uuid4());
    TRY_ASSIGN(const auto made, client->call(&ExperimentStub::CreateExperiment, request));
    for (const std::string& warning : made.config_warnings())
      std::cerr << "warning: " << printable(warning) << '\n';
    std::cout << "Created experiment " << made.experiment().id() << '\n';
    return 0;
  };
}

/// Resumes an experiment that has ended. --config has precedence over --config-file.
Action declare_continue(CLI::App& app) {
  auto id = std::make_shared<int>();
  auto file = std::make_shared<std::string>();
  auto overrides = std::make_shared<std::vector<std::string>>();
  auto follow = std::make_shared<bool>(false);
  add_id(app, *id, "The experiment's id; it must have ended.");
  app.add_option("--config-file", *file, "YAML put over its configuration.");
  app.add_option("--config", *overrides, "path.to.key=value, put over that; repeatable.")
      ->allow_extra_args(false);
  app.add_flag("-f,--follow-first-trial", *follow, "Print the first trial's log to its end.");
  return [=](Session& session) -> Result<int> {
    v1::ContinueExperimentRequest request;
    request.set_id(*id);
    std::string text;
    if (!file->empty()) {
      TRY_ASSIGN(text, read_file(*file, 1 << 20));
    }
    std::vector<expconf::Override> changes;
    for (const std::string& each : *overrides) changes.push_back({each});
    if (!changes.empty()) {
      // Overrides need a document: {} stands for an absent file.
      TRY_ASSIGN(text, expconf::apply_overrides(text.empty() ? "{}" : text,
                                                file->empty() ? "command line" : *file, changes));
    }
    request.set_override_config(text);
    TRY_ASSIGN(Client * client, session.client());
    TRY(client->call(&ExperimentStub::ContinueExperiment, request));
    std::cout << "Continued experiment " << *id << std::endl;
    return *follow ? follow_experiment(*client, *id) : 0;
  };
}

}  // namespace

std::vector<Command> life_verbs() {
  return {
      {{"delete"}, "Remove an experiment that has ended, with its checkpoints.", declare_experiment_delete},
      {{"label"},
       "Add and remove labels.",
       {},
       {label_verb("add", "Add a label.", true), label_verb("remove", "Remove a label.", false)}},
      set_verb(),
      not_offered({"delete-tb-files"}, "no TensorBoard files are kept; the web UI draws metrics"),
      {{"fork"}, "Make a new experiment of another's configuration and files.", declare_fork},
      {{"continue"}, "Go on with an experiment that has ended.", declare_continue}};
}

}  // namespace det::cli
