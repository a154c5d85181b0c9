// Datasets selected by `data` of the configuration: MNIST (IDX files), CIFAR-10 (binary files or image
// folders), ImageNet (image folders, or a list made by generate_blob_list).
#pragma once

#include <det/bucket.h>
#include <det/det.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "mix.h"

/// Images named by a list. Each line has a path below `directory`, a tab, and the class number. On a network
/// file system, reading a list is much faster than listing directories. With a bucket, an image that is
/// missing from `directory` is downloaded into it once.
class ListedImages : public det::AugmentedDataset {
 public:
  ListedImages(std::string directory, const std::string& list, const std::string& bucket,
               det::transforms::Transform transform)
      : directory_(std::move(directory)), transform_(std::move(transform)) {
    if (!bucket.empty()) bucket_.emplace(bucket);
    std::ifstream lines(list);
    for (std::string path, label; std::getline(lines, path, '\t') && std::getline(lines, label);) {
      images_.emplace_back(path, std::stoll(label));
    }
    if (images_.empty()) throw std::runtime_error(list + " names no image; make it with generate_blob_list");
  }
  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  det::Batch get(int64_t index, det::RecordRandom& random) const override {
    const auto& [path, label] = images_.at(static_cast<std::size_t>(index));
    const std::string file = directory_ + "/" + path;
    if (bucket_ && !std::filesystem::exists(file)) bucket_->fetch(path, file);
    return {transform_(det::read_image(file), random), torch::tensor(label)};
  }

 private:
  std::string directory_;
  std::optional<det::Bucket> bucket_;
  det::transforms::Transform transform_;
  std::vector<std::pair<std::string, int64_t>> images_;
};

/// The datasets, and the shape of their images and labels.
struct Data {
  int64_t channels, classes;
  std::shared_ptr<const det::Dataset> train, validation;
};

inline Data load_mnist(const std::string& dir) {
  const auto part = [&](const std::string& name) {
    return std::make_shared<det::ImageDataset>(det::read_idx(dir + "/" + name + "-images-idx3-ubyte"),
                                               det::read_idx(dir + "/" + name + "-labels-idx1-ubyte"),
                                               std::vector{0.1307}, std::vector{0.3081});
  };
  return {1, 10, part("train"), part("t10k")};
}

inline Data load_cifar10(const std::string& dir) {
  const std::vector<double> mean{0.4914, 0.4822, 0.4465}, stddev{0.2470, 0.2435, 0.2616};
  if (!std::filesystem::is_directory(dir + "/train")) {
    return {3, 10,
            std::make_shared<det::ImageDataset>(
                det::read_cifar10(dir, true),
                det::ImageOptions{.mean = mean, .stddev = stddev, .crop_padding = 4, .flip = 0.5}),
            std::make_shared<det::ImageDataset>(det::read_cifar10(dir, false),
                                                det::ImageOptions{.mean = mean, .stddev = stddev})};
  }
  namespace T = det::transforms;
  const T::Transform train = T::compose(
      {T::random_crop(32, 4), T::random_horizontal_flip(), T::to_tensor(), T::normalize(mean, stddev)});
  const T::Transform plain = T::compose({T::to_tensor(), T::normalize(mean, stddev)});
  return {3, 10, std::make_shared<det::ImageFolder>(dir + "/train", train),
          std::make_shared<det::ImageFolder>(dir + "/test", plain)};
}

/// `size`: pixels of the crops. `erasing`: probability of random_erasing().
inline Data load_imagenet(const std::string& dir, const std::string& bucket, int64_t size, double erasing) {
  namespace T = det::transforms;
  const std::vector<double> mean{0.485, 0.456, 0.406}, stddev{0.229, 0.224, 0.225};
  const T::Transform train =
      T::compose({T::random_resized_crop(size), T::random_horizontal_flip(), T::to_tensor(),
                  T::normalize(mean, stddev), random_erasing(erasing)});
  const T::Transform plain =
      T::compose({T::resize(size * 8 / 7), T::center_crop(size), T::to_tensor(), T::normalize(mean, stddev)});
  const auto part = [&](const std::string& name,
                        const T::Transform& transform) -> std::shared_ptr<const det::Dataset> {
    const std::string list = dir + "/" + name + ".txt";
    if (std::filesystem::exists(list)) return std::make_shared<ListedImages>(dir, list, bucket, transform);
    return std::make_shared<det::ImageFolder>(dir + "/" + name, transform);
  };
  return {3, 1000, part("train", train), part("val", plain)};
}

inline Data load_data(const det::Json& config, double erasing) {
  const std::string name = config.at("dataset"), dir = config.at("dir");
  if (name == "mnist") return load_mnist(dir);
  if (name == "cifar10") return load_cifar10(dir);
  if (name == "imagenet")
    return load_imagenet(dir, config.value("bucket", ""), config.value("image_size", 224), erasing);
  throw std::invalid_argument("data.dataset is " + name + "; there are mnist, cifar10 and imagenet");
}
