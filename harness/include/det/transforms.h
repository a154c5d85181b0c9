// Owns transforms of images, with torchvision's names, parameters and meanings.
#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "det/record_random.h"

namespace det::transforms {

/// A change of one image, [C, H, W], uint8 or float; the argument stays as it is. Anything callable with
/// (const torch::Tensor&, RecordRandom&), or with the image alone, becomes one. Used on several threads at
/// once.
class Transform {
 public:
  using Apply = std::function<torch::Tensor(const torch::Tensor& image, RecordRandom& random)>;
  /// The least factor in (0, 1] by which an image of height × width may be made smaller beforehand without
  /// the result losing detail. `random` is what the transform will be given: a copy, to foresee its choices.
  using LeastScale = std::function<double(std::int64_t height, std::int64_t width, RecordRandom random)>;

  Transform(Apply apply, LeastScale least_scale)
      : apply_(std::move(apply)), least_scale_(std::move(least_scale)) {}
  template <typename F, typename = std::enable_if_t<!std::is_same_v<std::decay_t<F>, Transform>>>
  Transform(F change) {
    if constexpr (std::is_invocable_v<const F&, const torch::Tensor&, RecordRandom&>) {
      apply_ = std::move(change);
    } else {
      apply_ = [change = std::move(change)](const torch::Tensor& image, RecordRandom&) {
        return change(image);
      };
    }
  }

  /// Throws std::invalid_argument naming the shape that does not fit.
  torch::Tensor operator()(const torch::Tensor& image, RecordRandom& random) const {
    return apply_(image, random);
  }
  double least_scale(std::int64_t height, std::int64_t width, const RecordRandom& random) const {
    return least_scale_ ? least_scale_(height, width, random) : 1;
  }

 private:
  Apply apply_;
  LeastScale least_scale_;  // none: 1
};

// All of these throw std::invalid_argument for parameters outside their range.

/// One after another.
Transform compose(std::vector<Transform> transforms);
/// uint8 becomes float in [0, 1]; float stays.
Transform to_tensor();
/// (image - mean) / stddev, a figure a channel; of floats.
Transform normalize(std::vector<double> mean, std::vector<double> stddev);
/// The smaller side becomes `size`, the other keeps the proportion (rounded down). Bilinear, smoothed when it
/// shrinks.
Transform resize(std::int64_t size);
Transform resize(std::int64_t height, std::int64_t width);
/// The middle size × size; a smaller image is first filled up with zeros.
Transform center_crop(std::int64_t size);
Transform center_crop(std::int64_t height, std::int64_t width);
/// size × size at random, after `padding` zeros on each side. A smaller image is an error when it is used.
Transform random_crop(std::int64_t size, std::int64_t padding = 0);
Transform random_crop(std::int64_t height, std::int64_t width, std::int64_t padding);
/// A part of the image, `scale` of its area and `ratio` of width to height (its logarithm is uniform),
/// resized to size × size. After ten draws that do not fit: the largest middle part whose ratio does.
Transform random_resized_crop(std::int64_t size, std::array<double, 2> scale = {0.08, 1.0},
                              std::array<double, 2> ratio = {3.0 / 4, 4.0 / 3});
/// Left becomes right with probability `p`.
Transform random_horizontal_flip(double p = 0.5);

}  // namespace det::transforms
