// Hang detection. A task is hung if it has touched its heartbeat file before, and then neither touches the
// file nor prints anything for the timeout. A task that never touches the file does not support heartbeats
// and is exempt.
#pragma once

#include <string>

#include "common/base/clock.h"

namespace det::agent {

/// Watches one task. Used by one thread.
class HangWatch {
 public:
  /// `heartbeat`: path of the file, which may appear later. `timeout` 0: detection is off.
  HangWatch(std::string heartbeat, Duration timeout, MonoTime now)
      : heartbeat_(std::move(heartbeat)), timeout_(timeout), alive_(now), look_(now + pace()) {}

  bool watches() const { return timeout_ > Duration::zero(); }
  Duration timeout() const { return timeout_; }
  /// Records that the task printed something.
  void saw_output(MonoTime now) { alive_ = now; }
  /// Returns when hangs() should be called next. Meaningless unless watches().
  MonoTime next_look() const { return look_; }
  /// Checks the file when a check is due. Returns true once the silence has lasted for timeout() on the
  /// monotonic clock: changes of the wall clock and suspend time do not count.
  bool hangs(MonoTime now);

 private:
  // Interval between two checks.
  Duration pace() const;

  std::string heartbeat_;
  Duration timeout_;
  /// Last seen modification time; the epoch if absent.
  WallTime touched_{};
  MonoTime alive_, look_;
};

}  // namespace det::agent
