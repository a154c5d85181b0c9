// The context of an experiment or command: the model directory and the files of --include, as one archive.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace det::cli {

/// A packed context, with the figures that `create` prints.
struct Context {
  std::string bytes;               ///< tar.gz
  std::vector<std::string> files;  ///< paths of the regular files
  /// Number of regular files, and the sum of their sizes in bytes.
  std::int64_t file_count = 0, content_bytes = 0;
  /// Path → fingerprint. Files: SHA-256 of the content, after an "x" when executable. Directories:
  /// "directory".
  std::map<std::string, std::string> fingerprints;
};

/// Packs `directory` ("" for none) and the included files and directories, each under its own base name.
/// Reads everything into memory. Errors: kInvalidArgument (a path does not exist, or two entries have the
/// same name); those of read_directory().
Result<Context> pack_context(const std::string& directory, const std::vector<std::string>& includes);

/// Returns the name to print for `directory`: "../<name>" for the current directory, else the argument.
std::string shown_directory(const std::string& directory);

}  // namespace det::cli
