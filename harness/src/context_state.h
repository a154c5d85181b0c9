// Owns what stands behind a TrialContext; shared by the context, the trainer and the checkpoint's state.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <string>
#include <vector>

#include "client.h"
#include "det/context.h"

namespace det {

struct ContextState {
  TrialInfo info;
  std::unique_ptr<Client> client;
  torch::Device device{torch::kCPU};
  Distributed distributed;
  Json data_config = Json::object();
  std::vector<std::shared_ptr<torch::nn::Module>> models;
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers;
  std::vector<std::string> code;  ///< files of info.model_dir when the program started: kept in checkpoints
  std::int64_t initial_batch = 0;
  bool stop_requested = false;
  /// For messages: what the trial's code is being asked for, and at which batch (-1: none).
  const char* doing = "the trial's constructor";
  std::int64_t doing_batch = -1;
};

}  // namespace det
