// Owns what a configuration's entrypoint needs of the directory of model files.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "master/expconf/config.h"

namespace det::expconf {

/// `files`: the paths in the directory. "module:Class" needs module.cpp; a program named by a relative path
/// must be there, unless a startup-hook.sh may make it. What is looked up on PATH only the agent knows.
/// Failure: E-CTX-ENTRYPOINT in `config_name`.
Status check_entrypoint(const ExperimentConfig& config, const std::vector<std::string>& files,
                        const std::string& config_name);

}  // namespace det::expconf
