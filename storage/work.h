// Owns what the cluster itself does with checkpoints that lie as directories `<root>/<uuid>`: it lists and
// removes them. Runs where the storage can be reached, on the master or on an agent. (Writing and reading:
// harness/src/checkpoint_dir.h.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace det::storage {

/// Whose checkpoint a manifest says it is.
struct Owner {
  std::string cluster;
  TrialId trial;
  RunNumber run = 0;
  bool operator==(const Owner&) const = default;
};
struct Found {
  std::string name;
  Owner owner;  ///< cluster "": its manifest does not say, or it has none
  bool operator==(const Found&) const = default;
};

struct Work {
  std::string root;
  std::vector<std::string> remove;  ///< names below root: uuids, or tensorboard_name()
  bool list = false;                ///< find the complete checkpoints that are there
};
struct Done {
  std::vector<std::string> removed;
  std::vector<std::string>
      absent;  ///< were not there, while the storage was; or no name that anything of ours has
  std::vector<Found> found;
  std::string error;  ///< why the first of the others is still there; "" when all is done
};

/// A uuid: never a path, and no name that a directory of somebody else is likely to have.
bool is_checkpoint_name(std::string_view name);
/// Where the trials of an experiment write for TensorBoard.
std::string tensorboard_name(ExperimentId experiment);

/// Repeats safely. A checkpoint goes out of sight first (its name gets `.partial`), so it is there whole or
/// not at all. A storage that is not there, or holds nothing at all, is an error: it may be a mount that is
/// missing, and nothing is said of what lies in it.
Done perform(const Work& work);

}  // namespace det::storage
