// `det checkpoint`: lists, shows, downloads and deletes checkpoints.
#include <iostream>

#include "cli/experiment/experiment_verbs.h"
#include "cli/output/download.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "common/base/units.h"

namespace det::cli {
namespace {

struct CheckpointOptions {
  std::string uuid;
  void declare(CLI::App& app) { app.add_option("UUID", uuid, "Checkpoint UUID.")->required(); }
};

struct DescribeCheckpointOptions : CheckpointOptions {
  Output output;
  void declare(CLI::App& app) {
    CheckpointOptions::declare(app);
    output.declare(app);
  }
};

/// Shows a checkpoint with the number and the total size of its files.
Status describe_checkpoint(Client& client, const DescribeCheckpointOptions& options) {
  TRY_ASSIGN(const v1::Checkpoint checkpoint, get_checkpoint(client, options.uuid));
  std::int64_t size = 0;
  for (const auto& [path, bytes] : checkpoint.resources()) size += bytes;
  const auto metric = metric_of(checkpoint, "");
  const v1::CheckpointTrainingMetadata& training = checkpoint.training();
  const Table table{
      {"Experiment ID", "Trial ID", "# of Batches", "State", "Validation Metric", "UUID", "Resources", "Size",
       "Path"},
      {{std::to_string(training.experiment_id().value()), std::to_string(training.trial_id().value()),
        std::to_string(checkpoint.steps_completed()), state_text(checkpoint.state()),
        metric ? number_text(*metric) : "", checkpoint.uuid(),
        std::to_string(checkpoint.resources().size()) + " files", format_bytes(size),
        checkpoint.storage_path()}}};
  return options.output.print(table, [&] { return to_json(checkpoint); });
}

struct DownloadCheckpointOptions : CheckpointOptions {
  std::string directory, mode = "auto";
  bool quiet = false;
  void declare(CLI::App& app) {
    CheckpointOptions::declare(app);
    app.add_option("-o,--output-dir", directory, "Destination directory (default: checkpoints/UUID).");
    app.add_option("--mode", mode,
                   "direct: read the storage, which this machine must reach; master: download from the "
                   "master; auto: direct, else master.")
        ->check(CLI::IsMember({"auto", "direct", "master"}))
        ->capture_default_str();
    app.add_flag("-q,--quiet", quiet, "Print only the directory.");
  }
};

Status run_download_checkpoint(Client& client, const DownloadCheckpointOptions& options) {
  const std::string target = options.directory.empty() ? "checkpoints/" + options.uuid : options.directory;
  TRY(options.mode == "master" ? download_checkpoint(client, options.uuid, target)
                               : copy_checkpoint(client, options.uuid, target, options.mode == "auto"));
  std::cout << (options.quiet ? target : "Downloaded checkpoint " + options.uuid + " to " + target) << '\n';
  return {};
}

/// Checkpoints to delete, and whether to prompt.
struct DeleteCheckpointsOptions {
  std::vector<std::string> uuids;
  bool yes = false;
  void declare(CLI::App& app) {
    app.add_option("UUIDS", uuids, "Checkpoint UUIDs, separated by spaces or commas.")
        ->required()
        ->delimiter(',');
    app.add_flag("-y,--yes", yes, "Skip the confirmation prompt.");
  }
  /// Prompts the user unless --yes is set. Errors: kCancelled (not confirmed).
  Status ask_first(const std::string& what) const {
    if (yes) return {};
    const std::string count =
        uuids.size() == 1 ? "checkpoint " + uuids.front() : std::to_string(uuids.size()) + " checkpoints";
    TRY_ASSIGN(const bool sure, confirm(what + count + "? This cannot be undone"));
    return sure ? Status() : fail(Code::kCancelled, "nothing was deleted");
  }
};

Status delete_checkpoints(Session& session, const DeleteCheckpointsOptions& options) {
  TRY(options.ask_first("Delete "));
  TRY_ASSIGN(Client * client, session.client());
  v1::DeleteCheckpointsRequest request;
  for (const std::string& uuid : options.uuids) request.add_checkpoint_uuids(uuid);
  TRY(client->call(v1::CheckpointService::DeleteCheckpoints, request));
  for (const std::string& uuid : options.uuids) std::cout << "Deleted checkpoint " << printable(uuid) << '\n';
  return {};
}

struct RemoveFilesOptions : DeleteCheckpointsOptions {
  std::vector<std::string> globs;
  void declare(CLI::App& app) {
    DeleteCheckpointsOptions::declare(app);
    app.add_option("--glob", globs, "Pattern of files to remove, such as **/*.pt; repeatable.")
        ->required()
        ->allow_extra_args(false);
  }
};

/// `det checkpoint rm`: removes the files that match --glob and keeps the checkpoints.
Status remove_checkpoint_files(Session& session, const RemoveFilesOptions& options) {
  TRY(options.ask_first("Remove files of "));
  TRY_ASSIGN(Client * client, session.client());
  v1::CheckpointsRemoveFilesRequest request;
  for (const std::string& uuid : options.uuids) request.add_checkpoint_uuids(uuid);
  for (const std::string& glob : options.globs) request.add_checkpoint_globs(glob);
  TRY(client->call(v1::CheckpointService::CheckpointsRemoveFiles, request));
  for (const std::string& uuid : options.uuids)
    std::cout << "Removed files of checkpoint " << printable(uuid) << '\n';
  return {};
}

}  // namespace

Command checkpoint_command() {
  return {{"checkpoint", "c"},
          "Manage checkpoints.",
          {},
          {list_checkpoints_verb({"list", "ls"}),
           {{"describe"}, "Show a checkpoint.", action(describe_checkpoint)},
           {{"download"}, "Download the files of a checkpoint.", action(run_download_checkpoint)},
           {{"delete"}, "Delete checkpoints.", action(delete_checkpoints)},
           {{"rm"}, "Remove files of checkpoints.", action(remove_checkpoint_files)}}};
}

}  // namespace det::cli
