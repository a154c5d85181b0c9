// Time at which this process was requested to terminate. Storage calls then fail sooner on a stalled
// store.
#pragma once

#include <optional>

#include "common/base/clock.h"

namespace det {

/// Records the current time as that of the request, unless there was an earlier one. Thread-safe.
void begin_termination();
/// Time of the request; nullopt without one. Thread-safe.
std::optional<MonoTime> termination_since();

}  // namespace det
