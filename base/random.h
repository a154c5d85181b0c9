// Owns portable, seeded randomness: the same numbers on every machine, compiler and release, from a state
// small enough to store with every decision. Not for secrets (see base/secret.h).
#pragma once

#include <cstdint>
#include <string>

namespace det {

/// A counter-based generator: output i is SplitMix64's finaliser of seed + i * golden gamma (Steele, Lea,
/// Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014). The state is (seed, counter).
struct Random {
  std::uint64_t seed = 0;
  std::uint64_t counter = 0;

  bool operator==(const Random&) const = default;

  std::uint64_t next();
  /// Uniform in [0, bound); bound >= 1. Unbiased (Lemire 2019: multiply, reject the short remainder).
  std::uint64_t below(std::uint64_t bound);
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// A random (version 4) UUID, from two draws.
  std::string uuid();
};

}  // namespace det
