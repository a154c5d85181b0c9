// Default of the master's agent_kill_grace setting.
#pragma once

#include "common/base/clock.h"

namespace det {

/// Time between SIGTERM and SIGKILL when a task is stopped, unless agent_kill_grace sets another.
constexpr Duration kDefaultKillGrace = std::chrono::seconds(10);

}  // namespace det
