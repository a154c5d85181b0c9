// Owns telling a task that hangs from one that is slow: it has shown signs of life by its heartbeat file, and
// then neither touched that file nor printed anything for too long. What never touched it does not speak our
// language and is not judged.
#pragma once

#include <string>

#include "base/clock.h"

namespace det::agent {

class HangWatch {
 public:
  /// `heartbeat`: path of the file, which may come into being at any time. `timeout` 0: nothing ever hangs.
  HangWatch(std::string heartbeat, Duration timeout, MonoTime now)
      : heartbeat_(std::move(heartbeat)), timeout_(timeout), alive_(now), look_(now + pace()) {}

  bool watches() const { return timeout_ > Duration::zero(); }
  Duration timeout() const { return timeout_; }
  void saw_output(MonoTime now) { alive_ = now; }
  /// When hangs() wants to be asked again; of use while watches().
  MonoTime next_look() const { return look_; }
  /// Looks at the file when it is time to. True once the silence has lasted for timeout(), as seen by the
  /// machine's monotonic clock: a wall clock that is set says nothing, and time asleep does not count.
  bool hangs(MonoTime now);

 private:
  Duration pace() const;

  std::string heartbeat_;
  Duration timeout_;
  WallTime touched_{};  ///< as the file was seen last; the epoch while there is none
  MonoTime alive_, look_;
};

}  // namespace det::agent
