// Owns what travels with an experiment: the model directory and the files of --include, as one archive.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace det::cli {

struct Context {
  std::string bytes;               ///< tar.gz
  std::vector<std::string> files;  ///< their paths
  std::int64_t file_count = 0, content_bytes = 0;
  /// Path → what is there, as a digest that says the mode too; directories as well.
  std::map<std::string, std::string> fingerprints;
};

/// `directory` "" is none. An included file or directory keeps its own name; two of one name are refused.
Result<Context> pack_context(const std::string& directory, const std::vector<std::string>& includes);

/// How the directory is called in what create prints: "." is "../<name>", everything else as it was given.
std::string shown_directory(const std::string& directory);

}  // namespace det::cli
