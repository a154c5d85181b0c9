// Reads an experiment configuration for commands that need no master.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/expconf/config.h"

namespace det::cli {

/// Parses the file with the checks of `det experiment create`. `overrides` are path.to.key=value. Prints
/// warnings to stderr. Errors: kInvalidArgument, with all problems of the document.
Result<std::shared_ptr<expconf::ExperimentConfig>> read_search_config(
    const std::string& path, const std::vector<std::string>& overrides);

}  // namespace det::cli
