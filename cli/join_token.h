// Owns the declaration of `det join-token`.
#pragma once

#include "cli/command.h"

namespace det::cli {

Command join_token_command();

}  // namespace det::cli
