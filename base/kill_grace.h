// Owns the time from SIGTERM to SIGKILL of a task where nobody has set another (the master's
// agent_kill_grace).
#pragma once

#include "base/clock.h"

namespace det {

constexpr Duration kDefaultKillGrace = std::chrono::seconds(10);

}  // namespace det
