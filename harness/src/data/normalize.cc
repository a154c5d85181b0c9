#include "harness/src/data/normalize.h"

#include "harness/src/base/every_machine.h"

namespace det {

DET_EVERY_MACHINE void normalize(const std::uint8_t* bytes, float* out, std::size_t count, float scale,
                                 float shift) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(bytes[i]) * scale + shift;
}

DET_EVERY_MACHINE void bytes_to_unit(const std::uint8_t* bytes, std::size_t stride, float* out,
                                     std::size_t count) {
  // A stride known at compile time lets the compiler vectorize with shuffles instead of gathers.
  if (stride == 3) {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(bytes[i * 3]) / 255.0f;
  } else if (stride == 1) {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(bytes[i]) / 255.0f;
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(bytes[i * stride]) / 255.0f;
  }
}

DET_EVERY_MACHINE void standardize(const float* values, float* out, std::size_t count, float mean,
                                   float stddev) {
  for (std::size_t i = 0; i < count; ++i) out[i] = (values[i] - mean) / stddev;
}

}  // namespace det
