// Runs jobs on a thread pool and returns their results in submission order.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/queue.h"

namespace det {

/// All methods are called by one thread. A pool of one thread runs the jobs one after another. The destructor
/// waits for running jobs and drops queued ones.
template <typename Result>
class OrderedWorkers {
 public:
  /// The result of a job, or the exception that it threw.
  using Outcome = std::variant<Result, std::exception_ptr>;

  /// `room` bounds the jobs between submit() and take(), running, queued or finished.
  OrderedWorkers(std::int64_t threads, std::int64_t room) : tasks_(room), slots_(room) {
    for (auto& slot : slots_) slot = std::make_unique<Queue<Outcome>>(1);
    for (std::int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~OrderedWorkers() {
    stopped_ = true;
    tasks_.close();
    for (std::thread& thread : threads_) thread.join();
  }
  OrderedWorkers(const OrderedWorkers&) = delete;

  /// True when submit() may be called.
  bool has_room() const { return submitted_ - taken_ < slots_.size(); }
  /// True when no job is outstanding, so that take() has nothing to return.
  bool idle() const { return submitted_ == taken_; }
  /// Queues a job. Requires has_room().
  void submit(std::function<Result()> job) {
    (void)tasks_.push({std::move(job), slots_[submitted_++ % slots_.size()].get()});
  }
  /// True when take() would return without waiting.
  bool ready() const { return !idle() && slots_[taken_ % slots_.size()]->size() > 0; }
  /// Returns the outcome of the oldest job; blocks until it is done. Requires !idle().
  Outcome take() { return *slots_[taken_++ % slots_.size()]->pop(); }

 private:
  /// A job and the queue that receives its outcome. A queue of one element acts as a future.
  struct Task {
    std::function<Result()> job;
    Queue<Outcome>* slot = nullptr;
  };
  /// The loop of a worker thread: runs tasks until the queue is closed and empty.
  void work() {
    while (std::optional<Task> task = tasks_.pop()) {
      // The destructor closed the queue: the remaining jobs are drained without being run.
      if (stopped_) continue;
      try {
        (void)task->slot->push(task->job());
      } catch (...) {
        (void)task->slot->push(std::current_exception());
      }
    }
  }

  Queue<Task> tasks_;
  std::vector<std::unique_ptr<Queue<Outcome>>> slots_;  // job n uses slot n % size
  std::uint64_t submitted_ = 0, taken_ = 0;
  std::atomic<bool> stopped_{false};
  std::vector<std::thread> threads_;
};

}  // namespace det
