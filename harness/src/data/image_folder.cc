// ImageFolder: image files in one directory per class.
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <stdexcept>

#include "common/base/files.h"
#include "det/datasets.h"
#include "harness/src/base/or_throw.h"
#include "harness/src/base/torch_compat.h"
#include "harness/src/data/image_decode.h"

namespace det {
namespace {

namespace fs = std::filesystem;

/// Largest image file.
constexpr std::int64_t kMaxBytes = 256 << 20;
constexpr std::array kReadable{".jpg", ".jpeg", ".png", ".ppm", ".pgm", ".bmp"};
// Other image formats. Skipping them silently would change the data, so they are an error.
constexpr std::array kUnreadable{".tif", ".tiff", ".webp"};

std::string extension_of(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return extension;
}

/// Collects the images below `directory`: sorted files first, then the subdirectories in order, as
/// torchvision does.
void find_images(const fs::path& directory, std::vector<std::string>& found) {
  std::vector<std::string> files;
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (entry.is_directory()) {
      folders.push_back(entry.path());
      continue;
    }
    const std::string extension = extension_of(entry.path());
    if (std::find(kUnreadable.begin(), kUnreadable.end(), extension) != kUnreadable.end()) {
      throw std::runtime_error(entry.path().string() + ": ImageFolder cannot read " + extension +
                               " images: convert them to JPEG or PNG, or remove them");
    }
    if (std::find(kReadable.begin(), kReadable.end(), extension) != kReadable.end()) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  found.insert(found.end(), files.begin(), files.end());
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) find_images(folder, found);
}

/// Decodes an image as a [3, H, W] view of interleaved pixels. With a transform, JPEGs may be decoded at a
/// reduced size.
torch::Tensor decode(const std::string& file, const transforms::Transform* transform,
                     const RecordRandom* random) {
  const ImageHeader header = read_image_header(file);
  int divisor = 1;
  if (header.jpeg && transform != nullptr) {
    const double least = transform->least_scale(header.height, header.width, *random);
    // The largest reduction that still leaves enough pixels for the transform.
    while (divisor < 8 && least * divisor * 2 <= 1) divisor *= 2;
  }
  torch::Tensor pixels =
      at::empty({divided(header.height, divisor), divided(header.width, divisor), 3}, torch::kByte);
  decode_image(file, header, divisor, pixels.data_ptr<std::uint8_t>());
  return pixels.permute({2, 0, 1});
}

std::string read_bytes(const std::string& path) { return value_or_throw(read_file(path, kMaxBytes)); }

}  // namespace

torch::Tensor read_image(const std::string& path) {
  const std::string file = read_bytes(path);
  try {
    return decode(file, nullptr, nullptr).contiguous();
  } catch (const std::exception& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

ImageFolder::ImageFolder(const std::string& directory, transforms::Transform transform)
    : transform_(std::move(transform)) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (entry.is_directory()) classes_.push_back(entry.path().filename().string());
  }
  if (error) throw std::runtime_error(directory + ": " + error.message());
  if (classes_.empty()) {
    throw std::runtime_error(directory + ": ImageFolder needs a subfolder for each class; there is none");
  }
  std::sort(classes_.begin(), classes_.end());
  for (std::size_t label = 0; label < classes_.size(); ++label) {
    const fs::path folder = fs::path(directory) / classes_[label];
    std::vector<std::string> found;
    find_images(folder, found);
    if (found.empty())
      throw std::runtime_error(folder.string() + ": ImageFolder found no image in this class");
    for (std::string& path : found) files_.emplace_back(std::move(path), static_cast<std::int64_t>(label));
  }
}

Batch ImageFolder::get_batch(const std::vector<std::int64_t>& indices, const SampleKey& key) const {
  std::vector<torch::Tensor> images;
  images.reserve(indices.size());
  torch::Tensor labels = at::empty({static_cast<std::int64_t>(indices.size())}, torch::kLong);
  auto* label = labels.data_ptr<std::int64_t>();
  for (const std::int64_t index : indices) {
    const auto& [path, class_number] = files_[static_cast<std::size_t>(index)];
    *label++ = class_number;
    const std::string file = read_bytes(path);
    try {
      RecordRandom random = key.random(index);
      const torch::Tensor image = decode(file, &transform_, &random);
      images.push_back(transform_(image, random));
    } catch (const c10::Error& error) {
      throw std::runtime_error(path + ": " + error.what_without_backtrace());
    } catch (const std::exception& error) {
      throw std::runtime_error(path + ": " + error.what());
    }
    if (images.back().sizes() != images.front().sizes()) {
      throw std::runtime_error(path + ": is " + compat::shape_text(images.back()) +
                               " after the transform, and " +
                               files_[static_cast<std::size_t>(indices.front())].first + " is " +
                               compat::shape_text(images.front()) +
                               ": images of a batch must have one size (transforms::resize, center_crop, …)");
    }
  }
  return {at::stack(images), labels};
}

}  // namespace det
