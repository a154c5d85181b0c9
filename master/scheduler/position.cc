#include "master/scheduler/position.h"

#include <algorithm>
#include <string>
#include <tuple>

namespace det::scheduler {
namespace {

/// Distance between the positions of jobs submitted in consecutive microseconds, and from a moved job to the
/// end of the queue.
constexpr std::int64_t kStep = 1024;

}  // namespace

std::int64_t position_of(WallTime submitted) { return submitted.micros * kStep; }

Result<std::vector<Job>> move(const std::vector<Job>& queue, JobKey job, Side side, JobKey anchor) {
  auto find = [&](JobKey id) {
    return std::find_if(queue.begin(), queue.end(), [&](const Job& one) { return one.id == id; });
  };
  for (JobKey id : {job, anchor}) {
    if (find(id) != queue.end()) continue;
    return fail(Code::kNotFound,
                name_of(id) + " is not in the queue of this resource pool; list it with `det job list`");
  }
  if (job == anchor) {
    return fail(Code::kInvalidArgument, "a job cannot be ahead of or behind itself; name another job");
  }
  Job moved = *find(job);
  moved.priority = find(anchor)->priority;
  std::vector<Job> line;
  for (const Job& one : queue) {
    if (one.priority == moved.priority && one.id != job) line.push_back(one);
  }
  std::sort(line.begin(), line.end(), [](const Job& a, const Job& b) {
    return std::tie(a.position, a.id) < std::tie(b.position, b.id);
  });
  // `next` is the job that will stand directly behind the moved one.
  auto next = std::find_if(line.begin(), line.end(), [&](const Job& one) { return one.id == anchor; });
  if (side == Side::kBehind) ++next;

  if (next == line.begin()) {
    moved.position = next->position - kStep;
    return std::vector<Job>{moved};
  }
  const std::int64_t before = std::prev(next)->position;
  if (next == line.end()) {
    moved.position = before + kStep;
    return std::vector<Job>{moved};
  }
  // Halfway between the neighbors. When the gap is used up, the jobs behind move up by the least that makes
  // room; the first existing gap ends the chain.
  moved.position = before + std::max<std::int64_t>((next->position - before) / 2, 1);
  std::vector<Job> changed{moved};
  for (std::int64_t taken = moved.position; next != line.end() && next->position <= taken; ++next) {
    next->position = ++taken;
    changed.push_back(*next);
  }
  return changed;
}

}  // namespace det::scheduler
