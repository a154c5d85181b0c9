// `det experiment create --local --test`: one batch of a trial on this machine, without a cluster.
#pragma once

#include <string>

#include "cli/submit/code_archive.h"
#include "common/base/result.h"
#include "common/expconf/config.h"

namespace det::cli {

/// Compiles the trial as an agent does, with the build cache of this user's agents. Then trains, validates
/// and checkpoints one batch in a temporary directory. Prints the output of the compiler and the trial.
/// Returns 0, or 1 when the trial does not compile. Errors: kInvalidArgument (the entrypoint is not a trial
/// class), kFailedPrecondition (the training library is not installed beside det), kAborted (the trial
/// failed). Blocks until the trial has ended.
Result<int> test_locally(const expconf::ExperimentConfig& config, const std::string& config_text,
                         const CodeArchive& archive);

}  // namespace det::cli
