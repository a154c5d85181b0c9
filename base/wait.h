// Owns waiting for something that cannot wake us: for tests and tools. Daemons wait on descriptors and
// queues.
#pragma once

#include <functional>

#include "base/clock.h"

namespace det {

/// Asks until `predicate` says yes or `timeout` has passed; the last answer. Asks at least once; naps 1 ms
/// growing to 50 ms between.
bool wait_until(const std::function<bool()>& predicate, Duration timeout);

}  // namespace det
