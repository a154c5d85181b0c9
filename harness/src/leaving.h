// Owns when this process was asked to leave: who waits for it should not wait for a store that does not move.
#pragma once

#include <optional>

#include "base/clock.h"

namespace det {

/// The first time counts. Any thread, as below.
void begin_leaving();
/// Nothing: nobody asked.
std::optional<MonoTime> leaving_since();

}  // namespace det
