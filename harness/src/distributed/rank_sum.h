// Element-wise sums over ranks for the CPU transports. The order of additions is fixed.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>

namespace det {

/// out[i] = copy[i] = (sources[0][i] + … + sources[ranks-1][i]) * scale, added in this order. 16-bit elements
/// are added and scaled in float and rounded once; int64 is not scaled. `out` may be one of the sources,
/// `copy` may be null; no other overlap is allowed. `count` is in elements.
using SumFunction = void (*)(const void* const* sources, int ranks, double scale, void* out, void* copy,
                             std::size_t count);

/// The sum function for float, double, bfloat16, half or int64; null for other types.
SumFunction sum_of(c10::ScalarType type);

}  // namespace det
