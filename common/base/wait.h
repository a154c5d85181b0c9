// Polling, for conditions that no descriptor, queue or Event reports.
#pragma once

#include <functional>

#include "common/base/clock.h"

namespace det {

/// Polls `predicate` until it returns true or `timeout` has passed, at intervals growing from 1 ms to 50 ms.
/// Evaluates it at least once. Returns its last value. Blocks.
bool wait_until(const std::function<bool()>& predicate, Duration timeout);

}  // namespace det
