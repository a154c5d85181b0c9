// Maintenance of checkpoints in a storage directory (`<root>/<uuid>`): removal and listing. Runs on the
// master or on an agent, wherever the directory is mounted. Writing and reading are in
// harness/src/checkpoint/checkpoint_dir.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/base/result.h"
#include "common/storage/root.h"

namespace det::storage {

/// The run that wrote a checkpoint, as recorded in its manifest.
struct Owner {
  std::string cluster;  ///< cluster id; "" if unknown
  TrialId trial;
  RunNumber run = 0;
  bool operator==(const Owner&) const = default;
};
/// Returns the "owner" of a manifest or of an upload mark (JSON objects); cluster "" if it has none.
Owner read_owner(const Json& manifest);
/// A checkpoint directory that a listing found.
struct Found {
  std::string name;
  Owner owner;  ///< cluster "" if there is no readable manifest
  bool operator==(const Found&) const = default;
};

/// A maintenance request.
struct Work {
  Root root;
  std::vector<std::string> remove;  ///< names below root: UUIDs, of tensorboard_names() or media_name()
  bool list = false;                ///< also return the checkpoints that exist
};
/// Result of perform.
struct Done {
  std::vector<std::string> removed;  ///< existed and are gone
  /// Names that did not exist, or that are not valid names of checkpoints and TensorBoard directories.
  std::vector<std::string> absent;
  std::vector<Found> found;
  std::string error;  ///< first failure; "" if all requested work is done
};

/// Returns the directories, relative to the root, for TensorBoard files of an experiment: that of the
/// training library, and that of Determined AI's Python package.
std::vector<std::string> tensorboard_names(const std::string& cluster_id, ExperimentId experiment);

/// Returns the directory, relative to the root, for reported media of an experiment.
std::string media_name(const std::string& cluster_id, ExperimentId experiment);
/// True for a directory that media_name() returns.
bool is_media_directory(std::string_view name);

/// Removes and lists checkpoints. A checkpoint is renamed to `<uuid>.partial` before its files are removed,
/// so readers see it complete or not at all. A root that does not exist is an error, since it may be a
/// missing mount. Idempotent. Blocks.
Done perform(const Work& work);

}  // namespace det::storage
