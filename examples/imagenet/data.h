// ImageNet as image folders (train/CLASS/* and val/CLASS/*), or CIFAR-10 as binary files or image folders.
#pragma once

#include <det/det.h>

#include <filesystem>
#include <memory>
#include <string>

#include "model.h"

inline std::shared_ptr<const det::Dataset> load_cifar10(const std::string& dir, bool train) {
  const std::vector<double> half{0.5, 0.5, 0.5};
  if (std::filesystem::is_directory(dir + "/train")) {
    namespace T = det::transforms;
    return std::make_shared<det::ImageFolder>(dir + (train ? "/train" : "/test"),
                                              T::compose({T::to_tensor(), T::normalize(half, half)}));
  }
  return std::make_shared<det::ImageDataset>(det::read_cifar10(dir, train),
                                             det::ImageOptions{.mean = half, .stddev = half});
}

/// `data.dataset` of the configuration is imagenet (the default) or cifar10. ImageNet: random crops of 224
/// pixels and flips for training, center crops for validation.
inline std::shared_ptr<const det::Dataset> load_images(const det::TrialContext& context, bool train) {
  const std::string dir = data_dir(context);
  if (context.get_data_config().value("dataset", "imagenet") == "cifar10") return load_cifar10(dir, train);
  namespace T = det::transforms;
  const T::Transform normalize = T::normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
  const T::Transform transform =
      train
          ? T::compose({T::random_resized_crop(224), T::random_horizontal_flip(), T::to_tensor(), normalize})
          : T::compose({T::resize(256), T::center_crop(224), T::to_tensor(), normalize});
  return std::make_shared<det::ImageFolder>(dir + (train ? "/train" : "/val"), transform);
}
