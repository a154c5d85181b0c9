// Image transforms with the names, parameters and semantics of torchvision.transforms.
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

/// A function from image to image. Images are [C, H, W], uint8 or float; the argument is not modified.
/// Converts from any callable that takes (const torch::Tensor&, RecordRandom&), or the image alone. Called on
/// several threads at once.
class Transform {
 public:
  using Apply = std::function<torch::Tensor(const torch::Tensor& image, RecordRandom& random)>;
  /// Returns the smallest factor in (0, 1] by which an image of height × width may be reduced before the
  /// transform without loss of detail in its result. `random` is a copy of the stream that the transform will
  /// receive, so that random choices can be predicted. ImageFolder uses it to decode large JPEGs at a reduced
  /// size.
  using LeastScale = std::function<double(std::int64_t height, std::int64_t width, RecordRandom random)>;

  /// A transform with a known scale; one made of a callable alone has scale 1.
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

  /// Applies the transform. Throws std::invalid_argument naming the shape that does not fit.
  torch::Tensor operator()(const torch::Tensor& image, RecordRandom& random) const {
    return apply_(image, random);
  }
  /// The scale of LeastScale; 1 when it is unknown.
  double least_scale(std::int64_t height, std::int64_t width, const RecordRandom& random) const {
    return least_scale_ ? least_scale_(height, width, random) : 1;
  }

 private:
  Apply apply_;
  LeastScale least_scale_;  // empty: 1
};

// The functions below throw std::invalid_argument for parameters out of range.

/// Applies transforms one after another.
Transform compose(std::vector<Transform> transforms);
/// Converts uint8 to float in [0, 1]. Float images are unchanged.
Transform to_tensor();
/// (image - mean) / stddev with one value per channel, for float images.
Transform normalize(std::vector<double> mean, std::vector<double> stddev);
/// Resizes the smaller side to `size` and keeps the aspect ratio (rounded down). Bilinear, with antialiasing
/// when shrinking.
Transform resize(std::int64_t size);
/// Resizes to height × width, whatever the aspect ratio.
Transform resize(std::int64_t height, std::int64_t width);
/// Crops the central size × size. A smaller image is first padded with zeros.
Transform center_crop(std::int64_t size);
/// The same for height × width.
Transform center_crop(std::int64_t height, std::int64_t width);
/// Crops size × size at a random position, after padding with `padding` zeros on each side. Applying it to a
/// smaller image throws std::invalid_argument.
Transform random_crop(std::int64_t size, std::int64_t padding = 0);
/// The same for height × width.
Transform random_crop(std::int64_t height, std::int64_t width, std::int64_t padding);
/// Crops a random part of the image and resizes it to size × size (Szegedy et al., Going Deeper with
/// Convolutions, CVPR 2015, section 6). `scale` is the range of the part's share of the area, `ratio` that of
/// its aspect ratio (width / height, uniform in its logarithm). After ten draws that do not fit, it takes the
/// largest central part within `ratio`.
Transform random_resized_crop(std::int64_t size, std::array<double, 2> scale = {0.08, 1.0},
                              std::array<double, 2> ratio = {3.0 / 4, 4.0 / 3});
/// Mirrors the image horizontally with probability `p`.
Transform random_horizontal_flip(double p = 0.5);

}  // namespace det::transforms
