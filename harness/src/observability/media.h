// Entries of reported media: validation and encoding. Independent of LibTorch and of the master.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "det/media.h"
#include "harness/src/client/client.h"

namespace det {

/// Encodes an image as PNG. Throws std::invalid_argument for sizes out of range.
std::string encode_png(const Image& image);

// Each returns an entry for the client. All throw std::invalid_argument that names the entry and the limit.
// `name`: 1 to 128 letters, digits, spaces and _ - . =; slashes separate groups.

MediaRecord image_record(const std::string& name, const Image& image, const MediaOptions& options);
/// Counts `values` in `bins` (1 to 1000) bins of equal width between the smallest and the largest. NaN and
/// infinities are left out.
MediaRecord histogram_record(const std::string& name, const std::vector<double>& values, int bins,
                             const MediaOptions& options);
MediaRecord text_record(const std::string& name, const std::string& text, const MediaOptions& options);
/// `rows`: a list of lists of strings, numbers and booleans, one value per column.
MediaRecord table_record(const std::string& name, const std::vector<std::string>& columns, const Json& rows,
                         const MediaOptions& options);
/// Reads the file at once. Throws std::runtime_error when it cannot be read.
MediaRecord file_record(const std::string& name, const std::string& path, const MediaOptions& options);

}  // namespace det
