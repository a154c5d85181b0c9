// Common datasets and readers of their file formats.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "det/data.h"
#include "det/transforms.h"

namespace det {

/// Rows of tensors in memory. A batch is a tensor (for one tensor) or a list of tensors (for several).
class TensorDataset : public Dataset {
 public:
  /// All tensors must have the same first dimension. Throws std::invalid_argument otherwise, or for an empty
  /// list.
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

/// Images and class labels as stored in files: uint8 [N, H, W] or [N, C, H, W], and integers [N].
struct LabeledImages {
  torch::Tensor images, labels;
};

/// Preprocessing of an ImageDataset: random crop and flip, then (byte / 255 - mean) / stddev.
struct ImageOptions {
  /// One value per channel.
  std::vector<double> mean, stddev;
  /// Zeros added on each side before a random crop to the original size; 0 disables the crop.
  std::int64_t crop_padding = 0;
  double flip = 0;  ///< probability of a horizontal flip
};

/// Images kept as bytes and converted to floats batch by batch, in one pass. Batches are [images, labels]:
/// float [B, C, H, W] and int64 [B].
class ImageDataset : public Dataset {
 public:
  /// Throws std::invalid_argument for shapes, types or numbers of channels that do not match.
  ImageDataset(torch::Tensor images, torch::Tensor labels, std::vector<double> mean,
               std::vector<double> stddev)
      : ImageDataset({std::move(images), std::move(labels)},
                     {.mean = std::move(mean), .stddev = std::move(stddev)}) {}
  /// The same with augmentation.
  ImageDataset(const LabeledImages& data, const ImageOptions& options);
  std::int64_t size() const override { return images_.size(0); }
  /// Returns a batch without augmentation.
  Batch get_batch(const std::vector<std::int64_t>& indices) const override;
  Batch get_batch(const std::vector<std::int64_t>& indices, const SampleKey& key) const override;

 private:
  Batch make_batch(const std::vector<std::int64_t>& indices, const SampleKey* key) const;
  const std::uint8_t* augmented(const std::uint8_t* image, RecordRandom random,
                                std::vector<std::uint8_t>& into) const;

  torch::Tensor images_, labels_;
  std::vector<float> scale_, shift_;  // per channel: byte * scale + shift
  std::int64_t crop_padding_;
  double flip_;
};

/// Image files in one directory per class. Classes are the names of the subdirectories, sorted; their files
/// are found at any depth, in sorted order. Records are [image, class]: uint8 [3, H, W] in RGB after the
/// transform, and int64.
///
/// Formats: JPEG, PNG, BMP and PNM. A JPEG that the transform shrinks is decoded at 1/2, 1/4 or 1/8 of its
/// size, as long as that is large enough: faster, with nearly the same pixels.
class ImageFolder : public Dataset {
 public:
  /// Lists the files without reading them. Throws std::runtime_error naming a directory without classes, a
  /// class without images, or an image of an unsupported format.
  explicit ImageFolder(const std::string& directory,
                       transforms::Transform transform = transforms::to_tensor());
  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  /// Errors name the file. All records of a batch must have the same size after the transform.
  Batch get_batch(const std::vector<std::int64_t>& indices, const SampleKey& key) const override;
  Batch get_batch(const std::vector<std::int64_t>& indices) const override {
    return get_batch(indices, SampleKey{});
  }

  /// Class names; the index is the label.
  const std::vector<std::string>& classes() const { return classes_; }
  /// Path and label of every record.
  const std::vector<std::pair<std::string, std::int64_t>>& files() const { return files_; }

 private:
  std::vector<std::string> classes_;
  std::vector<std::pair<std::string, std::int64_t>> files_;
  transforms::Transform transform_;
};

/// Reads an image file as uint8 [3, H, W] in RGB. Throws std::runtime_error naming the file when it is
/// missing, damaged, of an unsupported format, or larger than 2^27 pixels.
torch::Tensor read_image(const std::string& path);

/// Reads an IDX file of bytes (the format of MNIST), plain or gzipped; falls back to `path`.gz when `path`
/// does not exist. Returns uint8 in the file's shape. Throws std::runtime_error naming the file when it is
/// missing, damaged or of another type.
torch::Tensor read_idx(const std::string& path);

/// Reads the binary version of CIFAR-10: data_batch_1.bin to data_batch_5.bin, or test_batch.bin. Returns
/// images as uint8 [N, 3, 32, 32] and labels as int64 [N] in [0, 10). Throws std::runtime_error naming the
/// file that is missing or damaged.
LabeledImages read_cifar10(const std::string& directory, bool train);

/// Ensures that `path` is a file with this SHA-256 digest, and downloads it from the first working mirror if
/// it is not. A .gz file stays compressed; `sha256` is the digest of its content. Returns false, after a line
/// on stderr per mirror, when no mirror works. Safe for concurrent calls of several processes. Requires the
/// program curl unless the file exists. Blocks for up to five minutes per mirror.
bool download(const std::string& path, const std::vector<std::string>& mirrors, const std::string& sha256);

}  // namespace det
