// Owns the user's own defaults of the det command: a small YAML file, written by hand.
#pragma once

#include <string>

#include "base/result.h"

namespace det::cli {

/// What flags and the environment may say as well; they win. "" is not said.
struct ConfigFile {
  std::string master;  ///< as -m takes it
  std::string user;    ///< as -u takes it
};

/// Nothing when the file is absent. kInvalidArgument with problems that name line and column.
Result<ConfigFile> read_config_file(const std::string& path);

/// Directory of the command's files: ${XDG_CONFIG_HOME:-~/.config}/det; "" when the environment names no
/// home. Determined's own client keeps its files in ~/.config/determined, in other formats.
std::string config_directory();

}  // namespace det::cli
