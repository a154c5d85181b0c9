// Kernels of autocast_cpu.cc. Compiled once per instruction set where that pays; see every_machine.h.
#include "harness/src/optim/autocast_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "harness/src/base/every_machine.h"

namespace det::kernels {
namespace {

/// Transposes in square blocks: a plain double loop would miss the cache on every write.
template <typename T>
void transpose_blocks(const T* from, T* to, std::size_t rows, std::size_t columns) {
  constexpr std::size_t kBlock = 32;  // both sides of a block fit into the first-level cache
  for (std::size_t row = 0; row < rows; row += kBlock) {
    const std::size_t row_end = std::min(rows, row + kBlock);
    for (std::size_t column = 0; column < columns; column += kBlock) {
      const std::size_t column_end = std::min(columns, column + kBlock);
      for (std::size_t c = column; c < column_end; ++c) {
        for (std::size_t r = row; r < row_end; ++r) to[c * rows + r] = from[r * columns + c];
      }
    }
  }
}

}  // namespace

DET_EVERY_MACHINE void keep_mask(std::uint64_t seed, std::uint64_t first, double drop, std::uint8_t* keep,
                                 std::size_t count) {
  // Philox2x32-10: ten rounds on (pair index, high words) with a Weyl sequence of keys. Each round yields two
  // words; words below `threshold` drop their element.
  constexpr std::uint32_t kMultiplier = 0xD256D193, kWeyl = 0x9E3779B9;
  const auto threshold = static_cast<std::uint32_t>(std::min(std::round(drop * 4294967296.0), 4294967295.0));
  const std::uint64_t pair = first / 2;
  const auto high = static_cast<std::uint32_t>(seed >> 32) ^ static_cast<std::uint32_t>(pair >> 32);
  std::uint8_t drawn[kMaskBlock];
  for (std::uint32_t i = 0; i < kMaskBlock / 2; ++i) {
    std::uint32_t left = static_cast<std::uint32_t>(pair) + i, right = high,
                  key = static_cast<std::uint32_t>(seed);
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t product = static_cast<std::uint64_t>(kMultiplier) * left;
      left = static_cast<std::uint32_t>(product >> 32) ^ key ^ right;
      right = static_cast<std::uint32_t>(product);
      key += kWeyl;
    }
    drawn[i] = left >= threshold;
    drawn[kMaskBlock / 2 + i] = right >= threshold;
  }
  // A partial last block is drawn completely, so an element's value does not depend on `count`.
  std::copy(drawn, drawn + count, keep);
}

DET_EVERY_MACHINE void keep_scaled(const float* x, const std::uint8_t* keep, float scale, float* out,
                                   std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = x[i] * (keep[i] != 0 ? scale : 0.0f);
}

DET_EVERY_MACHINE void keep_scaled(const std::uint16_t* x, const std::uint8_t* keep, float scale,
                                   std::uint16_t* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float value =
        std::bit_cast<float>(static_cast<std::uint32_t>(x[i]) << 16) * (keep[i] != 0 ? scale : 0.0f);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    // Rounds to bfloat16: adding 0x7fff plus the lowest kept bit rounds ties to even.
    out[i] = static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

void transpose(const std::uint32_t* from, std::uint32_t* to, std::size_t rows, std::size_t columns) {
  transpose_blocks(from, to, rows, columns);
}
void transpose(const std::uint16_t* from, std::uint16_t* to, std::size_t rows, std::size_t columns) {
  transpose_blocks(from, to, rows, columns);
}

}  // namespace det::kernels
