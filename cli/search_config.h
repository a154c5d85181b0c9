// Owns reading a configuration for a command that needs no master.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "master/expconf/config.h"

namespace det::cli {

/// Checked as `det experiment create` checks it; `overrides` are path.to.key=value. Prints warnings on
/// stderr.
Result<std::shared_ptr<expconf::ExperimentConfig>> read_search_config(
    const std::string& path, const std::vector<std::string>& overrides);

}  // namespace det::cli
