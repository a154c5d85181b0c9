// The process that trains a trial: identity, device, ranks and client. Training thread.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "harness/src/client/client.h"
#include "harness/src/distributed/communicator.h"

namespace det {

/// Set before the trial is constructed; constant while it trains. `distributed` is never null, and `client`
/// is set before the first report.
struct RunInfo {
  /// Identity and hyperparameters of the trial.
  TrialInfo info;
  /// Reports to the master, or a local substitute.
  std::unique_ptr<Client> client;
  /// Device of models and batches.
  torch::Device device{torch::kCPU};
  /// Small exchanges between ranks; a single process by default.
  std::unique_ptr<DistributedContext> distributed = std::make_unique<DistributedContext>();
  std::unique_ptr<Communicator> communicator;  ///< null for a single process
  std::vector<std::string> code;               ///< files of info.model_dir at start-up, kept in checkpoints
};

}  // namespace det
