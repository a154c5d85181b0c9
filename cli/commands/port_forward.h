// `det task port-forward`: a port of this machine that leads to a port of a task.
#pragma once

#include "cli/command.h"

namespace det::cli {

Command port_forward_command();

}  // namespace det::cli
