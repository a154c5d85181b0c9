// Queue positions: the order of jobs within a priority is a number that is stored with each job, so it
// survives a restart. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "master/scheduler/scheduler.h"

namespace det::scheduler {

/// Returns the initial position of a job: its submission in microseconds times 1024. The factor leaves room
/// between two jobs for others that are moved there.
std::int64_t position_of(WallTime submitted);

enum class Side { kAhead, kBehind };
/// Moves `job` directly ahead of or behind `anchor`. `queue` has all jobs of one pool, in any order. Returns
/// the jobs that change, with their new values: first `job`, with the anchor's priority and a position
/// between the anchor and its neighbor, then, when no number is free between the two, as few jobs behind it
/// as possible, each moved up by one or more. Errors: kNotFound (`queue` lacks one of the two),
/// kInvalidArgument (both are the same job).
Result<std::vector<Job>> move(const std::vector<Job>& queue, JobKey job, Side side, JobKey anchor);

}  // namespace det::scheduler
