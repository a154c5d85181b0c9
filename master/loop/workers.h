// Owns threads that run small jobs in the order given: several for work that blocks (queries, JSON), one for
// state that only a single thread may touch.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/queue.h"

namespace det::loop {

class Workers {
 public:
  using Job = std::function<void()>;

  /// With one thread jobs never overlap, and `tick`, when given, runs between them about every `period`.
  explicit Workers(int threads, std::size_t capacity = 1 << 16, Job tick = nullptr,
                   Duration period = std::chrono::seconds(1));
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Waits for room. After stop() the job is dropped and false returned.
  bool post(Job job) { return queue_.push(std::move(job)); }
  /// False, and nothing is done, when there is no room (or after stop()).
  bool try_post(Job job) { return queue_.try_push(std::move(job)); }
  /// Runs what is queued, then ends the threads. Idempotent. Not from a job.
  void stop();

 private:
  void run();
  void run_ticking(Job tick, Duration period);
  Queue<Job> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace det::loop
