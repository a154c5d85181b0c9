// Uses of a finished checkpoint. Regions of the API guide's chapter on checkpoints.
#pragma once

#include <det/det.h>

#include <string>

#include "skeleton.h"

inline torch::Tensor predict(const std::string& checkpoint, const torch::Tensor& data) {
  torch::NoGradGuard no_grad;
  torch::nn::Linear model(4, 2);
  det::load_model(checkpoint, *model);
  model->eval();
  return model(data).argmax(1);
}

inline det::Metrics evaluate(const std::string& checkpoint, det::Batch batch) {
  torch::NoGradGuard no_grad;
  auto trial = det::load_trial_from_checkpoint_path<MyTrial>(checkpoint);
  return trial->evaluate_batch(batch);
}

inline void export_weights(const std::string& checkpoint, const std::string& file) {
  det::export_safetensors(checkpoint, file);
}

inline void import_weights(const std::string& file, torch::nn::Module& model) {
  det::load_safetensors(file, model);
}
