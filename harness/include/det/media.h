// Media: images, histograms, texts, tables and files that a program reports per step. Independent of
// LibTorch.
//
// An entry has a name and a step; a second report for both replaces the first, so a resumed run never doubles
// entries. On a cluster and in detached mode entries are stored by content in the checkpoint storage and
// shown in the panel "Media" of the web UI. Elsewhere they are files: checkpoints/media/NAME/STEP.png.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace det {

/// An image in memory: rows from top to bottom, pixels from left to right, channels together.
struct Image {
  std::int64_t width = 0, height = 0;  ///< 1 to 4096 pixels
  int channels = 3;                    ///< 1: gray, 3: RGB
  std::vector<std::uint8_t> pixels;    ///< width × height × channels values
};

/// Settings of one report.
struct MediaOptions {
  std::string caption = {};  ///< UTF-8, at most 1000 bytes
  /// TrialContext: step of the entry; -1 is the number of batches trained, with the current one.
  std::int64_t steps_completed = -1;
  /// TrialContext::report_image: maps the smallest value of the tensor to black and the largest to white, for
  /// normalized data. Without it 0 is black and 1 (uint8: 255) is white.
  bool stretch = false;
};

/// Makes one image of several of the same size and channels, in rows of `columns`, with a gap of 2 pixels.
/// Throws std::invalid_argument for none and for unequal ones.
Image image_grid(const std::vector<Image>& images, int columns = 8);

}  // namespace det
