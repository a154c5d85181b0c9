// Downloads checkpoints, from the master or from their storage, and ranks them by a metric.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "common/client/session.h"
#include "det/v1/checkpoint.methods.h"

namespace det::cli {

/// Returns the master's record of a checkpoint, without its files. Errors: those of Client::call().
Result<v1::Checkpoint> get_checkpoint(Client& client, const std::string& uuid);

/// Downloads the checkpoint's archive from the master and unpacks it into `directory`, which is created and
/// must be empty. Holds the archive in a nameless file beside `directory`. Errors: kFailedPrecondition (not
/// empty); those of Client::stream() and unpack().
Status download_checkpoint(Client& client, const std::string& uuid, const std::string& directory);

/// Fetches the files from the storage without the master. The storage must be a directory that this machine
/// mounts, or a bucket with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY set; files of a bucket are verified
/// against the manifest. Symbolic links in the directory of the checkpoint are not followed. With
/// `or_download`, falls back to download_checkpoint() where the storage is not accessible. Errors:
/// kFailedPrecondition (storage not accessible, `directory` not empty), kDataLoss (a file name would lead out
/// of `directory`).
Status copy_checkpoint(Client& client, const std::string& uuid, const std::string& directory,
                       bool or_download);

/// Returns a validation metric of the checkpoint: `metric`, or the searcher's when it is "". Nothing when the
/// metric was not reported.
std::optional<double> metric_of(const v1::Checkpoint& checkpoint, const std::string& metric);

/// Returns the completed checkpoints that have the metric, best first. The sort is stable.
std::vector<v1::Checkpoint> best_first(std::vector<v1::Checkpoint> checkpoints, const std::string& metric,
                                       bool smaller_is_better);

/// Flags that rank checkpoints by a validation metric.
struct MetricOrder {
  std::string sort_by;  ///< "": the searcher's metric
  bool smaller = false, larger = false;
  /// Adds --sort-by, --smaller-is-better and --larger-is-better. Returns the first.
  CLI::Option* declare(CLI::App& app, const char* sort_by_help);
  /// Same as best_first() above. Without a flag the direction is that of the searcher in `config`, also for
  /// another metric.
  std::vector<v1::Checkpoint> best_first(std::vector<v1::Checkpoint> checkpoints,
                                         const google::protobuf::Struct& config) const;
};

/// Returns searcher.smaller_is_better of an experiment's configuration; true when it is absent.
bool smaller_is_better(const google::protobuf::Struct& config);

}  // namespace det::cli
