// Owns `det checkpoint`.
#include <iostream>

#include "base/units.h"
#include "cli/download.h"
#include "cli/experiment_verbs.h"
#include "cli/print.h"

namespace det::cli {
namespace {

CLI::Option* add_uuid(CLI::App& app, std::string& uuid) {
  return app.add_option("UUID", uuid, "The checkpoint's uuid.")->required();
}

Action declare_describe_checkpoint(CLI::App& app) {
  auto uuid = std::make_shared<std::string>();
  auto output = std::make_shared<Output>();
  add_uuid(app, *uuid);
  output->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const v1::Checkpoint checkpoint, get_checkpoint(*client, *uuid));
    std::int64_t size = 0;
    for (const auto& [path, bytes] : checkpoint.resources()) size += bytes;
    const auto metric = metric_of(checkpoint, "");
    const v1::CheckpointTrainingMetadata& training = checkpoint.training();
    const Table table{
        {"Experiment ID", "Trial ID", "# of Batches", "State", "Validation Metric", "UUID", "Resources",
         "Size", "Path"},
        {{std::to_string(training.experiment_id().value()), std::to_string(training.trial_id().value()),
          std::to_string(checkpoint.steps_completed()), state_text(checkpoint.state()),
          metric ? number_text(*metric) : "", checkpoint.uuid(),
          std::to_string(checkpoint.resources().size()) + " files", format_bytes(size),
          checkpoint.storage_path()}}};
    TRY(output->print(table, [&] { return to_json(checkpoint); }));
    return 0;
  };
}

Action declare_download(CLI::App& app) {
  auto uuid = std::make_shared<std::string>();
  auto directory = std::make_shared<std::string>();
  auto quiet = std::make_shared<bool>(false);
  add_uuid(app, *uuid);
  app.add_option("-o,--output-dir", *directory, "Where the files go; else checkpoints/<uuid>.");
  app.add_flag("-q,--quiet", *quiet, "Print only the directory.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    const std::string target = directory->empty() ? "checkpoints/" + *uuid : *directory;
    TRY(download_checkpoint(*client, *uuid, target));
    std::cout << (*quiet ? target : "Downloaded checkpoint " + *uuid + " to " + target) << '\n';
    return 0;
  };
}

}  // namespace

Command checkpoint_command() {
  return {{"checkpoint", "c"},
          "Look at checkpoints and fetch them.",
          {},
          {{{"list", "ls"}, "List the checkpoints of an experiment.", declare_list_checkpoints},
           {{"describe"}, "Show a checkpoint.", declare_describe_checkpoint},
           {{"download"}, "Download a checkpoint's files.", declare_download}}};
}

}  // namespace det::cli
