// Owns the datasets that most trials need, and reading the files they come in.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "det/data.h"
#include "det/transforms.h"

namespace det {

/// Rows of tensors in memory: batches are one tensor of one, a list of several.
class TensorDataset : public Dataset {
 public:
  /// Throws std::invalid_argument when there is none, or they have different numbers of rows.
  explicit TensorDataset(std::vector<torch::Tensor> tensors);
  explicit TensorDataset(torch::Tensor data) : TensorDataset(std::vector<torch::Tensor>{std::move(data)}) {}
  TensorDataset(torch::Tensor data, torch::Tensor target)
      : TensorDataset(std::vector<torch::Tensor>{std::move(data), std::move(target)}) {}
  std::int64_t size() const override { return tensors_[0].size(0); }
  using Dataset::get_batch;
  Batch get_batch(const std::vector<std::int64_t>& indices) const override;

 private:
  std::vector<torch::Tensor> tensors_;
};

/// Images and their classes as files give them: uint8 [N, H, W] or [N, C, H, W], and any integers [N].
struct LabeledImages {
  torch::Tensor images, labels;
};

/// What an ImageDataset makes of its bytes: first the random changes, then (byte / 255 - mean) / stddev, a
/// pair of figures a channel.
struct ImageOptions {
  std::vector<double> mean, stddev;
  std::int64_t crop_padding =
      0;            ///< crop at random to the same size after so many zeros on each side; 0: no crop
  double flip = 0;  ///< left becomes right with this probability
};

/// Images kept as bytes and made floats batch by batch, in one go. Batches are [images, labels]: float [B, C,
/// H, W] and int64 [B].
class ImageDataset : public Dataset {
 public:
  /// Throws std::invalid_argument when shapes, types or the numbers of figures do not fit together.
  ImageDataset(torch::Tensor images, torch::Tensor labels, std::vector<double> mean,
               std::vector<double> stddev)
      : ImageDataset({std::move(images), std::move(labels)},
                     {.mean = std::move(mean), .stddev = std::move(stddev)}) {}
  ImageDataset(const LabeledImages& data, const ImageOptions& options);
  std::int64_t size() const override { return images_.size(0); }
  /// Without the random changes.
  Batch get_batch(const std::vector<std::int64_t>& indices) const override;
  Batch get_batch(const std::vector<std::int64_t>& indices, const SampleKey& key) const override;

 private:
  Batch make_batch(const std::vector<std::int64_t>& indices, const SampleKey* key) const;
  const std::uint8_t* augmented(const std::uint8_t* image, RecordRandom random,
                                std::vector<std::uint8_t>& into) const;

  torch::Tensor images_, labels_;
  std::vector<float> scale_, shift_;  // of each channel: byte * scale + shift
  std::int64_t crop_padding_;
  double flip_;
};

/// Image files in a folder a class: classes are the names of the subfolders, sorted, and so are the files in
/// them (at any depth). Records are [image, class]: uint8 [3, H, W] in RGB through the transform, and int64.
/// JPEG, PNG, BMP and PNM. Where the transform makes large JPEGs smaller they are decoded at 1/2, 1/4 or 1/8
/// of their size, whatever is still large enough: faster, at nearly the same pixels.
class ImageFolder : public Dataset {
 public:
  /// Throws std::runtime_error naming the folder without classes, the class without images, or the image of a
  /// kind that cannot be read. Reads no image.
  explicit ImageFolder(const std::string& directory,
                       transforms::Transform transform = transforms::to_tensor());
  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  /// Errors name the file. The records of a batch must have the same size after the transform.
  Batch get_batch(const std::vector<std::int64_t>& indices, const SampleKey& key) const override;
  Batch get_batch(const std::vector<std::int64_t>& indices) const override {
    return get_batch(indices, SampleKey{});
  }

  const std::vector<std::string>& classes() const { return classes_; }
  /// Path and class of every record.
  const std::vector<std::pair<std::string, std::int64_t>>& files() const { return files_; }

 private:
  std::vector<std::string> classes_;
  std::vector<std::pair<std::string, std::int64_t>> files_;
  transforms::Transform transform_;
};

/// An image file as uint8 [3, H, W]. Throws std::runtime_error naming the file when it is absent, damaged, of
/// an unknown kind, or larger than 2^27 pixels.
torch::Tensor read_image(const std::string& path);

/// Reads an IDX file of bytes (the format of MNIST), plain or gzip; when `path` is absent, `path`.gz. The
/// tensor is uint8 in the file's shape. Throws std::runtime_error naming the file when it is absent, damaged
/// or of another kind.
torch::Tensor read_idx(const std::string& path);

/// Reads CIFAR-10's binary version: data_batch_1.bin to data_batch_5.bin, or test_batch.bin. Images are uint8
/// [N, 3, 32, 32], labels int64 [N] in [0, 10). Throws std::runtime_error naming the file that is absent or
/// damaged.
LabeledImages read_cifar10(const std::string& directory, bool train);

/// Makes sure `path` holds a file with this SHA-256, fetching it from the first mirror that has it. A name
/// ending in .gz is kept packed and `sha256` is of what is in it. False, with a line on stderr for each
/// mirror, when none works. Safe for several processes at once. Needs the program curl unless the file is
/// there.
bool download(const std::string& path, const std::vector<std::string>& mirrors, const std::string& sha256);

}  // namespace det
