// Mixtures of the records of a batch.
#include <ATen/ops/one_hot.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "det/transforms.h"
#include "harness/src/data/image_check.h"

namespace det::transforms {
namespace {

/// A draw from Gamma(shape, 1) (Marsaglia and Tsang, A Simple Method for Generating Gamma Variables, 2000).
double gamma_value(double shape, RecordRandom& random) {
  if (shape < 1) return gamma_value(shape + 1, random) * std::pow(1 - random.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
    const double x = radius * std::cos(2 * std::numbers::pi * random.uniform());
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

double beta_value(double alpha, RecordRandom& random) {
  const double x = gamma_value(alpha, random), y = gamma_value(alpha, random);
  return x + y > 0 ? x / (x + y) : 0.5;  // both underflow for tiny alpha
}

void check_batch(const torch::Tensor& images, const torch::Tensor& targets, const std::string& name) {
  require(images.dim() == 4 && targets.dim() >= 1 && images.size(0) == targets.size(0),
          name + ": takes images [B, C, H, W] and B labels, not " + compat::shape_text(images) + " and " +
              compat::shape_text(targets));
}

/// Targets [B, classes]: class numbers become probabilities.
torch::Tensor probabilities(const torch::Tensor& images, const torch::Tensor& labels, std::int64_t classes,
                            double alpha, const std::string& name) {
  check_batch(images, labels, name);
  require(images.is_floating_point(), name + ": takes floats: put to_tensor() into the dataset's transform");
  require(alpha > 0, name + ": alpha is " + std::to_string(alpha) + ", it must be above 0");
  if (labels.dim() == 2 && labels.size(1) == classes) return labels.to(images.scalar_type());
  require(labels.dim() == 1 && labels.scalar_type() == torch::kLong,
          name + ": labels are B class numbers (int64) or [B, " + std::to_string(classes) +
              "] probabilities, not " + compat::shape_text(labels));
  return at::one_hot(labels, classes).to(images.scalar_type());
}

torch::Tensor mixed(const torch::Tensor& values, double lambda) {
  return values * lambda + values.roll(1, 0) * (1 - lambda);
}

}  // namespace

functional::MixedBatch functional::mixup(const torch::Tensor& images, const torch::Tensor& targets,
                                         double lambda) {
  check_batch(images, targets, "mixup");
  return {mixed(images, lambda), mixed(targets, lambda)};
}

functional::MixedBatch functional::cutmix(const torch::Tensor& images, const torch::Tensor& targets,
                                          std::int64_t top, std::int64_t left, std::int64_t bottom,
                                          std::int64_t right) {
  check_batch(images, targets, "cutmix");
  const std::int64_t height = images.size(2), width = images.size(3);
  require(top >= 0 && left >= 0 && top <= bottom && left <= right && bottom <= height && right <= width,
          "cutmix: the rectangle is not inside the images " + compat::shape_text(images));
  torch::Tensor result = images.clone();
  const auto part = [&](const torch::Tensor& of) { return of.slice(2, top, bottom).slice(3, left, right); };
  part(result).copy_(part(images.roll(1, 0)));
  const double share =
      static_cast<double>((bottom - top) * (right - left)) / static_cast<double>(height * width);
  return {result, mixed(targets, 1 - share)};
}

functional::MixedBatch mixup(const torch::Tensor& images, const torch::Tensor& labels, std::int64_t classes,
                             double alpha, RecordRandom& random) {
  const torch::Tensor targets = probabilities(images, labels, classes, alpha, "mixup");
  return functional::mixup(images, targets, beta_value(alpha, random));
}

functional::MixedBatch cutmix(const torch::Tensor& images, const torch::Tensor& labels, std::int64_t classes,
                              double alpha, RecordRandom& random) {
  const torch::Tensor targets = probabilities(images, labels, classes, alpha, "cutmix");
  const double half = 0.5 * std::sqrt(1 - beta_value(alpha, random));
  // The center is uniform; parts outside of the image are cut off.
  const auto span = [&](std::int64_t size) {
    const std::int64_t center = random.below(size);
    const auto reach = static_cast<std::int64_t>(half * static_cast<double>(size));
    return std::array<std::int64_t, 2>{std::max<std::int64_t>(0, center - reach),
                                       std::min(size, center + reach)};
  };
  const auto columns = span(images.size(3)), rows = span(images.size(2));
  return functional::cutmix(images, targets, rows[0], columns[0], rows[1], columns[1]);
}

}  // namespace det::transforms
