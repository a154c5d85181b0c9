// Owns the sums of the transports on the CPU: vectors of several ranks added in the order of ranks.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>

namespace det {

/// out[i] = copy[i] = (sources[0][i] + … + sources[ranks-1][i]) * scale, added in this order; 16-bit elements
/// are added and scaled in float and rounded once. `out` may be one of the sources, `copy` may be null;
/// nothing else may overlap. int64 is not scaled.
using SumFunction = void (*)(const void* const* sources, int ranks, double scale, void* out, void* copy,
                             std::size_t count);

/// Null for types without a sum: float, double, bfloat16, half and int64 have one.
SumFunction sum_of(c10::ScalarType type);

}  // namespace det
