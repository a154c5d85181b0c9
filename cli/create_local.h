// Owns `det experiment create --local --test`: one batch of a trial on this machine, without a cluster.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/context.h"
#include "master/expconf/config.h"

namespace det::cli {

/// Compiles the trial as an agent would (with the same cache of builds, here below ~/.cache), then trains,
/// validates and saves one batch of it in a directory of its own. Prints what the compiler and the trial say;
/// the exit code. kInvalidArgument for an entrypoint that is no trial class; kFailedPrecondition without the
/// training library.
Result<int> test_locally(const expconf::ExperimentConfig& config, const std::string& config_text,
                         const Context& context);

}  // namespace det::cli
