// Models of the training benchmarks: the CNN of the MNIST example, an MLP so small that only overhead counts,
// and ResNet-18.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "det/det.h"
#include "det/models.h"

namespace bench {

struct Model {
  torch::nn::Sequential net{nullptr};
  std::shared_ptr<const det::Dataset> data;
  std::int64_t batch_size = 0;
  int segment = 0;  ///< Batches that take some tenths of a second.
};

inline torch::nn::Sequential make_mlp() {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Linear(16, 32), nn::ReLU(), nn::Linear(32, 32), nn::ReLU(), nn::Linear(32, 4));
}
inline torch::nn::Sequential make_cnn() {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Conv2d(1, 32, 3), nn::ReLU(), nn::Conv2d(32, 64, 3), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Dropout(0.25), nn::Flatten(), nn::Linear(64 * 12 * 12, 128), nn::ReLU(),
                        nn::Dropout(0.5), nn::Linear(128, 10));
}

/// ResNet-18 on images of ImageNet's size; on the CPU on small ones.
inline Model make_resnet18() {
  const bool cuda = torch::cuda::is_available();
  const std::int64_t side = cuda ? 224 : 32, count = cuda ? 1024 : 64;
  auto images = std::make_shared<det::ImageDataset>(
      torch::randint(0, 256, {count, 3, side, side}, torch::kByte),
      torch::randint(0, 1000, {count}, torch::kLong), std::vector<double>{0.5, 0.5, 0.5},
      std::vector<double>{0.25, 0.25, 0.25});
  return {torch::nn::Sequential(det::models::resnet18()), std::move(images), cuda ? 128 : 8, cuda ? 10 : 2};
}

/// Returns "mlp", "cnn" or "resnet18" with random data.
inline Model make_model(const std::string& name) {
  if (name == "mlp") {
    auto rows = std::make_shared<det::TensorDataset>(torch::randn({20000, 16}),
                                                     torch::randint(0, 4, {20000}, torch::kLong));
    return {make_mlp(), std::move(rows), 32, 3000};
  }
  if (name == "resnet18") return make_resnet18();
  if (name != "cnn") throw std::invalid_argument("no such model: " + name);
  auto images = std::make_shared<det::ImageDataset>(torch::randint(0, 256, {20000, 28, 28}, torch::kByte),
                                                    torch::randint(0, 10, {20000}, torch::kLong),
                                                    std::vector<double>{0.13}, std::vector<double>{0.31});
  return {make_cnn(), std::move(images), 64, 8};
}

inline torch::optim::SGDOptions sgd() { return torch::optim::SGDOptions(0.01).momentum(0.9); }

}  // namespace bench
