// Thread pool that runs small jobs in the order posted. Several threads serve blocking work (queries, JSON).
// One thread serves state that needs no lock because only its jobs touch it.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/queue.h"

namespace det::loop {

/// A bounded queue of jobs and its threads. Jobs must not throw.
class Workers {
 public:
  using Job = std::function<void()>;

  /// `capacity`: jobs that may be queued. With one thread jobs never overlap. `tick` runs between jobs about
  /// every `period`; it requires one thread.
  explicit Workers(int threads, std::size_t capacity = 1 << 16, const Job& tick = nullptr,
                   Duration period = std::chrono::seconds(1));
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Queues a job. Blocks while the queue is full. Returns false, and drops the job, after stop().
  bool post(Job job) { return queue_.push(std::move(job)); }
  /// Queues a job if there is room. Returns false if the queue is full or stopped. Never blocks.
  bool try_post(Job job) { return queue_.try_push(std::move(job)); }
  /// Runs the queued jobs, then joins the threads. Idempotent. Must not be called from a job.
  void stop();

 private:
  void run();
  void run_ticking(const Job& tick, Duration period);
  Queue<Job> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace det::loop
