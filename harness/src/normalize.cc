// Owns the inner loop of image loading.
#include "normalize.h"

// Compiled for several instruction sets, of which the machine's best is taken when the library is loaded; without fused
// multiply-add, which would round differently.
#if defined(__x86_64__) && !defined(__clang__)
#define DET_EVERY_MACHINE __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3", "fp-contract=off")))
#else
#define DET_EVERY_MACHINE
#endif

namespace det {

DET_EVERY_MACHINE void normalize(const std::uint8_t* bytes, float* out, std::size_t count, float scale, float shift) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(bytes[i]) * scale + shift;
}

}  // namespace det
