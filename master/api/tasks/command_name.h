// Display name of commands in lists.
#pragma once

#include <string>

#include "common/base/text.h"
#include "common/expconf/command.h"

namespace det::api {

/// Returns the description of a command, else the beginning of its command line, at most 80 bytes.
inline std::string command_name(const expconf::CommandConfig& config) {
  constexpr std::size_t kMostBytes = 80;
  if (!config.description.empty()) return config.description;
  return make_utf8(join(config.entrypoint, " ").substr(0, kMostBytes));
}

}  // namespace det::api
