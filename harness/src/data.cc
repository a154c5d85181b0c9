// Owns the datasets that most trials need.
#include "det/data.h"

#include <torch/csrc/autograd/generated/variable_factories.h>
#include <zlib.h>

#include <cstring>
#include <memory>
#include <stdexcept>

#include "base/files.h"
#include "normalize.h"
#include "sampler.h"
#include "torch_compat.h"

namespace det {

Batch to_device(Batch batch, const torch::Device& device) {
  const auto move = [&](torch::Tensor& tensor) {
    if (tensor.defined() && tensor.device() != device) tensor = tensor.to(device, /*non_blocking=*/true);
  };
  move(batch.data);
  move(batch.target);
  for (auto& [name, tensor] : batch.extra) move(tensor);
  return batch;
}

Batch SampleDataset::get_batch(const std::vector<int64_t>& indices) const {
  std::vector<torch::Tensor> data, target;
  std::map<std::string, std::vector<torch::Tensor>> extra;
  for (const int64_t index : indices) {
    Batch record = get(index);
    data.push_back(std::move(record.data));
    if (record.target.defined()) target.push_back(std::move(record.target));
    for (auto& [name, tensor] : record.extra) extra[name].push_back(std::move(tensor));
  }
  Batch batch;
  batch.data = torch::stack(data);
  if (!target.empty()) batch.target = torch::stack(target);
  for (auto& [name, tensors] : extra) batch.extra[name] = torch::stack(tensors);
  return batch;
}

TensorDataset::TensorDataset(torch::Tensor data, torch::Tensor target)
    : data_(data.contiguous()), target_(target.defined() ? target.contiguous() : target) {
  if (target_.defined() && target_.size(0) != data_.size(0)) {
    throw std::invalid_argument("TensorDataset: data " + compat::shape_text(data_) + " and target " +
                                compat::shape_text(target_) + " have different numbers of rows");
  }
}

Batch TensorDataset::get_batch(const std::vector<int64_t>& indices) const {
  const torch::Tensor rows = torch::from_blob(const_cast<int64_t*>(indices.data()),
                                              {static_cast<int64_t>(indices.size())}, torch::kInt64);
  Batch batch;
  batch.data = data_.index_select(0, rows);
  if (target_.defined()) batch.target = target_.index_select(0, rows);
  return batch;
}

ImageDataset::ImageDataset(torch::Tensor images, torch::Tensor labels, std::vector<double> mean,
                           std::vector<double> stddev)
    : images_(images.dim() == 3 ? images.unsqueeze(1).contiguous() : images.contiguous()),
      labels_(labels.to(torch::kInt64).contiguous()) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument("ImageDataset: images " + compat::shape_text(images) + ", labels " +
                                compat::shape_text(labels) + ": " + what);
  };
  if (images_.scalar_type() != torch::kByte) refuse("images must be uint8");
  if (images_.dim() != 4) refuse("images must be [N, H, W] or [N, C, H, W]");
  if (labels_.dim() != 1 || labels_.size(0) != images_.size(0)) refuse("there must be one label an image");
  const auto channels = static_cast<std::size_t>(images_.size(1));
  if (mean.size() != channels || stddev.size() != channels) {
    refuse("mean and stddev need " + std::to_string(channels) + " figures each");
  }
  for (std::size_t c = 0; c < channels; ++c) {
    scale_.push_back(static_cast<float>(1 / (255 * stddev[c])));
    shift_.push_back(static_cast<float>(-mean[c] / stddev[c]));
  }
}

Batch ImageDataset::get_batch(const std::vector<int64_t>& indices) const {
  const auto count = static_cast<int64_t>(indices.size());
  const int64_t channels = images_.size(1), pixels = images_.size(2) * images_.size(3);
  Batch batch{torch::empty({count, channels, images_.size(2), images_.size(3)}, torch::kFloat),
              torch::empty({count}, torch::kInt64),
              {}};
  const auto* bytes = images_.data_ptr<std::uint8_t>();
  const auto* labels = labels_.data_ptr<int64_t>();
  auto* out = batch.data.data_ptr<float>();
  auto* targets = batch.target.data_ptr<int64_t>();
  for (const int64_t index : indices) {
    *targets++ = labels[index];
    const std::uint8_t* plane = bytes + index * channels * pixels;
    for (int64_t c = 0; c < channels; ++c, plane += pixels, out += pixels) {
      normalize(plane, out, static_cast<std::size_t>(pixels), scale_[c], shift_[c]);
    }
  }
  return batch;
}

torch::Tensor read_idx(const std::string& path) {
  const std::string file = path_exists(path) ? path : path + ".gz";
  const auto refuse = [&](const std::string& what) { throw std::runtime_error(file + ": " + what); };
  // zlib's gz functions read plain files as they are.
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(::gzopen(file.c_str(), "rb"), &::gzclose);
  if (in == nullptr) throw std::runtime_error(path + ": no such file, plain or .gz");
  const auto read = [&](void* into, std::size_t size) {
    auto* bytes = static_cast<char*>(into);
    while (size > 0) {
      const auto part = static_cast<unsigned>(std::min<std::size_t>(size, 1 << 30));
      const int got = ::gzread(in.get(), bytes, part);
      if (got <= 0) refuse("is damaged or ends too early");
      bytes += got, size -= got;
    }
  };
  unsigned char magic[4];
  read(magic, sizeof magic);
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != 8 || magic[3] == 0 || magic[3] > 4) {
    refuse("is no IDX file of bytes");
  }
  std::vector<int64_t> shape;
  int64_t bytes = 1;
  for (int i = 0; i < magic[3]; ++i) {
    unsigned char size[4];
    read(size, sizeof size);
    shape.push_back(int64_t{size[0]} << 24 | int64_t{size[1]} << 16 | int64_t{size[2]} << 8 | size[3]);
    if (shape.back() > 0 && bytes > (int64_t{1} << 36) / shape.back()) refuse("is damaged (its sizes are absurd)");
    bytes *= shape.back();
  }
  torch::Tensor tensor = torch::empty(shape, torch::kByte);
  read(tensor.data_ptr(), bytes);
  char more;
  if (::gzread(in.get(), &more, 1) != 0) refuse("is damaged or longer than its sizes say");
  return tensor;
}

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options)
    : dataset_(std::move(dataset)), options_(options) {
  if (dataset_ == nullptr || dataset_->size() < 1) throw std::invalid_argument("DataLoader: the dataset is empty");
  if (options_.batch_size < 1) throw std::invalid_argument("DataLoader: batch_size must be at least 1");
  if (size() < 1) {
    throw std::invalid_argument("DataLoader: drop_last leaves no batch of " + std::to_string(options_.batch_size) +
                                " in " + std::to_string(dataset_->size()) + " records");
  }
}

int64_t DataLoader::size() const {
  return Sampler({.records = dataset_->size(), .batch_size = options_.batch_size, .drop_last = options_.drop_last})
      .batches();
}

}  // namespace det
