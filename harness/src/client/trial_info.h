// Determines which trial this process runs: from the environment on a cluster, or from a
// configuration file. No LibTorch.
#pragma once

#include <memory>
#include <string>

#include "common/base/result.h"
#include "harness/src/client/client.h"

namespace det {

/// True on a cluster: DET_MASTER and DET_ALLOCATION_ID are set.
bool on_cluster();

/// Reads the DET_* variables of the environment. kInvalidArgument naming the wrong variable; kUnimplemented
/// for a type of checkpoint_storage that is not supported.
Result<TrialInfo> cluster_trial_info();

/// Reads an experiment configuration ("" for none) outside a cluster. kInvalidArgument when the configuration
/// is invalid or a hyperparameter is a search range; the errors of read_file() otherwise.
Result<TrialInfo> local_trial_info(const std::string& config_file, const std::string& checkpoint_dir);

/// The same for a parsed configuration; `source` is the prefix of error messages.
Result<TrialInfo> local_trial_info(Json config, const std::string& source, const std::string& checkpoint_dir);

/// Creates an experiment for this process, which runs outside the cluster, with the login of the det command.
/// `config` is YAML. Fills in ids, configuration, seed and, unless set, the checkpoint directory of `info`.
/// kUnavailable when the cluster cannot be used. Blocks on the network.
Result<std::unique_ptr<Client>> make_detached_client(const std::string& master, const std::string& user,
                                                     const std::string& config, TrialInfo& info);

/// Sets the checkpoint directory from the configuration's checkpoint_storage; a directory that is already set
/// is kept. For a bucket it also opens the bucket and masks the keys in the configuration, which is stored in
/// checkpoints. kInvalidArgument, kUnimplemented.
Status open_storage(TrialInfo& info);

/// A FallBack that queries the master of this process's allocation.
FallBack fall_back_at(const TrialInfo& info);

/// The client for this environment: the cluster client or one that prints. kUnavailable when
/// libdet_cluster.so is not beside libdet.so.
Result<std::unique_ptr<Client>> make_client(const TrialInfo& info);

/// Loads libdet_cluster.so, if it is installed, so that make_client() need not. Starts no thread.
void preload_cluster_client();

}  // namespace det
