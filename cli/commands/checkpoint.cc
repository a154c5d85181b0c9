// `det checkpoint`: lists, shows, downloads and deletes checkpoints.
#include <iostream>

#include "cli/experiment/experiment_verbs.h"
#include "cli/output/download.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "common/base/units.h"

namespace det::cli {
namespace {

CLI::Option* add_uuid(CLI::App& app, std::string& uuid) {
  return app.add_option("UUID", uuid, "The checkpoint's uuid.")->required();
}

/// Shows a checkpoint with the number and the total size of its files.
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

/// Downloads a checkpoint from its storage or through the master (--mode).
Action declare_checkpoint_download(CLI::App& app) {
  auto uuid = std::make_shared<std::string>();
  auto directory = std::make_shared<std::string>();
  auto mode = std::make_shared<std::string>("auto");
  auto quiet = std::make_shared<bool>(false);
  add_uuid(app, *uuid);
  app.add_option("-o,--output-dir", *directory, "Where the files go; else checkpoints/<uuid>.");
  app.add_option("--mode", *mode,
                 "direct: from the storage, which this machine must see; master: through the master.")
      ->check(CLI::IsMember({"auto", "direct", "master"}))
      ->capture_default_str();
  app.add_flag("-q,--quiet", *quiet, "Print only the directory.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    const std::string target = directory->empty() ? "checkpoints/" + *uuid : *directory;
    // `auto` tries the storage first, which bypasses the master.
    TRY(*mode == "master" ? download_checkpoint(*client, *uuid, target)
                          : copy_checkpoint(*client, *uuid, target, *mode == "auto"));
    std::cout << (*quiet ? target : "Downloaded checkpoint " + *uuid + " to " + target) << '\n';
    return 0;
  };
}

/// Flags of the verbs that delete: the checkpoints, and whether to prompt.
struct RemoveFlags {
  std::vector<std::string> uuids, globs;
  bool yes = false;
  void declare(CLI::App& app) {
    app.add_option("UUIDS", uuids, "The checkpoints' uuids; also several with commas between.")
        ->required()
        ->delimiter(',');
    app.add_flag("-y,--yes", yes, "Do not ask.");
  }
  /// Prompts the user unless --yes is set. Errors: kCancelled (not confirmed).
  Status ask_first(const std::string& what) const {
    if (yes) return {};
    const std::string count =
        uuids.size() == 1 ? "checkpoint " + uuids.front() : std::to_string(uuids.size()) + " checkpoints";
    TRY_ASSIGN(const bool sure, confirm(what + count + "? What is removed is gone"));
    return sure ? Status() : fail(Code::kCancelled, "nothing was deleted");
  }
};

/// Deletes checkpoints and their files. Prompts unless --yes is set.
Action declare_checkpoint_delete(CLI::App& app) {
  auto flags = std::make_shared<RemoveFlags>();
  flags->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY(flags->ask_first("Delete "));
    TRY_ASSIGN(Client * client, session.client());
    v1::DeleteCheckpointsRequest request;
    for (const std::string& uuid : flags->uuids) request.add_checkpoint_uuids(uuid);
    TRY(client->call(&v1::CheckpointService::Stub::DeleteCheckpoints, request));
    for (const std::string& uuid : flags->uuids)
      std::cout << "Deleted checkpoint " << printable(uuid) << '\n';
    return 0;
  };
}

/// `det checkpoint rm`: removes the files that match --glob and keeps the checkpoints.
Action declare_remove_files(CLI::App& app) {
  auto flags = std::make_shared<RemoveFlags>();
  flags->declare(app);
  app.add_option("--glob", flags->globs, "Files of them, such as **/*.pt; may be repeated.")
      ->required()
      ->allow_extra_args(false);
  return [=](Session& session) -> Result<int> {
    TRY(flags->ask_first("Remove files of "));
    TRY_ASSIGN(Client * client, session.client());
    v1::CheckpointsRemoveFilesRequest request;
    for (const std::string& uuid : flags->uuids) request.add_checkpoint_uuids(uuid);
    for (const std::string& glob : flags->globs) request.add_checkpoint_globs(glob);
    TRY(client->call(&v1::CheckpointService::Stub::CheckpointsRemoveFiles, request));
    for (const std::string& uuid : flags->uuids)
      std::cout << "Removed files of checkpoint " << printable(uuid) << '\n';
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
           {{"download"}, "Download a checkpoint's files.", declare_checkpoint_download},
           {{"delete"}, "Delete checkpoints.", declare_checkpoint_delete},
           {{"rm"}, "Remove some files of checkpoints.", declare_remove_files}}};
}

}  // namespace det::cli
