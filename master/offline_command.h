// Commands of det-master that work on the database in place of serving.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "master/config/options.h"

namespace det {

/// Reads the settings from `options` (arguments without the command), starts the log and runs `work`. Returns
/// the exit code of the program: 2 for wrong arguments, 1 for a failure of `work`, which is printed.
int run_offline(const std::vector<std::string>& options,
                const std::function<Status(const MasterConfig&)>& work);

}  // namespace det
