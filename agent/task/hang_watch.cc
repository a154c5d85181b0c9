#include "agent/task/hang_watch.h"

#include <sys/stat.h>

#include <algorithm>

namespace det::agent {
namespace {

/// Modification time of the file; the epoch if it does not exist.
WallTime touched_at(const std::string& path) {
  struct stat entry {};
  // Not followed: the task may have put a link here.
  if (::lstat(path.c_str(), &entry) != 0) return {};
  return {entry.st_mtim.tv_sec * std::int64_t{1'000'000} + entry.st_mtim.tv_nsec / 1000};
}

}  // namespace

// An eighth of the timeout: detection is late by at most that much. A check costs microseconds.
Duration HangWatch::pace() const {
  return std::clamp<Duration>(timeout_ / 8, std::chrono::milliseconds(50), std::chrono::seconds(30));
}

bool HangWatch::hangs(MonoTime now) {
  if (!watches() || now < look_) return false;
  look_ = now + pace();
  const WallTime touched = touched_at(heartbeat_);
  // Only a change of the time counts, so a wrong wall clock does no harm.
  if (touched != touched_) alive_ = now;
  touched_ = touched;
  return touched != WallTime{} && now - alive_ >= timeout_;
}

}  // namespace det::agent
