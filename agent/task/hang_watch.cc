#include "agent/task/hang_watch.h"

#include <sys/stat.h>

#include <algorithm>

namespace det::agent {
namespace {

/// When the file was touched last; the epoch when it is not there.
WallTime touched_at(const std::string& path) {
  struct stat entry {};
  if (::stat(path.c_str(), &entry) != 0) return {};
  return {entry.st_mtim.tv_sec * std::int64_t{1'000'000} + entry.st_mtim.tv_nsec / 1000};
}

}  // namespace

// An eighth of the patience, so the end comes at most that much late; a look costs microseconds.
Duration HangWatch::pace() const {
  return std::clamp<Duration>(timeout_ / 8, std::chrono::milliseconds(50), std::chrono::seconds(30));
}

bool HangWatch::hangs(MonoTime now) {
  if (!watches() || now < look_) return false;
  look_ = now + pace();
  const WallTime touched = touched_at(heartbeat_);
  if (touched != touched_) alive_ = now;
  touched_ = touched;
  return touched != WallTime{} && now - alive_ >= timeout_;
}

}  // namespace det::agent
