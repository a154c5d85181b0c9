// Default implementations of Trial and Callback, and helpers for trials.
#include "det/trial.h"

#include <torch/nn.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace det {
namespace {

/// Calls reset_parameters() when the module is one of `Layers`. LibTorch's modules
/// have no common interface for it.
template <typename... Layers>
void reset_layer(torch::nn::Module& module) {
  const auto reset = [&]<typename Layer>() {
    auto* layer = dynamic_cast<Layer*>(&module);
    if (layer != nullptr) layer->reset_parameters();
    return layer != nullptr;
  };
  (void)(reset.template operator()<Layers>() || ...);
}

}  // namespace

Metrics Trial::evaluate_batch(Batch&) {
  throw std::logic_error("the trial must override evaluate_batch or evaluate_full_dataset");
}
std::optional<Metrics> Trial::evaluate_full_dataset(const DataLoader&) { return std::nullopt; }

Json Callback::state_dict() const { return Json::object(); }

torch::Tensor loss_of(const Metrics& metrics) {
  std::string names;
  for (const auto& [name, value] : metrics.entries()) {
    if (name == "loss" && value.tensor() != nullptr) return *value.tensor();
    names += (names.empty() ? "" : ", ") + name + (value.tensor() == nullptr ? " (a number)" : "");
  }
  throw std::invalid_argument("train_batch must return the metric \"loss\" as a tensor; it returns: " +
                              (names.empty() ? "nothing" : names));
}

void reset_parameters(torch::nn::Module& model) {
  namespace nn = torch::nn;
  model.apply([](nn::Module& module) {
    reset_layer<nn::LinearImpl, nn::Conv1dImpl, nn::Conv2dImpl, nn::Conv3dImpl, nn::ConvTranspose1dImpl,
                nn::ConvTranspose2dImpl, nn::ConvTranspose3dImpl, nn::BatchNorm1dImpl, nn::BatchNorm2dImpl,
                nn::BatchNorm3dImpl, nn::InstanceNorm1dImpl, nn::InstanceNorm2dImpl, nn::InstanceNorm3dImpl,
                nn::LayerNormImpl, nn::GroupNormImpl, nn::EmbeddingImpl, nn::BilinearImpl, nn::LSTMImpl,
                nn::GRUImpl, nn::RNNImpl>(module);
  });
}

}  // namespace det
