// `det deploy local`: a master with a private database, and agents, as processes of this machine.
#pragma once

#include "cli/command.h"

namespace det::cli {

Command deploy_command();

}  // namespace det::cli
