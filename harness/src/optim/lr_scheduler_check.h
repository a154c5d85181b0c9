// Argument checks that the learning-rate schedules share.
#pragma once

#include <stdexcept>
#include <string>

namespace det {

/// Throws std::invalid_argument "<schedule>: <what>" unless `valid`.
inline void check_schedule(bool valid, const char* schedule, const std::string& what) {
  if (!valid) throw std::invalid_argument(std::string(schedule) + ": " + what);
}

}  // namespace det
