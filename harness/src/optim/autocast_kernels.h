// Kernels of autocast_cpu.cc: arithmetic on plain arrays. Thread-safe; they allocate nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace det::kernels {

/// Elements that keep_mask() draws at a time. Masks begin at multiples of it.
constexpr std::size_t kMaskBlock = 1024;

/// Draws elements [first, first + count) of a dropout mask: keep[i] is 1 with probability 1 - drop, else 0.
/// An element depends on the seed and its index alone (Philox2x32-10: Salmon et al., Parallel Random Numbers:
/// As Easy as 1, 2, 3, SC 2011, section 4.3). `first` is a multiple of kMaskBlock, 1 <= count <= kMaskBlock,
/// 0 < drop < 1.
void keep_mask(std::uint64_t seed, std::uint64_t first, double drop, std::uint8_t* keep, std::size_t count);

/// out[i] = keep[i] ? x[i] * scale : x[i] * 0. The 16-bit variant is bfloat16, rounded to nearest even.
void keep_scaled(const float* x, const std::uint8_t* keep, float scale, float* out, std::size_t count);
void keep_scaled(const std::uint16_t* x, const std::uint8_t* keep, float scale, std::uint16_t* out,
                 std::size_t count);

/// Transposes a matrix of [rows, columns] into `to`. The buffers must not overlap.
void transpose(const std::uint32_t* from, std::uint32_t* to, std::size_t rows, std::size_t columns);
void transpose(const std::uint16_t* from, std::uint16_t* to, std::size_t rows, std::size_t columns);

}  // namespace det::kernels
