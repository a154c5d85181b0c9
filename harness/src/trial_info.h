// Owns finding out who this process is: from the cluster's environment, or from a configuration file.
// Standard library only.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "client.h"
#include "fall_back.h"

namespace det {

/// True when the environment is a cluster's: DET_MASTER and DET_ALLOCATION_ID are set.
bool on_cluster();

/// From DET_* of the environment. kInvalidArgument naming the variable that is wrong.
Result<TrialInfo> cluster_trial_info();

/// Without a cluster: from an experiment configuration ("" for none). kInvalidArgument when it cannot be
/// read, or when a hyperparameter is a range to search instead of a value.
Result<TrialInfo> local_trial_info(const std::string& config_file, const std::string& checkpoint_dir);

/// The same from a configuration at hand; `source` stands before what is wrong with it.
Result<TrialInfo> local_trial_info(Json config, const std::string& source, const std::string& checkpoint_dir);

/// An experiment of its own for this process, which runs outside the cluster: its owner's login is that of
/// the det command. `config` is YAML. Fills in ids, configuration, seed and (unless it is set) the checkpoint
/// directory.
Result<std::unique_ptr<Client>> make_detached_client(const std::string& master, const std::string& user,
                                                     const std::string& config, TrialInfo& info);

/// Fills in where checkpoints lie, by the configuration's checkpoint_storage (a directory that is set already
/// stays); of a bucket the keys, which then are masked in the configuration: it goes into checkpoints.
/// kInvalidArgument.
Status open_storage(TrialInfo& info);

/// Asks the master of this process's allocation.
FallBack fall_back_at(const TrialInfo& info);

/// The client for where this process runs. kUnavailable when libdet_cluster.so is not beside libdet.so.
Result<std::unique_ptr<Client>> make_client(const TrialInfo& info);

}  // namespace det
