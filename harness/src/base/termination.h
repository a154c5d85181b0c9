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

/// In a task of a cluster, ignores SIGTERM unless the task's supervisor or launcher sent it, see
/// stop_signal.h. Does nothing where the program has a handler of its own. Idempotent.
void ignore_foreign_sigterm();

}  // namespace det
