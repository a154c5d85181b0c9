// The user's defaults for det: a small YAML file, det.yaml, written by hand.
#pragma once

#include <string>

#include "common/base/result.h"

namespace det::cli {

/// Settings of det.yaml. "" is unset. Flags and environment variables override them.
struct ConfigFile {
  std::string master;  ///< address of the master, as for -m
  std::string user;    ///< user to act as, as for -u
};

/// Reads the settings, at most 64 KiB. Returns unset ones when the file does not exist or `path` is "".
/// Errors: kInvalidArgument, with line and column of each unknown setting and each wrong type.
Result<ConfigFile> read_config_file(const std::string& path);

/// Returns the directory of det's files: ${XDG_CONFIG_HOME:-~/.config}/det; "" when the environment has
/// neither XDG_CONFIG_HOME nor HOME. Determined AI's client keeps files of other formats in
/// ~/.config/determined.
std::string config_directory();

}  // namespace det::cli
