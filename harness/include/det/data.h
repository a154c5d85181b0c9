// Owns data: Dataset (records by number), DataLoader (how they are batched), and the datasets that most trials need.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace det {

/// Some records. The first dimension of every tensor counts them.
struct Batch {
  torch::Tensor data;
  torch::Tensor target;                        ///< undefined when the records have none
  std::map<std::string, torch::Tensor> extra;  ///< anything else a record has: masks, weights, …

  int64_t size() const { return data.size(0); }
};

/// A batch whose tensors are on `device`.
Batch to_device(Batch batch, const torch::Device& device);

/// Records by number. What is read must depend on the number alone: a trial that resumes, and one that runs elsewhere,
/// must see the same data. get_batch may run on another thread than the trial, one call at a time.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// How many records there are; constant.
  virtual int64_t size() const = 0;
  /// The records at `indices` (each in [0, size)), in that order, in tensors of their own on the CPU.
  virtual Batch get_batch(const std::vector<int64_t>& indices) const = 0;
};

/// A dataset read one record at a time: simple, and slower than get_batch on everything at once.
class SampleDataset : public Dataset {
 public:
  /// One record, without the batch dimension.
  virtual Batch get(int64_t index) const = 0;
  /// Stacks get() of each.
  Batch get_batch(const std::vector<int64_t>& indices) const override;
};

/// Rows of tensors in memory. `target` may be undefined.
class TensorDataset : public Dataset {
 public:
  /// Throws std::invalid_argument when the two have different numbers of rows.
  explicit TensorDataset(torch::Tensor data, torch::Tensor target = {});
  int64_t size() const override { return data_.size(0); }
  Batch get_batch(const std::vector<int64_t>& indices) const override;

 private:
  torch::Tensor data_, target_;
};

/// Images kept as bytes and made floats batch by batch: (byte / 255 - mean) / stddev, a pair of figures a channel.
/// `images` is uint8 [N, H, W] (one channel; batches are [B, 1, H, W]) or [N, C, H, W]; `labels` any integers [N], in
/// batches int64 [B].
class ImageDataset : public Dataset {
 public:
  /// Throws std::invalid_argument when shapes, types or the numbers of figures do not fit together.
  ImageDataset(torch::Tensor images, torch::Tensor labels, std::vector<double> mean, std::vector<double> stddev);
  int64_t size() const override { return images_.size(0); }
  Batch get_batch(const std::vector<int64_t>& indices) const override;

 private:
  torch::Tensor images_, labels_;
  std::vector<float> scale_, shift_;  // of each channel: byte * scale + shift
};

/// Reads an IDX file of bytes (the format of MNIST), plain or gzip; when `path` is absent, `path`.gz. The tensor is
/// uint8 in the file's shape. Throws std::runtime_error naming the file when it is absent, damaged or of another kind.
torch::Tensor read_idx(const std::string& path);

/// Makes sure `path` holds a file with this SHA-256, fetching it from the first mirror that has it. A name ending in .gz is
/// kept packed and `sha256` is of what is in it. False, with a line on stderr for each mirror, when none works. Safe
/// for several processes at once. Needs the program curl unless the file is there.
bool download(const std::string& path, const std::vector<std::string>& mirrors, const std::string& sha256);

struct DataLoaderOptions {
  int64_t batch_size = 1;  ///< records a batch on this process, >= 1
  bool shuffle = false;    ///< a new order each epoch, from the trial's seed and the epoch's number alone
  bool drop_last = false;  ///< leave out the short batch at the end of an epoch
};

/// A dataset and how it is batched. Holds no position: the trainer knows how many batches it has trained, and every
/// batch is a function of (seed, epoch, number in the epoch), so a trial resumes at any batch exactly.
class DataLoader {
 public:
  /// Throws std::invalid_argument when the dataset is empty, the batch size is < 1, or drop_last leaves no batch.
  DataLoader(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options);
  template <typename D, typename = std::enable_if_t<std::is_base_of_v<Dataset, D>>>
  DataLoader(D dataset, const DataLoaderOptions& options)
      : DataLoader(std::make_shared<const D>(std::move(dataset)), options) {}

  const std::shared_ptr<const Dataset>& dataset() const { return dataset_; }
  const DataLoaderOptions& options() const { return options_; }
  /// Batches an epoch.
  int64_t size() const;

 private:
  std::shared_ptr<const Dataset> dataset_;
  DataLoaderOptions options_;
};

}  // namespace det
