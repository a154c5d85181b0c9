// Check of the entrypoint against the files of the model directory. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/expconf/config.h"

namespace det::expconf {

/// Checks that the files needed by the entrypoint exist. `files`: paths in the model directory.
/// "module:Class" needs module.cpp. A program with a relative path must exist, unless startup-hook.sh may
/// create it; programs found via PATH are not checked. Errors: E-CTX-ENTRYPOINT with the file `config_name`.
Status check_entrypoint(const ExperimentConfig& config, const std::vector<std::string>& files,
                        const std::string& config_name);

}  // namespace det::expconf
