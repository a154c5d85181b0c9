// Argument checks of transforms.
#pragma once

#include <torch/types.h>

#include <stdexcept>
#include <string>

#include "harness/src/base/torch_compat.h"

namespace det::transforms {

/// Throws std::invalid_argument "transforms::<what>" unless `fits`.
inline void require(bool fits, const std::string& what) {
  if (!fits) throw std::invalid_argument("transforms::" + what);
}

/// Throws unless `image` is [C, H, W] of bytes or floats, with 1 or 3 channels for `colors`.
inline void require_image(const torch::Tensor& image, const std::string& transform, bool colors = false) {
  const bool fits = image.defined() && image.dim() == 3 && image.numel() > 0 &&
                    (image.scalar_type() == torch::kByte || image.scalar_type() == torch::kFloat) &&
                    (!colors || image.size(0) == 1 || image.size(0) == 3);
  if (fits) return;
  require(false,
          transform + ": an image is " + (colors ? "[1 or 3, H, W]" : "[C, H, W]") +
              " of bytes or floats, not " +
              (image.defined() ? compat::shape_text(image) + " of " + c10::toString(image.scalar_type())
                               : std::string("an undefined tensor")));
}

/// Throws unless `p` is a probability.
inline void require_probability(double p, const std::string& transform) {
  require(p >= 0 && p <= 1, transform + ": p must be in [0, 1], not " + std::to_string(p));
}

}  // namespace det::transforms
