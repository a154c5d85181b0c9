// Runs a target over a seed and mutations of it.
#pragma once

#include <string>
#include <string_view>

#include "common/base/random.h"

namespace det::fuzz {

using Target = void (*)(std::string_view);

/// Runs the seed itself, truncated, and with some bytes changed. A failure aborts the program. Returns the
/// number of inputs.
inline int run_around(Target target, const std::string& seed, int changes) {
  target(seed);
  Random random{seed.size(), 0};
  for (int i = 0; i < changes; ++i) {
    std::string bent = seed;
    if (!bent.empty() && i % 3 == 0) bent.resize(random.below(bent.size()));
    for (std::uint64_t n = 1 + random.below(4); n > 0 && !bent.empty(); --n) {
      bent[random.below(bent.size())] = static_cast<char>(random.next());
    }
    target(bent);
  }
  return changes + 1;
}

}  // namespace det::fuzz
