// Portable seeded random numbers: the same sequence on every machine, compiler and release. Not for secrets
// (see common/base/secret.h).
#pragma once

#include <cstdint>
#include <string>

namespace det {

/// A counter-based generator: output i is SplitMix64's finalizer of seed + i * golden gamma (Steele, Lea,
/// Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014). The state (seed, counter) is 16
/// bytes, small enough to store with every decision. Not thread-safe.
struct Random {
  std::uint64_t seed = 0;
  std::uint64_t counter = 0;

  bool operator==(const Random&) const = default;

  /// Uniform over all 64-bit values.
  std::uint64_t next();
  /// Uniform in [0, bound); bound >= 1. Unbiased (Lemire, "Fast Random Integer Generation in an Interval",
  /// 2019).
  std::uint64_t below(std::uint64_t bound);
  /// Uniform in [0, 1), with 53 random bits.
  double uniform();
  /// A version 4 UUID; consumes two outputs.
  std::string uuid();
};

}  // namespace det
