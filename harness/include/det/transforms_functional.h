// The deterministic part of the image transforms, with the names, parameters and results of
// torchvision.transforms.functional on tensors. The random transforms of det/transforms.h draw parameters and
// call these.
#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace det::transforms {

enum class Interpolation { kNearest, kBilinear };
/// Values outside an image: a constant, the nearest pixel, or a reflection without or with the edge pixel.
enum class PaddingMode { kConstant, kEdge, kReflect, kSymmetric };

/// Value of the pixels that a warp takes from outside of the image. Without one they are 0; with one,
/// bilinear results blend with it at the border.
using Fill = std::optional<double>;

/// x and y coordinates of a pixel.
using Point = std::array<double, 2>;

}  // namespace det::transforms

// Images are [C, H, W], uint8 or float in [0, 1]; arguments are not modified. Results of bytes are rounded or
// truncated as by torchvision. The functions throw std::invalid_argument for parameters out of range and for
// images that do not fit.
namespace det::transforms::functional {

/// Mirrors left and right, or top and bottom.
torch::Tensor hflip(const torch::Tensor& image);
torch::Tensor vflip(const torch::Tensor& image);
/// Returns the part of the image at (top, left). Areas outside of the image are zero.
torch::Tensor crop(const torch::Tensor& image, std::int64_t top, std::int64_t left, std::int64_t height,
                   std::int64_t width);
/// Resizes with a bilinear filter, with antialiasing when shrinking.
torch::Tensor resize(const torch::Tensor& image, std::int64_t height, std::int64_t width);
/// Adds `padding` {left, top, right, bottom} pixels. `fill` is the value of kConstant.
torch::Tensor pad(const torch::Tensor& image, const std::array<std::int64_t, 4>& padding, double fill = 0,
                  PaddingMode mode = PaddingMode::kConstant);
/// Overwrites a rectangle with `value`, a number for each channel or a tensor of the rectangle's shape.
torch::Tensor erase(const torch::Tensor& image, std::int64_t top, std::int64_t left, std::int64_t height,
                    std::int64_t width, const torch::Tensor& value);

/// The brightness of a color image, in 1 or 3 equal channels.
torch::Tensor rgb_to_grayscale(const torch::Tensor& image, std::int64_t channels = 1);
/// Factor 0 is black (brightness), gray (contrast, saturation) or smooth (sharpness); 1 is the image.
torch::Tensor adjust_brightness(const torch::Tensor& image, double factor);
torch::Tensor adjust_contrast(const torch::Tensor& image, double factor);
torch::Tensor adjust_saturation(const torch::Tensor& image, double factor);
torch::Tensor adjust_sharpness(const torch::Tensor& image, double factor);
/// Rotates the hue by `factor` of the color circle, in [-0.5, 0.5].
torch::Tensor adjust_hue(const torch::Tensor& image, double factor);
torch::Tensor adjust_gamma(const torch::Tensor& image, double gamma, double gain = 1);
torch::Tensor invert(const torch::Tensor& image);
/// Keeps the highest `bits` of bytes.
torch::Tensor posterize(const torch::Tensor& image, std::int64_t bits);
/// Inverts values of at least `threshold`.
torch::Tensor solarize(const torch::Tensor& image, double threshold);
/// Stretches each channel to the full range.
torch::Tensor autocontrast(const torch::Tensor& image);
/// Equalizes the histogram of each channel of bytes.
torch::Tensor equalize(const torch::Tensor& image);

/// Rotates counter-clockwise by `angle` degrees around the center. `expand` enlarges the image to hold the
/// result.
torch::Tensor rotate(const torch::Tensor& image, double angle,
                     Interpolation interpolation = Interpolation::kNearest, bool expand = false,
                     Fill fill = {}, std::optional<Point> center = {});
/// Rotation clockwise in degrees, translation in pixels, scale and shear in degrees, around `center`.
struct Affine {
  double angle = 0;
  Point translate = {0, 0};
  double scale = 1;
  Point shear = {0, 0};
  std::optional<Point> center = {};  ///< absent: of the image
};
torch::Tensor affine(const torch::Tensor& image, const Affine& parameters,
                     Interpolation interpolation = Interpolation::kNearest, Fill fill = {});
/// The corners top left, top right, bottom right and bottom left.
using Corners = std::array<Point, 4>;
/// The perspective transform that moves each corner of `from` to that of `to`.
torch::Tensor perspective(const torch::Tensor& image, const Corners& from, const Corners& to,
                          Interpolation interpolation = Interpolation::kBilinear, Fill fill = {});
/// Convolves with a Gaussian of `kernel_size` pixels, which is odd. Borders are reflected.
torch::Tensor gaussian_blur(const torch::Tensor& image, std::int64_t kernel_size, double sigma);

/// One operation of AutoAugment's search space by name, such as "ShearX" (Cubuk et al., AutoAugment: Learning
/// Augmentation Strategies from Data, CVPR 2019, table 6), with torchvision's meaning of the magnitude.
torch::Tensor augment(const torch::Tensor& image, const std::string& operation, double magnitude,
                      Interpolation interpolation = Interpolation::kNearest, Fill fill = {});

/// λ · x + (1 − λ) · (x of the previous record), for the images and the targets [B, classes] of a batch.
struct MixedBatch {
  torch::Tensor images, targets;
};
MixedBatch mixup(const torch::Tensor& images, const torch::Tensor& targets, double lambda);
/// Copies the rectangle of the previous record's image, and mixes the targets by its share of the area.
MixedBatch cutmix(const torch::Tensor& images, const torch::Tensor& targets, std::int64_t top,
                  std::int64_t left, std::int64_t bottom, std::int64_t right);

}  // namespace det::transforms::functional
