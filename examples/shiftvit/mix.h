// Label smoothing, mixup, cutmix and random erasing: the ImageNet recipe of ShiftViT, as in Swin and DeiT.
#pragma once

#include <det/det.h>

#include <cmath>
#include <utility>

inline double uniform() { return torch::rand({}).item<double>(); }

/// Samples the distribution Beta(a, a) by Jöhnk's method.
inline double beta(double a) {
  while (true) {
    const double x = std::pow(uniform(), 1 / a), y = std::pow(uniform(), 1 / a);
    if (x + y > 0 && x + y <= 1) return x / (x + y);
  }
}

/// Returns soft targets [B, classes]: smoothing / classes for every class, plus 1 - smoothing for the label.
inline torch::Tensor smooth(const torch::Tensor& labels, int64_t classes, double smoothing) {
  return torch::one_hot(labels, classes).to(torch::kFloat) * (1 - smoothing) + smoothing / classes;
}

/// Parameters alpha of the Beta distributions; 0 disables. With both set, each batch uses one of them at
/// random.
struct MixOptions {
  double mixup = 0,
         cutmix =
             0;  // alpha of each one's Beta distribution; 0: never. With both, one or the other by chance
};

/// Mixes the batch with its own reverse. Mixup (Zhang et al., 2018) blends the pixels; cutmix (Yun et al.,
/// 2019) inserts a rectangle. Targets are mixed in the same proportion.
inline std::pair<torch::Tensor, torch::Tensor> mix(torch::Tensor images, torch::Tensor targets,
                                                   const MixOptions& options) {
  if (options.mixup <= 0 && options.cutmix <= 0) return {images, targets};
  const bool cut = options.cutmix > 0 && (options.mixup <= 0 || uniform() < 0.5);
  double keep = beta(cut ? options.cutmix : options.mixup);
  const torch::Tensor others = images.flip(0);
  if (cut) {
    const int64_t height = images.size(2), width = images.size(3);
    const double side = std::sqrt(1 - keep);
    const auto range = [side](int64_t size) {
      const int64_t half = static_cast<int64_t>(size * side) / 2,
                    middle = static_cast<int64_t>(uniform() * size);
      return std::pair{std::max<int64_t>(middle - half, 0), std::min(middle + half, size)};
    };
    const auto [top, bottom] = range(height);
    const auto [left, right] = range(width);
    images = images.clone();
    using torch::indexing::Slice;
    images.index_put_({Slice(), Slice(), Slice(top, bottom), Slice(left, right)},
                      others.index({Slice(), Slice(), Slice(top, bottom), Slice(left, right)}));
    keep = 1 - static_cast<double>((bottom - top) * (right - left)) / static_cast<double>(height * width);
  } else {
    images = images * keep + others * (1 - keep);
  }
  return {images, targets * keep + targets.flip(0) * (1 - keep)};
}

/// Random erasing (Zhong et al., 2020): with probability `p` sets a rectangle of 2 to 33 % of the image to 0,
/// the mean color of a normalized image.
inline det::transforms::Transform random_erasing(double p) {
  return [p](const torch::Tensor& image, det::RecordRandom& random) {
    if (random.uniform() >= p) return image;
    const int64_t height = image.size(1), width = image.size(2);
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double area = random.uniform(0.02, 1.0 / 3) * static_cast<double>(height * width);
      const double aspect = std::exp(random.uniform(std::log(0.3), std::log(1 / 0.3)));
      const auto h = static_cast<int64_t>(std::sqrt(area * aspect)),
                 w = static_cast<int64_t>(std::sqrt(area / aspect));
      if (h < 1 || w < 1 || h >= height || w >= width) continue;
      torch::Tensor erased = image.clone();
      erased.narrow(1, random.below(height - h + 1), h).narrow(2, random.below(width - w + 1), w).zero_();
      return erased;
    }
    return image;
  };
}
