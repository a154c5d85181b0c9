// Count of the gateway's calls in flight, for objects that must outlive them: callbacks run on gRPC's
// threads, which live as long as the process.
#pragma once

#include <atomic>
#include <memory>

#include "common/base/clock.h"
#include "common/base/event.h"

namespace det::http {

/// Thread-safe.
class Calls {
 public:
  /// Blocks until no call is in flight. Returns false when some remain after `patience`. No call may begin
  /// meanwhile.
  bool drain(Duration patience) {
    const MonoTime deadline = mono_now() + patience;
    while (count_.load() > 0) {
      const Duration left = deadline - mono_now();
      if (left <= Duration::zero()) return false;
      (void)none_left_.take_for(left);
    }
    return true;
  }

  /// Counts one call. Must be the first member of the call object, so that it is destroyed last.
  class Ticket {
   public:
    explicit Ticket(std::shared_ptr<Calls> calls) : calls_(std::move(calls)) { ++calls_->count_; }
    ~Ticket() {
      if (--calls_->count_ == 0) calls_->none_left_.set();
    }
    Ticket(const Ticket&) = delete;

   private:
    std::shared_ptr<Calls> calls_;
  };

 private:
  std::atomic<int> count_{0};
  Event none_left_;  // the count reached zero
};

}  // namespace det::http
