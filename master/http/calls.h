// Owns the count of the gateway's calls under way, for whoever must not end before them: their callbacks come
// on gRPC's threads, which live as long as the process.
#pragma once

#include <atomic>
#include <memory>

#include "base/clock.h"
#include "base/queue.h"

namespace det::http {

/// From any thread.
class Calls {
 public:
  /// Waits until none is under way; false when some still are after `patience`. No new ones may begin
  /// meanwhile.
  bool drain(Duration patience) {
    const MonoTime deadline = mono_now() + patience;
    while (count_.load() > 0) {
      const Duration left = deadline - mono_now();
      if (left <= Duration::zero()) return false;
      (void)ended_.pop_batch(1, left);
    }
    return true;
  }

  /// One call: a first member of what is the call's, so that it is the last of it to go.
  class Ticket {
   public:
    explicit Ticket(std::shared_ptr<Calls> calls) : calls_(std::move(calls)) { ++calls_->count_; }
    ~Ticket() {
      if (--calls_->count_ == 0) (void)calls_->ended_.try_push(1);
    }
    Ticket(const Ticket&) = delete;

   private:
    std::shared_ptr<Calls> calls_;
  };

 private:
  std::atomic<int> count_{0};
  Queue<int> ended_{1};
};

}  // namespace det::http
