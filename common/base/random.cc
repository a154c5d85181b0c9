#include "common/base/random.h"

#include <cstdio>

namespace det {

std::uint64_t Random::next() {
  std::uint64_t z = seed + ++counter * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

std::uint64_t Random::below(std::uint64_t bound) {
  for (;;) {
    const unsigned __int128 product = static_cast<unsigned __int128>(next()) * bound;
    const auto low = static_cast<std::uint64_t>(product);
    // Rejects the first (2^64 mod bound) values of `low`, which would bias the result. The modulo is rarely
    // computed.
    if (low >= bound || low >= -bound % bound) return static_cast<std::uint64_t>(product >> 64);
  }
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

std::string Random::uuid() {
  // Sets the version (4) and variant (10) bits of RFC 4122.
  const std::uint64_t high = (next() & ~0xF000ull) | 0x4000ull;
  const std::uint64_t low = (next() & ~(3ull << 62)) | (1ull << 63);
  char text[37];
  std::snprintf(
      text, sizeof text, "%08llx-%04llx-%04llx-%04llx-%012llx", static_cast<unsigned long long>(high >> 32),
      static_cast<unsigned long long>(high >> 16 & 0xFFFF), static_cast<unsigned long long>(high & 0xFFFF),
      static_cast<unsigned long long>(low >> 48), static_cast<unsigned long long>(low & 0xFFFFFFFFFFFFull));
  return text;
}

}  // namespace det
