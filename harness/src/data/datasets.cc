// Datasets in memory.
#include "det/datasets.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "harness/src/base/torch_compat.h"
#include "harness/src/data/normalize.h"

namespace det {

TensorDataset::TensorDataset(std::vector<torch::Tensor> tensors) : tensors_(std::move(tensors)) {
  if (tensors_.empty()) throw std::invalid_argument("TensorDataset: there is no tensor");
  for (torch::Tensor& tensor : tensors_) {
    if (!tensor.defined() || tensor.dim() < 1) {
      throw std::invalid_argument("TensorDataset: a tensor without rows among " +
                                  std::to_string(tensors_.size()));
    }
    if (tensor.size(0) != tensors_[0].size(0)) {
      throw std::invalid_argument("TensorDataset: tensors " + compat::shape_text(tensors_[0]) + " and " +
                                  compat::shape_text(tensor) + " have different numbers of rows");
    }
    tensor = tensor.contiguous();
  }
}

Batch TensorDataset::get_batch(const std::vector<std::int64_t>& indices) const {
  const torch::Tensor rows = torch::from_blob(const_cast<std::int64_t*>(indices.data()),
                                              {static_cast<std::int64_t>(indices.size())}, torch::kLong);
  if (tensors_.size() == 1) return tensors_[0].index_select(0, rows);
  Batch::List taken;
  for (const torch::Tensor& tensor : tensors_) taken.emplace_back(tensor.index_select(0, rows));
  return taken;
}

ImageDataset::ImageDataset(const LabeledImages& data, const ImageOptions& options)
    : crop_padding_(options.crop_padding), flip_(options.flip) {
  if (!data.images.defined() || !data.labels.defined()) {
    throw std::invalid_argument("ImageDataset: a tensor is undefined");
  }
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument("ImageDataset: images " + compat::shape_text(data.images) + ", labels " +
                                compat::shape_text(data.labels) + ": " + what);
  };
  if (data.images.scalar_type() != torch::kByte) refuse("images must be uint8");
  if (data.images.dim() != 3 && data.images.dim() != 4) refuse("images must be [N, H, W] or [N, C, H, W]");
  if (data.labels.dim() != 1 || data.labels.size(0) != data.images.size(0))
    refuse("there must be one label an image");
  images_ = (data.images.dim() == 3 ? data.images.unsqueeze(1) : data.images).contiguous();
  labels_ = data.labels.to(torch::kLong).contiguous();
  const auto channels = static_cast<std::size_t>(images_.size(1));
  if (options.mean.size() != channels || options.stddev.size() != channels) {
    refuse("mean and stddev need " + std::to_string(channels) + " figures each");
  }
  if (crop_padding_ < 0) refuse("crop_padding is " + std::to_string(crop_padding_));
  if (!(flip_ >= 0 && flip_ <= 1)) refuse("flip must be in [0, 1], not " + std::to_string(flip_));
  for (std::size_t c = 0; c < channels; ++c) {
    if (!(options.stddev[c] > 0)) refuse("stddev must be greater than 0");
    // (byte / 255 - mean) / stddev as one multiplication and one addition.
    scale_.push_back(static_cast<float>(1 / (255 * options.stddev[c])));
    shift_.push_back(static_cast<float>(-options.mean[c] / options.stddev[c]));
  }
}

Batch ImageDataset::get_batch(const std::vector<std::int64_t>& indices) const {
  return make_batch(indices, nullptr);
}

Batch ImageDataset::get_batch(const std::vector<std::int64_t>& indices, const SampleKey& key) const {
  return make_batch(indices, crop_padding_ > 0 || flip_ > 0 ? &key : nullptr);
}

/// Returns `image`, or its augmented copy in `into`.
const std::uint8_t* ImageDataset::augmented(const std::uint8_t* image, RecordRandom random,
                                            std::vector<std::uint8_t>& into) const {
  const std::int64_t channels = images_.size(1), height = images_.size(2), width = images_.size(3);
  std::int64_t down = 0, right = 0;
  if (crop_padding_ > 0) {
    down = random.below(2 * crop_padding_ + 1) - crop_padding_;
    right = random.below(2 * crop_padding_ + 1) - crop_padding_;
  }
  // Drawn for every record, so that the stream does not depend on earlier choices.
  const bool flipped = random.uniform() < flip_;
  if (down == 0 && right == 0 && !flipped) return image;
  into.assign(static_cast<std::size_t>(channels * height * width), 0);
  // Columns [first, last) of the result lie inside the image.
  const std::int64_t first = std::clamp<std::int64_t>(-right, 0, width);
  const std::int64_t last = std::clamp<std::int64_t>(width - right, first, width);
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t y = std::max<std::int64_t>(0, -down); y < std::min(height, height - down); ++y) {
      const std::uint8_t* from = image + (c * height + y + down) * width + right;
      std::uint8_t* row = into.data() + (c * height + y) * width;
      if (flipped) {
        std::reverse_copy(from + first, from + last, row + (width - last));
      } else {
        std::memcpy(row + first, from + first, static_cast<std::size_t>(last - first));
      }
    }
  }
  return into.data();
}

Batch ImageDataset::make_batch(const std::vector<std::int64_t>& indices, const SampleKey* key) const {
  const auto count = static_cast<std::int64_t>(indices.size());
  const std::int64_t channels = images_.size(1), pixels = images_.size(2) * images_.size(3);
  torch::Tensor images = at::empty({count, channels, images_.size(2), images_.size(3)}, torch::kFloat);
  torch::Tensor labels = at::empty({count}, torch::kLong);
  const auto* bytes = images_.data_ptr<std::uint8_t>();
  const auto* classes = labels_.data_ptr<std::int64_t>();
  auto* out = images.data_ptr<float>();
  auto* targets = labels.data_ptr<std::int64_t>();
  std::vector<std::uint8_t> changed;
  for (const std::int64_t index : indices) {
    *targets++ = classes[index];
    const std::uint8_t* plane = bytes + index * channels * pixels;
    if (key != nullptr) plane = augmented(plane, key->random(index), changed);
    for (std::int64_t c = 0; c < channels; ++c, plane += pixels, out += pixels) {
      normalize(plane, out, static_cast<std::size_t>(pixels), scale_[c], shift_[c]);
    }
  }
  return {std::move(images), std::move(labels)};
}

}  // namespace det
