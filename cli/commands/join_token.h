// `det join-token`: tokens with which agents of other machines join the cluster.
#pragma once

#include "cli/command.h"

namespace det::cli {

Command join_token_command();

}  // namespace det::cli
