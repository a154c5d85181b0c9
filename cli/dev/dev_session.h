// `det dev`: trains a trial on this machine and goes on with new code whenever its files change.
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"

namespace det::cli {

/// Inputs of run_dev().
struct DevInputs {
  std::string directory;               ///< the model's files
  std::string config;                  ///< path of the configuration
  std::vector<std::string> overrides;  ///< path.to.key=value
  bool fresh = false;                  ///< removes the saved state first
  std::string resume_command;          ///< shown at the end
};

/// Finds directory and configuration of `target`: a configuration file, or a directory with const.yaml or a
/// single other YAML file. Errors: kInvalidArgument.
Result<DevInputs> find_dev_inputs(const std::string& target);

/// Compiles the trial and trains it from its saved state. A change of a file compiles it again, beside the
/// training; a new library continues from the last batch of the former one. Code that does not compile is
/// reported and changes nothing. Ends with SIGINT or SIGTERM, after saving; a second signal ends at once.
/// State: ${XDG_CACHE_HOME:-~/.cache}/determinant/dev/. Errors: kInvalidArgument, kFailedPrecondition (det is
/// not installed completely), kAborted (the state could not be saved). Blocks; handles signals, so it must
/// be called by the main thread.
Result<int> run_dev(const DevInputs& inputs);

}  // namespace det::cli
