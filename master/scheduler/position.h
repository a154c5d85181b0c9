// Owns the order inside a priority as a number that is stored with a job: where a new job stands, and which
// numbers put one ahead of or behind another (W36). Functions of their arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "master/scheduler/scheduler.h"

namespace det::scheduler {

/// Of a job nobody moved: when it was submitted, in microseconds, times 1024: between two jobs there is room.
std::int64_t position_of(WallTime submitted);

enum class Side { kAhead, kBehind };
/// The jobs of `queue` (of one pool, in any order) that change when `job` is put directly ahead of or behind
/// `anchor`, as they are after it; the first is `job`, which takes the anchor's priority and a position
/// between the anchor and its neighbor. Where there is no number between them, those behind move up, as few
/// as can be. kNotFound when the queue lacks one of them, kInvalidArgument when they are one.
Result<std::vector<Job>> move(const std::vector<Job>& queue, ExperimentId job, Side side,
                              ExperimentId anchor);

}  // namespace det::scheduler
