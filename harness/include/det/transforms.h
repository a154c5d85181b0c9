// Image transforms with the names, parameters and semantics of torchvision.transforms. Random parameters come
// from the record's RecordRandom; det/transforms_functional.h has the same transforms with given parameters.
#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "det/record_random.h"
#include "det/transforms_functional.h"

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

/// The same vertically.
Transform random_vertical_flip(double p = 0.5);
/// Adds {left, top, right, bottom} pixels around the image.
Transform pad(std::array<std::int64_t, 4> padding, double fill = 0,
              PaddingMode mode = PaddingMode::kConstant);
/// Converts color to gray, in 1 or 3 equal channels.
Transform grayscale(std::int64_t channels = 1);
/// The same with probability `p`; the number of channels stays.
Transform random_grayscale(double p = 0.1);

/// Ranges of random changes of color.
struct ColorJitter {
  /// Factors are uniform in [max(0, 1 - value), 1 + value].
  double brightness = 0, contrast = 0, saturation = 0;
  double hue = 0;  ///< uniform in [-hue, hue]; at most 0.5
};
/// Changes brightness, contrast, saturation and hue in random order.
Transform color_jitter(const ColorJitter& ranges);
/// Rotates by an angle that is uniform in `degrees`, counter-clockwise.
Transform random_rotation(std::array<double, 2> degrees,
                          Interpolation interpolation = Interpolation::kNearest, bool expand = false,
                          Fill fill = 0);

/// Ranges of random affine maps. Each value is uniform in its range.
struct RandomAffine {
  std::array<double, 2> degrees = {0, 0};
  /// Largest translation as a share of width and height.
  std::array<double, 2> translate = {0, 0};
  std::array<double, 2> scale = {1, 1};
  /// Degrees: {least x, most x, least y, most y}.
  std::array<double, 4> shear = {0, 0, 0, 0};
  Interpolation interpolation = Interpolation::kNearest;
  Fill fill = 0;
};
Transform random_affine(const RandomAffine& ranges);
/// With probability `p`, moves each corner by up to `distortion` of half the size towards the center.
Transform random_perspective(double distortion = 0.5, double p = 0.5,
                             Interpolation interpolation = Interpolation::kBilinear, Fill fill = 0);
/// Blurs with a standard deviation that is uniform in `sigma`.
Transform gaussian_blur(std::int64_t kernel_size, std::array<double, 2> sigma = {0.1, 2.0});
/// With probability `p`, overwrites a rectangle (Zhong et al., Random Erasing Data Augmentation, AAAI 2020).
/// `scale` is the range of its share of the area, `ratio` that of height / width. Without a `value` each
/// pixel is standard normal. After ten draws that do not fit, the image is unchanged.
Transform random_erasing(double p = 0.5, std::array<double, 2> scale = {0.02, 0.33},
                         std::array<double, 2> ratio = {0.3, 3.3}, std::optional<double> value = 0);

/// Each of these applies the function of the same name with probability `p`.
Transform random_invert(double p = 0.5);
Transform random_posterize(std::int64_t bits, double p = 0.5);
Transform random_solarize(double threshold, double p = 0.5);
Transform random_adjust_sharpness(double factor, double p = 0.5);
Transform random_autocontrast(double p = 0.5);
Transform random_equalize(double p = 0.5);

/// Applies all transforms with probability `p`, one of them (with equal probability), or all in random order.
Transform random_apply(std::vector<Transform> transforms, double p = 0.5);
Transform random_choice(std::vector<Transform> transforms);
Transform random_order(std::vector<Transform> transforms);

/// Applies `num_ops` random operations (Cubuk et al., RandAugment, NeurIPS 2020), all of the same magnitude,
/// out of `num_magnitude_bins`. Takes bytes.
struct RandAugment {
  std::int64_t num_ops = 2, magnitude = 9, num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::kNearest;
  Fill fill = {};
};
Transform rand_augment(const RandAugment& options = {});
/// Applies one random operation of random magnitude (Müller and Hutter, TrivialAugment, ICCV 2021).
Transform trivial_augment_wide(std::int64_t num_magnitude_bins = 31,
                               Interpolation interpolation = Interpolation::kNearest, Fill fill = {});
/// Applies two operations of a learned policy (Cubuk et al., AutoAugment, CVPR 2019, tables 7 to 9).
enum class AutoAugmentPolicy { kImageNet, kCifar10, kSvhn };
Transform auto_augment(AutoAugmentPolicy policy = AutoAugmentPolicy::kImageNet,
                       Interpolation interpolation = Interpolation::kNearest, Fill fill = {});

// For a whole batch, in train_batch: `images` [B, C, H, W] on any device, `labels` [B] with class numbers or
// [B, classes] with probabilities. Targets of the result are [B, classes] probabilities, which
// torch::cross_entropy_loss accepts. λ is drawn from Beta(alpha, alpha). A stream of
// RecordRandom(seed, epoch, batch * size + rank) differs for each batch and process and repeats after a
// resume.

/// Mixes each record with the previous one (Zhang et al., mixup, ICLR 2018).
functional::MixedBatch mixup(const torch::Tensor& images, const torch::Tensor& labels, std::int64_t classes,
                             double alpha, RecordRandom& random);
/// Copies a random rectangle of the previous record into each record (Yun et al., CutMix, ICCV 2019).
functional::MixedBatch cutmix(const torch::Tensor& images, const torch::Tensor& labels, std::int64_t classes,
                              double alpha, RecordRandom& random);

}  // namespace det::transforms
