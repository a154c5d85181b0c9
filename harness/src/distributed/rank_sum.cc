#include "harness/src/distributed/rank_sum.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

// Compiles a copy for each vector width; the loader picks one at start-up. The order of additions is the same
// in all copies, so are the bits.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define DET_WIDE __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define DET_WIDE
#endif
#define DET_INLINE inline __attribute__((always_inline))

namespace det {
namespace {

/// Elements per block: the partial sums stay in the L1 cache.
constexpr std::size_t kBlock = 2048;

/// The type in which elements of type T are added: float for 16-bit types.
template <typename T>
using Sum = std::conditional_t<std::is_same_v<T, c10::BFloat16> || std::is_same_v<T, c10::Half>, float, T>;

/// Sums two ranks in one pass, without a block of partial sums. For types that are their own sum type.
template <typename T>
DET_INLINE void sum_two(const T* a, const T* b, T scale, T* out, T* copy, std::size_t count) {
  if (copy == nullptr) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) out[i] = (a[i] + b[i]) * scale;
  } else {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) out[i] = copy[i] = (a[i] + b[i]) * scale;
  }
}

/// Sums elements [at, at + count) of all ranks; count <= kBlock.
template <typename T>
DET_INLINE void sum_block(const void* const* sources, int ranks, Sum<T> scale, T* out, T* copy,
                          std::size_t at, std::size_t count) {
  Sum<T> sum[kBlock];
  const T* first = static_cast<const T*>(sources[0]) + at;
  for (std::size_t i = 0; i < count; ++i) sum[i] = static_cast<Sum<T>>(first[i]);
  for (int rank = 1; rank < ranks; ++rank) {
    const T* source = static_cast<const T*>(sources[rank]) + at;
    for (std::size_t i = 0; i < count; ++i) sum[i] += static_cast<Sum<T>>(source[i]);
  }
  for (std::size_t i = 0; i < count; ++i) out[at + i] = static_cast<T>(sum[i] * scale);
  if (copy != nullptr) std::copy(out + at, out + at + count, copy + at);
}

template <typename T>
DET_INLINE void sum_all(const void* const* sources, int ranks, double times, void* out, void* copy,
                        std::size_t count) {
  // Integers are not scaled: Reduction::kMean does not support int64.
  const auto scale = std::is_integral_v<T> ? Sum<T>(1) : static_cast<Sum<T>>(times);
  if constexpr (std::is_same_v<T, Sum<T>>) {
    if (ranks == 2) {
      return sum_two(static_cast<const T*>(sources[0]), static_cast<const T*>(sources[1]), scale,
                     static_cast<T*>(out), static_cast<T*>(copy), count);
    }
  }
  for (std::size_t at = 0; at < count; at += kBlock) {
    sum_block(sources, ranks, scale, static_cast<T*>(out), static_cast<T*>(copy), at,
              std::min(kBlock, count - at));
  }
}

DET_WIDE void sum_float(const void* const* sources, int ranks, double scale, void* out, void* copy,
                        std::size_t count) {
  sum_all<float>(sources, ranks, scale, out, copy, count);
}
DET_WIDE void sum_double(const void* const* sources, int ranks, double scale, void* out, void* copy,
                         std::size_t count) {
  sum_all<double>(sources, ranks, scale, out, copy, count);
}
DET_WIDE void sum_bfloat16(const void* const* sources, int ranks, double scale, void* out, void* copy,
                           std::size_t count) {
  sum_all<c10::BFloat16>(sources, ranks, scale, out, copy, count);
}
DET_WIDE void sum_half(const void* const* sources, int ranks, double scale, void* out, void* copy,
                       std::size_t count) {
  sum_all<c10::Half>(sources, ranks, scale, out, copy, count);
}
DET_WIDE void sum_int64(const void* const* sources, int ranks, double scale, void* out, void* copy,
                        std::size_t count) {
  sum_all<std::int64_t>(sources, ranks, scale, out, copy, count);
}

}  // namespace

SumFunction sum_of(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return &sum_float;
    case c10::ScalarType::Double:
      return &sum_double;
    case c10::ScalarType::BFloat16:
      return &sum_bfloat16;
    case c10::ScalarType::Half:
      return &sum_half;
    case c10::ScalarType::Long:
      return &sum_int64;
    default:
      return nullptr;
  }
}

}  // namespace det
