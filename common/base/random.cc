#include "common/base/random.h"

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
  // Trials are created by the thousand: formatting by printf would take ten times as long.
  std::string text(36, '-');
  int shift = 64;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) continue;
    shift = shift == 0 ? 60 : shift - 4;
    text[i] = "0123456789abcdef"[((i < 18 ? high : low) >> shift) & 0xF];
  }
  return text;
}

}  // namespace det
