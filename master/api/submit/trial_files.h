// Files of a trial beside its checkpoints, in the storage of its experiment: reported media, TensorBoard
// event files and traces. Paths are relative to directories of the trial; users name no other file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/storage/file_tree.h"
#include "master/api/submit/stored_checkpoint.h"

namespace det::api {

/// A trial, with what locates its files.
struct TrialPlace {
  std::string cluster_id;
  ExperimentId experiment;
  TrialId trial;
};

/// Access to the files of one trial, in a directory or bucket that the policy allows. Calls block.
class TrialFiles {
 public:
  /// Opens the storage. `config` is the experiment's resolved configuration (JSON). Errors:
  /// kFailedPrecondition (the storage is not allowed, or not reachable from the master).
  static Result<TrialFiles> open(const storage::StoragePolicy& policy, const std::string& config,
                                 TrialPlace place);

  /// Returns the files of another trial of the experiment.
  TrialFiles of(TrialId trial) const;

  /// Writes the content of an entry under its digest. Idempotent.
  Status put_media(const std::string& digest, std::string_view content) const;
  /// Opens the content of an entry. Errors: kNotFound, those of the storage.
  Result<OpenFile> media(const std::string& digest, std::int64_t size) const;
  /// Deletes the content of an entry. Idempotent.
  Status remove_media(const std::string& digest) const;

  /// Files of the training library and of Determined AI's Python package, at most `limit`. Empty for a
  /// bucket: training processes keep these files on their machine.
  Result<std::vector<storage::TreeFile>> tensorboard_files(std::size_t limit) const;
  /// Opens one of them. Errors: kInvalidArgument (path), kNotFound, those of the storage.
  Result<OpenFile> tensorboard_file(const std::string& path) const;
  bool in_bucket() const { return bucket_.has_value(); }

 private:
  explicit TrialFiles(TrialPlace place) : place_(std::move(place)) {}
  /// Directory of the trial's media, relative to the root.
  std::string media_directory() const;
  /// Directories of TensorBoard files, relative to the root.
  std::vector<std::string> tensorboard_directories() const;
  TrialPlace place_;
  // Exactly one is set.
  std::shared_ptr<const storage::PinnedRoot> root_;
  std::optional<storage::Bucket> bucket_;
  std::string below_;  ///< directory of the storage below root_, with a slash at its end; may be absent
};

/// Reads a whole file. Errors: kResourceExhausted above `limit` bytes; those of the storage.
Result<std::string> read_all(const OpenFile& file, std::int64_t limit);

}  // namespace det::api
